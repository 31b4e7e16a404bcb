"""Labels of a softmax near a point by an integral there (docs/maths/proof.md, V15).

The formulas are the checker's, in floats: whether its sum, with its error, will tell who wins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpcert.errors import InvalidInputError
from gpcert.kernels import Kernel
from gpcert.posterior import Posterior
from gpcert.proofs.facts import facts_of
from gpcert.validation import Float

Pairs = npt.NDArray[np.int_]

#: The checker's: errors of about e^-x are tried, with sums of at most so many terms, in such a strip.
_EXPONENTS, _MOST_TERMS, _STRIP, _WIDEST = (8, 14, 22, 32), 1_000_000, 1.3, 1e4
#: What decides by more than this does so whatever the rounding here.
_CLEAR = 1e-6


class Near(NamedTuple):
    """Probabilities (C,) at a point; what a margin loses around it; for each sum that a checker may make,
    sharper and sharper ones, what it is off by, and the terms that it has spent then.
    """

    p: Float
    lost: float
    sums: tuple[tuple[float, int], ...]

    def cost(self, c: int, j: int) -> float:
        """Terms that a checker spends until it finds class c ahead of j, all around; inf: it does not."""
        gap = float(self.p[c] - self.p[j]) - self.lost - _CLEAR
        return next((terms for error, terms in self.sums if gap > 2.0 * error), math.inf)

    @property
    def most(self) -> int:
        """Terms that it spends, whomever it compares."""
        return self.sums[-1][1]


def near(post: Posterior, x: Float, square: float, far: Float | None = None) -> Near | None:
    """The latents where |d|^2 <= square and |d_j| <= far_j (D,) around x (D,); None where they have no
    probabilities.
    """
    try:
        p = post.probability(x[None])[0]
    except InvalidInputError:
        return None
    assert isinstance(post.kernel, Kernel)
    k, R, C = post.kernel(post.centres, x[None])[:, 0], np.asarray(post.precision), post.n_classes
    r = R @ k
    a, b = np.triu_indices(C, 1)
    s2 = post.kernels[0].prior_variance
    V = s2 * np.eye(C) - (np.diag(r @ k) if R.ndim == 3 else r @ k)
    slopes = _Slopes(post, x, k, square, far)
    here, least, most = _ends(post, V, r, a, b, slopes)
    whole = np.sqrt(_norms(post)[a, b] * s2)
    along = slopes.along(post.weights[:, a] - post.weights[:, b])
    apart = float(np.minimum(whole * math.sqrt(square), along + whole * square).max())
    lost = 0.5 * apart + 0.25 * (max(float((here - least).max()), 0.0) + max(float((most - here).max()), 0.0))
    beside = (C * post.n_centres) ** 2 // 20  # products, counted as a checker does
    return Near(p, lost, tuple(_sums(V, beside))) if np.isfinite(lost) else None


class _Slopes:
    """Gradients at x, on a set around it."""

    def __init__(self, post: Posterior, x: Float, k: Float, square: float, far: Float | None) -> None:
        lengthscale: Any = getattr(post.kernel, "lengthscale", 1.0)
        self.square, self._far = square, far
        self._slopes = k[:, None] * (post.centres - x) / lengthscale

    def along(self, weights: Float) -> Float:
        """At least |gradient . d| of sums of kernels with weights (n, m): (m,)."""
        if self._far is None:
            return np.full(weights.shape[1], np.inf)
        gradient = np.abs(self._slopes.T @ weights) * (self._far > 0.0)[:, None]
        steep = np.sqrt((gradient**2).sum(axis=0) * self.square)
        return np.asarray(np.minimum(self._far @ gradient, steep))


@lru_cache(maxsize=8)
def _norms(post: Posterior) -> Float:
    """Squared norms of the differences of mean functions (C, C)."""
    assert isinstance(post.kernel, Kernel)
    inner = post.weights.T @ post.kernel(post.centres) @ post.weights
    own = np.diagonal(inner)
    return np.maximum(own[:, None] + own[None, :] - 2.0 * inner, 0.0) + 1e-12 * float(np.abs(inner).max())


def _ends(
    post: Posterior, V: Float, r: Float, a: Pairs, b: Pairs, slopes: _Slopes
) -> tuple[Float, Float, Float]:
    """Variances of differences f_a - f_b at the point, and their ends around it; r = R k."""
    facts, s2 = facts_of(post), post.kernels[0].prior_variance
    own = np.diagonal(V)
    if np.asarray(post.precision).ndim == 3:
        lift, negative = np.array([fact.lift for fact in facts]), np.array([fact.negative for fact in facts])
        least, most = _moved(own, s2, lift, negative * s2, slopes, r.T)
        here = np.maximum(own, 0.0)
        return here[a] + here[b], least[a] + least[b], most[a] + most[b]
    here = own[a] + own[b] - 2.0 * V[a, b]
    both = (r[a, a] + r[b, b] - r[a, b] - r[b, a]).T
    return here, *_moved(here, 2.0 * s2, np.zeros(1), np.array(2.0 * s2 * facts[0].negative), slopes, both)


def _moved(
    here: Float, s2: float, lift: Float, negative: Float, slopes: _Slopes, r: Float
) -> tuple[Float, Float]:
    """V3', V15 (c): the ends of a variance on the set, by its gradient -2 r . dk or without."""
    square, wide = slopes.square, s2 + lift + negative
    root = 2.0 * np.sqrt(np.maximum(here + lift, 0.0) * wide)
    crude = root * math.sqrt(square) + wide * square
    change = np.minimum(crude, 2.0 * slopes.along(r) + (root + wide) * square)
    return np.maximum(here - change, 0.0), np.minimum(np.maximum(here + change, 0.0), s2 + negative)


def _sums(V: Float, spent: int) -> Iterator[tuple[float, int]]:
    """What each sum is off by, inf: a checker does not make it; and all terms spent up to it."""
    spreads = _spreads(V)
    for exponent in _EXPONENTS:
        terms, error = 1, 0.0
        for spread in spreads:
            strip = min(2.0 * _STRIP / max(spread, 1e-9), math.sqrt(2.0 * exponent))
            step = 6.283 * strip / (exponent + 0.5 * strip * strip)
            count = math.ceil(math.sqrt(2.0 * exponent) / step)
            terms *= 2 * count + 3
            error += 2.0 * math.exp(0.5 * strip * strip - 2.0 * math.pi * strip / step) / math.cos(_STRIP)
            error += math.erfc(count * step / math.sqrt(2.0))
        spent += min(terms, _MOST_TERMS)
        yield (1.5 * error if spreads and terms <= _MOST_TERMS else math.inf), spent


def _spreads(V: Float) -> list[float]:
    """How far apart the classes are along the axes of a factor; none: a checker makes no sum."""
    clipped = V.copy()
    np.fill_diagonal(clipped, np.maximum(np.diagonal(V), 0.0))
    contrasts = clipped[:-1, :-1] - clipped[-1:, :-1] - clipped[:-1, -1:] + clipped[-1, -1]
    shift = 1e-12 * float(np.trace(contrasts)) + 1e-100
    try:
        L = np.linalg.cholesky(contrasts + shift * np.eye(len(contrasts)))
    except np.linalg.LinAlgError:
        return []
    spreads = np.maximum(L.max(axis=0), 0.0) - np.minimum(L.min(axis=0), 0.0)
    return spreads.tolist() if spreads.max() < _WIDEST else []
