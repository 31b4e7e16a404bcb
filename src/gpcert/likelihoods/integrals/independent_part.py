"""Sigma = D + the rest, D diagonal, as large as differences of latents allow: docs/maths/likelihoods.md, H12.

Softmax sees differences of latents only, so D need only be below Sigma on vectors of sum zero. Of all such D
the one with the largest determinant there leaves the smallest rest: a concave problem in C numbers, solved by
Newton's method with a logarithmic barrier. Any D > 0 below Sigma is sound; what rounding spoils is counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpcert.likelihoods.base import UNIT
from gpcert.validation import Float

_BARRIERS = (0.03, 0.003)
_STEPS = 20


class Split(NamedTuple):
    """Sigma as D + sum_i variances_i directions_i directions_i^T on differences; `defect`: see H12."""

    d: Float  #: (C,) > 0
    variances: Float  #: (q,) > 0, decreasing, in units of D
    directions: Float  #: (C, q)
    defect: float


def centred(cov: Float) -> Float:
    """Sigma (..., C, C) less x 1^T + 1 x^T with row sums 0: the same differences."""
    x = cov.mean(axis=-1, keepdims=True)
    return np.asarray(cov - x - x.swapaxes(-1, -2) + x.mean(axis=-2, keepdims=True))


def independent_part(cov: Float) -> Float:
    """D (n, C) for centred covariances (n, C, C); 0 where some difference of latents has no variance."""
    n, C = cov.shape[:2]
    Q = np.linalg.eigh(np.eye(C) - 1.0 / C)[1][:, 1:]
    scale = np.trace(cov, axis1=1, axis2=2)[:, None]
    cov = cov / np.where(scale > 0, scale, 1.0)[..., None]
    V = Q.T @ cov @ Q
    lowest, largest = np.linalg.eigvalsh(V)[:, [0, -1]].T
    good = np.flatnonzero(lowest > 1e-10 * largest)
    d = np.zeros((n, C))
    if len(good):
        with np.errstate(all="ignore"):
            d[good] = _maximise(V[good], Q, _start(cov[good], V[good], Q, lowest[good]))
    d[~(np.isfinite(d) & (d > 0)).all(axis=1)] = 0.0
    return np.asarray(d * scale)


def _start(cov: Float, V: Float, Q: Float, lowest: Float) -> Float:
    """The D of Sigma = D + x 1^T + 1 x^T, were it one, not too small and shrunk until it is below Sigma."""
    C = len(Q)
    d = np.maximum(np.diagonal(cov, axis1=1, axis2=2) * (C / (C - 2.0)), lowest[:, None])
    d -= d.mean(axis=1, keepdims=True) / C
    d = np.maximum(d, 0.5 * lowest[:, None])
    half = _inverse_root((Q.T * d[:, None, :]) @ Q)
    return np.asarray(0.8 * np.linalg.eigvalsh(half @ V @ half.swapaxes(1, 2))[:, :1] * d)


def _inverse_root(A: Float) -> Float:
    """W with W A W^T = I for symmetric A (n, N, N) > 0; what rounding has made negative is taken as tiny."""
    values, vectors = np.linalg.eigh(A)
    values = np.maximum(values, 1e-15 * np.abs(values).max(axis=1, keepdims=True) + 1e-100)
    return np.asarray(vectors.swapaxes(1, 2) / np.sqrt(values)[..., None])


def _maximise(V: Float, Q: Float, d: Float) -> Float:
    """log det(Q^T D Q) + mu (log det(V - Q^T D Q) + sum log d), mu falling; every row on its own."""
    for mu in _BARRIERS:
        moving = np.arange(len(d))
        for _ in range(_STEPS):
            step, decrement = _newton(V[moving], Q, d[moving], mu)
            d[moving] += step
            moving = moving[decrement >= mu]
            if not len(moving):
                break
    return d


def _newton(V: Float, Q: Float, d: Float, mu: float) -> tuple[Float, Float]:
    """A Newton step (n, C), shortened to stay inside, and how much it promises (n,)."""
    every = np.arange(len(Q))
    half = _inverse_root(V - (Q.T * d[:, None, :]) @ Q) @ Q.T
    rest = half.swapaxes(1, 2) @ half
    one = 1.0 / d
    own = -one[:, :, None] * one[:, None, :] / one.sum(axis=1)[:, None, None]
    own[:, every, every] += one
    slope = (own - mu * rest)[:, every, every] + mu * one
    curve = own**2 + mu * rest**2
    curve[:, every, every] += mu * one**2
    step = np.linalg.solve(curve, slope[..., None])[..., 0]
    step[~np.isfinite(step).all(axis=1)] = 0.0
    # How far the step may go: where V - Q^T D Q or D becomes singular.
    fall = np.linalg.eigvalsh((half * step[:, None, :]) @ half.swapaxes(1, 2))[:, -1]
    fall = np.maximum(fall, (-step * one).max(axis=1))
    return np.minimum(1.0, 0.95 / np.maximum(fall, 1e-300))[:, None] * step, (slope * step).sum(axis=1)


def split(cov: Float, d: Float) -> Split:
    """The rest in coordinates where D is the identity, for a centred covariance (C, C) and d (C,) > 0."""
    root = np.sqrt(d)
    e = (1.0 / root) / np.linalg.norm(1.0 / root)
    whole = cov / root[:, None] / root
    turned = (
        whole
        - np.multiply.outer(e, e @ whole)
        - np.multiply.outer(whole @ e, e)
        + (e @ whole @ e + 1.0) * np.multiply.outer(e, e)
    )
    values, vectors = np.linalg.eigh(0.5 * (turned + turned.T) - np.eye(len(d)))
    scale = 1.0 + float(np.linalg.norm(whole))
    rounding = 64.0 * len(d) * UNIT * scale
    kept = np.flatnonzero(values > rounding)[::-1]
    dropped = np.abs(np.delete(values, kept)).sum() + len(d) * rounding
    return Split(d, values[kept], root[:, None] * vectors[:, kept], 0.5 * float(dropped))
