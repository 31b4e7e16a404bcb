"""Batches through the engine on one core: from regions in Python to answers in Python, CPU time.

MNIST 3/8, 1,000 training points, probit, tolerance 0.02. A batch is asked twice, and the second time
counts: the first makes what all batches on the same features share. Scalar: the same
questions one by one, a sample, in the same run. Digits: softmax, n = 400. A floor is one evaluation of
mean, variance and gradients. `GPCERT_BENCH_POINTS` takes fewer regions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import gpcert as gc

TITLE = "Batched roots: 100 regions in one call, one core, against single questions"
POINTS = int(os.environ.get("GPCERT_BENCH_POINTS", "100"))
SAMPLE = 10

Row = dict[str, str | float]

#: Question, kernel or model, features, norm, radius.
QUERIES: list[tuple[str, str, int, float, float]] = [
    ("range", "rbf", 196, np.inf, 0.05),
    ("range", "rbf", 196, np.inf, 0.1),
    ("range", "rbf", 196, np.inf, 0.15),
    ("range", "rbf", 10, np.inf, 0.25),
    ("range", "rbf", 10, np.inf, 0.5),
    ("range", "rbf", 10, np.inf, 1.0),
    ("verdict", "rbf", 196, np.inf, 0.05),
    ("verdict", "rbf", 196, np.inf, 0.1),
    ("range", "rbf", 196, 2.0, 0.5),
    ("range", "rbf", 196, 2.0, 1.0),
    ("range", "rbf", 10, 2.0, 1.0),
    ("verdict", "rbf", 196, 2.0, 0.5),
    ("range", "matern52", 196, np.inf, 0.025),
    ("range", "matern52", 196, 2.0, 0.5),
    ("verdict", "matern52", 196, np.inf, 0.05),
    ("verdict", "matern32", 196, np.inf, 0.025),
    ("range", "rational quadratic", 196, np.inf, 0.025),
    ("verdict", "rational quadratic", 196, np.inf, 0.05),
    ("verdict", "3 digits", 64, np.inf, 0.5 / 16),
    ("verdict", "10 digits", 64, np.inf, 0.5 / 16),
]
#: Lengthscales at which the kernels vary about equally fast over these images.
KERNELS = {
    "rbf": gc.RBF(6.06, 91.7),
    "matern52": gc.Matern52(8.0, 91.7),
    "matern32": gc.Matern32(10.0, 91.7),
    "rational quadratic": gc.RationalQuadratic(6.06, 91.7, 2.0),
}


@cache
def _model(name: str) -> tuple[gc.Posterior, np.ndarray]:
    """A model and points to ask it about: MNIST 3/8 with the kernel, or softmax on sklearn's digits."""
    if name in KERNELS:
        data = gc.datasets.load("mnist38")
        clf = gc.GPClassifier(KERNELS[name], max_evals=0).fit(data.X_train[:1000], data.y_train[:1000])
        return clf.posterior_, data.X_test[:POINTS]
    digits, order = load_digits(), np.random.default_rng(0).permutation(1797)  # the file is ordered by writer
    order = order[np.isin(digits.target[order], (3, 5, 8))] if name == "3 digits" else order
    X, y = digits.data[order] / 16.0, digits.target[order]
    clf = gc.GPClassifier(gc.RBF(1.8, 20.0), likelihood="softmax", max_evals=0).fit(X[:400], y[:400])
    return clf.posterior_, X[400 : 400 + POINTS]


def measure() -> list[Row]:
    rows: list[Row] = []
    for what, kernel, count, norm, radius in QUERIES:
        post, X = _model(kernel)
        floor = _floor(post, X)
        features = None if count > 10 else list(range(90, 90 + count))
        regions = [gc.Ball(x, radius, norm, features, (0.0, 1.0)) for x in X]
        ask = _asker(post, what)
        ask(X[0], regions[0])  # verifies the model's facts once
        first, _ = _timed(lambda ask=ask, X=X, regions=regions: ask(X, regions, n_jobs=1))
        batch, answers = _timed(lambda ask=ask, X=X, regions=regions: ask(X, regions, n_jobs=1))
        sample = range(min(SAMPLE, len(X)))
        alone, _ = _timed(lambda ask=ask, X=X, r=regions, few=sample: [ask(X[i], r[i]) for i in few])
        rows.append(
            {
                "question": what,
                "kernel": kernel,
                "features": count,
                "norm": norm,
                "r": radius,
                "ms": round(1e3 * batch / len(X), 2),
                "first ms": round(1e3 * first / len(X), 2),
                "single ms": round(1e3 * alone / len(sample), 1),
                "times faster": round(alone / len(sample) / (batch / len(X)), 1),
                "floors": round(batch / len(X) / floor, 2),
                "one box a side": round(float(np.mean([each.nodes <= 2 for each in answers])), 3),
            }
        )
        print(rows[-1], flush=True)
    return rows


def _asker(post: gc.Posterior, what: str) -> Callable[..., Any]:
    if what == "verdict":
        return lambda x, region, **options: gc.certify(post, x, region, **options)
    return lambda x, region, **options: gc.probability_range(post, region, **options)


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def _floor(post: gc.Posterior, X: np.ndarray) -> float:
    seconds, _ = _timed(lambda: [(post.latent(x[None]), post.latent_gradient(x[None])) for x in X[:20]])
    return seconds / min(20, len(X))
