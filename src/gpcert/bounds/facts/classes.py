"""Several latent functions with one kernel: facts about the stored blocks, verified once.

Statements of `docs/maths/multiclass.md`, section 2. R is the Cn x Cn matrix of blocks R_ce.

* M1  R = R+ - R- - D, both parts verified positive semidefinite (R4), |D| <= defect; mostly R- = 0;
* M2  sum_ce z_c^T R_ce z_e <= c sum_c |g_c|^2 for z_c = (g_c(x_i))_i, g_c in the RKHS of k; for each part;
* M3  every affine functional a.m + <B, Sigma> is a `Model`, its parts definite by M1, its contraction by M2.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy.linalg import blas

from gpcert.bounds.facts.definite import Parts, block_contraction, definite_parts
from gpcert.bounds.facts.model import Model, is_moderate, kernel_gram
from gpcert.clock import standing
from gpcert.kernels import Group, Kernel, radial_terms
from gpcert.posterior import Posterior
from gpcert.rounding import TINY, UNIT, gamma, sum_up, symmetric
from gpcert.validation import Float, Index

#: A precision that needs more than this many times the shift of the check itself is split in two parts.
_LARGEST_SHIFT = 4096.0


class Blocks(NamedTuple):
    """Blocks of a symmetric Cn x Cn matrix at the pairs c <= e."""

    values: Float  #: (P, n, n): (R_ce + R_ce^T) / 2, to a rounding; k^T R_ce k sees no more
    rows: Float  #: (P, n): at least the row sums and the column sums of absolute values


@dataclass(frozen=True, eq=False)
class ClassModel:
    """C latents m_c = mean_c + k^T weights_c, Sigma_ce = [c = e] prior_c - k^T R_ce k, with verified facts.

    `prior` is s2, except in a model that is `raised`.
    """

    centres: Float  #: (n, d), raw units
    terms: tuple[tuple[Group, ...], ...]  #: the kernel, as in `Model`
    lengthscale: Float  #: (d,)
    variance: float  #: s2
    prior: Float  #: (C,)
    weights: Float  #: (n, C)
    mean: Float  #: (C,)
    blocks: Float  #: (P, n, n): (R_ce + R_ce^T) / 2 of the pairs, c <= e
    pairs: tuple[tuple[int, int], ...]  #: (P,)
    rows: Float  #: (P, n): at least the row sums and the column sums of |R_ce|
    positive: Blocks  #: M1: R+, or R itself where there is no negative part
    negative: Blocks | None  #: M1: R-
    shift: float  #: without a negative part: R + shift I is positive semidefinite; else 0
    defect: float  #: M1; inf where nothing could be verified
    contraction: float  #: M2 of R+ + R-, relative to s2; inf where it could not be verified
    contraction_positive: float  #: M2 of R+
    contraction_negative: float  #: M2 of R-
    lift: float  #: M4: Sigma(x) + lift I is positive semidefinite for every x, `prior` being s2
    unit_gram: tuple[Float, float]  #: K / s2 (n, n) and a bound of its entries' errors
    norms: Float  #: (C, C): weights^T K weights, K with the kernel's variance
    norms_error: Float  #: (C,): |a^T norms a - exact| <= (|a| . norms_error)^2
    moderate: bool  #: R7, as in `Model`
    grams: dict[bytes, tuple[Float, float]] = field(default_factory=dict, repr=False)

    @property
    def classes(self) -> int:
        return len(self.mean)

    @property
    def hidden(self) -> float:
        """Y1: k^T (R+ + R-) k <= k^T R k + hidden + defect |k|^2, for a unit combination of classes."""
        return 2.0 * self.contraction_negative * self.variance * (1.0 + 1e-9)

    def raised(self, by: Float) -> ClassModel:
        """The same with at least `by` (C,) >= 0 added to the variances; the new `prior` is exact."""
        return replace(self, prior=np.where(by > 0.0, np.nextafter(self.prior + by, np.inf), self.prior))

    @cached_property
    def contrasts(self) -> Float:
        """D (C - 1, C): differences with the last class; nothing else matters to softmax."""
        C = self.classes
        return np.concatenate([np.eye(C - 1), -np.ones((C - 1, 1))], axis=1)

    @cached_property
    def places(self) -> tuple[Index, Index]:
        """The pairs as rows (P,) and columns (P,) of a matrix (C, C)."""
        rows, columns = np.array(self.pairs).T
        return rows, columns

    def folded(self, B: Float) -> Float:
        """(..., P): <B, Y> = sum over the pairs of folded_ce Y_ce, symmetric B (..., C, C) and Y (C, C)."""
        rows, columns = self.places
        return np.asarray(np.where(rows == columns, 1.0, 2.0) * B[..., rows, columns])

    def _combine(self, B: Float, blocks: Float) -> Float:
        """sum_ce B_ce blocks_ce (n, n) for a symmetric B (C, C)."""
        total = np.zeros(blocks.shape[1:])
        for weight, block in zip(self.folded(B).tolist(), blocks, strict=True):
            if weight != 0.0:
                blas.daxpy(block.ravel(), total.ravel(), a=weight)  # in place, without a copy
        return total

    def functional(self, a: Float, B: Float) -> Model:
        """M3: a.m + <B, Sigma> without a.mean, as mean and variance of a `Model` (f = mu + S: tau = -1).

        `a` (C,), `B` (C, C) symmetric.
        """
        support = np.flatnonzero(np.abs(B).sum(axis=0))  # exact zeros elsewhere: few blocks are touched
        vectors = np.zeros((self.classes, len(support)))
        values, vectors[support] = np.linalg.eigh(B[np.ix_(support, support)])
        ridge = 1e-13 * float(np.abs(values).max(initial=0.0)) + TINY
        plus, minus = (
            vectors[:, kept] * np.sqrt(np.abs(values[kept])) for kept in (values > ridge, values < -ridge)
        )
        positive, shift, error = self._definite(plus, minus)
        one = minus.shape[1] == 0 and self.negative is None
        negative, less, other = self._definite(minus, plus)
        up, down = (float(np.vdot(h, h)) * (1.0 + gamma(self.classes**2 + 8)) for h in (plus, minus))
        unknown = 0.0 if self.negative is None else (up + down) * self.defect
        precision, rounded = self._precision(B)
        defect = (shift + error + less + other + unknown + rounded) * (1.0 + 8 * UNIT)
        rows = np.abs(positive).sum(axis=1) + (0.0 if one else np.abs(negative).sum(axis=1))
        prior = float((plus * plus).sum(axis=1) @ self.prior - (minus * minus).sum(axis=1) @ self.prior)
        return Model(
            centres=self.centres,
            terms=self.terms,
            lengthscale=self.lengthscale,
            variance=self.variance,
            prior=prior,
            weights=self.weights @ a,
            mean=0.0,
            parts=Parts(positive, None if one else negative, defect),
            precision=precision,
            magnitude=positive if one else positive + negative,
            row_weight=np.maximum(rows, np.abs(precision).sum(axis=1)) * (1.0 + 4.0 * gamma(len(rows) + 4))
            + TINY,
            contraction=self._contraction(up + down, up + down, shift + less),
            unit_gram=self.unit_gram,
            contraction_precision=np.inf,
            contraction_negative=self._contraction(down, up, less),
            moderate=self.moderate,
            grams=self.grams,
            prior_error=sum_up(rounded) * self.variance * self.variance * (1.0 + 1e-9),  # k_i <= s2
        )

    def _precision(self, B: Float) -> tuple[Float, Float]:
        """B o R, of which nothing is shifted: it is exact at a reference; (n,) row sums of its rounding."""
        unit = 2.0 * gamma(2 * len(self.pairs) + 2 * self.classes + 22)
        rounded = unit * (self.folded(np.abs(B)) @ self.rows) + TINY
        return self._combine(symmetric(B), self.blocks), rounded

    def _contraction(self, first: float, second: float, shift: Float) -> float:
        """M2 of b_l^T R+ b_l and b_l^T R- b_l for vectors b_l of squared norms `first` and `second` in sum; a
        diagonal adds at most its trace times s2.
        """
        own = self.contraction_positive * first + self.contraction_negative * second
        return (own + self.variance * sum_up(shift)) * (1.0 + 1e-12) + TINY

    def functional_error(self, a: Float, B: Float, amplitude: Float) -> float:
        """By how much `functional` is off anywhere: rounding of weights, and of B in its two halves."""
        weights = float((np.abs(self.weights) @ np.abs(a)) @ amplitude)
        rows = self.classes * float(self.rows.max(axis=0) @ amplitude**2)  # F2, M2: at least |k^T R k|
        largest = float(self.prior.max()) + min(rows, self.contraction * self.variance)
        size = float(np.abs(np.linalg.eigvalsh(B)).sum()) * largest
        return 4.0 * gamma(self.classes**2 + 40) * weights + (1e-12 + 1e-13 * self.classes) * size

    def _definite(self, columns: Float, others: Float) -> tuple[Float, Float, Float]:
        """sum of b_l^T R+ b_l over columns b_l (C, L) and of b_l^T R- b_l over `others`: PSD after a shift.

        Returns (matrix + diag(shift), shift, bound of the row sums of what rounding changed).
        """
        matrix, error = np.zeros_like(self.blocks[0]), np.zeros(len(self.centres))
        if not columns.shape[1] and (self.negative is None or not others.shape[1]):
            return matrix, error, error
        for half, blocks in ((columns, self.positive), (others, self.negative)):
            if half.shape[1] and blocks is not None:
                B = half @ half.T
                matrix += self._combine(symmetric(B), blocks.values)
                # The exact half half^T differs from the computed one by gamma(C) per entry.
                error += self.folded(np.abs(half) @ np.abs(half).T) @ blocks.rows
        error *= gamma(2 * len(self.pairs) + 2 * self.classes + 22) * 2.0
        shift = error * 1.01 + float(np.vdot(columns, columns)) * self.shift * (1.0 + 1e-9) + TINY
        matrix[np.diag_indices_from(matrix)] += shift
        return matrix, shift, error

    def mean_norm(self, a: Float) -> float:
        """At least the RKHS norm of k^T weights a, times the kernel's deviation s."""
        square = float(a @ self.norms @ a) + float(np.abs(a) @ self.norms_error) ** 2
        return float(np.sqrt(max(square, 0.0) * self.variance)) * (1.0 + 1e-9)


