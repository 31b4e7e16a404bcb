"""Several latent functions with one Gaussian kernel: facts about the stored blocks, verified once.

Statements of `docs/maths-multiclass.md`, section 2. R is the Cn x Cn matrix of blocks R_ce.

* M1  R + diag(defect) is positive semidefinite (R4);
* M2  sum_ce z_c^T R_ce z_e <= contraction sum_c |g_c|^2 for z_c = (g_c(x_i))_i, g_c in the RKHS of k;
* M3  every affine functional a.m + <B, Sigma> is a `Model`, its parts definite by M1, its contraction by M2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from scipy.linalg import blas, lapack

from gpcert.bounds.definite import Parts
from gpcert.bounds.gram import unit_gram
from gpcert.bounds.model import Model
from gpcert.kernels import RBF, Group, radial_terms
from gpcert.posterior import Posterior
from gpcert.rounding import TINY, UNIT, gamma, is_certainly_psd, sum_up
from gpcert.validation import Float

__all__ = ["ClassModel", "class_model_of"]

#: A precision that needs more than this many times the shift of the check itself is not certified.
_LARGEST_SHIFT = 4096.0
#: M4: beyond it a covariance may be far from positive semidefinite, and nothing is claimed.
_LARGEST_CONTRACTION = 1.0 + 1e-5


@dataclass(frozen=True, eq=False)
class ClassModel:
    """C latents m_c = mean_c + k^T weights_c, Sigma_ce = [c = e] s2 - k^T R_ce k, with verified facts."""

    centres: Float  #: (n, d), raw units
    terms: tuple[tuple[Group, ...], ...]  #: the kernel, as in `Model`
    lengthscale: Float  #: (d,)
    variance: float  #: s2
    weights: Float  #: (n, C)
    mean: Float  #: (C,)
    blocks: Float  #: (P, n, n): R_ce of the pairs, c <= e
    pairs: tuple[tuple[int, int], ...]  #: (P,)
    rows: Float  #: (P, n): at least the row sums and the column sums of |R_ce|
    defect: float  #: M1; inf where it is not nearly positive semidefinite
    contraction: float  #: M2, relative to s2; inf where it could not be verified
    unit_gram: tuple[Float, float]  #: K / s2 (n, n) and a bound of its entries' errors
    norms: Float  #: (C, C): weights^T K weights, K with the kernel's variance
    norms_error: Float  #: (C,): |a^T norms a - exact| <= (|a| . norms_error)^2
    grams: dict[bytes, tuple[Float, float]] = field(default_factory=dict, repr=False)

    @property
    def classes(self) -> int:
        """C."""
        return len(self.mean)

    @property
    def lift(self) -> float:
        """M4: Sigma(x) + lift I is positive semidefinite for every x; inf where that is not known closely.

        The predictor raises each Sigma_cc below 0 to 0, so by at most the lift; the theorems about softmax
        hold for positive semidefinite matrices only. So functionals and probabilities allow for the lift.
        """
        if not self.contraction <= _LARGEST_CONTRACTION:
            return np.inf
        return max(self.contraction - 1.0, 0.0) * self.variance * (1.0 + 1e-9)

    @cached_property
    def contrasts(self) -> Float:
        """D (C - 1, C): differences with the last class; nothing else matters to softmax."""
        C = self.classes
        return np.concatenate([np.eye(C - 1), -np.ones((C - 1, 1))], axis=1)

    def combine(self, B: Float) -> Float:
        """sum_ce B_ce R_ce (n, n) for a symmetric B (C, C), symmetrised."""
        total = np.zeros(self.blocks.shape[1:])
        for (c, e), block in zip(self.pairs, self.blocks, strict=True):
            if B[c, e] != 0.0:
                total += (B[c, e] * (1.0 if c == e else 2.0)) * block
        return 0.5 * (total + total.T)

    def functional(self, a: Float, B: Float) -> Model:
        """M3: a.m + <B, Sigma> without a.mean, as mean and variance of a `Model` (f = mu + S: tau = -1).

        `a` (C,), `B` (C, C) symmetric.
        """
        support = np.flatnonzero(np.abs(B).sum(axis=0))  # exact zeros elsewhere: few blocks are touched
        vectors = np.zeros((self.classes, len(support)))
        values, vectors[support] = np.linalg.eigh(B[np.ix_(support, support)])
        ridge = 1e-13 * float(np.abs(values).max(initial=0.0)) + TINY
        halves = []
        for sign in (1.0, -1.0):
            kept = sign * values > ridge
            columns = vectors[:, kept] * np.sqrt(np.abs(values[kept]))
            halves.append(columns)
        parts = [self._definite(columns) for columns in halves]
        (positive, shift, up), (negative, less, down) = parts
        # B itself is what the two halves make: their sum of absolute traces bounds every norm.
        trace = float(np.vdot(halves[0], halves[0])) - float(np.vdot(halves[1], halves[1]))
        small = halves[1].shape[1] == 0
        defect = (shift + up + (0.0 if small else less + down)) * (1.0 + 8 * UNIT)
        size = [float(np.vdot(h, h)) * (1.0 + gamma(self.classes**2 + 8)) for h in halves]
        magnitude = positive if small else positive + negative
        rows = np.abs(positive).sum(axis=1) + (0.0 if small else np.abs(negative).sum(axis=1))
        return Model(
            centres=self.centres,
            terms=self.terms,
            lengthscale=self.lengthscale,
            variance=self.variance,
            prior=trace * self.variance,
            weights=self.weights @ a,
            mean=0.0,
            parts=Parts(positive, None if small else negative, defect),
            precision=positive if small else positive - negative,
            magnitude=magnitude,
            row_weight=rows * (1.0 + 4.0 * gamma(len(rows) + 4)) + TINY,
            contraction=self._contraction(size[0] + size[1], shift + less),
            unit_gram=self.unit_gram,
            contraction_precision=np.inf,
            contraction_negative=self._contraction(size[1], less),
            grams=self.grams,
        )

    def _contraction(self, size: float, shift: Float) -> float:
        """M2 for vectors b_l of squared norms `size` in sum; a diagonal adds at most its trace times s2."""
        return (self.contraction * size + self.variance * sum_up(shift)) * (1.0 + 1e-12) + TINY

    def functional_error(self, a: Float, B: Float, amplitude: Float) -> float:
        """By how much `functional` is off anywhere: rounding of weights and prior, and the lift M4."""
        weights = float((np.abs(self.weights) @ np.abs(a)) @ amplitude)
        size = float(np.abs(np.linalg.eigvalsh(B)).sum())
        lifted = self.lift * float(np.abs(np.diagonal(B)).sum()) if np.diagonal(B).any() else 0.0
        return 4.0 * gamma(self.classes**2 + 40) * (weights + size * self.variance) + lifted

    def _definite(self, columns: Float) -> tuple[Float, Float, Float]:
        """sum_l of b_l^T R b_l for the columns b_l (C, L): certainly PSD after a shift (n,); and its error.

        Returns (matrix + diag(shift), shift, bound of the row sums of what rounding changed).
        """
        n = len(self.centres)
        if columns.shape[1] == 0:
            return np.zeros((n, n)), np.zeros(n), np.zeros(n)
        B = columns @ columns.T
        B = 0.5 * (B + B.T)
        matrix = self.combine(B)
        # The exact B+ = columns columns^T differs from the computed one by gamma(C) per entry.
        error = gamma(len(self.pairs) + 2 * self.classes + 20) * 2.0 * self._largest(columns) @ self.rows
        shift = error * 1.01 + float(np.vdot(columns, columns)) * self.defect * (1.0 + 1e-9) + TINY
        matrix[np.diag_indices(n)] += shift
        return matrix, shift, error

    def _largest(self, columns: Float) -> Float:
        """(P,): bounds of |B_ce| by absolute values, off-diagonal pairs twice."""
        size = np.abs(columns) @ np.abs(columns).T
        return np.array([size[c, e] * (1.0 if c == e else 2.0) for c, e in self.pairs])

    def mean_norm(self, a: Float) -> float:
        """At least the RKHS norm of k^T weights a, times the kernel's deviation s."""
        square = float(a @ self.norms @ a) + float(np.abs(a) @ self.norms_error) ** 2
        return float(np.sqrt(max(square, 0.0) * self.variance)) * (1.0 + 1e-9)


