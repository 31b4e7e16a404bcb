"""A figure with the looks all pictures share; matplotlib is imported here, when first needed."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

from gpcert.classes import called
from gpcert.extras import extra
from gpcert.numbers import exactly
from gpcert.regions import Region
from gpcert.results import Explanation
from gpcert.results.wording import SEE, Words, far, while_moving, within_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Dark and light of one meaning differ in grey, too.
GOOD, BAD, DARK, LIGHT = "#1b7837", "#d95f02", "#222222", "#bbbbbb"


def canvas(width: float = 5.6, height: float = 3.4, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure without pyplot (nothing is registered, nothing needs closing) and its axes in a row."""
    extra("matplotlib", "a plot")
    from gpcert.plots.shown import Shown

    figure = Shown(figsize=(width, height), layout="constrained", facecolor="white")
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def tidy(ax: Axes, x: str, y: str, title: str | None = None) -> None:
    """Labels, a faint grid, no box."""
    ax.set_xlabel(x, parse_math=False)  # names are no formulas
    ax.set_ylabel(y, parse_math=False)
    if title is not None:
        ax.set_title(title, fontsize=10, parse_math=False)
    ax.grid(True, color="#e6e6e6", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def radius_of(region: Region) -> str:
    """The name of an axis of radii: what moves while the radius says how far."""
    words = Words(features=getattr(region, "names", None) or ())
    moving = while_moving(region, "the radius", words).removesuffix(SEE)  # a picture has no table
    return f"radius\n{fill(moving, 72)}"


def delta_of(explanation: Explanation, noun: str = "feature") -> str:
    """Which Delta is shown: on which class, how far one feature moves alone, and within which limits."""
    words = Words(features=explanation.feature_names or ())
    ball = explanation.balls[0]
    reach = far(exactly(explanation.radius), words, ball) + within_limits(ball, words)
    return f"influence on P({called(explanation.label)}) of one {noun} off by up to {reach}"
