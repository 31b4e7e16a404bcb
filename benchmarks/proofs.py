"""Proof files: what exporting costs beside the answer itself, what checking costs, sizes, what is proved.

CPU time, one BLAS thread; medians over points. "export" is the answer with its proof less the answer alone;
"check" is `gpcert_check` on one file, without the model's part (V1, once). `GPCERT_BENCH_POINTS`
takes fewer points.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import gpcert as gc

TITLE = "Proof files: export and check beside the certifying time (medians), sizes, numbers proved exactly"
POINTS = int(os.environ.get("GPCERT_BENCH_POINTS", "20"))
CHECKER = Path(__file__).resolve().parents[1] / "checker"
#: Lengthscale and radii.
PLAN = {
    "synthetic2d": (1.0, (0.5, 1.0, 2.0)),
    "spam": (1.5, (0.05, 0.1)),
    "mnist38": (4.0, (0.05, 0.1)),
    "random, n = 3000": (2.0, (0.05,)),
}
#: CPU seconds of the first file, which has the model's part in it, of each other one; and MB in the end.
TIMED = """
import json, resource, sys, time
from gpcert_check import Checker
times = [time.process_time()]
checker = Checker("model.safetensors")
for path in sys.argv[1:]:
    checker.check(path)
    times.append(time.process_time())
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
print(json.dumps([[b - a for a, b in zip(times, times[1:])], most]))
"""

Row = dict[str, str | float]


def measure() -> list[Row]:
    rows: list[Row] = []
    for name, (lengthscale, radii) in PLAN.items():
        X, y, X_test = points(name)
        post = gc.GPClassifier(gc.RBF(lengthscale, 4.0), max_evals=0).fit(X, y).posterior_
        rows += [{"model": name, "n": len(X)} | row for row in costs(post, X_test[:POINTS], radii)]
        print(*rows[-len(radii) :], sep="\n", flush=True)
    return rows


def points(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points and labels to train, and points to ask about."""
    if not name.startswith("random"):
        data = gc.datasets.load(name)
        return data.X_train[:1000], data.y_train[:1000], data.X_test
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 10))
    return X, (X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) > 0).astype(int), X


def costs(post: gc.Posterior, X: np.ndarray, radii: tuple[float, ...]) -> list[Row]:
    """A row for each radius; the checker takes all files at once."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        gc.save(post, Path(folder) / "model.safetensors")
        post = gc.load(Path(folder) / "model.safetensors")  # its hash is known then
        gc.probability_range(post, gc.Ball(X[0], 1e-3), proof=Path(folder) / "first")
        for radius in radii:
            rows.append({"radius": radius} | exported(post, X, radius, Path(folder)))
        names = [f"{radius}-{i}.json" for radius in radii for i in range(len(X))]
        first, *each = timed(folder, ["first", *names])
        for i, row in enumerate(rows):
            part = each[i * len(X) : (i + 1) * len(X)]
            row |= {"model s": round(first[0], 1), "MB": round(first[1])}
            row |= {"check s": round(float(np.median(part)), 2), "slowest s": round(max(part), 1)}
    return rows


def exported(post: gc.Posterior, X: np.ndarray, radius: float, folder: Path) -> Row:
    plain, proved, sizes, exact = [], [], [], []
    for i, x in enumerate(X):
        path = folder / f"{radius}-{i}.json"
        start = time.process_time()
        gc.probability_range(post, gc.Ball(x, radius))
        middle = time.process_time()
        answer = gc.probability_range(post, gc.Ball(x, radius), proof=path)
        plain.append(middle - start)
        proved.append(time.process_time() - middle)
        sizes.append(path.stat().st_size)
        exact.append(answer.proof.exact)
    certify, export = np.array(plain), np.array(proved) - np.array(plain)
    return {
        "certify ms": round(1e3 * float(np.median(certify)), 1),
        "export / certify": round(float(np.median(export / certify)), 2),
        "kB": round(float(np.median(sizes)) / 1e3, 1),
        "proved exactly": round(float(np.mean(exact)), 3),
    }


def timed(folder: str, names: list[str]) -> list:
    """(CPU seconds, MB) of the first file, CPU seconds of the others."""
    command = [sys.executable, "-c", TIMED, *names]
    environment = {"PYTHONPATH": str(CHECKER)}
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    (first, *others), most = json.loads(done.stdout)
    return [(first, most), *others]
