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
    """Box plots of delta per group, by its proved upper ends; diamonds: the medians of the lower ends."""
    require(len(groups) > 0, "groups must hold at least one group, got none")
    figure, (ax,) = canvas(max(3.0, 1.4 + 1.1 * len(groups)))
    upper = [[r.upper for r in group] for group in groups.values()]
    style = {"color": DARK, "linewidth": 1.2}
    ax.boxplot(
        upper,
        patch_artist=True,
        widths=0.5,
        boxprops={"facecolor": LIGHT, "edgecolor": DARK},
        medianprops={"color": DARK, "linewidth": 2.0},
        whiskerprops=style,
        capprops=style,
        flierprops={"marker": "x", "markersize": 4, "markeredgecolor": DARK},
    )
    for i, group in enumerate(groups.values()):
        middle = sorted(r.lower for r in group)[len(group) // 2]
        ax.plot(i + 1, middle, "D", color="white", markeredgecolor=DARK, markersize=5)
    ax.set_xticks(range(1, len(groups) + 1), list(groups))
    tidy(ax, "", "delta = max P - min P", title)
    ax.set_ylim(bottom=0.0)
    return figure
