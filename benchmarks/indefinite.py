"""Ranges of variational posteriors, whose precision is indefinite, against a positive semidefinite one.

All have the same centres, kernel and weights. Indefinite: Laplace's precision K^-1 - K^-1 S K^-1 with S
perturbed in whitened coordinates by a random symmetric matrix of norm about 0.1, as an optimiser that stops
early leaves it. Definite: the same with the negative eigenvalues of I - S (whitened) set to 0. Laplace: not
perturbed, so another variance, and a smoother one. Median CPU seconds of a range to 0.02, the models in turn.
Three and five classes: softmax over independent latents, each treated in the same way.
"""

from __future__ import annotations

import time

import numpy as np

import gpcert as gc

TITLE = "Indefinite precision against positive semidefinite, same size"
REGIONS = 12
#: Classes, centres, features, radius.
SIZES = ((2, 100, 2, 0.3), (2, 300, 2, 0.3), (2, 300, 10, 0.2), (3, 100, 2, 0.1), (5, 100, 2, 0.1))
KINDS = ("Laplace", "definite", "indefinite")


def posteriors(classes: int, n: int, d: int) -> tuple[dict[str, gc.Posterior], int]:
    """One posterior of each kind, and how many eigenvalues of the last one's precision are negative."""
    random = np.random.default_rng(n + d)
    X = random.normal(size=(n, d))
    kernel = gc.RBF(1.5 * np.sqrt(d), 5.0)
    score = X[:, 0] * X[:, min(1, d - 1)] + 0.3 * random.normal(size=n)
    groups = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    inverse = np.linalg.inv(np.linalg.cholesky(kernel(X) + 1e-6 * np.eye(n)))
    weights, precisions, negative = [], [], 0
    for c in range(1 if classes == 2 else classes):
        labels = groups if classes == 2 else (groups == c).astype(int)
        own = gc.GPClassifier(kernel, max_evals=0).fit(X, labels).posterior_
        noise = random.normal(size=(n, n)) / np.sqrt(8.0 * n)
        L = np.linalg.inv(inverse)
        values, vectors = np.linalg.eigh(L.T @ own.precision @ L + 0.1 * (noise + noise.T))
        half = vectors.T @ inverse
        perturbed = [half.T @ (kept[:, None] * half) for kept in (np.maximum(values, 0.0), values)]
        precisions.append([own.precision] + [0.5 * (R + R.T) for R in perturbed])
        weights.append(own.weights)
        negative += int((values < 0).sum())
    found = {}
    for kind, stack in zip(KINDS, zip(*precisions, strict=True), strict=True):
        if classes == 2:
            found[kind] = gc.Posterior(X, weights[0], stack[0], kernel=kernel, likelihood="probit")
        else:
            alpha, R = np.stack(weights, axis=1), np.stack(stack)
            found[kind] = gc.Posterior(X, alpha, R, kernel=kernel, likelihood="softmax")
    return found, negative


def measure() -> list[dict[str, str | float]]:
    """One row per size."""
    rows: list[dict[str, str | float]] = []
    for classes, n, d, radius in SIZES:
        models, negative = posteriors(classes, n, d)
        seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
        nodes: dict[str, list[int]] = {kind: [] for kind in KINDS}
        widest = 0.0
        for i in range(REGIONS + 1):
            for kind, post in models.items():
                start = time.process_time()
                r = gc.probability_range(post, gc.Ball(post.centres[i], radius), max_seconds=30)
                widest = max(widest, r.min.width, r.max.width)
                if i:  # the first verifies the model, once
                    seconds[kind].append(time.process_time() - start)
                    nodes[kind].append(r.nodes)
        medians = {kind: float(np.median(seconds[kind])) for kind in KINDS}
        rows.append(
            {"classes": float(classes), "n": float(n), "d": float(d), "radius": radius}
            | {"negative eigenvalues": float(negative)}
            | {f"{kind}, CPU s": medians[kind] for kind in KINDS}
            | {f"{kind}, nodes": float(np.median(nodes[kind])) for kind in KINDS}
            | {
                "to definite": medians["indefinite"] / medians["definite"],
                "to Laplace": medians["indefinite"] / medians["Laplace"],
                "widest enclosure": widest,
            }
        )
    return rows
