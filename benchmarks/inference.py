"""What training costs: CPU time against the unavoidable linear algebra, and peak memory at n = 5,000.

One evaluation = kernel matrix, approximation, gradient of the log marginal likelihood; the whole `fit` is
divided by the evaluations it made. The unit of cost is kernel matrix + Cholesky factor + inverse from that
factor (LAPACK potrf and potri, the cheapest there is), timed in the same run between the fits.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

import gpcert as gc

TITLE = (
    "Training: CPU time per evaluation in units of kernel matrix + Cholesky + inverse, MNIST 3/8, n = 1,000"
)
EVALUATIONS = 40
LIMITS = {("laplace", "isotropic"): 3, ("ep", "isotropic"): 6, ("laplace", "ard"): 6, ("ep", "ard"): 12}
MEMORY_LIMIT = 8

Row = dict[str, str | float]


def unit_seconds(X: np.ndarray, repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        K = gc.RBF(5.0, 10.0)(X)
        K[np.diag_indices_from(K)] += 1.0
        factor, _ = lapack.dpotrf(K.T, lower=1, clean=0, overwrite_a=1)
        lapack.dpotri(factor, lower=1, overwrite_c=1)
    return (time.process_time() - start) / repeats


def fit(X: np.ndarray, y: np.ndarray, likelihood: str, inference: str, form: str):
    lengthscale = 5.0 if form == "isotropic" else np.full(X.shape[1], 5.0)
    model = gc.GPClassifier(gc.RBF(lengthscale, 10.0), likelihood, inference, max_evals=EVALUATIONS)
    start = time.process_time()
    model.fit(X, y)
    return (time.process_time() - start) / model.n_evals_, model


def speed() -> list[Row]:
    data = gc.datasets.load("mnist38")
    X, y = data.X_train, data.y_train
    units = [unit_seconds(X, 20)]
    fits = []
    for likelihood in ("probit", "logit"):
        for inference, form in LIMITS:
            fits.append(((likelihood, inference, form), *fit(X, y, likelihood, inference, form)))
            units.append(unit_seconds(X, 5))
    unit = float(np.mean(units))
    return [
        {
            "model": " ".join(name),
            "ms per evaluation": round(1e3 * seconds, 1),
            "unit ms": round(1e3 * unit, 1),
            "ratio": round(seconds / unit, 2),
            "limit": LIMITS[name[1:]],
            "evaluations": model.n_evals_,
            "log marginal likelihood": round(model.log_marginal_likelihood_, 4),
            "test accuracy": model.score(data.X_test, data.y_test),
        }
        for name, seconds, model in fits
    ]


def memory(n: int = 5000, d: int = 57) -> Row:
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    y = np.sign(X[:, 0] + 0.3 * random.normal(size=n))
    model = gc.GPClassifier(gc.RBF(8.0, 4.0), max_evals=3).fit(X, y)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "model": f"probit laplace isotropic, n = {n}",
        "peak GB": round(peak, 2),
        "limit": MEMORY_LIMIT,
        "evaluations": model.n_evals_,
    }


def measure() -> list[Row]:
    with threadpool_limits(1):
        rows = speed()
    # A process of its own, since a peak never goes down again.
    command = [sys.executable, __file__, "memory"]
    return [*rows, json.loads(subprocess.run(command, check=True, capture_output=True).stdout)]


if __name__ == "__main__":
    if sys.argv[1:] == ["memory"]:
        with threadpool_limits(1):
            print(json.dumps(memory()))
    else:
        print(*measure(), sep="\n")
