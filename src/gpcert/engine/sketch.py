"""Mean and variance of a model as the local search sees them: float32, a precision of low rank, and of many
centres those with the largest weights, onto which the others are projected.

Nothing here is proved, nor needs to be: a point that a search finds is valued with all centres.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpcert.bounds.facts.model import Model
from gpcert.engine.backend import Array, Backend
from gpcert.validation import Float

#: Centres from which some stand for all, and how many do.
MANY, SOME = 3072, 2048
#: Rank of the precision.
_RANK = 160
#: Added to the correlations of those that stand for all: in float32 larger weights would be noise.
_RIDGE = 1e-5


class Sketch(NamedTuple):
    """`which` (m,) of the centres, all if None; their coordinates Z (m, d), half |Z|^2 (m,), weights (m,),
    and V (q, m), signs (q,): k^T R k is about sum_l signs_l (V k)_l^2 for the covariances k (m,) with these.
    """

    which: Array | None
    Z: Array
    half: Array
    alpha: Array
    V: Array
    signs: Array

    def seen(self, columns: Array) -> Array:
        """Those of the columns (N, n) of all centres."""
        return columns if self.which is None else columns[:, self.which]


def sketch_of(model: Model, moving: Float, backend: Backend) -> Sketch:
    """For centres with the coordinates `moving` (n, d)."""
    n, K, which = len(moving), model.unit_gram[0], None
    V, signs = _low_rank(K, model.precision)
    weights = np.concatenate([model.weights[None], V])
    if n >= MANY:
        which = np.sort(np.argsort(-np.abs(model.weights), kind="stable")[:SOME])
        own = K[np.ix_(which, which)] + _RIDGE * np.eye(SOME)
        weights = np.linalg.solve(own, K[which] @ weights.T).T
        moving = moving[which]
    half = 0.5 * np.einsum("ij,ij->i", moving, moving)
    arrays = (backend.single(backend.array(each)) for each in (moving, half, weights[0], weights[1:], signs))
    return Sketch(None if which is None else backend.indices(which), *arrays)


def _low_rank(K: Float, R: Float) -> tuple[Float, Float]:
    """V (q, n) and signs (q,): V^T signs V is about R on smooth functions."""
    draws = np.random.default_rng(0).standard_normal((len(K), min(_RANK, len(K))))
    Q = np.linalg.qr(K @ (K @ draws))[0]
    values, vectors = np.linalg.eigh(Q.T @ (R @ Q))
    return (Q @ vectors).T * np.sqrt(np.abs(values))[:, None], np.sign(values)
