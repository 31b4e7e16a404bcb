"""What many centres cost: whole images, 8,000 training points against 1,000, one core.

Both in one run: training images of MNIST 3/8 repeated with noise, kernel kept, probit, tolerance 0.02. A
batch of 100 is asked twice, and the second time counts; the first makes what all batches share,
with the verified facts of the model. Single: one question at a time, the median of some.
`GPCERT_BENCH_CENTRES` takes another number of centres, `GPCERT_BENCH_POINTS` fewer regions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gpcert as gc

TITLE = "Many centres: ms per question, and how many times that of 1,000 centres"
CENTRES = int(os.environ.get("GPCERT_BENCH_CENTRES", "8000"))
POINTS = int(os.environ.get("GPCERT_BENCH_POINTS", "100"))
SINGLE = 5

Row = dict[str, str | float]


def measure() -> list[Row]:
    data = gc.datasets.load("mnist38")
    models = {n: _repeated(data, n) for n in (1000, CENTRES)}
    rows: list[Row] = []
    for what in ("range", "verdict"):
        for radius in (0.05, 0.1):
            few, many = (_costs(post, data.X_test[:POINTS], what, radius) for post in models.values())
            rows.append(
                {"question": what, "r": radius, "n": CENTRES}
                | {f"{name}, n = 1,000": few[name] for name in few}
                | many
                | {"times": round(many["ms"] / few["ms"], 2)}
                | {"times, single": round(many["single ms"] / few["single ms"], 2)}
            )
            print(rows[-1], flush=True)
    return rows


def _costs(post: gc.Posterior, X: np.ndarray, what: str, radius: float) -> dict[str, float]:
    regions = [gc.Ball(x, radius, domain=(0.0, 1.0)) for x in X]

    def ask(which: Any, **options: int) -> Any:
        some = [regions[i] for i in which] if isinstance(which, range) else regions[which]
        if what == "range":
            return gc.probability_range(post, some, **options)
        return gc.certify(
            post, X[which.start : which.stop] if isinstance(which, range) else X[which], some, **options
        )

    first, _ = _timed(lambda: ask(range(len(X)), n_jobs=1))
    batch, answers = _timed(lambda: ask(range(len(X)), n_jobs=1))
    ask(0)
    single = [_timed(lambda i=i: ask(i))[0] for i in range(1, 1 + SINGLE)]
    return {
        "first s": round(first, 2),
        "ms": round(1e3 * batch / len(X), 3),
        "left": int(sum(each.nodes > 2 for each in answers)),
        "single ms": round(1e3 * float(np.median(single)), 1),
    }


def _repeated(data: gc.datasets.Dataset, n: int) -> gc.Posterior:
    times = -(-n // len(data.X_train))
    X, y = np.concatenate([data.X_train] * times)[:n], np.concatenate([data.y_train] * times)[:n]
    noise = 0.02 * np.random.default_rng(0).standard_normal(X.shape)
    return gc.GPClassifier(gc.RBF(6.06, 91.7), max_evals=0).fit(np.clip(X + noise, 0, 1), y).posterior_


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = call()
    return time.process_time() - start, found
