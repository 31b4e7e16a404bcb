"""What a proof says about the model as a whole: a witness of V1, found where the model file has none.

R is nearly (K + diag(1/W))^-1 for the posterior of any likelihood with positive sites; then one small
residual proves all that is needed of R. Any W > 0 is sound. Else R is compared with K^-1 from both sides
(docs/maths-proof.md, V1').
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from gpcert.kernels import Kernel
from gpcert.likelihoods import OneVsRest
from gpcert.posterior import Posterior
from gpcert.rounding import LARGEST
from gpcert.validation import Float

__all__ = ["Fact", "facts_of"]

#: The checker wants the residual below 2^-10; this leaves room for its balls.
_SMALL = 2.0**-11
#: Relative room of the eigenvalues that bound an indefinite precision.
_ROOM = 1e-6
#: What a checker's residual adds to them, relative to the trace.
_BESIDE = 1e-13


@dataclass(frozen=True, eq=False)
class Fact:
    """`lift`: about how far S lies below 0 at most, inf: not known; S <= (1 + `negative`) s2; `told`: for the
    file.
    """

    lift: float
    negative: float
    told: dict[str, Any] | None


@lru_cache(maxsize=8)
def facts_of(post: Posterior) -> tuple[Fact, ...]:
    """One for each latent of a posterior of two classes or one-vs-rest."""
    sites = post.factors.get("site_precision")
    if not isinstance(post.likelihood, OneVsRest):
        return (_fact(post, sites),)
    classes = enumerate(post.one_vs_rest())
    return tuple(_fact(each, None if sites is None else sites[c]) for c, each in classes)


def _fact(post: Posterior, stored: Float | None) -> Fact:
    assert isinstance(post.kernel, Kernel)
    with np.errstate(all="ignore"):
        K, R = post.kernel(post.centres), np.asarray(post.precision)
        s2 = post.kernel.prior_variance
        sizes = [float(np.abs(part).max()) for part in (post.centres, post.weights, R, np.asarray(post.mean))]
        scales = np.atleast_1d(getattr(post.kernel, "lengthscale", np.inf))
        least, most = min(s2, float(scales.min())), max(*sizes, s2, float(scales.max()))
        if not (most <= LARGEST and least * LARGEST >= 1.0):  # R7: expansions may not be used
            return Fact(np.inf, np.inf, None)
        for witness in (stored, _witness(K, R)):
            rho = _residual(K, R, witness)
            if rho < _SMALL:
                told = None if witness is stored else {"witness": witness}
                return Fact(1.1 * rho * s2, 0.0, told)
        return _indefinite(K, R, s2)


def _witness(K: Float, R: Float) -> Float | None:
    """1 / diag(R^-1 - K), at most huge."""
    try:
        noise = np.diagonal(np.linalg.inv(R)) - np.diagonal(K)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(1.0 / np.maximum(noise, 1e-14 * np.diagonal(K)))


def _residual(K: Float, R: Float, witness: Float | None) -> float:
    """||R (K + diag(1/W)) - I||_1; inf where W is no witness."""
    if witness is None or not (witness > 0).all():
        return np.inf
    residual = R @ K + R / witness
    residual[np.diag_indices(len(K))] -= 1.0
    worst = float(np.abs(residual).sum(axis=0).max())
    return worst + 1e-14 if worst < np.inf else np.inf


def _indefinite(K: Float, R: Float, s2: float) -> Fact:
    """(1 + lift / s2) K^-1 >= R >= -negative K^-1."""
    jitter = 1e-11 * len(K) * s2
    try:
        L = np.linalg.cholesky(K + jitter * np.eye(len(K)))
        values = np.linalg.eigvalsh(L.T @ R @ L)
    except np.linalg.LinAlgError:
        return Fact(np.inf, np.inf, None)
    room = _ROOM * (1.0 + float(np.abs(values).max()))
    contraction = max(1.0, float(values[-1]) + room)
    negative = max(0.0, room - float(values[0]))
    told = {"jitter": jitter, "contraction": contraction, "negative": negative}
    beside = _BESIDE * len(K) * (contraction + negative)
    return Fact((contraction - 1.0 + beside) * s2, negative + beside, told)
