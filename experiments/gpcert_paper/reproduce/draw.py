"""The parts of the figures: curves with enclosures, contours of a plane, images with marked pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpcert.datasets import Dataset
from gpcert.posterior import Posterior
from gpcert.validation import Float, Index
from gpcert_paper.reproduce.job import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BLUE", "GREY", "ORANGE", "boxes", "curves", "heat_map", "pixels", "plane"]

# Readable in print and to colour-blind readers.
BLUE, ORANGE, RED, GREY, LIGHT = "#0b6fa8", "#d06a00", "#b3261e", "#6b7280", "#c9ccd1"


def curves(ax: Axes, rows: Sequence[Row], name: str) -> None:
    """Both bounds of a largest probability against the radius, and the attack's value.

    As steps: the upper bound of a ball holds for smaller ones, what is attained in it for larger ones.
    """
    radius = np.array([float(row["radius"]) for row in rows])
    lower, upper, gpfgs = (np.array([float(row[c]) for row in rows]) for c in ("lower", "upper", "gpfgs"))
    between = np.repeat(radius, 2)[1:-1], np.repeat(lower, 2)[:-2], np.repeat(upper, 2)[2:]
    ax.fill_between(*between, color=BLUE, alpha=0.25, linewidth=0)
    ax.step(radius, upper, where="pre", color=BLUE, label="upper bound")
    ax.step(radius, lower, where="post", color=BLUE, linestyle="--", label="lower bound (attained)")
    ax.plot(radius, gpfgs, ".", color=ORANGE, label="GPFGS")
    ax.axhline(0.5, color=GREY, linewidth=0.8)
    ax.set(xlabel="radius γ", ylabel=name, ylim=(-0.02, 1.02))
    ax.legend(loc="best", fontsize=8)


def plane(ax: Axes, post: Posterior, data: Dataset, axes: tuple[int, int], chosen: int) -> None:
    """P(class 1) over two features, the others as in the chosen test point; test points by class."""
    x, y = axes
    low, high = data.X_test.min(axis=0) - 0.3, data.X_test.max(axis=0) + 0.3
    # A long tail would squeeze the picture: 98 % of the points, and the chosen one, set its frame.
    inner = np.quantile(data.X_test, [0.01, 0.99], axis=0)
    here = data.X_test[chosen]
    low, high = (
        np.maximum(low, np.minimum(inner[0], here) - 0.5),
        np.minimum(high, np.maximum(inner[1], here) + 0.5),
    )
    across, up = np.linspace(low[x], high[x], 90), np.linspace(low[y], high[y], 90)
    points = np.tile(here, (len(across) * len(up), 1))
    points[:, x], points[:, y] = (grid.ravel() for grid in np.meshgrid(across, up))
    p = post.probability(points)[:, 1].reshape(len(up), len(across))
    filled = ax.contourf(across, up, p, levels=np.linspace(0, 1, 21), cmap="RdBu_r", alpha=0.8)
    ax.contour(across, up, p, levels=[0.5], colors="black", linewidths=1)
    for label, marker in ((0, "o"), (1, "^")):
        members = data.X_test[data.y_test == post.labels[label]]
        ax.scatter(
            members[:, x],
            members[:, y],
            s=9,
            c="black",
            marker=marker,
            linewidths=0,
            label=str(post.labels[label]),
        )
    ax.scatter([here[x]], [here[y]], s=70, c=RED, edgecolors="white", zorder=5, label=f"test point {chosen}")
    ax.set(
        xlim=(low[x], high[x]),
        ylim=(low[y], high[y]),
        xlabel=data.feature_names[x],
        ylabel=data.feature_names[y],
    )
    ax.legend(loc="best", fontsize=7)
    ax.figure.colorbar(filled, ax=ax, label="P(class 1)")


def pixels(ax: Axes, image: Float, shape: tuple[int, int], marked: Index) -> None:
    """An image with some pixels framed."""
    ax.imshow(image.reshape(shape), cmap="gray", vmin=0.0, vmax=1.0)
    rows, columns = np.divmod(marked, shape[1])
    ax.scatter(columns, rows, s=60, marker="s", facecolors="none", edgecolors=RED, linewidths=1.6)
    ax.set(xticks=[], yticks=[])


def heat_map(ax: Axes, values: Float, shape: tuple[int, int], title: str) -> None:
    """Signed values of pixels: red raises the probability, blue lowers it; grey: exactly 0."""
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    shown = np.ma.masked_equal(values.reshape(shape), 0.0)
    ax.set_facecolor(LIGHT)
    ax.imshow(shown, cmap="RdBu_r", vmin=-largest, vmax=largest)
    ax.set(xticks=[], yticks=[], title=title)


def boxes(ax: Axes, samples: Sequence[Float], places: Float, width: float, colour: str) -> None:
    """Quartiles, median (black) and single points of each sample."""
    drawn = ax.boxplot(
        samples,
        positions=places,
        widths=width,
        patch_artist=True,
        manage_ticks=False,
        flierprops={"markersize": 3},
        medianprops={"color": "black"},
    )
    for box in drawn["boxes"]:
        box.set(facecolor=colour, alpha=0.7)
