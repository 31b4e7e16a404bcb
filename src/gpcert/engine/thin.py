"""Variances and planes of models with many centres, without products with the precision (J17).

Any predictor sum_i w_i (observation i) of the value at a point bounds its variance from above, and misses it
by a residual that can be computed; a plane made of w instead of R k is a plane all the same. Predictors in a
few hundred smooth directions leave next to nothing, and cost n q instead of n n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from gpcert.bounds.facts.model import Model
from gpcert.engine.backend import Array, Backend
from gpcert.engine.profiles import Profile
from gpcert.rounding import UNDERFLOW, UNIT, gamma
from gpcert.validation import Float

#: Centres from which it pays, and directions that predictors have.
MANY, RANK = 2048, 512
#: J17: the precision is (K + N)^-1 to this, and the entries of 1 / N are within these.
_NEARLY, _FAINT, _LARGEST = 1e-6, 1e-100, 2.0**30
#: Directions suffice if the residual is at most this share of 1 + S at nine in ten points.
_SMALL, _SAMPLES = 0.005, 64
_MORE = 1.0 + 1e-8


class Predictors(NamedTuple):
    """Of one point per row: w (N, n), of coefficients c (N, q); S from below and above, not clipped; what a
    plane made of w takes for S: `least` where the curve rises (G2), `most` where it falls (G1). All (N,) but
    these two.
    """

    w: Array
    c: Array
    low: Array
    high: Array
    least: Array
    most: Array

    def take(self, rows: Array) -> Predictors:
        """Those of some rows."""
        return Predictors(*(each[rows] for each in self))


class Basis(NamedTuple):
    """In units of the noise: roots of 1 / N (n,), directions U (n, q), (I + H) U (n, q) and about its
    diagonal (q,), H = N^-1/2 K N^-1/2.
    """

    roots: Float
    U: Float
    Y: Float
    scale: Float

    def coefficients(self, k: Array) -> Array:
        """c (N, q) for covariances k (N, n)."""
        return ((k * self.roots) @ self.U) / self.scale


@dataclass(frozen=True, eq=False)
class Thin:
    """A basis on a backend, and what is known of its rounding: of (I + H) h, and of h alone, per sum |c|;
    `lift`: how far the stored S is from that of (K + N)^-1 at most.
    """

    backend: Backend
    prior: float
    lift: float
    basis: Basis
    wrong: tuple[float, float]

    def predictors(self, k: Array, unit: Array) -> Predictors:
        """For covariances k (N, n) of relative error `unit` (N,)."""
        xp, (roots, U, Y, scale) = self.backend.xp, self.basis
        n, seen = k.shape[1], k * roots
        c = (seen @ U) / scale
        h, fitted = c @ U.T, c @ Y.T
        total = xp.sum(xp.abs(c), axis=1) * _MORE
        wrong, own = (each * total for each in self.wrong)
        size_k, size_h, size_f = (_length(xp, each) for each in (seen, h, fitted))
        blurred = (unit + 16 * UNIT) * size_k * 1.01
        residual = (_length(xp, seen - fitted) + wrong + blurred) * _MORE
        missed = residual * residual * _MORE + UNDERFLOW
        form, cross = xp.sum(h * fitted, axis=1), xp.sum(h * seen, axis=1)
        error = gamma(n + 16) * size_h * size_f + wrong * (size_h + own) + own * size_f
        blur = gamma(n + 16) * size_h * size_k + own * size_k + blurred * (size_h + own)
        sizes = abs(self.prior) + size_h * (size_f + 2.0 * size_k)
        error = error * 1.01 + 16 * UNIT * sizes + UNDERFLOW
        S, slack = self.prior - 2.0 * cross + form, (error + 2.02 * blur + self.lift) * _MORE
        left = self.prior - form
        return Predictors(h * roots, c, S - missed - slack, S + slack, left - error, left + missed + error)


def _length(xp: Any, rows: Array) -> Array:
    """At least |row| (N,)."""
    return xp.sqrt(xp.sum(rows * rows, axis=1)) * _MORE


def thin_of(model: Model, basis: Basis, lift: float, backend: Backend) -> Thin:
    """On a backend."""
    n, q = basis.U.shape
    size = 1.0 + model.variance * float(basis.roots @ basis.roots) * _MORE
    rounding = 1.05 * size * (2.0 * gamma(n + 2 * q + 64) + model.unit_gram[1])
    arrays = Basis(*(backend.array(each) for each in basis))
    return Thin(backend, model.prior, lift, arrays, (rounding, 1.05 * gamma(q + 16)))


_bases: WeakKeyDictionary[Model, Basis | None] = WeakKeyDictionary()


def basis_of(model: Model, between: Callable[[], Float]) -> Basis | None:
    """Kept as long as the model; None where it does not pay, or where the precision is not known to be
    (K + N)^-1. `between` (m, n): covariances with points like those that will be asked.
    """
    if model not in _bases:
        known = len(model.weights) >= MANY and _is_inverse(model)
        _bases[model] = _checked(_basis(model), model, between()) if known else None
    return _bases[model]


def _is_inverse(model: Model) -> bool:
    """F5: whether the precision is (K + N)^-1, N a diagonal of moderate numbers."""
    sites = model.site_precision
    if sites is None or model.prior != model.variance or not model.contraction_precision <= 1.0 + _NEARLY:
        return False
    return bool(((sites >= _FAINT) & (sites <= _LARGEST)).all())


def _basis(model: Model) -> Basis:
    """Ritz vectors of H after two steps of subspace iteration, of length 1 up to rounding."""
    assert model.site_precision is not None
    roots = np.sqrt(model.site_precision)
    n, K = len(roots), model.unit_gram[0]

    def times(X: Float) -> Float:
        return np.asarray(model.variance * (roots[:, None] * (K @ (roots[:, None] * X))))

    draws = np.random.default_rng(0).standard_normal((n, min(RANK, n)))
    Q = np.linalg.qr(times(times(draws)))[0]
    values, vectors = np.linalg.eigh(Q.T @ times(Q))
    U = Q @ vectors
    U /= np.sqrt(np.einsum("ij,ij->j", U, U))
    return Basis(roots, U, U + times(U), 1.0 + np.maximum(values, 0.0))


def _checked(basis: Basis, model: Model, between: Float) -> Basis | None:
    """None if so few directions predict too badly: matters to what is settled, not to what is true."""
    seen, c = between * basis.roots, basis.coefficients(between)
    rest, h = seen - c @ basis.Y.T, c @ basis.U.T
    S = model.prior - np.einsum("ij,ij->i", h, seen + rest)
    missed = np.einsum("ij,ij->i", rest, rest) / (1.0 + np.maximum(S, 0.0))
    return basis if np.quantile(missed, 0.9) <= _SMALL else None


def between(scaled: Float, profile: Profile) -> Float:
    """Correlations of the centres (n, D), in lengthscales, with some points between two of them (m, n)."""
    few = np.random.default_rng(1).integers(len(scaled), size=(2, _SAMPLES))
    at = 0.5 * scaled[few[0]] + 0.5 * scaled[few[1]]
    half = [0.5 * np.einsum("ij,ij->i", scaled - each, scaled - each) for each in at]
    return np.asarray(profile.both(np, -np.stack(half))[0])
