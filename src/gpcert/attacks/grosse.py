"""The attacks of Grosse et al. on the latent mean: GPFGS, one step, and GPJM, one feature after the other."""

from __future__ import annotations

import numpy as np

from gpcert.attacks.objectives import LatentMargin
from gpcert.attacks.sets import Sets
from gpcert.posterior import Posterior
from gpcert.validation import Float, Index


def gpfgs(post: Posterior, sets: Sets, labels: Index, X: Float) -> Float:
    """Points (m, d): for norm inf against the sign of the gradient at X (m, d), else the steepest step."""
    _, gradient = LatentMargin(post)(X, labels)
    return sets.points(sets.linear(gradient * sets.unit))


def gpjm(post: Posterior, sets: Sets, labels: Index) -> Float:
    """Points (m, d): each step moves one untouched feature as far as the set allows; the best is kept."""
    objective = LatentMargin(post)
    m, d = sets.centre.shape
    u = np.zeros((m, d))
    free = sets.high > sets.low
    value, slope = objective(sets.points(u), labels)
    best, kept = value.copy(), u.copy()
    rows = np.arange(m)
    most = int(sets.radius.max(initial=0.0)) if sets.norm == 0 else d
    for step in range(min(most, int(free.sum(axis=1).max(initial=0)))):
        reach = np.minimum(np.where(slope > 0, -sets.low, sets.high), _room(sets, u, step)[:, None])
        gain = np.where(free, np.abs(slope * sets.unit) * reach, 0.0)
        j = gain.argmax(axis=1)
        if not (gain[rows, j] > 0).any():
            break
        u[rows, j] = np.where(gain[rows, j] > 0, -np.sign(slope[rows, j]) * reach[rows, j], u[rows, j])
        free[rows, j] = False
        value, slope = objective(sets.points(u), labels)
        better = value < best
        best[better], kept[better] = value[better], u[better]
    return sets.points(kept)


def _room(sets: Sets, u: Float, step: int) -> Float:
    """How far one more feature of each set may move (m,)."""
    if sets.norm == np.inf:
        return np.full(len(u), np.inf)
    if sets.norm == 0:
        return np.where(step < sets.radius, np.inf, 0.0)
    radius = np.maximum(sets.radius, 1e-300)
    used = ((np.abs(u) / radius[:, None]) ** sets.norm).sum(axis=1)
    return np.asarray(sets.radius * np.maximum(1.0 - used, 0.0) ** (1.0 / sets.norm))
