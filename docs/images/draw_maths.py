"""Draws `maths.png` of docs/maths/bounds.md: a box as means and variances, and what one box loses.

Run it where gpcert and matplotlib are installed: python docs/images/draw_maths.py [folder]
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import gpcert as gc
from gpcert.bounds.factory import BoundFactory
from gpcert.bounds.geometry.domain import BoxShape
from gpcert.bounds.interface import BoxBound
from gpcert_paper.method import PaperFactory

DOWN, UP, GREY = "#0b84c6", "#e07b00", "#8a8a8a"
MOVING = np.ones(2, dtype=bool)


def main(folder: Path) -> Path:
    """A two-class model on the plane, and boxes around two of its points."""
    data = gc.datasets.load("synthetic2d")
    clf = gc.GPClassifier(gc.RBF(1.0, 1.0), max_evals=20).fit(data.X_train[:200], data.y_train[:200])
    post = clf.posterior_
    figure = Figure(figsize=(9.0, 3.4), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    draw_plane(left, post, np.array([-1.4, -0.2]))
    draw_losses(right, post, np.array([0.6, 0.1]))
    path = folder / "maths.png"
    figure.savefig(path, dpi=100)
    return path


def draw_plane(ax: Axes, post: gc.Posterior, x: np.ndarray) -> None:
    """The image of a box in the plane of variance and mean, a level curve, and its tangent."""
    side = np.linspace(-0.35, 0.35, 41)
    X = x + np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    mean, variance = (np.asarray(each) for each in post.latent(X))
    p = post.probability(X)[:, 1]
    worst = int(np.argmin(p))
    t = mean[worst] / math.sqrt(1.0 + variance[worst])  # the probit's level curve: mu = t sqrt(1 + S)
    S = np.linspace(variance.min() - 0.05, variance.max() + 0.05, 200)
    ax.scatter(variance, mean, s=2, color=GREY, alpha=0.5, linewidths=0)
    ax.plot(S, t * np.sqrt(1.0 + S), color=DOWN, label=f"level curve, P = {p[worst]:.2f}")
    slope = 0.5 * t / math.sqrt(1.0 + variance[worst])
    ax.plot(S, mean[worst] + slope * (S - variance[worst]), "--", color=UP, label="its tangent")
    corner = [variance.min(), variance.max()], [mean.min(), mean.min()]
    ax.plot(corner[0], corner[1], ":", color="black", linewidth=1)
    ax.plot([corner[0][1]] * 2, [mean.min(), mean.max()], ":", color="black", linewidth=1)
    ax.plot(variance[worst], mean[worst], "o", color=DOWN, markersize=5)
    ax.annotate("worst point", (variance[worst], mean[worst]), (4, -14), textcoords="offset points")
    ax.set(xlabel="variance S", ylabel="mean μ", title="a box of inputs, as (S, μ)")
    ax.legend(frameon=False, fontsize=8, loc="upper left")


def draw_losses(ax: Axes, post: gc.Posterior, x: np.ndarray) -> None:
    """What one box loses: the smallest P found on it less what is certified."""
    sizes = 2.0 ** np.arange(-6.0, 0.01, 0.5) * 0.4
    for name, colour, factory in (
        ("mean and variance separately", UP, PaperFactory(post, 1e-6)),
        ("one functional (Theorem 1)", DOWN, BoundFactory(post)),
    ):
        ax.loglog(
            sizes, [loss(factory, post, x, h) for h in sizes], "o-", markersize=3, color=colour, label=name
        )
    ax.loglog(sizes, 0.02 * sizes**3, ":", color="black", linewidth=1, label="order 3")
    ax.set(xlabel="half the width of the box", ylabel="loss in P", title="what one box loses")
    ax.legend(frameon=False, fontsize=8)


def loss(factory: BoundFactory | PaperFactory, post: gc.Posterior, x: np.ndarray, h: float) -> float:
    """From the middle of the box as reference."""
    lower, upper = x - h, x + h
    side = np.linspace(-h, h, 41)
    least = post.probability(x + np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2))[:, 1].min()
    bound: BoxBound = factory.pair(1, BoxShape(lower, upper), lower, MOVING)[0]
    return float(least) - bound.over(lower, upper, x, float(least)).probability


if __name__ == "__main__":
    print(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent))
