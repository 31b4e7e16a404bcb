"""Verdicts, radii, explanations and attacks: their cost in floors measured in the same run, what they decide.

Floor as in benchmarks/ranges.py. MNIST 3/8 with all 196 pixels in [0, 1] unless said otherwise; CPU time, one
BLAS thread. `GPCERT_BENCH_POINTS` takes fewer points.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np

import gpcert as gc
from ranges import floor_seconds

TITLE = "Questions: cost in floors (median, largest) and what is decided, one thread"
POINTS = int(os.environ.get("GPCERT_BENCH_POINTS", "40"))

Row = dict[str, str | float]


def model(name: str) -> tuple[gc.Posterior, gc.datasets.Dataset]:
    data = gc.datasets.load(name)
    return gc.GPClassifier(max_evals=40).fit(data.X_train, data.y_train).posterior_, data


def timed(post: gc.Posterior, X: np.ndarray, ask: Callable[[np.ndarray], object]) -> tuple[list, Row]:
    """The answers at X, one at a time, and their cost."""
    answers, spent, floors = [], [], []
    for x in X:
        floors.append(floor_seconds(post, X[:5]))
        start = time.process_time()
        answers.append(ask(x))
        spent.append(time.process_time() - start)
    cost = np.array(spent) / np.median(floors)
    return answers, {
        "floors": round(float(np.median(cost)), 1),
        "largest": round(float(cost.max()), 1),
        "floor ms": round(1e3 * float(np.median(floors)), 3),
    }


def measure() -> list[Row]:
    rows: list[Row] = []
    post, data = model("mnist38")
    order = np.argsort(np.abs(post.probability(data.X_test)[:, 1] - 0.5))
    X = data.X_test[np.concatenate([order[: POINTS // 2], order[-(POINTS - POINTS // 2) :]])]
    gc.certify(post, X[0], gc.Ball(X[0], 0.01, domain=data.domain))  # verifies the model once

    def tell(row: Row) -> None:
        rows.append(row)
        print(row, flush=True)

    for r in (0.02, 0.05, 0.1, 0.15, 0.2):
        found, cost = timed(post, X, lambda x, r=r: gc.certify(post, x, gc.Ball(x, r, domain=data.domain)))
        status = [v.status for v in found]
        shares = {name: status.count(name) / len(status) for name in ("safe", "unsafe", "unknown")}
        tell({"question": f"certify, r = {r}"} | cost | shares)
    found, cost = timed(post, X, lambda x: gc.certified_radius(post, x, domain=data.domain))
    gap = max((r.unsafe - r.safe) / r.unsafe for r in found)
    tests = float(np.mean([r.tests for r in found]))
    tell({"question": "certified_radius"} | cost | {"largest gap": gap, "proofs": tests})
    for r in (0.1, 0.25, 1.0):
        found, cost = timed(post, X[:10], lambda x, r=r: gc.explain(post, x, r))
        width = max(float((e.upper - e.lower).max()) for e in found)
        tell({"question": f"explain, r = {r}"} | cost | {"widest": width})
    tell(attack_quality(post, data))
    tell(verdicts_at_defaults())
    return rows


def attack_quality(post: gc.Posterior, data: gc.datasets.Dataset) -> Row:
    """How often PGD comes within 1e-3 of the certified optimum, where that is known to 5e-4."""
    random = np.random.default_rng(0)
    regions = []
    for i in range(3 * POINTS):
        features = np.sort(random.choice(196, (10, 20, 50)[i % 3], replace=False)) if i % 2 else None
        radius = (0.05, 0.1, 0.15)[i % 3] * (5 if i % 2 else 1)
        x = data.X_test[random.integers(len(data.X_test))]
        regions.append(gc.Ball(x, radius, features=features, domain=data.domain))
    start = time.process_time()
    attacks = [gc.attack(post, regions, label=label) for label in reversed(post.labels)]
    seconds = (time.process_time() - start) / len(regions) / 2
    good = known = 0
    for region, low, high in zip(regions, *attacks, strict=True):
        answer = gc.probability_range(post, region, tolerance=4.9e-4, max_seconds=5)
        for end, gap in (
            (answer.min, low.probability - answer.min.lower),
            (answer.max, answer.max.upper - (1.0 - high.probability)),
        ):
            if end.width < 5e-4:
                known, good = known + 1, good + (gap <= 1e-3)
    return {
        "question": "attack: PGD within 1e-3",
        "share": good / max(known, 1),
        "of": known,
        "ms": round(1e3 * seconds, 2),
    }


def verdicts_at_defaults() -> Row:
    """The share of "unknown" at defaults on the shipped two-class data."""
    count = unknown = 0
    for name, radii in (
        ("mnist38", (0.05, 0.1, 0.15)),
        ("spam", (0.1, 0.5)),
        ("synthetic2d", (0.1, 0.5, 1.0)),
    ):
        post, data = model(name)
        X = data.X_test[: 2 * POINTS]
        for r in radii:
            verdicts = gc.certify(post, X, [gc.Ball(x, r, domain=data.domain) for x in X])
            count += len(verdicts)
            unknown += sum(v.status == "unknown" for v in verdicts)
    return {"question": "certify at defaults", "share unknown": unknown / count, "of": count}
