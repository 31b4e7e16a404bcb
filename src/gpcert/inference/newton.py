"""The damped Newton step shared by both Laplace approximations: the objective is concave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from gpcert.validation import Float

MAX_ITERATIONS = 200
# A full Newton step whose decrement (the step's length in the metric of the Hessian) is this small
# leaves an error of about its square, below 1e-10.
DECREMENT = 1e-5
_FAIR_PART = 0.1
_HALVINGS = 20


class Point(Protocol):
    """Latent values f = K a, arrays of one shape, with the gradient of the log likelihood."""

    @property
    def a(self) -> Float:
        """K^-1 f."""

    @property
    def f(self) -> Float:
        """The latent values."""

    @property
    def gradient(self) -> Float:
        """d log p(y|f) / df."""

    @property
    def objective(self) -> float:
        """log p(y|f) - f^T K^-1 f / 2 (eq. 3.12 without its constants)."""


P = TypeVar("P", bound=Point)


def ascend(point: P, a: Float, f: Float, decrement: float, at: Callable[[Float, Float], P]) -> P:
    """The Newton point (a, f) if it gains a fair part of decrement/2, else the best one on the way there.

    The objective is concave: it is highest where its slope along the way changes sign, found by halving.
    """
    newton = at(a, f)
    rounding = 4.0 * np.finfo(np.float64).eps * (abs(point.objective) + f.size)
    if newton.objective >= point.objective + _FAIR_PART * decrement - rounding:
        return newton
    da, df = a - point.a, f - point.f
    best = point
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        candidate = at(point.a + middle * da, point.f + middle * df)
        if candidate.objective > best.objective:
            best = candidate
        if np.vdot(df, candidate.gradient - candidate.a) > 0.0:
            low = middle
        else:
            high = middle
    return best
