"""Answers against a radius or against time, and distributions of robustness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from gpcert.classes import called
from gpcert.plots.canvas import BAD, DARK, GOOD, LIGHT, canvas, radius_of, tidy
from gpcert.regions import Ball
from gpcert.results import Attack, Evaluation, ProbabilityRange, Robustness
from gpcert.running import Progress
from gpcert.schema import encoded
from gpcert.validation import Float, as_vector, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
    """Bounds of min (or max) of P(label) over balls around one point against their radii (k,), as steps.

    What is proved of a ball holds for the smaller ones, what is attained in it for the larger: between two
    radii asked nothing more is drawn. Attacks stand beside them, and the decision line.

    Parameters
    ----------
    radii : array of shape (k,)
        Radii, increasing.
    ranges : sequence of ProbabilityRange (k)
        The answer for each radius.
    attacks : sequence of Attack (k), optional
        An attack for each radius.
    side : str
        "min" or "max": which end of the ranges.
    threshold : float
        Where the decision line is.
    title : str, optional
        A heading.

    Returns
    -------
    Figure
        Of matplotlib; `figure.savefig("name.png")` keeps it.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> radii = [0.1, 0.2, 0.3]
    >>> ranges = [gc.probability_range(clf, gc.Ball([2.5], r)) for r in radii]
    >>> len(gc.plots.safety_curve(radii, ranges).axes)
    1
    """
    r = as_vector("radii", radii)
    require(side in ("min", "max"), f"side must be 'min' or 'max', got {side!r}")
    require(len(ranges) == len(r) > 0, f"ranges must hold one answer per radius, {len(r)}, got {len(ranges)}")
    other = next((each for each in ranges if not isinstance(each, ProbabilityRange)), None)
    require(
        other is None, f"ranges must hold one ProbabilityRange for each radius, got {type(other).__name__}"
    )
    require(_nested(r, ranges), "ranges must be about one class and balls of increasing radii, got others")
    ends = [getattr(each, side) for each in ranges]
    lower, upper = np.array([e.lower for e in ends]), np.array([e.upper for e in ends])
    figure, (ax,) = canvas()
    if side == "min":
        _steps(ax, r, (lower, GOOD, 1.8, "proved lower end"), (upper, DARK, 1.2, "proved upper end"))
    else:
        _steps(ax, r, (upper, GOOD, 1.8, "proved upper end"), (lower, DARK, 1.2, "proved lower end"))
    if attacks is not None:
        p = [a.probability for a in attacks]
        ax.plot(r, p, "o", color=BAD, markersize=7, markerfacecolor="none", label="attack")
    ax.axhline(threshold, color=DARK, linewidth=1.0, linestyle=":")
    ax.annotate(f"threshold {threshold:g}", (r[-1], threshold), ha="right", va="bottom", fontsize=8)
    name = f"{side} of P({called(ranges[0].label)}) over the ball"
    tidy(ax, radius_of(ranges[0].region), name, title)
    ax.set_ylim(-0.02, 1.02)
    ax.legend(frameon=False, fontsize=8)
    return figure


def _nested(radii: Float, ranges: Sequence[ProbabilityRange]) -> bool:
    """Whether the regions are balls of these radii that differ in nothing else, and the class is one."""
    first = ranges[0].region
    return (
        isinstance(first, Ball)
        and bool((np.diff(radii) > 0).all())
        and len({(each.label, each.model) for each in ranges}) == 1
        and all(
            encoded(each.region) == {**encoded(first), "radius": float(radius)}
            for radius, each in zip(radii, ranges, strict=True)
        )
    )


def accuracy_curve(evaluation: Evaluation, *, title: str | None = None) -> Figure:
    """Certified and attacked accuracy against the radius, as steps: the truth lies between the two.

    A proof about a ball holds for the smaller ones, a counterexample for the larger: between two radii asked
    certified is that of the larger, attacked that of the smaller. Beyond the last nothing is drawn.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` answered.
    title : str, optional
        A heading.

    Returns
    -------
    Figure
        Of matplotlib; `figure.savefig("name.png")` keeps it.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> found = gc.evaluate(clf, [[0.5], [2.5]], ["a", "b"], [0.25, 0.5])
    >>> len(gc.plots.accuracy_curve(found).axes)
    1
    """
    e = evaluation
    figure, (ax,) = canvas()
    r, certified, attacked = e.radii, e.certified, e.attacked
    if r[0] > 0:  # smaller ones: of what is proved wrong at its point no ball is right
        r, certified = np.append(0.0, r), np.append(certified[0], certified)
        attacked = np.append((~e.wrong).mean(), attacked)
    asked = slice(len(r) - len(e.radii), None)
    _steps(
        ax,
        r,
        (certified, GOOD, 3.0, "proved correct on the whole ball"),
        (attacked, BAD, 1.2, "no counterexample found"),
        asked,
    )
    ax.plot(0.0, e.clean, "D", color=DARK, markersize=5, clip_on=False, label="clean accuracy")
    tidy(ax, radius_of(e.balls[0]), f"share of {len(e.labels)} points", title)
    ax.set_ylim(0.0, 1.05)
    ax.margins(x=0.01)
    ax.legend(frameon=False, fontsize=8)
    return figure


def _steps(
    ax: Axes,
    radii: Float,
    proved: tuple[Float, str, float, str],
    attained: tuple[Float, str, float, str],
    asked: slice = slice(None),
) -> None:
    """Two curves (values, colour, width, name) and what lies between them, with dots at the radii asked.

    `proved` values hold for smaller radii, up to the one before; `attained` values for larger ones.
    """
    between = np.repeat(radii, 2)[1:-1], np.repeat(proved[0], 2)[2:], np.repeat(attained[0], 2)[:-2]
    ax.fill_between(*between, color=LIGHT, linewidth=0, label="unknown")
    for (values, colour, width, name), style, line in ((proved, "pre", "-"), (attained, "post", "--")):
        ax.plot(
            radii,
            values,
            drawstyle=f"steps-{style}",
            linestyle=line,
            color=colour,
            linewidth=width,
            marker="o",
            markersize=width + 2.0,
            markevery=asked,
            label=name,
        )


class Trace:
    """A `progress` function that remembers: `gc.probability_range(..., progress=trace)`.

    Attributes
    ----------
    steps : list of Progress
        What it was called with, in order.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> trace = gc.plots.Trace()
    >>> found = gc.probability_range(clf, gc.Ball([2.5], 0.25), progress=trace)
    >>> len(trace.steps) > 0
    True
    """

    def __init__(self) -> None:
        self.steps: list[Progress] = []

    def __call__(self, p: Progress) -> None:
        """One step of a search: P stays in [p.lower, p.upper]."""
        self.steps.append(p)


def gap_over_time(
    trace: Trace, answer: ProbabilityRange | None = None, *, title: str | None = None
) -> Figure:
    """How the proved range of P shrinks with time.

    Parameters
    ----------
    trace : Trace
        What was called during the search, which had one region.
    answer : ProbabilityRange, optional
        Its answer: how far the range is from what is attained.
    title : str, optional
        A heading.

    Returns
    -------
    Figure
        Of matplotlib; `figure.savefig("name.png")` keeps it.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> trace = gc.plots.Trace()
    >>> found = gc.probability_range(clf, gc.Ball([2.5], 0.25), progress=trace)
    >>> len(gc.plots.gap_over_time(trace, found).axes)
    1
    """
    require(len(trace.steps) > 0, "trace must hold at least one step, got none")
    lower, upper, seconds = np.array([(p.lower, p.upper, p.seconds) for p in trace.steps]).T
    figure, (ax,) = canvas()
    ax.fill_between(seconds, lower, upper, step="post", color=LIGHT, linewidth=0, label="P stays in here")
    ax.step(seconds, lower, where="post", color=GOOD, linewidth=1.8, label="proved lower end")
    ax.step(seconds, upper, where="post", color=DARK, linewidth=1.2, linestyle="--", label="proved upper end")
    if answer is not None:
        for value, name in ((answer.min.upper, "attained"), (answer.max.lower, None)):
            ax.axhline(value, color=BAD, linewidth=1.0, linestyle=":", label=name)
    tidy(ax, "seconds", "P" if answer is None else f"P({called(answer.label)})", title)
    ax.set_ylim(-0.02, 1.02)
    ax.legend(frameon=False, fontsize=8)
    return figure


def robustness_boxes(groups: Mapping[str, Sequence[Robustness]], *, title: str | None = None) -> Figure:
    """Box plots of delta for groups of points.

    The boxes are those of the proved upper ends; diamonds are the medians of the lower ends.

    Parameters
    ----------
    groups : mapping of str to sequence of Robustness
        The answers of each group by its name.
    title : str, optional
        A heading.

    Returns
    -------
    Figure
        Of matplotlib; `figure.savefig("name.png")` keeps it.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> found = gc.robustness(clf, gc.balls([[0.5], [2.5]], 0.25), label="b")
    >>> len(gc.plots.robustness_boxes({"radius 0.25": found}).axes)
    1
    """
    require(len(groups) > 0, "groups must hold at least one group, got none")
    around = {r.x is not None for group in groups.values() for r in group}
    require(len(around) == 1, "groups must be all with a point x or all without, got both or no answers")
    figure, (ax,) = canvas(max(3.0, 1.4 + 1.1 * len(groups)))
    upper = [[r.upper for r in group] for group in groups.values()]
    style = {"color": DARK, "linewidth": 1.2}
    drawn = ax.boxplot(
        upper,
        patch_artist=True,
        widths=0.5,
        boxprops={"facecolor": LIGHT, "edgecolor": DARK},
        medianprops={"color": DARK, "linewidth": 2.0},
        whiskerprops=style,
        capprops=style,
        flierprops={"marker": "x", "markersize": 4, "markeredgecolor": DARK},
    )
    places = range(1, len(groups) + 1)
    middles = [sorted(r.lower for r in group)[len(group) // 2] for group in groups.values()]
    (marks,) = ax.plot(places, middles, "D", color="white", markeredgecolor=DARK, markersize=5)
    ax.set_xticks(places, list(groups))
    tidy(ax, "", "delta = largest |P - P(x)|" if around == {True} else "delta = max P - min P", title)
    ax.set_ylim(bottom=0.0)
    texts = ["proved upper ends of delta", "median of its proved lower ends"]
    ax.legend([drawn["boxes"][0], marks], texts, frameon=False, fontsize=8)
    return figure
