"""The model as the bounds see it: facts about the stored doubles, verified once per posterior.

Statements of `docs/maths.md`, section 2:

* F1  `precision = shifted - diag(defect)` with `shifted` verified positive semidefinite (R4);
* F2  y^T |shifted| y <= sum_i weight_i y_i^2, `weight_i` the rounded-up row sums of |shifted| (diagonal
dominance);
* F3  |V k|^2 <= contraction * s2 for every k = (k(x_i, x))_i: shifted <= contraction K^-1, verified.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
from scipy.linalg import blas, lapack

from gpcert.bounds.gram import unit_gram
from gpcert.kernels import RBF
from gpcert.posterior import Posterior
from gpcert.rounding import TINY, UNIT, gamma, is_certainly_psd, sum_up
from gpcert.validation import Float

__all__ = ["Model", "model_of"]


@dataclass(frozen=True, eq=False)
class Model:
    """An RBF posterior of one latent function with its verified facts; n centres, d features."""

    centres: Float  #: (n, d), raw units
    lengthscale: Float  #: (d,)
    variance: float  #: s2 = k(x, x)
    weights: Float  #: alpha (n,)
    mean: float
    shifted: Float  #: (n, n), certainly PSD; precision = shifted - diag(defect)
    defect: Float  #: (n,), >= 0, each to one rounding
    row_weight: Float  #: (n,), F2
    contraction: float  #: F3; inf where it could not be verified
    grams: dict[bytes, tuple[Float, float]] = field(
        default_factory=dict, repr=False
    )  #: cache of `Slice.gram`

    def excess_variance(self, k: Float) -> float:
        """F1: an upper bound of sum_i defect_i k_i^2 for k_i <= k (n,): by this S may exceed s2 - |V k|^2."""
        return sum_up(self.defect * k * k) * (1.0 + 8 * UNIT)


_models: WeakKeyDictionary[Posterior, Model] = WeakKeyDictionary()


def model_of(posterior: Posterior) -> Model:
    """The verified model of a posterior, computed once and kept as long as the posterior lives."""
    model = _models.get(posterior)
    if model is None:
        model = _models[posterior] = _verify(posterior)
    return model


def _verify(posterior: Posterior) -> Model:
    kernel = posterior.kernel
    assert isinstance(kernel, RBF)
    centres = np.ascontiguousarray(posterior.centres)
    lengthscale = np.array(np.broadcast_to(kernel.lengthscale, (centres.shape[1],)), dtype=np.float64)
    precision = np.ascontiguousarray(posterior.precision)
    with np.errstate(all="ignore"):
        shifted, defect = _shift_to_psd(precision)
        row_weight = np.abs(shifted).sum(axis=1) * (1.0 + 2.0 * gamma(len(centres))) + TINY
        contraction = _contraction(centres, lengthscale, kernel.variance, shifted)
    return Model(
        centres=centres,
        lengthscale=lengthscale,
        variance=kernel.variance,
        weights=posterior.weights,
        mean=float(posterior.mean),
        shifted=shifted,
        defect=defect,
        row_weight=row_weight,
        contraction=contraction,
    )


def _shift_to_psd(precision: Float) -> tuple[Float, Float]:
    """F1: (shifted, defect) with the smallest shift of a growing sequence that is verifiably PSD."""
    n = len(precision)
    diagonal = np.diagonal(precision)
    # The check itself needs about 2 gamma(n) tr(A); start there, so that a PSD matrix passes at once.
    shift = 4.0 * gamma(n + 3) * float(np.abs(diagonal).sum()) + TINY
    while np.isfinite(shift):
        shifted = precision.copy()
        shifted[np.diag_indices(n)] = diagonal + shift
        if is_certainly_psd(shifted):
            return shifted, np.diagonal(shifted) - diagonal
        shift *= 4.0
    return np.full_like(precision, np.nan), np.full(n, np.inf)


def _contraction(centres: Float, lengthscale: Float, variance: float, shifted: Float) -> float:
    """F3: c with lambda_max(V K V^T) <= c, V^T V = shifted up to a bounded error that is included."""
    n = len(centres)
    lower, info = lapack.dpotrf(np.array(shifted, order="F"), lower=1, clean=1)
    if info != 0:
        return np.inf
    K, entry = unit_gram(centres, lengthscale)
    product = blas.dtrmm(1.0, lower, np.array(K, order="F"), trans_a=1, lower=1)
    product = blas.dtrmm(1.0, lower, product, side=1, lower=1)
    columns = np.abs(lower).sum(axis=0)
    spread = sum_up(columns**2)  # >= norm of |V| 1 1^T |V|^T >= norm of |V| |K| |V|^T
    error = (entry * 1.01 + 2.0 * gamma(2 * n + 8)) * spread
    # V^T V differs from `shifted` by the backward error of the factorisation: at most gamma(n+1) tr in norm,
    # and k^T E k <= |E| |k|^2 <= |E| n s2^2: relative to s2, |E| n s2.
    backward = 2.0 * gamma(n + 3) * float(np.trace(shifted)) * n
    symmetric = 0.5 * (product + product.T)
    for slack in (1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e3):
        bound = (1.0 + slack) / variance
        test = -symmetric
        test[np.diag_indices(n)] += bound - error - gamma(4) * bound
        if is_certainly_psd(test):
            return float((bound + backward) * variance * (1.0 + 16 * UNIT))
    return np.inf
