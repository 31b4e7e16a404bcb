"""Explanations: as an image, and as bars."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from gpcert.plots.canvas import BAD, DARK, GOOD, canvas, delta_of, tidy
from gpcert.results import Explanation
from gpcert.validation import as_floats, require

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def heat_map(
    explanation: Explanation,
    shape: tuple[int, int],
    image: ArrayLike | None = None,
    *,
    row: int = 0,
    title: str | None = None,
) -> Figure:
    """Delta of one point over an image; dots: the sign is not certain.

    Parameters
    ----------
    explanation : Explanation
        What `explain` answered.
    shape : tuple (rows, columns)
        Of the image: its features are pixels, row by row.
    image : array of shape (d,), optional
        Grey values in [0, 1], shown beside.
    row : int
        Which point of the explanation.
    title : str, optional
        A heading.

    Returns
    -------
    Figure
        Of matplotlib; `figure.savefig("name.png")` keeps it.

    Examples
    --------
    >>> X, y = [[0, 0], [1, 0], [2, 1], [3, 1]], ["a", "a", "b", "b"]
    >>> clf = gc.GPClassifier(max_evals=0).fit(X, y)
    >>> found = gc.explain(clf, [[2.0, 0.5]], 0.25, label="b")
    >>> len(gc.plots.heat_map(found, (1, 2)).axes)  # the image, and its colours
    2
    """
    require(
        int(np.prod(shape)) == explanation.value.shape[1],
        f"shape must have {explanation.value.shape[1]} pixels, got {shape}",
    )
    value = explanation.value[row].reshape(shape)
    figure, axes = canvas(6.2 if image is not None else 3.6, 3.0, 2 if image is not None else 1)
    if image is not None:
        axes[0].imshow(as_floats("image", image).reshape(shape), cmap="gray", vmin=0.0, vmax=1.0)
        axes[0].set_title("image", fontsize=10)
    ax = axes[-1]
    largest = max(float(np.abs(value).max()), 1e-300)
    picture = ax.imshow(value, cmap="PuOr_r", vmin=-largest, vmax=largest)
    rows, columns = np.nonzero(explanation.sign[row].reshape(shape) == 0)
    ax.plot(columns, rows, ".", color=DARK, markersize=2)
    # Signs as marks too: the two ends of a diverging map look alike in black and white.
    for sign, mark in ((1, "+"), (-1, "_")):
        strong = (explanation.sign[row].reshape(shape) == sign) & (np.abs(value) > 0.25 * largest)
        r, c = np.nonzero(strong)
        ax.plot(c, r, linestyle="none", marker=mark, color="white", markersize=5, markeredgewidth=1.2)
    ax.set_title(title or fill(delta_of(explanation, "pixel"), 44), fontsize=10, parse_math=False)
    figure.colorbar(picture, ax=ax, shrink=0.85)
    for each in axes:
        each.set(xticks=[], yticks=[])
    return figure


def feature_bars(
    explanation: Explanation, *, row: int = 0, top: int = 12, title: str | None = None
) -> Figure:
    """The features with the largest |Delta| of one point, or of `explanation.mean()`, with enclosures.

    Parameters
    ----------
    explanation : Explanation
        What `explain` answered.
    row : int
        Which point of the explanation.
    top : int
        How many features.
    title : str, optional
        A heading.

    Returns
    -------
    Figure
        Of matplotlib; `figure.savefig("name.png")` keeps it.

    Examples
    --------
    >>> X, y = [[0, 0], [1, 0], [2, 1], [3, 1]], ["a", "a", "b", "b"]
    >>> clf = gc.GPClassifier(max_evals=0).fit(X, y)
    >>> found = gc.explain(clf, [[2.0, 0.5], [1.0, 0.5]], 0.25, label="b")
    >>> len(gc.plots.feature_bars(found.mean()).axes)
    1
    """
    value = explanation.value[row]
    order = np.argsort(-np.abs(value), kind="stable")[:top][::-1]
    names = explanation.feature_names or tuple(f"feature {j}" for j in range(len(value)))
    figure, (ax,) = canvas(5.6, 0.9 + 0.26 * len(order))
    place = np.arange(len(order))
    below, above = value - explanation.lower[row], explanation.upper[row] - value
    for sign, colour, hatch, name in (
        (1, GOOD, "", "raises P"),
        (-1, BAD, "////", "lowers P"),
        (0, "white", "", "sign not certain"),
    ):
        chosen = explanation.sign[row][order] == sign
        if chosen.any():
            ax.barh(
                place[chosen],
                value[order][chosen],
                color=colour,
                edgecolor="white" if hatch else DARK,
                hatch=hatch,
                label=name,
                height=0.7,
            )
    ax.errorbar(
        value[order],
        place,
        xerr=[below[order], above[order]],
        fmt="none",
        ecolor=DARK,
        capsize=2,
        linewidth=1.0,
    )
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    ax.set_yticks(place, [names[j] for j in order], fontsize=8, parse_math=False)
    tidy(ax, delta_of(explanation), "", title)
    ax.legend(frameon=False, fontsize=8)
    return figure
