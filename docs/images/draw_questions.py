"""Draws the pictures of docs/questions.md, but for accuracy.png, which `benchmarks/curve.py` draws.

Run it where gpcert and matplotlib are installed: python docs/images/draw_questions.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import gpcert as gc


def main(folder: Path) -> list[Path]:
    """All pictures, at the size they are shown."""
    figures = digits() | plane()
    paths = []
    for name, figure in figures.items():
        paths.append(folder / f"{name}.png")
        figure.savefig(paths[-1], dpi=90)
    return paths


def digits() -> dict:
    """One image of MNIST 3/8: how its probability falls, and which pixels speak for the label."""
    data = gc.datasets.load("mnist38")
    post = gc.GPClassifier(gc.RBF(6.0, 90.0), max_evals=0).fit(data.X_train, data.y_train).posterior_
    x = data.X_test[0]
    radii = np.linspace(0.0, 0.15, 7)
    balls = [gc.Ball(x, r, domain=data.domain) for r in radii]
    ranges = gc.probability_range(post, balls, tolerance=0.005)
    explanation = gc.explain(post, x, 0.25, domain=data.domain)
    return {
        "safety": gc.plots.safety_curve(
            radii, ranges, gc.attack(post, balls), title="an 8, all pixels moving"
        ),
        "heat": gc.plots.heat_map(explanation, data.image_shape, x),
    }


def plane() -> dict:
    """The model of two features: ranges, robustness, directions."""
    data = gc.datasets.load("synthetic2d")
    post = gc.GPClassifier(max_evals=10).fit(data.X_train[:200], data.y_train[:200]).posterior_
    ball = gc.Ball(data.X_test[4], 0.7)
    trace = gc.plots.Trace()
    answer = gc.probability_range(post, ball, tolerance=0.005, progress=trace)
    X = data.X_test[:30]
    groups = {f"radius {r}": gc.robustness(post, [gc.Ball(x, r) for x in X]) for r in (0.1, 0.3, 0.5)}
    return {
        "contour": gc.plots.contour(post, ball, answer),
        "gap": gc.plots.gap_over_time(trace, answer),
        "robustness": gc.plots.robustness_boxes(groups),
        "arrows": gc.plots.arrows(post, X, gc.explain(post, X, 0.3)),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
