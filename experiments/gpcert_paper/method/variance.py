"""Quadratic forms of the covariance vector over a box: the smallest by a convex quadratic programme, the
largest by 2n + 1 linear ones; from them the range of the variance (docs/maths/paper.md, P4, P5).

Both over the polytope of the paper: k between its planes, w in the box. What is certified is a dual value,
evaluated with its rounding: neither bound needs a solver to have converged.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from scipy.optimize import minimize

from gpcert.bounds.facts.model import Model
from gpcert.rounding import TINY, UNIT, gamma, sqrt_up, sum_up
from gpcert.validation import Float
from gpcert_paper.method.covariance import Covariances, Extreme

_ITERATIONS = 60


def largest_variance(model: Model, c: Covariances) -> Extreme:
    """At least max S on the box: S = prior - k^T positive k + k^T negative k, up to the defect (F1)."""
    low = smallest_form(model.parts.positive, model.row_weight, c)
    gain = 0.0
    rounding = low.rounding
    if model.parts.negative is not None:
        high = largest_form(_spectra_of(model)[1], c)
        gain, rounding = max(high.value, 0.0), rounding + high.rounding
    least = max(low.value, 0.0)
    most = model.prior - least + gain + model.excess_variance(c.largest)
    return Extreme(most + 8 * UNIT * (abs(model.prior) + least + gain), low.point, rounding)


def smallest_variance(model: Model, c: Covariances) -> Extreme:
    """At most min S on the box, as `largest_variance`."""
    high = largest_form(_spectra_of(model)[0], c)
    gain = 0.0
    rounding = high.rounding
    if model.parts.negative is not None:
        low = smallest_form(model.parts.negative, model.row_weight, c)
        gain, rounding = max(low.value, 0.0), rounding + low.rounding
    least = model.prior - high.value + gain - model.excess_variance(c.largest)
    return Extreme(least - 8 * UNIT * (abs(model.prior) + abs(high.value) + gain), high.point, rounding)


def smallest_form(R: Float, row_weight: Float, c: Covariances) -> Extreme:
    """P4: at most min k^T R k, R (n, n) positive semidefinite, `row_weight` (n,) at least its row sums (F2).

    For any y, k^T R k >= 2 (R y)^T k - y^T R y: one linear programme.
    """
    y, guess = _quadratic_programme(R, c)
    product = R @ y
    linear = c.smallest_linear(2.0 * product)
    form = float(y @ product)
    # The product's rounding meets y and k: (|R| |y|)^T k <= (sum w y^2 sum w k^2)^{1/2} (F2).
    ours, theirs = (sum_up(row_weight * z * z) for z in (y, c.largest))
    error = 4.0 * gamma(len(y) + 8) * (sqrt_up(ours * theirs) + ours)
    error += 8 * UNIT * (abs(form) + abs(linear.value))
    return Extreme(linear.value - form - error, guess, linear.rounding + error)


def _quadratic_programme(R: Float, c: Covariances) -> tuple[Float, Float]:
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
    options = {"maxiter": _ITERATIONS}
    found = minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
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


_spectra: WeakKeyDictionary[Model, tuple[Spectrum, ...]] = WeakKeyDictionary()


def _spectra_of(model: Model) -> tuple[Spectrum, ...]:
    """The eigendecompositions of a model's parts, once per model."""
    found = _spectra.get(model)
    if found is None:
        parts = (model.parts.positive, model.parts.negative)
        found = _spectra[model] = tuple(decompose(part) for part in parts if part is not None)
    return found


def decompose(R: Float) -> Spectrum:
    """The eigendecomposition of R (n, n) and what it leaves."""
    n = len(R)
    if not np.isfinite(R).all():
        return Spectrum(np.full(n, np.inf), np.zeros((n, n)), np.zeros((n, n)), np.full(n, np.inf))
    values, U = np.linalg.eigh(R)
    values = np.maximum(values, 0.0)
    scaled = U * values
    error = 2.0 * gamma(n + 8) * (np.abs(scaled) @ np.abs(U).T) + 2 * UNIT * np.abs(R)
    residual = (np.abs(R - scaled @ U.T) + error).sum(axis=1) * (1.0 + 2.0 * gamma(n + 4)) + TINY
    return Spectrum(values, np.maximum(U, 0.0), np.maximum(-U, 0.0), residual)


def largest_form(s: Spectrum, c: Covariances) -> Extreme:
    """P5 (Rosen and Pardalos): at least max k^T R k. Ranges of the rotated variables by 2n linear programmes,
    a chord above each square, and one more linear programme for the sum of the chords.
    """
    low, high = rotated_ranges(s, c)
    weight = s.values * (low + high)
    g = s.positive @ weight - s.negative @ weight
    linear = c.smallest_linear(-g)
    constant = float((s.values * low) @ high)
    reach = (s.positive + s.negative).T @ c.largest
    error = 2.0 * gamma(len(g) + 8) * (sum_up(np.abs(weight) * reach) + sum_up(s.values * np.abs(low * high)))
    error += sum_up(s.residual * c.largest**2) * (1.0 + 8 * UNIT) + 8 * UNIT * abs(linear.value)
    most = -linear.value - constant + error
    return Extreme(most + 8 * UNIT * abs(constant), linear.point, linear.rounding + error)


def rotated_ranges(s: Spectrum, c: Covariances) -> tuple[Float, Float]:
    """Enclosures (n,) of u_i^T k over the polytope: the 2n linear programmes at once."""
    lower, upper = c.lower_plane, c.upper_plane
    bottom = s.positive.T @ lower - s.negative.T @ upper
    top = s.positive.T @ upper - s.negative.T @ lower
    error = c.rounding(s.positive + s.negative)
    low = bottom[:, 0] - np.abs(bottom[:, 1:]) @ c.reach - error
    high = top[:, 0] + np.abs(top[:, 1:]) @ c.reach + error
    return low, high
