"""Several classes: the table of what converges, what is decided, and what it costs, one thread.

Softmax posteriors with the kernel of the largest marginal likelihood (MNIST358) and a shorter one (digits,
`DIGITS`). Test points: half of them those with the smallest difference of the two largest latent means.
Ranges: minimum and maximum of one class together, the two most probable classes of every point. CPU time.
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

#: data, question, features (0: all), radius, tolerance, seconds per region, required share, required median
QUERIES = [
    ("mnist358", "range", 10, 0.25, 0.025, 20, "100 %", "0.5 s"),
    ("mnist358", "range", 0, 0.02, 0.025, 20, "100 %", "1 s"),
    ("mnist358", "range", 0, 0.05, 0.025, 20, "93 %", "5 s"),
    ("mnist358", "verdict", 0, 0.02, 0.02, 10, "98 %", "0.3 s"),
    ("mnist358", "verdict", 0, 0.05, 0.02, 10, "98 %", "0.3 s"),
    ("mnist358", "verdict", 0, 0.1, 0.02, 10, "98 %", "0.3 s"),
    ("digits", "verdict", 0, 0.25 / 16, 0.02, 10, "87 %", "3 s"),
    ("digits", "verdict", 0, 0.5 / 16, 0.02, 10, "87 %", "3 s"),
    ("digits", "verdict", 0, 1.0 / 16, 0.02, 10, "87 %", "3 s"),
    ("digits", "range", 0, 0.25 / 16, 0.05, 10, "85 %", "-"),
    ("digits", "range", 0, 0.5 / 16, 0.025, 10, "(aim)", "-"),
]


@cache
def model(name: str) -> tuple[gc.Posterior, np.ndarray, float]:
    """Posterior, test points, accuracy."""
    if name == "digits":
        digits = load_digits()
        order = np.random.default_rng(0).permutation(len(digits.target))  # the file is ordered by writer
        X, y = digits.data[order] / 16.0, digits.target[order]
        clf = gc.GPClassifier(DIGITS, likelihood="softmax", max_evals=0).fit(X[:600], y[:600])
        return clf.posterior_, X[600:800], clf.score(X[600:800], y[600:800])
    data = gc.datasets.load(name)
    clf = gc.GPClassifier(gc.RBF(3.0, 10.0), likelihood="softmax", max_evals=30)
    clf.fit(data.X_train, data.y_train)
    return clf.posterior_, data.X_test, clf.score(data.X_test, data.y_test)


def points(post: gc.Posterior, X: np.ndarray) -> np.ndarray:
    mean = np.sort(post.latent(X)[0], axis=1)
    order = np.argsort(mean[:, -1] - mean[:, -2])
    half = POINTS // 2
    return np.concatenate([order[:half], order[len(order) // 2 :][: POINTS - half]])


def measure() -> list[Row]:
    rows: list[Row] = []
    for name, question, moving, radius, tolerance, seconds, share, median in QUERIES:
        label = f"{name}, {question}, {moving or 'all'} features, r = {radius:g}, tolerance {tolerance:g}"
        if ONLY not in label:
            continue
        post, X, accuracy = model(name)
        # What is verified once per posterior is not part of a query.
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
                answer = gc.probability_range(post, ball, int(c), tolerance=tolerance, max_seconds=seconds)
                times.append(time.process_time() - start)
                good.append(answer.status == "converged")
        rows.append(
            {
                "query": label,
                "share": float(np.mean(good)),
                "required share": share,
                "median s": float(np.median(times)),
                "required median": median,
                "largest s": float(max(times)),
                "accuracy": accuracy,
                "once per posterior s": once,
            }
        )
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    measure()
