"""Ours against the published method (AISTATS 2020, docs/maths/paper.md), the same queries in one run.

Minimum and maximum together, tolerance 0.025, CPU time, one BLAS thread. A query of the published method ends
after 10 seconds: then its time, and the ratio, are lower bounds. `gpcert reproduce runtime` is the longer
version, with the paper's own pixels.
"""

from __future__ import annotations

import time

import numpy as np

import gpcert as gc

TITLE = "Ours against the published method: mean CPU seconds and their ratio, one thread"
POINTS = 6
SECONDS = 10.0
TOLERANCE = 0.025
#: data set, features (0: all), radius
QUERIES = [
    ("synthetic2d", 0, 0.1),
    ("synthetic2d", 0, 0.5),
    ("spam", 0, 0.1),
    ("mnist38", 1, 0.25),
    ("mnist38", 3, 0.25),
    ("mnist38", 5, 0.25),
    ("mnist38", 7, 0.25),
    ("mnist358", 1, 0.25),
]

Row = dict[str, str | float]


def model(name: str) -> tuple[gc.Posterior, gc.datasets.Dataset]:
    data = gc.datasets.load(name)
    likelihood = "softmax" if name == "mnist358" else "probit"
    size = 150 if name == "mnist358" else len(data.X_train)
    clf = gc.GPClassifier(likelihood=likelihood, max_evals=10)
    return clf.fit(data.X_train[:size], data.y_train[:size]).posterior_, data


def measure() -> list[Row]:
    rows: list[Row] = []
    models: dict[str, tuple[gc.Posterior, gc.datasets.Dataset]] = {}
    for name, d, radius in QUERIES:
        if name not in models:
            models[name] = model(name)
        post, data = models[name]
        rng = np.random.default_rng(0)
        balls = []
        for x in data.X_test[:POINTS]:
            features = rng.permutation(x.size)[:d].tolist() if d else None
            balls.append(gc.Ball(x, radius, features=features, domain=data.domain))
        ours, theirs = (cost(post, balls, method) for method in ("auto", "paper"))
        rows.append(
            {
                "query": f"{name}, {f'{d} random features' if d else 'all features'}",
                "r": radius,
                "ours, s": round(ours[0], 4),
                "published, s": round(theirs[0], 3),
                "ratio": round(theirs[0] / ours[0], 1),
                "ours converged": f"{ours[1]} of {POINTS}",
                "published converged": f"{theirs[1]} of {POINTS}",
            }
        )
    return rows


def cost(post: gc.Posterior, balls: list[gc.Ball], method: str) -> tuple[float, int]:
    """Mean CPU seconds per ball, and how many converged."""
    label = post.classes[-1]
    gc.probability_range(post, balls[0], label, method, max_nodes=2)  # what is done once per model
    spent, solved = 0.0, 0
    for ball in balls:
        start = time.process_time()
        r = gc.probability_range(post, ball, label, method, tolerance=TOLERANCE, max_seconds=SECONDS)
        spent += time.process_time() - start
        solved += r.status == "converged"
    return spent / len(balls), solved
