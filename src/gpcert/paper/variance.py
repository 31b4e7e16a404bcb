"""The largest variance by a convex quadratic programme, the smallest by 2n + 1 linear ones.

Both over the polytope of the paper: k between its planes, w in the box. What is certified is a dual value,
evaluated with its rounding: neither bound needs a solver to have converged (docs/paper.md, P4, P5).
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from scipy.optimize import minimize

from gpcert.bounds import Model
from gpcert.paper.covariance import Covariances, Extreme
from gpcert.rounding import TINY, UNIT, gamma, sqrt_up, sum_up
from gpcert.validation import Float

__all__ = ["Spectrum", "largest_variance", "smallest_variance", "spectrum_of"]

_ITERATIONS = 60


def largest_variance(model: Model, c: Covariances) -> Extreme:
    """P4: at least max S. For any y, k^T R k >= 2 (R y)^T k - y^T R y: one linear programme."""
    y, guess = _smallest_form(model.parts.positive, c)
    product = model.parts.positive @ y
    linear = c.smallest_linear(2.0 * product)
    form = float(y @ product)
    # The product's rounding meets y and k: |R y|^T k <= (sum w y^2 sum w k^2)^{1/2} (F2).
    ours, theirs = (sum_up(model.row_weight * z * z) for z in (y, c.largest))
    error = 4.0 * gamma(len(y) + 8) * (sqrt_up(ours * theirs) + ours) + 8 * UNIT * (
        abs(form) + abs(linear.value)
    )
    least = max(linear.value - form - error, 0.0)
    # A negative part of the precision, and the defect, are bounded apart (F1).
    most = model.largest_variance(c.largest) - least
    return Extreme(most + 8 * UNIT * (model.variance + least), guess, linear.rounding + error)


def _smallest_form(R: Float, c: Covariances) -> tuple[Float, Float]:
    """An estimate of the polytope's minimiser (k, w) of k^T R k, by L-BFGS-B: only a guess."""
    low, high = c.lower_plane, c.upper_plane
    d = low.shape[1] - 1

    def value(z: Float) -> tuple[float, Float]:
        w, share = z[:d] * c.reach, z[d:]
        bottom, top = low[:, 0] + low[:, 1:] @ w, high[:, 0] + high[:, 1:] @ w
        k = bottom + share * (top - bottom)
        g = 2.0 * (R @ k)
        by_w = (g * (1.0 - share)) @ low[:, 1:] + (g * share) @ high[:, 1:]
        return 0.5 * float(g @ k), np.concatenate([by_w * c.reach, g * (top - bottom)])

    start = np.concatenate([np.zeros(d), np.full(len(low), 0.5)])
    bounds = [(-1.0, 1.0)] * d + [(0.0, 1.0)] * len(low)
    found = minimize(
        value, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _ITERATIONS}
    )
    w, share = found.x[:d] * c.reach, found.x[d:]
    bottom, top = low[:, 0] + low[:, 1:] @ w, high[:, 0] + high[:, 1:] @ w
    return bottom + share * (top - bottom), w


@dataclass(frozen=True, eq=False)
class Spectrum:
    """R = U diag(values) U^T + E with z^T E z <= sum residual_i z_i^2, all for the stored doubles."""

    values: Float  #: (n,), >= 0
    positive: Float  #: max(U, 0) (n, n)
    negative: Float  #: max(-U, 0) (n, n)
    residual: Float  #: (n,)


_spectra: WeakKeyDictionary[Model, Spectrum] = WeakKeyDictionary()


def spectrum_of(model: Model) -> Spectrum:
    """The eigendecomposition of a model's precision, once per model."""
    found = _spectra.get(model)
    if found is None:
        found = _spectra[model] = _decompose(model.parts.positive)
    return found


def _decompose(R: Float) -> Spectrum:
    n = len(R)
    if not np.isfinite(R).all():
        return Spectrum(np.full(n, np.inf), np.zeros((n, n)), np.zeros((n, n)), np.full(n, np.inf))
    values, U = np.linalg.eigh(R)
    values = np.maximum(values, 0.0)
    scaled = U * values
    error = 2.0 * gamma(n + 8) * (np.abs(scaled) @ np.abs(U).T) + 2 * UNIT * np.abs(R)
    residual = (np.abs(R - scaled @ U.T) + error).sum(axis=1) * (1.0 + 2.0 * gamma(n + 4)) + TINY
    return Spectrum(values, np.maximum(U, 0.0), np.maximum(-U, 0.0), residual)


def smallest_variance(model: Model, c: Covariances) -> Extreme:
    """P5 (Rosen and Pardalos): at most min S. Ranges of the rotated variables by 2n linear programmes, a
    chord above each square, and one more linear programme for the sum of the chords.
    """
    s = spectrum_of(model)
    low, high = _rotated_ranges(s, c)
    weight = s.values * (low + high)
    g = s.positive @ weight - s.negative @ weight
    linear = c.smallest_linear(-g)
    constant = float((s.values * low) @ high)
    reach = (s.positive + s.negative).T @ c.largest
    error = 2.0 * gamma(len(g) + 8) * (sum_up(np.abs(weight) * reach) + sum_up(s.values * np.abs(low * high)))
    error += sum_up(s.residual * c.largest**2) * (1.0 + 8 * UNIT) + 8 * UNIT * abs(linear.value)
    most = -linear.value - constant + error
    least = model.variance - most - model.excess_variance(c.largest)
    return Extreme(least - 8 * UNIT * (model.variance + abs(most)), linear.point, linear.rounding + error)


def _rotated_ranges(s: Spectrum, c: Covariances) -> tuple[Float, Float]:
    """Enclosures (n,) of u_i^T k over the polytope: the 2n linear programmes at once."""
    lower, upper = c.lower_plane, c.upper_plane
    bottom = s.positive.T @ lower - s.negative.T @ upper
    top = s.positive.T @ upper - s.negative.T @ lower
    error = c.rounding(s.positive + s.negative)
    low = bottom[:, 0] - np.abs(bottom[:, 1:]) @ c.reach - error
    high = top[:, 0] + np.abs(top[:, 1:]) @ c.reach + error
    return low, high
