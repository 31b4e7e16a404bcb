"""What is asked of mean and variance so that P >= p: the roots and tangents of level curves, row by row.

Probit in closed form on the device; any other link through its `Level`, one row at a time on the CPU, at
targets and variances of a fixed grid, so that neighbouring rows share what was computed
(docs/maths/batches.md, J3).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gpcert.bounds.levels.curves import Level, LevelCurves, ProbitCurves
from gpcert.engine.backend import Array, Backend, to_numpy
from gpcert.engine.rounding import normal_down, normal_up, sqrt_down, sqrt_up
from gpcert.rounding import UNIT

#: Other links: targets are multiples of this share of the tolerance, variances powers of this ratio.
_SHARE, _RATIO = 0.1, 1.15


class Lines(NamedTuple):
    """Per row: where `rising`, m_p(S) <= slope S - constant (L2), else m_p(S) <= -(slope sqrt(c + S) +
    constant) (G3), for S in [0, largest]; p is certified.
    """

    rising: Array
    slope: Array
    c: Array
    constant: Array
    p: Array
    t: Array  #: probit: Phi^-1 of the target; p is Phi(t), rounded down

    def take(self, rows: Array) -> Lines:
        """Those of some rows."""
        return Lines(*(each[rows] for each in self))


def probabilities(
    backend: Backend, curves: LevelCurves, mu: tuple[Array, Array], S: tuple[Array, Array]
) -> tuple[Array, Array]:
    """L4: P from below and above (N,) for means and variances within bounds; (0, 1) where they are
    unknown. Of either class, by its own mean (J21).
    """
    xp = backend.xp
    low, high = xp.clip(S[0], 0.0, None), xp.clip(S[1], 0.0, None)
    corners = xp.where(mu[0] >= 0, high, low), xp.where(mu[1] >= 0, low, high)
    if isinstance(curves, ProbitCurves):
        ends = []
        for side, mean, variance, bound in (
            (-1, mu[0], corners[0], normal_down),
            (1, mu[1], corners[1], normal_up),
        ):
            z = mean / xp.sqrt(curves.noise + variance)
            ends.append(bound(backend, z + side * 32 * UNIT * xp.abs(z)))
        return ends[0], ends[1]
    a, b, c, d = (to_numpy(backend, each) for each in (*mu, *S))
    lower, upper = curves.bounds_of_rows((a, b), (c, d))
    if curves.mirrored() != curves:
        upper = np.maximum(upper, curves.mirrored().bounds_of_rows((a, b), (c, d))[1])
    return backend.array(lower), backend.array(upper)


def lines(
    backend: Backend, curves: LevelCurves, targets: Array, S: Array, largest: Array, tolerance: float
) -> Lines:
    """For targets (N,) in (0, 1), variances S (N,) at the references, and at most `largest` (N,) on the
    slices.
    """
    if isinstance(curves, ProbitCurves):
        return _probit(backend, curves, targets, S)
    step = _SHARE * tolerance
    grid = [
        np.ceil(to_numpy(backend, targets) / step) * step,
        to_numpy(backend, S),
        to_numpy(backend, largest),
    ]
    rows = [_other(curves, *row) for row in zip(*(column.tolist() for column in grid), strict=True)]
    rising, *numbers = (np.array(column) for column in zip(*rows, strict=True))
    return Lines(backend.mask(rising), *(backend.array(column) for column in (*numbers, numbers[0] * 0.0)))


def latent_lines(backend: Backend, t: Array, c: Array, target: Array, S: Array) -> Lines:
    """J26: mu - t sqrt(c + max(S, 0)) >= target as a root (t <= 0) or a tangent that touches at S (t > 0);
    all (N,), c >= 0. So mu + z sd (t = -z, c = 0), and whether f exceeds the target with a probability.
    """
    xp, rising = backend.xp, t > 0
    touch = xp.sqrt(c + xp.clip(S, 1e-12, None))  # any positive number is sound
    tau = xp.where(rising, t, t * 0.0 + 1.0) / (2.0 * touch)
    top = (tau * c + t * t / (4.0 * tau)) * (1.0 + 16 * UNIT)
    constant = -target - xp.where(rising, top, t * 0.0) * (1.0 + 4 * UNIT) - 4 * UNIT * xp.abs(target)
    return Lines(rising, xp.where(rising, tau, -t), c, constant, t * 0.0, t)


def _probit(backend: Backend, curves: ProbitCurves, targets: Array, S: Array) -> Lines:
    """m(S) = t sqrt(c + S), as `ProbitLevel`."""
    xp = backend.xp
    low, high = curves.noise * (1.0 - 4 * UNIT), curves.noise * (1.0 + 4 * UNIT)
    t = backend.ndtri(targets)
    rising = t > 0
    tau = xp.where(rising, t, t * 0.0 + 1.0) / (2.0 * xp.sqrt(high + xp.clip(S, 0.0, None)))
    top = (tau * high + t * t / (4.0 * tau)) * (1.0 + 16 * UNIT)
    slope = xp.where(rising, tau, -t)
    constant = xp.where(rising, -top, t * 0.0)
    return Lines(rising, slope, t * 0.0 + low, constant, normal_down(backend, t), t)


def _other(
    curves: LevelCurves, p: float, S: float, largest: float
) -> tuple[bool, float, float, float, float]:
    """One row; a line that says nothing where none is known."""
    if not (0.0 < p < 1.0 and math.isfinite(S) and math.isfinite(largest)):
        return False, math.nan, 1.0, math.nan, 0.0
    step = math.log(_RATIO)
    near = math.exp(step * round(math.log(max(S, 1e-3)) / step))
    return _level_line(curves, p, min(near, largest), _rounded(largest))


def _rounded(largest: float) -> float:
    """At least `largest`, one of few numbers: rows with other standing features share it."""
    return 1.01 ** math.ceil(math.log(max(largest, 1e-6)) / math.log(1.01)) * (1.0 + 1e-12)


@lru_cache(maxsize=2**13)
def _level_line(
    curves: LevelCurves, p: float, S: float, largest: float
) -> tuple[bool, float, float, float, float]:
    level: Level = curves.level(p)
    if level.concave:
        tau, kappa = level.tangent(S, largest)
        return True, tau if tau >= 0 else math.nan, 1.0, kappa, level.p
    root = level.root(S, largest)
    if root is None:
        return False, math.nan, 1.0, math.nan, 0.0
    return False, *root, level.p


def after_surplus(
    backend: Backend, curves: LevelCurves, found: Lines, surplus: Array, largest: Array
) -> Array:
    """A certified P (N,) if mu >= m_p(S) + surplus, S <= largest; both (N,), surplus >= 0."""
    if not isinstance(curves, ProbitCurves):
        return found.p
    xp, t = backend.xp, found.t
    root = sqrt_up(backend, curves.noise * (1.0 + 4 * UNIT) + largest)
    gain = surplus / root * (1.0 - 64 * UNIT)
    moved = normal_down(backend, t + gain - 8 * UNIT * (xp.abs(t) + gain))
    return xp.maximum(found.p, moved)


def after_deficit(backend: Backend, curves: LevelCurves, found: Lines, deficit: Array) -> Array:
    """A certified P (N,) if mu >= m_p(S) - deficit, S >= 0; deficit (N,) > 0, inf or NaN: nothing is
    known.
    """
    xp = backend.xp
    if isinstance(curves, ProbitCurves):
        t = found.t
        drop = deficit / sqrt_down(backend, found.c) * (1.0 + 64 * UNIT)
        return normal_down(backend, t - drop - 8 * UNIT * (xp.abs(t) + drop))
    low = found.p - curves.slope * (1.0 + 1e-9) * deficit - 8 * UNIT
    return xp.where(low > 0, low, low * 0.0 + 0.0)
