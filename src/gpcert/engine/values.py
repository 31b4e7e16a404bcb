"""Covariances, means and variances at one point per row (docs/maths/batches.md, J1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpcert.engine.backend import Array
from gpcert.engine.facts import Facts
from gpcert.engine.profiles import Gaussian
from gpcert.engine.rounding import EXP
from gpcert.engine.thin import Predictors, Thin
from gpcert.rounding import UNDERFLOW, UNIT, gamma


@dataclass(frozen=True, eq=False)
class Amplitudes:
    """What the standing features leave of the kernel: s2 phi(z) (N, n), or s2 alone, the errors of z (N,),
    and -z (N, n), or 0.
    """

    facts: Facts
    value: Array
    error: Array
    exponent: Array = 0.0

    def take(self, rows: Array) -> Amplitudes:
        """Those of some rows."""
        if isinstance(self.value, float):
            return Amplitudes(self.facts, self.value, self.error[rows])
        return Amplitudes(self.facts, self.value[rows], self.error[rows], self.exponent[rows])

    def seen(self, facts: Facts, which: Array) -> Amplitudes:
        """Those of some centres, on their facts."""
        if isinstance(self.value, float):
            return Amplitudes(facts, self.value, self.error)
        return Amplitudes(facts, self.value[:, which], self.error, self.exponent[:, which])

    def sum(self, weights: Array) -> Array:
        """At least sum_i weights_i amplitude_i, for weights (n,) or (N, n) >= 0: (N,) or one number."""
        if isinstance(self.value, float):
            found = self.facts.backend.xp.sum(weights, axis=-1) * self.value
        elif weights.ndim == 1:
            found = self.value @ weights
        else:
            found = self.facts.backend.xp.sum(self.value * weights, axis=-1)
        return found * _MORE

    def sum_squares(self, weights: Array) -> Array:
        """At least sum_i weights_i amplitude_i^2 (N,), for weights (N, n) >= 0."""
        return self.facts.backend.xp.sum(weights * (self.value * self.value), axis=1) * (_MORE * _MORE)

    @cached_property
    def weighted(self) -> Array:
        """F2: at least |V a| for the amplitudes a; (N,) or one number."""
        return self._root(self.facts.row_weight)

    @cached_property
    def defect(self) -> Array:
        """F1: at least sum_i defect_i amplitude_i^2."""
        return self._root(self.facts.defect) ** 2 * _MORE

    def _root(self, weights: Array) -> Array:
        xp = self.facts.backend.xp
        if isinstance(self.value, float):
            return xp.sqrt(xp.sum(weights)) * (self.value * _MORE)
        return xp.sqrt((self.value * self.value) @ weights) * _MORE + UNDERFLOW

    @property
    def largest_variance(self) -> Array:
        """F1: at least S, and 0, everywhere on the row's slice; (N,) or one number."""
        model = self.facts.model
        most = (model.prior + self.defect) * _MORE
        if model.definite:
            return most
        xp = self.facts.backend.xp
        gain = self.weighted**2 * _MORE
        return (most + xp.minimum(gain, gain * 0.0 + model.contraction_negative * model.variance)) * _MORE


#: Exponents are known to within this, or their row is left alone.
_CLOSE = 1e-9
#: Covers the roundings of a positive sum of fewer than 2^20 terms, and an amplitude's own error.
_MORE = 1.0 + 1e-8


def amplitudes(facts: Facts, standing: Array) -> Amplitudes:
    """Of rows whose standing features (N, D - d) are these, in raw units."""
    backend, model = facts.backend, facts.model
    if not facts.rest.size:
        return Amplitudes(facts, float(model.variance), backend.array(np.zeros(len(standing))))
    xp, rest = backend.xp, facts.rest
    Z, half, reach = facts.standing
    y = facts.scaled(standing, standing=True)
    norms = xp.sum(y * y, axis=1)
    exponent = xp.clip(y @ Z.T - half - 0.5 * norms[:, None], None, 0.0)
    value = facts.profile.both(xp, exponent)[0] * model.variance
    return Amplitudes(facts, value, _exponent_error(rest.size, norms, reach, xp), exponent)


def _exponent_error(d: int, norms: Array, reach: float, xp: object) -> Array:
    """J1: of y.z - |z|^2/2 - |y|^2/2 for |y|^2 = norms (N,), |z| <= reach."""
    return 4.0 * UNIT * (d + 16) * (norms * (1.0 + 1e-9) + reach * reach) * 1.01


