"""What a proof says about the model as a whole: a witness of V1, found where the model file has none.

R is nearly (K + diag(1/W))^-1 for the posterior of any likelihood with positive sites; then one small
residual proves all that is needed of R. Any W > 0 is sound. Else R is compared with K^-1 from both sides
(docs/maths/proof.md, V1').
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import softmax

from gpcert.kernels import Kernel
from gpcert.posterior import Posterior
from gpcert.rounding import LARGEST
from gpcert.validation import Float

#: The checker wants the residual below 2^-10, that of correlated latents below 1; room for its balls.
_SMALL, _JOINT = 2.0**-11, 0.5
#: Relative room of the eigenvalues that bound an indefinite precision.
_ROOM = 1e-6
#: What a checker's residual adds to them, relative to the trace.
_BESIDE = 1e-13
#: More than what rounding does to a residual, relative to its terms: in the kernels, mostly.
_TERMS = 1e-15
#: Shapes alpha of a rational quadratic kernel between which a checker's balls tell its values.
_SHAPES = 1e-6, 1e9


@dataclass(frozen=True, eq=False)
class Fact:
    """`lift`: about how far S lies below 0 at most, inf: not known; S <= (1 + `negative`) s2; `entry`: for
    the file; `unsure`: by how much the lift that a checker finds may be less.
    """

    lift: float
    negative: float
    entry: dict[str, Any] | None
    unsure: float = 0.0


@lru_cache(maxsize=8)
def facts_of(post: Posterior) -> tuple[Fact, ...]:
    """One for each latent; one for all that are correlated."""
    sites = post.factors.get("site_precision")
    if post.weights.ndim == 1:
        return (_fact(post, sites),)
    if post.precision.ndim == 4:
        return (_joint_fact(post),)
    classes = [(c, post.one_latent(c)) for c in range(post.n_latents)]
    return tuple(_fact(each, None if sites is None else sites[c]) for c, each in classes)


def _joint_fact(post: Posterior) -> Fact:
    """V11: R = W (I + K W)^-1 with W = G G^T (C, C) at every centre, written as the lower triangles of G."""
    assert isinstance(post.kernel, Kernel)
    with np.errstate(all="ignore"):
        K, s2 = post.kernel(post.centres), post.kernel.prior_variance
        C, n = post.n_latents, post.n_centres
        R = np.asarray(post.precision).transpose(0, 2, 1, 3).reshape(C * n, C * n)
        if not _moderate(post, s2):
            return Fact(np.inf, np.inf, None)
        best = Fact(np.inf, np.inf, None)
        for W in (_laplace_sites(post, K), _solved_sites(K, R, C)):
            G = _triangles(W)
            rho = _joint_residual(K, R, G)
            if rho < min(_JOINT, best.negative):
                best = Fact(0.0, 1.1 * rho, {"sites": G[:, *np.tril_indices(C)]})
        return best


def _laplace_sites(post: Posterior, K: Float) -> Float:
    """diag(p) - p p^T (n, C, C) at the mode, p = softmax of mean + K weights."""
    f = np.broadcast_to(post.mean, (post.n_latents,)) + K @ post.weights
    p = softmax(f, axis=1)
    return np.asarray(p[:, :, None] * np.eye(p.shape[1]) - p[:, :, None] * p[:, None, :])


def _solved_sites(K: Float, R: Float, C: int) -> Float:
    """The blocks on the diagonal of W = (I - R K)^-1 R, (n, C, C)."""
    n = len(K)
    try:
        W = np.linalg.solve(np.eye(C * n) - R @ np.kron(np.eye(C), K), R)
    except np.linalg.LinAlgError:
        return np.full((n, C, C), np.nan)
    return np.asarray(np.einsum("ciei->ice", W.reshape(C, n, C, n)))


def _triangles(W: Float) -> Float:
    """Lower triangular G (n, C, C) with G G^T about W."""
    if not np.isfinite(W).all():
        return np.full_like(W, np.nan)
    values, vectors = np.linalg.eigh(0.5 * (W + np.swapaxes(W, 1, 2)))
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return np.asarray(np.swapaxes(np.linalg.qr(np.swapaxes(roots, 1, 2))[1], 1, 2))


def _joint_residual(K: Float, R: Float, G: Float) -> float:
    """|K| (|E|_1 |E|_inf)^(1/2), E = R + R K W - W, and a little for rounding."""
    n, C = len(K), G.shape[1]
    blocks = np.zeros((C, n, C, n))
    blocks[:, np.arange(n), :, np.arange(n)] = G @ np.swapaxes(G, 1, 2)
    W = blocks.reshape(C * n, C * n)
    smooth = R @ np.kron(np.eye(C), K)
    E = np.abs(R + smooth @ W - W) + 1e-15 * (np.abs(R) + np.abs(smooth) @ np.abs(W))
    rho = float(np.abs(K).sum(axis=1).max() * np.sqrt(E.sum(axis=0).max() * E.sum(axis=1).max()))
    return rho if rho == rho else np.inf


def _moderate(post: Posterior, s2: float) -> bool:
    """R7: whether expansions may be used."""
    stored = (post.centres, post.weights, np.asarray(post.precision), np.asarray(post.mean))
    sizes = [float(np.abs(part).max()) for part in stored]
    scales = np.atleast_1d(getattr(post.kernel, "lengthscale", np.inf))
    least, most = min(s2, float(scales.min())), max(*sizes, s2, float(scales.max()))
    shaped = _SHAPES[0] <= getattr(post.kernel, "alpha", 1.0) <= _SHAPES[1]
    return bool(shaped and most <= LARGEST and least * LARGEST >= 1.0)


def _fact(post: Posterior, stored: Float | None) -> Fact:
    assert isinstance(post.kernel, Kernel)
    with np.errstate(all="ignore"):
        K, R = post.kernel(post.centres), np.asarray(post.precision)
        s2 = post.kernel.prior_variance
        if not _moderate(post, s2):
            return Fact(np.inf, np.inf, None)
        for witness in (stored, _witness(K, R)):
            rho, noise = _residual(K, R, witness)
            if rho < _SMALL:
                entry = None if witness is stored else {"witness": witness}
                return Fact((rho + noise) * s2, 0.0, entry, 2.0 * noise * s2)
        return _indefinite(K, R, s2)


def _witness(K: Float, R: Float) -> Float | None:
    """1 / diag(R^-1 - K), at most huge."""
    try:
        noise = np.diagonal(np.linalg.inv(R)) - np.diagonal(K)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(1.0 / np.maximum(noise, 1e-14 * np.diagonal(K)))


def _residual(K: Float, R: Float, witness: Float | None) -> tuple[float, float]:
    """||R (K + diag(1/W)) - I||_1, and more than its rounding; inf where W is no witness."""
    if witness is None or not (witness > 0).all():
        return np.inf, np.inf
    residual = R @ K + R / witness
    residual[np.diag_indices(len(K))] -= 1.0
    worst = float(np.abs(residual).sum(axis=0).max())
    terms = float((np.abs(R) @ K + np.abs(R) / witness).sum(axis=0).max())
    return (worst, _TERMS * (1.0 + terms)) if worst < np.inf else (np.inf, np.inf)


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
    entry = {"jitter": jitter, "contraction": contraction, "negative": negative}
    beside = _BESIDE * len(K) * (contraction + negative)
    return Fact((contraction - 1.0 + beside) * s2, negative + beside, entry, beside * s2)