_models: WeakKeyDictionary[Posterior, ClassModel] = WeakKeyDictionary()


def class_model_of(posterior: Posterior) -> ClassModel:
    """The verified model of a posterior of several classes, computed once per posterior."""
    model = _models.get(posterior)
    if model is None:
        with np.errstate(all="ignore"):
            model = _models[posterior] = _verify(posterior)
    return model


def _verify(posterior: Posterior) -> ClassModel:
    kernel = posterior.kernel
    assert isinstance(kernel, RBF)
    centres = np.ascontiguousarray(posterior.centres)
    n, d = centres.shape
    C = posterior.n_latents
    lengthscale = np.array(np.broadcast_to(kernel.lengthscale, (d,)), dtype=np.float64)
    R = posterior.precision
    if R.ndim == 3:
        pairs = tuple((c, c) for c in range(C))
        blocks = np.ascontiguousarray(R)
        groups = [(R[c],) for c in range(C)]
    else:
        pairs = tuple((c, e) for c in range(C) for e in range(c, C))
        blocks = np.stack([R[c, e] for c, e in pairs])
        groups = [(R.transpose(0, 2, 1, 3).reshape(C * n, C * n),)]
    absolute = np.abs(blocks)
    rows = np.maximum(absolute.sum(axis=1), absolute.sum(axis=2)) * (1.0 + 2.0 * gamma(n)) + TINY
    del absolute
    K, entry = unit_gram(centres, lengthscale)
    facts = [_facts(matrix, K, entry, kernel.variance) for (matrix,) in groups]
    norms = kernel.variance * (posterior.weights.T @ (K @ posterior.weights))
    sums = np.abs(posterior.weights).sum(axis=0)
    relative = kernel.variance * (entry + 4.0 * gamma(2 * n + 8))
    return ClassModel(
        centres=centres,
        terms=radial_terms(kernel, d),
        lengthscale=lengthscale,
        variance=kernel.variance,
        weights=posterior.weights,
        mean=np.array(np.broadcast_to(posterior.mean, (C,)), dtype=np.float64),
        blocks=blocks,
        pairs=pairs,
        rows=rows,
        defect=max(fact[0] for fact in facts),
        contraction=max(fact[1] for fact in facts),
        unit_gram=(K, entry),
        norms=0.5 * (norms + norms.T),
        norms_error=np.sqrt(relative) * sums * 1.01,
    )


