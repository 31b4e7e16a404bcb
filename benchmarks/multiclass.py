"""Several classes: the table of what converges, what is decided, and what it costs, one thread.

Softmax posteriors with the kernel of the largest marginal likelihood (MNIST358) and a shorter one (digits,
`DIGITS`). Test points: half of them those with the smallest difference of the two largest latent means.
Ranges: minimum and maximum of one class together, the two most probable classes of every point. CPU time.
Last, what ten classes cost compared with three: digits 3, 5, 8 and all digits, as many points, same kernel.
`GPCERT_BENCH_POINTS` takes fewer points, `GPCERT_BENCH_ONLY` rows whose name contains a text.
"""

from __future__ import annotations

import os
import time
from functools import cache

import numpy as np
from sklearn.datasets import load_digits

import gpcert as gc

TITLE = "Several classes: share converged or decided, median and largest CPU seconds, one thread"
POINTS = int(os.environ.get("GPCERT_BENCH_POINTS", "20"))
ONLY = os.environ.get("GPCERT_BENCH_ONLY", "")
DIGITS = gc.RBF(1.8, 20.0)

Row = dict[str, str | float]

#: data, question, features (0: all), radius, tolerance, seconds per region
QUERIES = [
    ("mnist358", "range", 10, 0.25, 0.025, 20),
    ("mnist358", "range", 0, 0.02, 0.025, 20),
    ("mnist358", "range", 0, 0.05, 0.025, 20),
    ("mnist358", "range", 0, 0.1, 0.025, 20),
    ("mnist358", "verdict", 0, 0.02, 0.02, 10),
    ("mnist358", "verdict", 0, 0.05, 0.02, 10),
    ("mnist358", "verdict", 0, 0.1, 0.02, 10),
    ("digits", "verdict", 0, 0.25 / 16, 0.02, 10),
    ("digits", "verdict", 0, 0.5 / 16, 0.02, 10),
    ("digits", "verdict", 0, 1.0 / 16, 0.02, 10),
    ("digits", "range", 0, 0.25 / 16, 0.05, 10),
    ("digits", "range", 0, 0.5 / 16, 0.025, 10),
]

#: Ten classes over three: question, radius, tolerance.
RATIOS = [("verdict", 0.25 / 16, 0.02), ("range", 0.25 / 16, 0.05)]
FEW = (3, 5, 8)


@cache
def digits(classes: tuple[int, ...], n: int) -> tuple[gc.Posterior, np.ndarray, float]:
    """Posterior of the first n digits of these classes, 200 test points, accuracy."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))  # the file is ordered by writer
    order = order[np.isin(data.target[order], classes)]
    X, y = data.data[order] / 16.0, data.target[order]
    clf = gc.GPClassifier(DIGITS, likelihood="softmax", max_evals=0).fit(X[:n], y[:n])
    return clf.posterior_, X[n : n + 200], clf.score(X[n : n + 200], y[n : n + 200])


@cache
def model(name: str) -> tuple[gc.Posterior, np.ndarray, float]:
    """Posterior, test points, accuracy."""
    if name == "digits":
        return digits(tuple(range(10)), 600)
    data = gc.datasets.load(name)
    clf = gc.GPClassifier(gc.RBF(3.0, 10.0), likelihood="softmax", max_evals=30)
    clf.fit(data.X_train, data.y_train)
    return clf.posterior_, data.X_test, clf.score(data.X_test, data.y_test)


def points(post: gc.Posterior, X: np.ndarray) -> np.ndarray:
    mean = np.sort(post.latent(X)[0], axis=1)
    order = np.argsort(mean[:, -1] - mean[:, -2])
    half = POINTS // 2
    return np.concatenate([order[:half], order[len(order) // 2 :][: POINTS - half]])


def ask(
    post: gc.Posterior,
    X: np.ndarray,
    question: str,
    moving: int,
    radius: float,
    tolerance: float,
    seconds: float,
) -> tuple[list[bool], list[float], float]:
    """What is converged or decided, CPU seconds of each, and what is verified once per posterior."""
    start = time.process_time()
    gc.certify(post, X[0], gc.Ball(X[0], 1e-6, domain=(0.0, 1.0)))
    once = time.process_time() - start
    rng = np.random.default_rng(0)
    good, times = [], []
    for i in points(post, X):
        features = rng.choice(X.shape[1], moving, replace=False) if moving else None
        ball = gc.Ball(X[i], radius, domain=(0.0, 1.0), features=features)
        if question == "verdict":
            start = time.process_time()
            verdict = gc.certify(post, X[i], ball, tolerance=tolerance, max_seconds=seconds)
            times.append(time.process_time() - start)
            good.append(verdict.status != "unknown")
            continue
        for c in np.argsort(post.latent(X[i : i + 1])[0][0])[::-1][:2]:
            start = time.process_time()
            answer = gc.probability_range(
                post, ball, post.labels[c], tolerance=tolerance, max_seconds=seconds
            )
            times.append(time.process_time() - start)
            good.append(answer.status == "converged")
    return good, times, once


def measure() -> list[Row]:
    rows: list[Row] = []
    for name, question, moving, radius, tolerance, seconds in QUERIES:
        label = f"{name}, {question}, {moving or 'all'} features, r = {radius:g}, tolerance {tolerance:g}"
        if ONLY not in label:
            continue
        post, X, accuracy = model(name)
        good, times, once = ask(post, X, question, moving, radius, tolerance, seconds)
        rows.append(
            {
                "query": label,
                "share": float(np.mean(good)),
                "median s": float(np.median(times)),
                "largest s": float(max(times)),
                "accuracy": accuracy,
                "once per posterior s": once,
            }
        )
        print(rows[-1], flush=True)
    return rows + ratios()


def ratios() -> list[Row]:
    """Ten classes over three, in one run."""
    rows: list[Row] = []
    for question, radius, tolerance in RATIOS:
        label = f"ten classes over three, {question}, 300 digits, all features, r = {radius:g}"
        if ONLY not in label:
            continue
        medians, shares = [], []
        for classes in (FEW, tuple(range(10))):
            post, X, _ = digits(classes, 300)
            good, times, _ = ask(post, X, question, 0, radius, tolerance, 20)
            medians.append(float(np.median(times)))
            shares.append(float(np.mean(good)))
        rows.append(
            {
                "query": label,
                "share": min(shares),
                "median s": medians[1],
                "median s of three": medians[0],
                "ratio": medians[1] / medians[0],
            }
        )
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    measure()