@dataclass(frozen=True, eq=False)
class Points:
    """One point per row: y (N, d) in scaled coordinates, k (N, n), `unit` (N,) the relative error of each
    k_i. Kernels other than the Gaussian: s2 |phi'| (N, n) besides, `error` (N,) of each z_i, `evaluation`
    (N,), the relative error of phi and its derivatives without it, and `exponent` (N, n), -z_i.
    """

    facts: Facts
    amplitudes: Amplitudes
    y: Array
    k: Array
    unit: Array
    steep: Array = None
    error: Array = None
    evaluation: Array = None
    exponent: Array = None
    thin: Thin | None = None  #: variances and planes by predictors (J17)

    def take(self, rows: Array) -> Points:
        """Those of some rows."""
        names = ("k", "unit", "steep", "error", "evaluation", "exponent")
        known = {name: getattr(self, name) for name in names}
        more: dict[str, Any] = {name: None if each is None else each[rows] for name, each in known.items()}
        few = replace(self, amplitudes=self.amplitudes.take(rows), y=self.y[rows], **more)
        if "_predictors" in self.__dict__:
            few.__dict__["_predictors"] = self.__dict__["_predictors"].take(rows)
        for name in ("r", "norms", "variance"):
            if name in self.__dict__:
                found = self.__dict__[name]
                few.__dict__[name] = (
                    tuple(each[rows] for each in found) if name == "variance" else found[rows]
                )
        return few

    @cached_property
    def norms(self) -> Array:
        """|y| (N,), up."""
        xp = self.facts.backend.xp
        return xp.sqrt(xp.sum(self.y * self.y, axis=1)) * (1.0 + 1e-9)

    @cached_property
    def r(self) -> Array:
        """R k (N, n); R is symmetric. Or what stands for it."""
        return self.k @ self.facts.precision if self.thin is None else self._predictors.w

    @property
    def coefficients(self) -> Array:
        """Of r, where predictors stand for it (N, q)."""
        return None if self.thin is None else self._predictors.c

    @cached_property
    def _predictors(self) -> Predictors:
        assert self.thin is not None
        return self.thin.predictors(self.k, self.unit)

    @cached_property
    def _relative(self) -> Array:
        return self.unit + gamma(len(self.facts.model.weights) + 64)

    def mean(self) -> tuple[Array, Array]:
        """E3: the mean of class 1 from below and above (N,)."""
        facts = self.facts
        mu = self.k @ facts.alpha
        size = (self.k @ facts.backend.xp.abs(facts.alpha)) * _MORE
        error = size * self._relative * 1.01 + 8 * UNIT * (size + abs(facts.model.mean)) + UNDERFLOW
        return mu + facts.model.mean - error, mu + facts.model.mean + error

    @cached_property
    def weighted(self) -> Array:
        """F2: at least |V k| (N,)."""
        xp = self.facts.backend.xp
        return xp.sqrt((self.k * self.k) @ self.facts.row_weight) * (_MORE + 2.0 * self.unit) + UNDERFLOW

    @cached_property
    def variance(self) -> tuple[Array, Array]:
        """E3: S, not clipped, from below and above (N,)."""
        facts = self.facts
        if self.thin is not None:
            return self._predictors.low, self._predictors.high
        S = facts.model.prior - facts.backend.xp.sum(self.k * self.r, axis=1)
        error = 2.02 * self._relative * self.weighted * self.weighted
        error = error + 16 * UNIT * (abs(facts.model.prior) + facts.backend.xp.abs(S)) + UNDERFLOW
        return S - error, S + error

    @property
    def supported(self) -> tuple[Array, Array]:
        """What a plane made of r takes for S: from below (G2), from above (G1)."""
        return self.variance if self.thin is None else (self._predictors.least, self._predictors.most)

    def wrong(self) -> Array:
        """G4: what rounding does to k(x)^T (R k) at any x of the slice (N,): F2 twice; any predictor will
        do.
        """
        if self.thin is not None:
            return self.unit * 0.0
        return 1.02 * self._relative * self.weighted * self.amplitudes.weighted


def points(facts: Facts, x: Array, around: Amplitudes) -> Points:
    """At x (N, d), raw units of the moving features."""
    backend, thin = facts.backend, facts.thin
    xp, moving = backend.xp, facts.features
    y = facts.scaled(x)
    norms = xp.sum(y * y, axis=1)
    exponent = y @ facts.Z.T
    exponent -= facts.half
    exponent -= 0.5 * norms[:, None]
    error = _exponent_error(len(moving), norms, facts.reach, xp) + around.error
    if not isinstance(facts.profile, Gaussian):
        return _radial_points(facts, around, y, xp.clip(exponent, None, 0.0) + around.exponent, error, thin)
    k = xp.exp(xp.clip(exponent, None, 0.0))
    k *= around.value
    # e^error - 1 <= 2 error; a row whose error is larger is unknown: 0 * inf is NaN, which is never certain.
    unit = xp.where(error < _CLOSE, 2.0 * error, error * 0.0 + float("inf")) + 4 * EXP
    return Points(facts, around, y, k, unit, thin=thin)


def _radial_points(
    facts: Facts, around: Amplitudes, y: Array, exponent: Array, error: Array, thin: Thin | None
) -> Points:
    """J14: |phi'| <= first phi, so an error of z costs first times as much, and K1's g what is evaluated."""
    xp, profile, s2 = facts.backend.xp, facts.profile, facts.model.variance
    k, steep = profile.both(xp, exponent)
    evaluation = (24.0 * xp.max(profile.exponent(xp, exponent), axis=1) + 128.0) * UNIT
    unit = xp.where(error < _CLOSE, 2.0 * profile.first * error, error * 0.0 + float("inf")) + evaluation
    return Points(facts, around, y, s2 * k, unit, s2 * steep, error, evaluation, exponent, thin)
