"""Ranges of variational posteriors, whose precision is indefinite, against a positive semidefinite one.

Both have the same centres, kernel and weights. Indefinite: Laplace's precision K^-1 - K^-1 S K^-1 with S
perturbed in whitened coordinates by a random symmetric matrix of norm about 0.1, as an optimiser that stops
early leaves it. Definite: the same with the negative eigenvalues of I - S (whitened) set to 0. Median CPU
seconds of a range to 0.02, the two models in turn.
"""

from __future__ import annotations

import time

import numpy as np

import gpcert as gc

TITLE = "Indefinite precision against positive semidefinite, same size"
REGIONS = 12
SIZES = ((100, 2, 0.3), (300, 2, 0.3), (300, 10, 0.2))


def pair(n: int, d: int) -> tuple[gc.Posterior, gc.Posterior, int]:
    """A definite and an indefinite posterior, and how many eigenvalues of the latter are negative."""
    random = np.random.default_rng(n + d)
    X = random.normal(size=(n, d))
    y = np.sign(X[:, 0] * X[:, min(1, d - 1)] + 0.3 * random.normal(size=n))
    post = gc.GPClassifier(gc.RBF(1.5 * np.sqrt(d), 5.0), max_evals=0).fit(X, y).posterior_
    L = np.linalg.cholesky(post.kernel(X) + 1e-6 * np.eye(n))
    noise = random.normal(size=(n, n)) / np.sqrt(8.0 * n)
    values, vectors = np.linalg.eigh(L.T @ post.precision @ L + 0.1 * (noise + noise.T))
    half = vectors.T @ np.linalg.inv(L)
    both = []
    for kept in (np.maximum(values, 0.0), values):
        R = half.T @ (kept[:, None] * half)
        both.append(
            gc.Posterior(X, post.weights, 0.5 * (R + R.T), kernel=post.kernel, likelihood=post.likelihood)
        )
    return both[0], both[1], int((values < 0).sum())


def measure() -> list[dict[str, str | float]]:
    """One row per size."""
    rows: list[dict[str, str | float]] = []
    for n, d, radius in SIZES:
        definite, indefinite, negative = pair(n, d)
        seconds: dict[str, list[float]] = {"definite": [], "indefinite": []}
        widest = 0.0
        for i in range(REGIONS + 1):
            for name, post in (("definite", definite), ("indefinite", indefinite)):
                start = time.process_time()
                r = gc.probability_range(post, gc.Ball(post.centres[i], radius), max_seconds=30)
                widest = max(widest, r.min.width, r.max.width)
                if i:  # the first verifies the model, once
                    seconds[name].append(time.process_time() - start)
        one, other = (float(np.median(seconds[name])) for name in ("definite", "indefinite"))
        rows.append(
            {
                "n": float(n),
                "d": float(d),
                "radius": radius,
                "negative eigenvalues": float(negative),
                "definite, CPU s": one,
                "indefinite, CPU s": other,
                "ratio": other / one,
                "widest enclosure": widest,
            }
        )
    return rows
