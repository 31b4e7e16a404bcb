"""Multipliers of the box and of an ellipsoid together: the semidefinite programme of B6, in floating point.

Certifies nothing: any multipliers are sound, these are good (docs/maths/regions.md, section 2).
"""

from __future__ import annotations

import numpy as np

from gpcert.rounding import TINY
from gpcert.validation import Float

_NEWTON_STEPS = 24


def multipliers(
    g: Float, H: Float, low: Float, high: Float, weight: Float, enough: float, accuracy: float
) -> tuple[Float, float, Float]:
    """Good multipliers D of the box (d,) and E of the ellipsoid sum_j weight_j d_j^2 <= 1, and a good y (d,).

    Newton on max dual(D, E) + mu (log det A + sum log D + log E) in units d = middle + half * z, where
    A = H + diag(D + E weight).
    """
    half, middle = 0.5 * (high - low), 0.5 * (low + high)
    matrix = H * np.outer(half, half)
    vector = (g + H @ middle) * half
    constant = g @ middle + 0.5 * middle @ H @ middle
    n = len(g)
    values = np.linalg.eigvalsh(matrix)
    size = max(abs(values[0]), abs(values[-1]), float(np.abs(vector).max()), TINY)
    # Convex without the ellipsoid, which may be nearly flat along some features.
    D = np.abs(vector) + max(-values[0], 0.0) + 0.01 * size / n
    # The ellipsoid in units of z: (z^T diag(curl) z + 2 pull.z + level) / 2 <= 0.
    curl, pull = weight * half * half, weight * half * middle
    level = float(weight @ (middle * middle)) - 1.0
    E = np.float64(max(float(D.max() / curl.max()), 1e-120))  # overflows to inf, where a float would raise
    mu = 0.0
    for step in range(_NEWTON_STEPS):
        A = matrix.copy()
        A[np.diag_indices(n)] += D + E * curl
        inverse = np.asarray(np.linalg.inv(A), dtype=np.float64)
        linear = vector + E * pull
        z = -inverse @ linear
        dual = 0.5 * linear @ z - 0.5 * D.sum() + 0.5 * E * level
        gap = _primal(matrix, vector, z, middle, half, weight) - dual
        # Stop where the target is met with room for rounding, or where no better multipliers can meet it.
        met = dual + constant - 1e-11 * size >= enough
        if met or gap <= accuracy * abs(dual) or step == _NEWTON_STEPS - 1:
            break
        mu = 0.15 * gap / n if step == 0 else mu
        change = _newton_step(inverse, z, (D, E), (curl, pull, level), mu)
        if not np.isfinite(change).all():
            break
        length = _longest_step(matrix, np.append(D, E), change, curl)
        D, E = D + length * change[:n], E + length * float(change[n])
        mu *= 0.15 if length > 0.5 else 0.9
    return D / half**2, E, middle + half * z


def _newton_step(
    inverse: Float,
    z: Float,
    at: tuple[Float, float],
    ellipsoid: tuple[Float, Float, float],
    mu: float,
) -> Float:
    """The step of (D, E), (d + 1,): the curvature is that of the box, bordered by the ellipsoid's."""
    (D, E), (curl, pull, level) = at, ellipsoid
    n = len(D)
    squares, traces = inverse * inverse, np.diagonal(inverse)
    b, mixed = curl * z + pull, squares @ curl
    curvature = np.empty((n + 1, n + 1))
    curvature[:n, :n] = np.outer(z, z) * inverse + mu * squares
    curvature[np.arange(n), np.arange(n)] += mu / D**2
    curvature[:n, n] = curvature[n, :n] = z * (inverse @ b) + mu * mixed
    curvature[n, n] = b @ inverse @ b + mu * (curl @ mixed + 1.0 / E**2)
    slope = np.append(
        0.5 * (z * z - 1.0) + mu * (traces + 1.0 / D),
        0.5 * (curl @ (z * z) + 2.0 * pull @ z + level) + mu * (curl @ traces + 1.0 / E),
    )
    return np.asarray(np.linalg.solve(curvature, slope), dtype=np.float64)


def _primal(matrix: Float, vector: Float, z: Float, middle: Float, half: Float, weight: Float) -> float:
    """The quadratic at z, drawn into the box and the ellipsoid: at least the minimum, if 0 is in the box."""
    d = middle + half * np.clip(z, -1.0, 1.0)
    inside = (d / max(1.0, float(np.sqrt(weight @ (d * d)))) - middle) / half
    return float(vector @ inside + 0.5 * inside @ matrix @ inside)


def _longest_step(matrix: Float, at: Float, change: Float, curl: Float) -> float:
    """A step keeping the multipliers positive and matrix + diag(D + E curl) positive definite."""
    shrinking = change < 0
    length = min(1.0, 0.9 * float(np.min(-at[shrinking] / change[shrinking], initial=np.inf)))
    for _ in range(40):
        new = at + length * change
        try:
            np.linalg.cholesky(matrix + np.diag(new[:-1] + new[-1] * curl))
        except np.linalg.LinAlgError:
            length *= 0.7
            continue
        return length * (0.95 if length < 1.0 else 1.0)
    return 0.0
