"""Answers against a radius, or against time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from gpcert.plots.canvas import BAD, DARK, GOOD, LIGHT, canvas, tidy
from gpcert.results import Attack, Evaluation, ProbabilityRange
from gpcert.running import Progress
from gpcert.validation import as_vector, require

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def safety_curve(
    radii: ArrayLike,
    ranges: Sequence[ProbabilityRange],
    attacks: Sequence[Attack] | None = None,
    *,
    side: str = "min",
    threshold: float = 0.5,
    title: str | None = None,
) -> Figure:
    """Bounds of min (or max) of P(label) against the radius (k,), attacks beside them, the decision line."""
    r = as_vector("radii", radii)
    require(side in ("min", "max"), f"side must be 'min' or 'max', got {side!r}")
    require(len(ranges) == len(r), f"ranges must hold one answer per radius, {len(r)}, got {len(ranges)}")
    ends = [getattr(each, side) for each in ranges]
    lower, upper = np.array([e.lower for e in ends]), np.array([e.upper for e in ends])
    figure, (ax,) = canvas()
    ax.fill_between(r, lower, upper, color=LIGHT, linewidth=0, label="enclosure")
    ax.plot(r, lower, color=GOOD, linewidth=1.8, label="proved lower end")
    ax.plot(r, upper, color=DARK, linewidth=1.2, linestyle="--", label="proved upper end")
    if attacks is not None:
        p = [a.probability for a in attacks]
        ax.plot(r, p, "o", color=BAD, markersize=5, markerfacecolor="none", label="attack")
    ax.axhline(threshold, color=DARK, linewidth=1.0, linestyle=":")
    ax.annotate("decision", (r[-1], threshold), ha="right", va="bottom", fontsize=8)
    label = ranges[0].label if len(ranges) else 1
    tidy(ax, "radius", f"{side} of P(classes[{label}]) over the ball", title)
    ax.set_ylim(-0.02, 1.02)
    ax.legend(frameon=False, fontsize=8)
    return figure


def accuracy_curve(evaluation: Evaluation, *, title: str | None = None) -> Figure:
    """Certified and attacked accuracy against the radius: the truth lies between the two."""
    e = evaluation
    figure, (ax,) = canvas()
    ax.fill_between(e.radii, e.certified, e.attacked, color=LIGHT, linewidth=0, label="unknown")
    ax.plot(e.radii, e.certified, color=GOOD, linewidth=3.0, label="proved correct on the whole ball")
    ax.plot(e.radii, e.attacked, color=BAD, linewidth=1.2, linestyle="--", label="no counterexample found")
    ax.axhline(e.clean, color=DARK, linewidth=1.0, linestyle=":")
    ax.annotate("clean accuracy", (e.radii[-1], e.clean), ha="right", va="bottom", fontsize=8)
    tidy(ax, "radius", "share of test points", title)
    ax.set_ylim(0.0, 1.05)
    ax.margins(x=0.01)
    ax.legend(frameon=False, fontsize=8, loc="lower left")
    return figure


class Trace:
    """A `progress` callback that remembers: `gc.probability_range(..., progress=trace)`."""

    def __init__(self) -> None:
        self.steps: list[Progress] = []

    def __call__(self, p: Progress) -> None:
        """One step of a search: P stays in [p.lower, p.upper]."""
        self.steps.append(p)


def gap_over_time(
    trace: Trace, answer: ProbabilityRange | None = None, *, title: str | None = None
) -> Figure:
    """How the proved range of P shrinks with time; with the `answer`, how far it is from what is attained."""
    require(len(trace.steps) > 0, "trace must hold at least one step, got none")
    lower, upper, seconds = np.array([(p.lower, p.upper, p.seconds) for p in trace.steps]).T
    figure, (ax,) = canvas()
    ax.fill_between(seconds, lower, upper, step="post", color=LIGHT, linewidth=0, label="P stays in here")
    ax.step(seconds, lower, where="post", color=GOOD, linewidth=1.8, label="proved lower end")
    ax.step(seconds, upper, where="post", color=DARK, linewidth=1.2, linestyle="--", label="proved upper end")
    if answer is not None:
        for value, name in ((answer.min.upper, "attained"), (answer.max.lower, None)):
            ax.axhline(value, color=BAD, linewidth=1.0, linestyle=":", label=name)
    tidy(ax, "seconds", "P(label)", title)
    ax.set_ylim(-0.02, 1.02)
    ax.legend(frameon=False, fontsize=8)
    return figure
