"""Models of two features: the probability as a contour, regions, attaining points, directions."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from gpcert.adapters.models import posterior_of
from gpcert.classes import Label, called, position
from gpcert.numbers import at_least, at_most
from gpcert.plots.canvas import BAD, DARK, GOOD, canvas, delta_of, tidy
from gpcert.posterior import Posterior
from gpcert.regions import Ball, Region
from gpcert.results import Explanation, ProbabilityRange
from gpcert.validation import Float, as_matrix, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GRID = 120


def contour(
    post: Any,
    region: Region | None = None,
    answer: ProbabilityRange | None = None,
    *,
    label: Label | None = None,
    window: tuple[float, float, float, float] | None = None,
    title: str | None = None,
) -> Figure:
    """P(label) in the plane, a region, and where the ends of its range are attained.

    Parameters
    ----------
    post : model
        Any model of two features that `posterior_of` takes.
    region : Box or Ball, optional
        Its outline is drawn.
    answer : ProbabilityRange, optional
        Its `argmin` and `argmax` are marked.
    label : class value, optional
        The class whose probability is shown, a value of the model's classes. Default: that of the answer;
        without one, of two classes the second.
    window : tuple of 4 float, optional
        Left, right, bottom, top; None: the data, and what is drawn.
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
    >>> ball = gc.Ball([2.0, 0.5], 0.25)
    >>> figure = gc.plots.contour(clf, ball, gc.probability_range(clf, ball, label="b"))
    >>> len(figure.axes)  # the plane, and its colours
    2
    """
    post = posterior_of(post)
    figure, (ax,) = canvas(4.8, 4.0)
    if answer is not None:
        same = label is None or position(post.labels, label) == position(post.labels, answer.label)
        require(same, f"label must be that of the answer, {answer.label!r}, got {label!r}")
        label = answer.label
    points = [] if region is None else [region.box().lower, region.box().upper]
    _background(figure, ax, post, label, points, window)
    if region is not None:
        outline = _outline(region)
        ax.plot(outline[:, 0], outline[:, 1], color=DARK, linewidth=1.6, label="region")
    if answer is not None:
        marks = (
            (answer.argmin, "v", f"min <= {at_most(answer.min.upper)}"),
            (answer.argmax, "^", f"max >= {at_least(answer.max.lower)}"),
        )
        for point, mark, name in marks:
            if point is not None:
                ax.plot(*point, mark, color="white", markeredgecolor=DARK, markersize=9, label=name)
    if region is not None or answer is not None:
        ax.legend(fontsize=8, loc="best")
    tidy(ax, *_names(post), title)
    return figure


def arrows(
    post: Any,
    X: ArrayLike,
    explanation: Explanation,
    *,
    window: tuple[float, float, float, float] | None = None,
    title: str | None = None,
) -> Figure:
    """Delta at points as arrows over P of its class, and the direction of the mean as one thick arrow.

    Parameters
    ----------
    post : model
        Any model of two features that `posterior_of` takes.
    X : array of shape (m, 2)
        The points.
    explanation : Explanation
        What `explain` answered about them.
    window : tuple of 4 float, optional
        Left, right, bottom, top; None: the data, and what is drawn.
    title : str, optional
        A heading; default: which Delta it is.

    Returns
    -------
    Figure
        Of matplotlib; `figure.savefig("name.png")` keeps it.

    Examples
    --------
    >>> X, y = [[0, 0], [1, 0], [2, 1], [3, 1]], ["a", "a", "b", "b"]
    >>> clf = gc.GPClassifier(max_evals=0).fit(X, y)
    >>> found = gc.explain(clf, X, 0.25, label="b")
    >>> len(gc.plots.arrows(clf, X, found).axes)
    2
    """
    post = posterior_of(post)
    points = as_matrix("X", X, 2)
    require(
        len(points) == len(explanation.value),
        f"X must hold the {len(explanation.value)} points explained, got {len(points)}",
    )
    figure, (ax,) = canvas(4.8, 4.0)
    _background(figure, ax, post, explanation.label, list(points), window)
    ax.quiver(
        *points.T,
        *explanation.value.T,
        color="white",
        edgecolor=DARK,
        linewidth=0.6,
        width=0.008,
        angles="xy",
    )
    mean = explanation.mean().value[0]
    length = float(np.linalg.norm(mean))
    if length > 0:
        ax.quiver(*points.mean(axis=0), *(mean / length), color=BAD, width=0.014, angles="xy", scale=6.0)
    tidy(ax, *_names(post), title or fill(f"Arrows: {delta_of(explanation)}; thick: their mean", 60))
    return figure


def _names(post: Posterior) -> tuple[str, str]:
    names = post.feature_names or ("feature 0", "feature 1")
    return names[0], names[1]


def _background(
    figure: Figure,
    ax: Axes,
    post: Posterior,
    label: Label | None,
    points: list[Float],
    window: tuple[float, float, float, float] | None,
) -> None:
    require(post.n_features == 2, f"post must have 2 features for a plane, got {post.n_features}")
    if window is None:
        every = np.concatenate([post.centres, np.array(points).reshape(-1, 2)])
        low, high = every.min(axis=0), every.max(axis=0)
        pad = 0.05 * (high - low) + 1e-9
        window = (low[0] - pad[0], high[0] + pad[0], low[1] - pad[1], high[1] + pad[1])
    x, y = np.linspace(*window[:2], _GRID), np.linspace(*window[2:], _GRID)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    column = position(post.labels, label)
    p = post.probability(grid)[:, column].reshape(_GRID, _GRID)
    filled = ax.contourf(x, y, p, levels=np.linspace(0.0, 1.0, 11), cmap="cividis")
    ax.contour(x, y, p, levels=[0.5], colors=[GOOD], linewidths=1.6, linestyles="--")
    bar = figure.colorbar(filled, ax=ax)
    bar.set_label(f"P({called(post.labels[column])}); dashed: 1/2", parse_math=False)


def _outline(region: Region) -> Float:
    """The border of the region in the plane (k, 2), closed; of a ball clipped by its domain."""
    box = region.box()
    if not isinstance(region, Ball) or region.norm == np.inf:
        (a, b), (c, d) = box.lower, box.upper
        return np.array([[a, b], [c, b], [c, d], [a, d], [a, b]])
    if region.norm == 0:
        (a, b), (c, d), (x, y) = box.lower, box.upper, region.x
        return np.array([[a, y], [c, y], [x, y], [x, b], [x, d]])
    angle = np.linspace(0.0, 2.0 * np.pi, 361)
    turn = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    turn /= np.linalg.norm(turn, region.norm, axis=1, keepdims=True)
    scale = np.ones(2) if region.scale is None else region.scale
    return np.asarray(np.clip(region.x + region.radius * scale * turn, box.lower, box.upper))
