"""Hard regions: many features at half a standard deviation, short lengthscales, Matern kernels, finite norms.

Where the range of the variance over a box is hopeless, and supporting planes settle what chords do not
(docs/maths/bounds.md, G1 to G5). CPU seconds of all regions of a row, minimum and maximum together, at most
`SECONDS` each: limits are CPU seconds too, so that a busy machine converges no less. Last, several classes:
the median question, and how many are settled within their limit (a radius: how many are positive). Only the
public interface is used: with `PYTHONPATH` set to the `src` of another checkout the same file measures that
one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_digits

import gpcert as gc
from ranges import ONLY, Row

TITLE = "Hard regions, all features, tolerance 0.02 unless said, one thread"
SECONDS = 10.0
#: Several classes: how many points, and which.
POINTS, SEED = 10, 2026


def made(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A table whose label depends on five features and noise; with eight features, not linearly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, :5].sum(axis=1) if d > 8 else 2.0 * np.sin(X[:, 0]) + 2.0 * X[:, 1] * X[:, 2]
    return X, (score + 0.5 * rng.normal(size=n) > 0).astype(int)


def fitted(kernel: Any, X: np.ndarray, y: np.ndarray, likelihood: str = "probit") -> gc.Posterior:
    return gc.GPClassifier(kernel=kernel, likelihood=likelihood, max_evals=0).fit(X, y).posterior_


def as_link(post: gc.Posterior) -> gc.Posterior:
    """The same with a logistic of which the library knows no more than that it rises, and its values."""
    link = gc.Link(expit, lambda a, b: (expit(a) * (1 - 1e-14), expit(b) * (1 + 1e-14)), "logistic")
    return gc.Posterior(
        post.centres, post.weights, post.precision, kernel=post.kernel, likelihood=link, mean=post.mean
    )


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
    for radius, tolerance in ((0.5, 0.02), (0.3, 0.001)):
        yield (
            f"60 features, logit, r = {radius}, tolerance {tolerance}",
            lambda r=radius: (fitted(gc.RBF(8.0, 10.0), X60, y60, "logit"), balls(X60, 3, r)),
            tolerance,
        )
    yield "33 features, r = 0.5", lambda: (fitted(gc.RBF(6.0, 10.0), X33, y33), balls(X33, 3, 0.5)), 0.02
    for radius, tolerance in ((0.5, 0.02), (1.0, 0.02), (0.5, 0.001)):
        yield (
            f"8 features, r = {radius}, tolerance {tolerance}",
            lambda r=radius: (fitted(gc.RBF(3.0, 10.0), X8, y8), balls(X8, 3, r)),
            tolerance,
        )
    for name, X, y, kernel in (("8", X8, y8, gc.RBF(3.0, 10.0)), ("60", X60, y60, gc.RBF(8.0, 10.0))):
        yield (
            f"{name} features, a logistic as a link of one's own, r = 0.5",
            lambda X=X, y=y, k=kernel: (as_link(fitted(k, X[:200], y[:200], "logit")), balls(X, 3, 0.5)),
            0.02,
        )
    kernels = (
        ("5/2", gc.Matern52(3.0, 10.0)),
        ("3/2", gc.Matern32(3.0, 10.0)),
        ("1/2", gc.Matern12(3.0, 10.0)),
    )
    for name, kernel in kernels:
        for norm, radius in ((np.inf, 0.3), (3.0, 0.5), (1.5, 0.6), (1.0, 0.8)):
            yield (
                f"8 features, Matern {name}, norm {norm:g}, r = {radius}",
                lambda k=kernel, p=norm, r=radius: (
                    fitted(k, X8[:200], y8[:200]),
                    balls(X8, 3, r, norm=p),
                ),
                0.02,
            )


def real() -> Iterator[tuple[str, Callable[[], tuple[gc.Posterior, list[gc.Ball]]], float]]:
    """Tables of scikit-learn, shuffled: tumours (30 features, standardised) and digits (64, two groups)."""
    tumours, digits = load_breast_cancer(), load_digits()
    X30 = (tumours.data - tumours.data.mean(axis=0)) / tumours.data.std(axis=0)
    order, other = (np.random.default_rng(0).permutation(len(each.target)) for each in (tumours, digits))
    X30, y30 = X30[order], tumours.target[order]
    X64, y64 = digits.data[other] / 16.0, (digits.target[other] > 4).astype(int)
    for radius, tolerance in ((0.3, 0.02), (0.5, 0.02), (0.3, 0.001)):
        yield (
            f"tumours, r = {radius}, tolerance {tolerance}",
            lambda r=radius: (fitted(gc.RBF(5.0, 10.0), X30[:300], y30[:300]), balls(X30[300:], 3, r)),
            tolerance,
        )
    for radius, tolerance in ((0.1, 0.02), (0.2, 0.02), (0.05, 0.001)):
        yield (
            f"digits, r = {radius}, tolerance {tolerance}",
            lambda r=radius: (
                fitted(gc.RBF(1.8, 20.0), X64[:400], y64[:400]),
                balls(X64[400:], 3, r, domain=(0.0, 1.0)),
            ),
            tolerance,
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


def classes(n: int, d: int, count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A table of so many classes: the nearest of as many random points."""
    rng = np.random.default_rng(seed)
    X, middles = rng.normal(size=(n, d)), 1.2 * rng.normal(size=(count, d))
    return X, ((X[:, None] - middles) ** 2).sum(axis=2).argmin(axis=1)