def _facts(R: Float, K: Float, entry: float, variance: float) -> tuple[float, float]:
    """(defect, contraction) of a symmetric matrix of Cn rows (M1, M2); K (n, n) the unit Gram matrix."""
    size, n = len(R), len(K)
    diagonal = np.diagonal(R)
    first = shift = 4.0 * gamma(size + 3) * float(np.abs(diagonal).sum()) + TINY
    while np.isfinite(shift) and shift <= _LARGEST_SHIFT * first:
        shifted = R.copy()
        shifted[np.diag_indices(size)] = diagonal + shift
        if is_certainly_psd(shifted):
            break
        shift *= 8.0
    else:
        return np.inf, np.inf
    # L L^T >= K: the jitter exceeds the error of K and the backward error of the factorisation.
    jitter = 2.0 * n * entry + 8.0 * gamma(n + 3) * n
    lower, info = lapack.dpotrf(np.asfortranarray(K + jitter * np.eye(n)), lower=1, clean=1)
    if info != 0:
        return shift, np.inf
    C = size // n
    T = np.empty((size, size))
    ones = np.abs(lower).sum(axis=1)
    error = np.zeros(C)
    for c in range(C):
        for e in range(c, C):
            block = R[c * n : (c + 1) * n, e * n : (e + 1) * n]
            product = blas.dtrmm(1.0, lower, np.asfortranarray(block), trans_a=1, lower=1)
            product = blas.dtrmm(1.0, lower, product, side=1, lower=1)
            T[c * n : (c + 1) * n, e * n : (e + 1) * n] = product
            T[e * n : (e + 1) * n, c * n : (c + 1) * n] = product.T
            spread = float((np.abs(lower).T @ (np.abs(block) @ ones)).max())
            across = float((np.abs(lower).T @ (np.abs(block).T @ ones)).max())
            error[c] += spread
            error[e] += across if e != c else 0.0
    T = 0.5 * (T + T.T)
    slack = 4.0 * gamma(2 * n + 8) * float(error.max()) + shift * n * 1.01
    for share in (1.0 + 1e-9, 1.0 + 1e-6, 1.001, 1.1, 2.0, 16.0, 1e3, 1e6):
        bound = share / variance
        test = -T
        test[np.diag_indices(size)] += bound - 2.0 * slack - gamma(4) * bound
        if bound > 2.0 * slack and is_certainly_psd(test):
            return shift, float((bound + 2.0 * slack) * variance * (1.0 + 1e-12))
    return shift, np.inf