_models: WeakKeyDictionary[Posterior, ClassModel] = WeakKeyDictionary()


def class_model_of(posterior: Posterior) -> ClassModel:
    """The verified model of a posterior of several classes, computed once per posterior."""
    if posterior not in _models:
        with np.errstate(all="ignore"), standing():
            _models[posterior] = _verify(posterior)
    return _models[posterior]


def _verify(posterior: Posterior) -> ClassModel:
    kernel = posterior.kernel
    assert isinstance(kernel, Kernel)
    centres = np.ascontiguousarray(posterior.centres)
    (n, d), C, variance = centres.shape, posterior.n_latents, kernel.prior_variance
    terms = radial_terms(kernel, d)
    lengthscale = np.min([group.lengthscale for term in terms for group in term], axis=0)
    R, mean = posterior.precision, np.array(np.broadcast_to(posterior.mean, (C,)), dtype=np.float64)
    moderate = is_moderate(kernel, lengthscale, centres, posterior.weights, mean, R)
    # An entry's error of inf leaves nothing verified.
    K, entry = kernel_gram(kernel, centres) if moderate else (np.zeros((n, n)), np.inf)
    if R.ndim == 3:
        pairs = tuple((c, c) for c in range(C))
        groups = [_facts(block, K, entry, variance) for block in R]
    else:
        pairs = tuple((c, e) for c in range(C) for e in range(c, C))
        groups = [_facts(R.transpose(0, 2, 1, 3).reshape(C * n, C * n), K, entry, variance)]
    blocks = _blocks(R, pairs)
    split = any(facts.parts.negative is not None for facts in groups)
    halves = [_blocks(_joined(groups, sign, n), pairs) for sign in (True, False)] if split else [blocks]
    relative = variance * (entry + 4.0 * gamma(2 * n + 8))
    defect = max(float(facts.parts.defect.max()) for facts in groups)
    up, down = (max(facts.contractions[i] for facts in groups) for i in (0, 1))
    return ClassModel(
        centres=centres,
        terms=terms,
        lengthscale=lengthscale,
        variance=variance,
        prior=np.full(C, variance),
        weights=posterior.weights,
        mean=mean,
        blocks=blocks.values,
        pairs=pairs,
        rows=blocks.rows,
        positive=halves[0],
        negative=halves[1] if split else None,
        shift=0.0 if split else defect,
        defect=defect,
        contraction=up + down,
        contraction_positive=up,
        contraction_negative=down,
        lift=max(max(facts.contractions[2] for facts in groups) - 1.0, 0.0) * variance * (1.0 + 1e-9),
        unit_gram=(K, entry),
        norms=symmetric(variance * (posterior.weights.T @ (K @ posterior.weights))),
        norms_error=np.sqrt(relative) * np.abs(posterior.weights).sum(axis=0) * 1.01,
        moderate=moderate,
    )