def several() -> Iterator[tuple[str, Callable[[], tuple[gc.Posterior, np.ndarray]], Callable[..., Any]]]:
    """Name, (model, points), and the question about one of them."""
    unit, three = (0.0, 1.0), gc.datasets.load("mnist358")
    for likelihood in ("softmax", "probit"):
        for radius in (0.25, 0.5, 1.0):
            yield (
                f"ten classes, {likelihood}, verdict, r = {radius}/16, 2 s",
                lambda name=likelihood: ten(name),
                lambda post, x, r=radius: gc.certify(
                    post, x, gc.Ball(x, r / 16, domain=unit), tolerance=0.02, max_seconds=2.0
                ),
            )
        kernel = gc.RBF(6.9, 30.0 if likelihood == "softmax" else 100.0)
        X, y = three.X_train[:600], three.y_train[:600]
        images = partial(model, kernel, X, y, likelihood, three.X_test)
        yield (
            f"three classes, {likelihood}, verdict, r = 0.1, 5 s",
            images,
            lambda post, x: gc.certify(post, x, gc.Ball(x, 0.1, domain=unit), max_seconds=5.0),
        )
        yield (
            f"three classes, {likelihood}, range, r = 0.1, 5 s",
            images,
            lambda post, x: gc.probability_range(
                post, gc.Ball(x, 0.1, domain=unit), tolerance=0.02, max_seconds=5.0
            ),
        )
        yield (
            f"eleven classes, ten features, {likelihood}, verdict, r = 0.1, 5 s",
            partial(model, gc.RBF(3.0, 5.0), *classes(330, 10, 11), likelihood),
            lambda post, x: gc.certify(post, x, gc.Ball(x, 0.1), max_seconds=5.0),
        )
        yield (
            f"six classes, {likelihood}, radius up to 3, 10 s",
            partial(model, gc.RBF(3.0, 5.0), *classes(300, 8, 6), likelihood),
            lambda post, x: gc.certified_radius(post, x, max_radius=3.0, max_seconds=10.0),
        )


def model(
    kernel: Any, X: np.ndarray, y: np.ndarray, likelihood: str, points: np.ndarray | None = None
) -> tuple[gc.Posterior, np.ndarray]:
    return fitted(kernel, X, y, likelihood), X if points is None else points


@cache
def ten(likelihood: str) -> tuple[gc.Posterior, np.ndarray]:
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))  # the file is ordered by writer
    X, y = data.data[order] / 16.0, data.target[order]
    return model(gc.RBF(1.8, 20.0), X[:600], y[:600], likelihood, X[600:])


def labels() -> list[Row]:
    """Several classes, points by a seed of their own."""
    rows: list[Row] = []
    for name, make, ask in several():
        if ONLY not in name:
            continue
        post, X = make()
        gc.certify(post, X[0], gc.Ball(X[0], 1e-6))  # facts of the model, once
        times, found = [], []
        for x in X[np.random.default_rng(SEED).choice(len(X), POINTS, replace=False)]:
            start = time.process_time()
            found.append(ask(post, x))
            times.append(time.process_time() - start)
        proved = [r.safe > 0.0 if hasattr(r, "safe") else settled(r) for r in found]
        rows.append(
            {
                "regions": name,
                "CPU s": round(float(np.median(times)), 3),
                "largest": round(max(times), 3),
                "converged": f"{sum(proved)}/{len(proved)}",
                "nodes": sum(r.nodes for r in found),
            }
        )
        print(rows[-1], flush=True)
    return rows


def settled(answer: Any) -> bool:
    return str(answer.status) in ("safe", "unsafe", "converged")


def measure() -> list[Row]:
    rows: list[Row] = []
    for name, make, tolerance in (*tables(), *real(), *shipped()):
        if ONLY not in name:
            continue
        post, regions = make()
        gc.probability_range(post, gc.Ball(post.centres[0], 1e-3), max_nodes=1)  # facts of the model, once
        start = time.process_time()
        with patch.object(time, "perf_counter", time.process_time):
            found = [
                gc.probability_range(post, region, tolerance=tolerance, max_seconds=SECONDS)
                for region in regions
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
    return rows + labels()
