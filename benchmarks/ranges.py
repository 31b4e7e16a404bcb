"""Certified ranges: the table of what converges and what it costs, in floors measured in the same run.

Floor = one evaluation of mean, variance and their gradients at one point, as tersely as numpy allows. 20 test
points, half of them those with the smallest |p - 1/2|; minimum and maximum together; CPU time, one BLAS
thread. `GPCERT_BENCH_POINTS` takes fewer points, `GPCERT_BENCH_ONLY` rows whose name contains a text.
"""

from __future__ import annotations

import os
import time

import numpy as np

import gpcert as gc

TITLE = "Certified ranges: share converged and median cost (min and max together), one thread"
POINTS = int(os.environ.get("GPCERT_BENCH_POINTS", "20"))
ONLY = os.environ.get("GPCERT_BENCH_ONLY", "")

Row = dict[str, str | float]

#: data set, features (0: all), radii, tolerance, seconds per region
QUERIES = [
    ("mnist38", 10, (0.25,), 0.02, 20),
    ("mnist38", 10, (0.5,), 0.02, 20),
    ("mnist38", 10, (1.0,), 0.02, 20),
    ("mnist38", 20, (0.5,), 0.02, 20),
    ("mnist38", 20, (1.0,), 0.02, 20),
    ("mnist38", 0, (0.05, 0.075, 0.1, 0.15), 0.02, 20),
    ("mnist38", 0, (0.2,), 0.02, 20),
    ("mnist38", 0, (0.05,), 0.001, 20),
    ("mnist38", 0, (0.1,), 0.001, 20),
    ("spam", 0, (0.1, 0.25, 0.5, 1.0), 0.02, 20),
    ("synthetic2d", 0, (0.1, 0.25, 0.5, 1.0, 2.0), 0.02, 20),
    ("mnist38, lengthscale 3", 0, (0.1,), 0.02, 30),
    ("mnist38, logit", 0, (0.05, 0.1), 0.02, 20),
    ("mnist38, EP", 0, (0.05, 0.1), 0.02, 20),
]


def model(name: str) -> tuple[gc.Posterior, gc.datasets.Dataset]:
    data = gc.datasets.load(name.split(",")[0])
    options: dict[str, object] = {"max_evals": 40}
    if "lengthscale 3" in name:
        fitted = gc.GPClassifier(max_evals=40).fit(data.X_train, data.y_train).kernel_
        options = {"max_evals": 0, "kernel": gc.RBF(3.0, fitted.variance)}
    if "logit" in name:
        options["likelihood"] = "logit"
    if "EP" in name:
        options["inference"] = "ep"
    return gc.GPClassifier(**options).fit(data.X_train, data.y_train).posterior_, data


def floor_seconds(post: gc.Posterior, X: np.ndarray) -> float:
    """Less than any caller of `latent` pays: no checks, no generality, one matrix-vector product."""
    lengthscale, variance = post.kernel.lengthscale, post.kernel.variance
    R, alpha, centres = post.precision, post.weights, post.centres
    start = time.process_time()
    for x in X:
        v = (centres - x) / lengthscale
        k = variance * np.exp(-0.5 * np.einsum("ij,ij->i", v, v))
        r = R @ k
        _ = k @ alpha, variance - k @ r, np.stack([k * alpha, -2.0 * k * r]) @ v / lengthscale
    return (time.process_time() - start) / len(X)


def points(post: gc.Posterior, X: np.ndarray) -> np.ndarray:
    order = np.argsort(np.abs(post.probability(X)[:, 1] - 0.5))
    half = order[: POINTS // 2]
    rest = np.setdiff1d(np.arange(len(X)), half)[: POINTS - len(half)]
    return np.concatenate([half, rest])


def measure() -> list[Row]:
    rows: list[Row] = []
    models: dict[str, tuple[gc.Posterior, gc.datasets.Dataset]] = {}
    for name, d, radii, tolerance, seconds in QUERIES:
        label = f"{name}, {f'{d} random features' if d else 'all features'}"
        if ONLY not in label:
            continue
        if name not in models:
            models[name] = model(name)
        post, data = models[name]
        gc.probability_range(post, gc.Ball(data.X_test[0], 0.0))  # verifies the model's facts once
        chosen = points(post, data.X_test)
        for r in radii:
            rows.append(
                {"query": label, "r": r, "tolerance": tolerance}
                | _cost(post, data, chosen, d, r, tolerance, seconds)
            )
            print(rows[-1], flush=True)
    return rows


def _cost(post, data, chosen, d, r, tolerance, seconds) -> Row:  # type: ignore[no-untyped-def]
    results, spent, floors = [], [], []
    domain = data.domain
    for i in chosen:
        x = data.X_test[i]
        features = np.sort(np.random.default_rng(int(i)).choice(len(x), d, replace=False)) if d else None
        region = gc.Ball(x, r, features=features, domain=domain)
        floors.append(floor_seconds(post, data.X_test[:10]))
        start = time.process_time()
        results.append(gc.probability_range(post, region, tolerance=tolerance, max_seconds=seconds))
        spent.append(time.process_time() - start)
    floor = float(np.median(floors))
    return {
        "converged": float(np.mean([q.status == "converged" for q in results])),
        "floors": round(float(np.median(spent)) / floor),
        "median s": round(float(np.median(spent)), 4),
        "max s": round(float(np.max(spent)), 3),
        "nodes": int(np.max([q.nodes for q in results])),
        "floor ms": round(floor * 1e3, 3),
    }
