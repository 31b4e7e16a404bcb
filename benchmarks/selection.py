"""Choosing a kernel and an inference by certified accuracy instead of by likelihood or by accuracy.

SPAM (11 standardised features) and MNIST 3/8 (196 pixels): a grid of lengthscales, variances and inferences
is trained on 400 points; each of three rules takes one model by what it sees there or on 300 others, and is
judged on 500 points that nobody has seen. `python benchmarks/selection.py` also draws
docs/images/selection.png; about five minutes on one core.
"""

from __future__ import annotations

import itertools
import pathlib
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpcert as gc

TITLE = "Model selection: by log marginal likelihood, by accuracy, by certified accuracy"
ROOT = pathlib.Path(__file__).resolve().parents[1]
TRAINED, SEEN, JUDGED = 400, 300, 500

Row = dict[str, str | float]


@dataclass(frozen=True)
class Task:
    """A data set, the radius that is asked about, and what the kernels of its grid are made of."""

    name: str
    radius: float
    lengthscales: tuple[float, ...]
    variances: tuple[float, ...]
    radii: tuple[float, ...]


TASKS = (
    Task(
        "spam", 0.1, (1.0, 2.0, 4.0, 8.0, 16.0), (1.0, 10.0, 100.0), tuple(np.linspace(0.0, 0.3, 13).tolist())
    ),
    Task(
        "mnist38",
        0.1,
        (2.0, 4.0, 6.0, 9.0, 14.0),
        (1.0, 10.0, 100.0),
        tuple(np.linspace(0.0, 0.2, 9).tolist()),
    ),
)


def candidates(task: Task) -> list[dict[str, Any]]:
    """Every model of the grid with what the rules look at."""
    data = gc.datasets.load(task.name)
    X, y = data.X_train[:TRAINED], data.y_train[:TRAINED]
    Z, t = data.X_train[TRAINED:][:SEEN], data.y_train[TRAINED:][:SEEN]
    certified = gc.certified_score(task.radius, domain=data.domain, max_nodes=20)
    found = []
    for length, variance, inference in itertools.product(
        task.lengthscales, task.variances, ("laplace", "ep")
    ):
        clf = gc.GPClassifier(gc.RBF(length, variance), inference=inference, max_evals=0).fit(X, y)
        found.append(
            {
                "model": clf,
                "kernel": f"RBF({length:g}, {variance:g}), {inference}",
                "log marginal likelihood": float(clf.log_marginal_likelihood_),
                "accuracy": float(clf.score(Z, t)),
                "certified accuracy": certified(clf, Z, t),
            }
        )
    return found


def chosen(task: Task) -> list[tuple[str, dict[str, Any], gc.Evaluation]]:
    """(rule, model, evaluation on unseen points) of each rule; ties go to the likelihood."""
    data, grid = gc.datasets.load(task.name), candidates(task)
    X = np.concatenate([data.X_test, data.X_extra])[:JUDGED]
    y = np.concatenate([data.y_test, data.y_extra])[:JUDGED]
    found = []
    for rule in ("log marginal likelihood", "accuracy", "certified accuracy"):
        best = max(grid, key=lambda each: (each[rule], each["log marginal likelihood"]))
        options = {"domain": data.domain, "max_nodes": 20, "n_jobs": 1}
        found.append((rule, best, gc.evaluate(best["model"], X, y, task.radii, **options)))
    return found


def rows(task: Task, found: list[tuple[str, dict[str, Any], gc.Evaluation]]) -> list[Row]:
    at = [
        int(np.argmin(np.abs(np.array(task.radii) - r)))
        for r in (task.radius / 2, task.radius, 1.5 * task.radius)
    ]
    return [
        {
            "data": task.name,
            "chosen by": rule,
            "model": best["kernel"],
            "accuracy": round(float(answer.clean), 4),
            **{f"certified at {task.radii[i]:g}": round(float(answer.certified[i]), 4) for i in at},
        }
        for rule, best, answer in found
    ]


def measure() -> list[Row]:
    return [row for task in TASKS for row in rows(task, chosen(task))]


def draw() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(TASKS), figsize=(9.0, 3.6), sharey=True, layout="constrained")
    for axis, task in zip(axes, TASKS, strict=True):
        found = chosen(task)
        print(*rows(task, found), sep="\n", flush=True)
        for (rule, _, answer), style in zip(found, ("-", "--", "-."), strict=True):
            axis.step(task.radii, answer.certified, style, where="pre", label=rule)
        axis.axvline(task.radius, color="0.7", linewidth=1, zorder=0)
        axis.set(title=task.name, xlabel="radius", ylim=(0.0, 1.0))
    axes[0].set_ylabel("certified accuracy, unseen points")
    axes[-1].legend(title="chosen by", frameon=False)
    figure.savefig(ROOT / "docs" / "images" / "selection.png", dpi=110)


if __name__ == "__main__":
    draw()
