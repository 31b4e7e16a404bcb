"""Figure 1: bounds of the smallest probability over a segment, and how they tighten when it is halved."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gpcert.posterior import Posterior
from gpcert.questions.ranges import probability_range
from gpcert.regions import Box
from gpcert.validation import Float
from gpcert_paper.reproduce.draw import BLUE, GREY, ORANGE
from gpcert_paper.reproduce.job import Job, Table, Value
from gpcert_paper.reproduce.models import Recipe, posterior_of
from gpcert_paper.reproduce.page import Claim, Findings, new_figure, paragraphs, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["outline"]

#: T: x1 from 0.2 to 1.5 at x2 = 0.2, across the boundary, with its minimum inside.
_LOW, _HIGH = np.array([0.2, 0.2]), np.array([1.5, 0.2])
_TOLERANCE = 1e-6
_PARTS = (1, 2, 4, 8, 16, 32, 64)
_METHODS = {"paper": ("published", ORANGE), "auto": ("ours", BLUE)}
_NOTES = """
Model: Synthetic2D, Laplace, probit, 20 evaluations. T: x1 from 0.2 to 1.5, x2 = 0.2; the paper
does not say what its T is.

Each part is bounded once, without further branching. The bound of T is the smallest lower bound of its parts
below, the smallest value seen in any part above.

The search halves only the parts that matter; here all are halved, to be seen.
"""


def outline(job: Job) -> Findings:
    """The published bounds and ours on T and on its halves, quarters, ..."""
    post = posterior_of(job, Recipe("synthetic2d", evaluations=20))
    table = job.table("parts", ("method", "parts", "part"), ("start", "end", "lower", "upper"))
    keys = [(method, parts, i) for method in _METHODS for parts in _PARTS for i in range(parts)]
    for method, parts, i in job.steps(table.missing(keys), "parts"):
        start, end = (_LOW + (_HIGH - _LOW) * (int(i) + step) / int(parts) for step in (0, 1))
        r = probability_range(post, Box(start, end), 1, method=str(method), tolerance=_TOLERANCE, max_nodes=2)
        table.add(method, parts, i, float(start[0]), float(end[0]), r.min.lower, r.min.upper)
    figure = new_figure(11.0, 3.4)
    for ax, parts in zip(figure.subplots(1, 4, sharey=True), _PARTS, strict=False):
        _panel(ax, table, post, parts)
    save(figure, job.folder, "outline")
    return Findings(
        "Outline of the method (figure 1)",
        [_claim(table, method) for method in _METHODS],
        [("outline", "P(class 1) over T (grey), and for each part of T the bounds of its smallest value.")],
        paragraphs(_NOTES),
        [("Bounds of the smallest P over T", ["parts", "published", "ours"], _summary(table))],
    )


def _line(post: Posterior) -> tuple[Float, Float]:
    points = np.linspace(_LOW, _HIGH, 400)
    return points[:, 0], post.probability(points)[:, 1]


def _panel(ax: Axes, table: Table, post: Posterior, parts: int) -> None:
    ax.plot(*_line(post), color=GREY, linewidth=2.5)
    for method, (name, colour) in _METHODS.items():
        for row in table.select(method=method, parts=parts):
            ends = float(row["start"]), float(row["end"])
            ax.hlines(float(row["lower"]), *ends, colors=colour, linestyles="--")
            ax.hlines(float(row["upper"]), *ends, colors=colour, linestyles=":")
        ax.plot([], [], "--", color=colour, label=f"{name}: lower bound")
    ax.plot([], [], ":", color=GREY, label="smallest value found")
    ax.set(title=f"{parts} part{'s' if parts > 1 else ''}", xlabel="x1", ylim=(-0.02, 0.8))
    if parts == 1:
        ax.set_ylabel("P(class 1)")
        ax.legend(fontsize=7, loc="upper right")


def _bounds(table: Table, method: str, parts: int) -> tuple[float, float]:
    rows: dict[str, Value] = {"method": method, "parts": parts}
    return min(table.column("lower", **rows)), min(table.column("upper", **rows))


def _summary(table: Table) -> list[list[str]]:
    return [
        [str(parts), *("[{:.4f}, {:.4f}]".format(*_bounds(table, m, parts)) for m in _METHODS)]
        for parts in _PARTS
    ]


def _claim(table: Table, method: str) -> Claim:
    gaps = [upper - lower for lower, upper in (_bounds(table, method, parts) for parts in _PARTS)]
    return Claim(
        f"{_METHODS[method][0]}: halving the parts closes the gap (Theorem 1)",
        "yes",
        f"gap with {', '.join(map(str, _PARTS))} parts: " + ", ".join(f"{gap:.2g}" for gap in gaps),
        all(after <= before + _TOLERANCE for before, after in pairwise(gaps)) and gaps[-1] < 0.05 * gaps[0],
    )
