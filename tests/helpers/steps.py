"""Curves over radii as drawn, and a model whose labels are lost one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

import gpcert as gc

#: Radii that curves are made of, and radii at and between them, at which the curves are read.
ASKED = np.array([0.1, 0.5, 0.9, 1.6])
MANY = np.unique([*np.linspace(0.001, 1.6, 48), *ASKED])

_X = np.random.default_rng(0).normal(size=(6, 2))
SOFT = gc.GPClassifier(gc.RBF(1.5, 4.0), max_evals=0).fit(_X, np.where(_X.sum(axis=1) > 0.2, "high", "low"))
NEAR = 0.6 * _X[:5]
#: All as predicted, but for the first.
LABELS = np.where(np.arange(5) > 0, SOFT.predict(NEAR), "high")
assert list(SOFT.predict(NEAR) == LABELS) == [False, True, True, True, True]


def drawn(corners: Iterable[tuple[float, float]], x: float) -> tuple[float, float] | None:
    """The smallest and the largest value that a line through the corners shows at x, if any."""
    shown: list[float] = []
    for (x0, y0), (x1, y1) in pairwise(c for c in corners if np.isfinite(c).all()):
        if min(x0, x1) <= x <= max(x0, x1):
            shown += [y0, y1] if x0 == x1 else [y0 + (x - x0) / (x1 - x0) * (y1 - y0)]
    return (min(shown), max(shown)) if shown else None
