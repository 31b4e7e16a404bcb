"""Draws the picture of the README, `range.png`: a digit, its worst case, how the pixels moved, the range.

Run it where gpcert and matplotlib are installed: python docs/images/draw.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

import gpcert as gc
from gpcert.numbers import at_least

RADIUS = 0.1
DOWN, UP, SAFE = "#0b84c6", "#e07b00", "#1a7f37"


def main(folder: Path) -> Path:
    """The model and the question of the README's ten lines, drawn."""
    data = gc.datasets.load("mnist38")
    clf = gc.GPClassifier(gc.RBF(5.0, 10.0), max_evals=20).fit(data.X_train, data.y_train)
    x = data.X_test[0]
    ball = gc.Ball(x, RADIUS, domain=(0.0, 1.0))
    r = gc.probability_range(clf.posterior_, ball, label=8, tolerance=0.005)
    figure = Figure(figsize=(9.0, 2.1), layout="constrained", facecolor="white")
    axes = figure.subplots(1, 4, width_ratios=[1, 1, 1, 2.2])
    assert r.argmin is not None
    p = float(clf.predict_proba(x[None])[0, 1])
    shape = data.image_shape
    assert shape is not None
    axes[0].imshow(x.reshape(shape), cmap="gray", vmin=0.0, vmax=1.0)
    axes[0].set_title(f"an 8: P(8) = {p:.3f}", fontsize=9)
    axes[1].imshow(r.argmin.reshape(shape), cmap="gray", vmin=0.0, vmax=1.0)
    axes[1].set_title(f"worst case found: {r.min.upper:.3f}", fontsize=9)
    colours = LinearSegmentedColormap.from_list("moved", [DOWN, "white", UP])
    axes[2].imshow((r.argmin - x).reshape(shape), cmap=colours, vmin=-RADIUS, vmax=RADIUS)
    axes[2].set_title("how its pixels moved", fontsize=9)
    for ax in axes[:3]:
        ax.set(xticks=[], yticks=[])
    draw_range(axes[3], r, p)
    path = folder / "range.png"
    figure.savefig(path, dpi=110)
    return path


def draw_range(ax: Axes, r: gc.ProbabilityRange, p: float) -> None:
    """The line from 0 to 1 with the certified range, the value of the image, and one half."""
    ax.barh(0.0, r.upper - r.lower, left=r.lower, height=0.5, color=SAFE)
    ax.axvline(0.5, color="black", linewidth=1.0)
    ax.plot(p, 0.0, "o", color="white", markeredgecolor="black")
    ax.set(xlim=(0.0, 1.0), ylim=(-1.0, 1.0), yticks=[], xticks=np.linspace(0.0, 1.0, 5))
    ax.set_title(f"all 196 pixels move by up to {RADIUS}: P(8) stays above {at_least(r.lower)}", fontsize=9)
    ax.set_xlabel("P(8)", fontsize=9)
    ax.spines[["left", "top", "right"]].set_visible(False)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
