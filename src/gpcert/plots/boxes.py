"""Distributions of robustness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gpcert.plots.canvas import DARK, LIGHT, canvas, tidy
from gpcert.results import Robustness
from gpcert.validation import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    told = ["proved upper ends of delta", "median of its proved lower ends"]
    ax.legend([drawn["boxes"][0], marks], told, frameon=False, fontsize=8)
    return figure
