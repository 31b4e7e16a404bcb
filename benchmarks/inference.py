"""What inference costs: CPU time against the unavoidable linear algebra, and peak memory at n = 5,000.

    python benchmarks/inference.py            # the table
    python benchmarks/inference.py memory     # only the memory line, in its own process

One evaluation = kernel matrix, approximation, gradient of the log marginal likelihood. The unit of cost is
kernel matrix + Cholesky factor + inverse from that factor (LAPACK potrf, potri), timed in the same run before
and after the rest. One BLAS thread, process time, whole `fit` divided by the evaluations it made.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # before numpy loads its BLAS

import resource
import subprocess
import sys
import time

import numpy as np
from scipy.linalg import lapack

import gpcert as gc

EVALUATIONS = 40
LIMITS = {("laplace", "isotropic"): 3, ("ep", "isotropic"): 6, ("laplace", "ard"): 6, ("ep", "ard"): 12}
MEMORY_LIMIT = 8.0


def unit_seconds(X: np.ndarray, repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        K = gc.RBF(5.0, 10.0)(X)
        K[np.diag_indices_from(K)] += 1.0
        factor, _ = lapack.dpotrf(K.T, lower=1, clean=0, overwrite_a=1)
        lapack.dpotri(factor, lower=1, overwrite_c=1)
    return (time.process_time() - start) / repeats


def evaluation_seconds(X: np.ndarray, y: np.ndarray, inference: str, form: str, likelihood: str):
    lengthscale = 5.0 if form == "isotropic" else np.full(X.shape[1], 5.0)
    model = gc.GPClassifier(gc.RBF(lengthscale, 10.0), likelihood, inference, max_evals=EVALUATIONS)
    start = time.process_time()
    model.fit(X, y)
    return (time.process_time() - start) / model.n_evals_, model


def speed() -> None:
    data = gc.datasets.load("mnist38")
    X, y = data.X_train, data.y_train
    units = [unit_seconds(X, 20)]
    rows = []
    for likelihood in ("probit", "logit"):
        for inference, form in LIMITS:
            seconds, model = evaluation_seconds(X, y, inference, form, likelihood)
            units.append(unit_seconds(X, 5))
            accuracy = model.score(data.X_test, data.y_test)
            rows.append((likelihood, inference, form, seconds, model, accuracy))
    unit = float(np.mean(units))
    print(f"MNIST 3/8, n = {len(X)}, d = {X.shape[1]}; unit of cost {1e3 * unit:.1f} ms")
    print("likelihood inference form      ms/eval  evals  ratio  limit  log marg. lik.  test accuracy")
    for likelihood, inference, form, seconds, model, accuracy in rows:
        print(
            f"{likelihood:10s} {inference:9s} {form:9s} {1e3 * seconds:8.1f} {model.n_evals_:6d} "
            f"{seconds / unit:6.2f} {LIMITS[inference, form]:6d} {model.log_marginal_likelihood_:15.4f} "
            f"{accuracy:14.3f}"
        )


def memory(n: int = 5000, d: int = 57) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    y = np.sign(X[:, 0] + 0.3 * random.normal(size=n))
    start = time.process_time()
    model = gc.GPClassifier(gc.RBF(8.0, 4.0), max_evals=3).fit(X, y)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"Laplace, n = {n}, {model.n_evals_} evaluations: peak memory {peak:.2f} GB (limit {MEMORY_LIMIT:.0f}), "
        f"{time.process_time() - start:.0f} s"
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["memory"]:
        memory()
    else:
        speed()
        subprocess.run([sys.executable, __file__, "memory"], check=True)
