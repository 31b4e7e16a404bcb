"""Labels of a softmax near a point by an integral there (docs/maths-proof.md, V15).

The formulas are the checker's, in floats: whether its sum, with its error, will tell who wins.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpcert.errors import InvalidInputError
from gpcert.kernels import Kernel
from gpcert.posterior import Posterior
from gpcert.proofs.facts import facts_of
from gpcert.validation import Float

Pairs = npt.NDArray[np.int_]

__all__ = ["Near", "near"]

#: The checker's: errors of about e^-x are tried, with sums of at most so many terms, in such a strip.
_EXPONENTS, _MOST_TERMS, _STRIP, _WIDEST = (8, 14, 22, 32), 1_000_000, 1.3, 1e4
#: What decides by more than this does so whatever the rounding here.
_CLEAR = 1e-6


class Near(NamedTuple):
    """Probabilities (C,) at a point; what a margin loses around it; what a checker's sum is off by."""

    p: Float
    lost: float
    error: float

    def ahead(self, c: int, j: int) -> bool:
        """Whether a checker will find class c ahead of j, all around."""
        return bool(self.p[c] - self.p[j] - self.lost > 2.0 * self.error + _CLEAR)


def near(post: Posterior, x: Float, square: float) -> Near | None:
    """The latents where |d|^2 <= square around x (D,); None where they have no probabilities."""
    try:
        p = post.probability(x[None])[0]
    except InvalidInputError:
        return None
    V, C = _covariance(post, x), post.n_classes
    a, b = np.triu_indices(C, 1)
    s2 = post.kernels[0].prior_variance
    here, least, most = _ends(post, V, a, b, square)
    apart = float(np.sqrt(_norms(post)[a, b] * s2 * square).max())
    lost = 0.5 * apart + 0.25 * (max(float((here - least).max()), 0.0) + max(float((most - here).max()), 0.0))
    found = Near(p, lost, _error(V))
    return found if np.isfinite([lost, found.error]).all() else None


def _covariance(post: Posterior, x: Float) -> Float:
    """Sigma (C, C) at x, not clipped."""
    assert isinstance(post.kernel, Kernel)
    k, R, C = post.kernel(post.centres, x[None])[:, 0], np.asarray(post.precision), post.n_classes
    explained = np.diag((R @ k) @ k) if R.ndim == 3 else (R @ k) @ k
    return np.asarray(post.kernel.prior_variance * np.eye(C) - explained)


@lru_cache(maxsize=8)
def _norms(post: Posterior) -> Float:
    """Squared norms of the differences of mean functions (C, C)."""
    assert isinstance(post.kernel, Kernel)
    inner = post.weights.T @ post.kernel(post.centres) @ post.weights
    own = np.diagonal(inner)
    return np.maximum(own[:, None] + own[None, :] - 2.0 * inner, 0.0) + 1e-12 * float(np.abs(inner).max())


def _ends(post: Posterior, V: Float, a: Pairs, b: Pairs, square: float) -> tuple[Float, Float, Float]:
    """Variances of differences f_a - f_b at the point, and their ends around it."""
    facts, s2 = facts_of(post), post.kernels[0].prior_variance
    own = np.diagonal(V)
    if np.asarray(post.precision).ndim == 3:
        lift, negative = np.array([fact.lift for fact in facts]), np.array([fact.negative for fact in facts])
        least, most = _moved(own, s2, lift, negative * s2, square)
        here = np.maximum(own, 0.0)
        return here[a] + here[b], least[a] + least[b], most[a] + most[b]
    lift = np.array(2.0 * facts[0].lift)
    raw = own[a] + own[b] - 2.0 * V[a, b]
    least, most = _moved(raw, 2.0 * s2, lift, lift, square)
    return np.maximum(own, 0.0)[a] + np.maximum(own, 0.0)[b] - 2.0 * V[a, b], least, most + 2.0 * lift


def _moved(here: Float, s2: float, lift: Float, negative: Float, square: float) -> tuple[Float, Float]:
    """V3': the ends of a variance where |d|^2 <= square."""
    wide = (s2 + lift + negative) * square
    change = 2.0 * np.sqrt(np.maximum(here + lift, 0.0) * wide) + wide
    return np.maximum(here - change, 0.0), np.minimum(np.maximum(here + change, 0.0), s2 + negative)


def _error(V: Float) -> float:
    """Of the sharpest sum that a checker makes; inf: none."""
    clipped = V.copy()
    np.fill_diagonal(clipped, np.maximum(np.diagonal(V), 0.0))
    contrasts = clipped[:-1, :-1] - clipped[-1:, :-1] - clipped[:-1, -1:] + clipped[-1, -1]
    shift = 1e-12 * float(np.trace(contrasts)) + 1e-100
    try:
        L = np.linalg.cholesky(contrasts + shift * np.eye(len(contrasts)))
    except np.linalg.LinAlgError:
        return math.inf
    spreads = np.maximum(L.max(axis=0), 0.0) - np.minimum(L.min(axis=0), 0.0)
    best = math.inf
    for exponent in _EXPONENTS if spreads.max() < _WIDEST else ():
        terms, error = 1, 0.0
        for spread in spreads.tolist():
            strip = min(2.0 * _STRIP / max(spread, 1e-9), math.sqrt(2.0 * exponent))
            step = 6.283 * strip / (exponent + 0.5 * strip * strip)
            count = math.ceil(math.sqrt(2.0 * exponent) / step)
            terms *= 2 * count + 3
            error += 2.0 * math.exp(0.5 * strip * strip - 2.0 * math.pi * strip / step) / math.cos(_STRIP)
            error += math.erfc(count * step / math.sqrt(2.0))
        best = min(best, 1.5 * error) if terms <= _MOST_TERMS else best
    return best
