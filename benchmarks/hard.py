"""Hard regions: many features at half a standard deviation, short lengthscales, Matern kernels, finite norms.

Where the range of the variance over a box is hopeless, and supporting planes settle what chords do not
(docs/maths.md, G1 to G5). CPU seconds of all regions of a row, minimum and maximum together, at most
`SECONDS` each. Only the public interface is used: with `PYTHONPATH` set to the `src` of another checkout the
same file measures that one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gpcert as gc
from ranges import ONLY, Row

TITLE = "Hard regions, all features, tolerance 0.02 unless said, one thread"
SECONDS = 10.0


def made(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A table whose label depends on five features and noise; with eight features, not linearly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, :5].sum(axis=1) if d > 8 else 2.0 * np.sin(X[:, 0]) + 2.0 * X[:, 1] * X[:, 2]
    return X, (score + 0.5 * rng.normal(size=n) > 0).astype(int)


def fitted(kernel: Any, X: np.ndarray, y: np.ndarray, likelihood: str = "probit") -> gc.Posterior:
    return gc.GPClassifier(kernel=kernel, likelihood=likelihood, max_evals=0).fit(X, y).posterior_


def balls(X: np.ndarray, count: int, radius: float, **options: Any) -> list[gc.Ball]:
    return [gc.Ball(x, radius, **options) for x in X[:count]]


def tables() -> Iterator[tuple[str, Callable[[], tuple[gc.Posterior, list[gc.Ball]]], float]]:
    X60, y60 = made(145, 60)
    X33, y33 = made(245, 33)
    X8, y8 = made(400, 8)
    for radius in (0.3, 0.5):
        yield (
            f"60 features, r = {radius}",
            lambda r=radius: (fitted(gc.RBF(8.0, 10.0), X60, y60), balls(X60, 3, r)),
            0.02,
        )
    yield (
        "60 features, logit, r = 0.5",
        lambda: (fitted(gc.RBF(8.0, 10.0), X60, y60, "logit"), balls(X60, 3, 0.5)),
        0.02,
    )
    yield "33 features, r = 0.5", lambda: (fitted(gc.RBF(6.0, 10.0), X33, y33), balls(X33, 3, 0.5)), 0.02
    for radius, tolerance in ((0.5, 0.02), (1.0, 0.02), (0.5, 0.001)):
        yield (
            f"8 features, r = {radius}, tolerance {tolerance}",
            lambda r=radius: (fitted(gc.RBF(3.0, 10.0), X8, y8), balls(X8, 3, r)),
            tolerance,
        )
    for name, kernel in (("5/2", gc.Matern52(3.0, 10.0)), ("3/2", gc.Matern32(3.0, 10.0))):
        for norm, radius in ((np.inf, 0.3), (3.0, 0.5), (1.0, 0.8)):
            yield (
                f"8 features, Matern {name}, norm {norm:g}, r = {radius}",
                lambda k=kernel, p=norm, r=radius: (
                    fitted(k, X8[:200], y8[:200]),
                    balls(X8, 3, r, norm=p),
                ),
                0.02,
            )


def shipped() -> Iterator[tuple[str, Callable[[], tuple[gc.Posterior, list[gc.Ball]]], float]]:
    digits, plane = gc.datasets.load("mnist38"), gc.datasets.load("synthetic2d")
    for radius in (0.15, 0.2):
        yield (
            f"196 pixels, lengthscale 3, r = {radius}",
            lambda r=radius: (
                fitted(gc.RBF(3.0, 10.0), digits.X_train[:300], digits.y_train[:300]),
                balls(digits.X_test, 3, r, domain=(0.0, 1.0)),
            ),
            0.02,
        )
    for radius, tolerance in ((1.0, 0.02), (2.0, 0.02), (1.0, 0.001)):
        yield (
            f"synthetic2d, r = {radius}, tolerance {tolerance}",
            lambda r=radius: (
                fitted(gc.RBF(1.6, 300.0), plane.X_train[:300], plane.y_train[:300]),
                balls(plane.X_test, 4, r),
            ),
            tolerance,
        )


def measure() -> list[Row]:
    rows: list[Row] = []
    for name, make, tolerance in (*tables(), *shipped()):
        if ONLY not in name:
            continue
        post, regions = make()
        gc.probability_range(post, gc.Ball(post.centres[0], 1e-3), max_nodes=1)  # facts of the model, once
        start = time.process_time()
        found = [
            gc.probability_range(post, region, tolerance=tolerance, max_seconds=SECONDS) for region in regions
        ]
        rows.append(
            {
                "regions": name,
                "CPU s": round(time.process_time() - start, 3),
                "converged": f"{sum(r.status == 'converged' for r in found)}/{len(found)}",
                "widest": round(max(max(r.min.width, r.max.width) for r in found), 4),
                "nodes": sum(r.nodes for r in found),
            }
        )
        print(rows[-1], flush=True)
    return rows