def _blocks(R: Float, pairs: tuple[tuple[int, int], ...]) -> Blocks:
    """The pairs of R (C, n, n) or (C, C, n, n)."""
    values = np.ascontiguousarray(R) if R.ndim == 3 else np.stack([R[c, e] for c, e in pairs])
    absolute = np.abs(values)
    rows = np.maximum(absolute.sum(axis=1), absolute.sum(axis=2))
    if R.ndim > 3:
        values = 0.5 * values + 0.5 * values.transpose(0, 2, 1)
    return Blocks(values, rows * (1.0 + 2.0 * gamma(values.shape[1])) + TINY)


class _Facts(NamedTuple):
    """Of one symmetric matrix: M1, and M2 of its positive part, its negative part and itself."""

    parts: Parts
    contractions: tuple[float, float, float]


def _facts(R: Float, K: Float, entry: float, variance: float) -> _Facts:
    """M1 and M2 for R (Cn, Cn); K (n, n) the unit Gram matrix."""
    n = len(K)
    if not entry < np.inf:
        return _Facts(Parts(np.full_like(R, np.nan), None, np.full(len(R), np.inf)), (np.inf,) * 3)
    parts = definite_parts(
        R, lambda: np.asarray(variance * np.kron(np.eye(len(R) // n), K), dtype=np.float64), _LARGEST_SHIFT
    )
    if not np.isfinite(parts.defect).all():
        return _Facts(parts, (np.inf, np.inf, np.inf))
    own = block_contraction(R, K, entry, variance)
    if parts.negative is None:  # a diagonal adds at most its largest entry times n s2
        return _Facts(parts, (own + 1.01 * n * variance * float(parts.defect.max()), 0.0, own))
    up = block_contraction(parts.positive, K, entry, variance)
    down = block_contraction(parts.negative, K, entry, variance, small=True)
    return _Facts(parts, (up, down, own))


def _joined(groups: list[_Facts], positive: bool, n: int) -> Float:
    """One part of all groups, (C, n, n) or (C, C, n, n); a group without a negative part has a zero one."""
    halves = [facts.parts.positive if positive else facts.parts.negative for facts in groups]
    size = len(halves[0]) if halves[0] is not None else n
    R = np.stack([np.zeros((size, size)) if half is None else half for half in halves])
    return R if size == n else R[0].reshape(size // n, n, size // n, n).transpose(0, 2, 1, 3)
