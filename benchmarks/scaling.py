"""How the cost of a certified range grows: with the features that move, the radius, the tolerance, and n.

Median CPU time of the minimum and the maximum together, MNIST 3/8, Laplace, probit, random moving pixels, one
BLAS thread. n beyond 1,000: training images repeated with small noise, kernel kept. `python
benchmarks/scaling.py` also draws docs/images/cost.png from benchmarks/results/scaling.json.
"""

from __future__ import annotations

import json
import pathlib
import time

import numpy as np

import gpcert as gc

TITLE = "Certified ranges: how cost grows (median CPU milliseconds, min and max together)"
ROOT = pathlib.Path(__file__).resolve().parents[1]
POINTS = 9

Row = dict[str, str | float]


def query(post: gc.Posterior, X: np.ndarray, d: int, r: float, tolerance: float) -> Row:
    spent, converged = [], []
    for i, x in enumerate(X[:POINTS]):
        features = None if d == X.shape[1] else np.random.default_rng(i).choice(len(x), d, replace=False)
        region = gc.Ball(x, r, features=features, domain=(0.0, 1.0))
        start = time.process_time()
        answer = gc.probability_range(post, region, tolerance=tolerance, max_seconds=10)
        spent.append(time.process_time() - start)
        converged.append(answer.status == "converged")
    return {
        "n": post.n_centres,
        "features": d,
        "r": r,
        "tolerance": tolerance,
        "ms": round(1e3 * float(np.median(spent)), 2),
        "converged": round(float(np.mean(converged)), 3),
    }


def repeated(data: gc.datasets.Dataset, n: int, kernel: gc.RBF) -> gc.Posterior:
    random = np.random.default_rng(0)
    times = -(-n // len(data.X_train))
    X = np.concatenate([data.X_train] * times)[:n]
    X = np.clip(X + 0.02 * random.standard_normal(X.shape), 0, 1)
    y = np.concatenate([data.y_train] * times)[:n]
    return gc.GPClassifier(kernel, max_evals=0).fit(X, y).posterior_


def measure() -> list[Row]:
    data = gc.datasets.load("mnist38")
    post = gc.GPClassifier(max_evals=40).fit(data.X_train, data.y_train).posterior_
    X = data.X_test[np.argsort(np.abs(post.probability(data.X_test)[:, 1] - 0.5))[2:40:4]]
    query(post, X[:1], 10, 0.1, 0.02)  # verifies the model once
    rows = []
    for d in (1, 2, 5, 10, 20, 24, 25, 50, 100, 196):
        rows.append({"sweep": "features"} | query(post, X, d, 0.1, 0.02))
    for r in (0.01, 0.025, 0.05, 0.1, 0.15, 0.2):
        rows.append({"sweep": "radius, all pixels"} | query(post, X, 196, r, 0.02))
    for r in (0.1, 0.25, 0.5, 1.0):
        rows.append({"sweep": "radius, 10 pixels"} | query(post, X, 10, r, 0.02))
    for tolerance in (0.05, 0.02, 0.005, 0.001, 1e-4):
        rows.append({"sweep": "tolerance, all pixels"} | query(post, X, 196, 0.05, tolerance))
        rows.append({"sweep": "tolerance, 10 pixels"} | query(post, X, 10, 0.5, tolerance))
    for n in (500, 1000, 2000, 4000, 8000):
        larger = repeated(data, n, post.kernel)
        query(larger, X[:1], 10, 0.1, 0.02)
        rows.append({"sweep": "n, 10 pixels"} | query(larger, X, 10, 0.25, 0.02))
        rows.append({"sweep": "n, all pixels"} | query(larger, X, 196, 0.05, 0.02))
    return rows


def draw(rows: list[Row], path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(14, 3.4), layout="constrained")
    panels = [
        ("features", ("features",), "pixels that move (r = 0.1)"),
        ("r", ("radius, all pixels", "radius, 10 pixels"), "radius r"),
        ("tolerance", ("tolerance, all pixels", "tolerance, 10 pixels"), "tolerance"),
        ("n", ("n, all pixels", "n, 10 pixels"), "training points n"),
    ]
    for axis, (column, sweeps, label) in zip(axes, panels, strict=True):
        for sweep, marker, style in zip(sweeps, "os", ("-", "--"), strict=False):
            chosen = [row for row in rows if row["sweep"] == sweep]
            axis.loglog(
                [row[column] for row in chosen],
                [row["ms"] for row in chosen],
                marker=marker,
                linestyle=style,
                label=sweep.split(", ")[-1] if len(sweeps) > 1 else None,
            )
        values = sorted({float(row[column]) for row in rows if row["sweep"] in sweeps})
        axis.set_xticks(values[:: 1 + len(values) // 7], minor=False)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.xaxis.set_minor_locator(plt.NullLocator())
        axis.set_xlabel(label)
        axis.grid(True, which="both", alpha=0.25)
        if len(sweeps) > 1:
            axis.legend()
    axes[0].set_ylabel("CPU ms, min and max")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    results = json.loads((ROOT / "benchmarks" / "results" / "scaling.json").read_text())
    draw(results["rows"], ROOT / "docs" / "images" / "cost.png")
