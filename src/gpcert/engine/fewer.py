"""Planes of models with many centres, seen through a few of these from order two on (J23).

The mean, and whatever predictors of few directions give (J17), are sums of a few hundred fixed functions.
Each is projected once onto a quarter of the centres, and what that misses is known by its norm. Value and
gradient are those of all centres; of the rest next to nothing is missed, and Hessians, forms and remainders
cost a quarter, or a sixteenth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack

from gpcert.bounds.facts.model import Model
from gpcert.engine.backend import Array, Backend
from gpcert.engine.thin import Basis
from gpcert.rounding import UNDERFLOW, gamma
from gpcert.validation import Float, Index

#: Centres from which it pays, and how many of them one stands for.
MANY, SHARE = 3072, 4
#: Centres that are chosen at once.
_BLOCK = 64
#: Added to the correlations of the chosen: any projection is sound.
_RIDGE = 1e-10
#: So much of a latent may be missed of nine in ten planes, in norm.
_SMALL = 0.5
#: The least weight of a centre in the choice, as a share of the largest.
_LEAST = 1e-5


class Fewer(NamedTuple):
    """Functions B (1 + q, n), the mean first: `which` (m,) of the centres stand for all, with the weights B'
    (1 + q, m); `errors` (1 + q, 1 + q) and `sizes` (1 + q,), with a share `room`: see `missed`.
    """

    which: Array
    weights: Array
    errors: Array
    sizes: Array
    room: float

    def on(self, backend: Backend) -> Fewer:
        """The same there."""
        weights, errors, sizes = (backend.array(each) for each in (self.weights, self.errors, self.sizes))
        return Fewer(backend.indices(self.which), weights, errors, sizes, self.room)

    def of(self, v: Array) -> Array:
        """v B' (N, m), for v (N, j) of the first j functions."""
        return v @ self.weights[: v.shape[1]]

    def missed(self, xp: Any, v: Array) -> Array:
        """J23: at least s |v B - v B'| (N,), in the norm of the kernel's space, of the doubles that stand for
        either.
        """
        count = v.shape[1]
        total = xp.abs(v) @ self.sizes[:count]
        form = xp.sum((v @ self.errors[:count, :count]) * v, axis=1)
        square = xp.clip(form, 0.0, None) + (self.room + gamma(2 * count + 32)) * total * total
        return (xp.sqrt(square) + gamma(count + 64) * total) * (1.0 + 1e-9) + UNDERFLOW


_kept: WeakKeyDictionary[Model, Fewer | None] = WeakKeyDictionary()


def fewer_of(model: Model, basis: Basis | None, between: Callable[[], Float]) -> Fewer | None:
    """None where it does not pay; kept as long as the model. `between`: as for `basis_of`."""
    if model not in _kept:
        many = len(model.weights) >= MANY
        sample = basis.coefficients(between()) if many and basis is not None else np.zeros((1, 0))
        _kept[model] = _fewer(model, basis, sample) if many else None
    return _kept[model]


def _fewer(model: Model, basis: Basis | None, sample: Float) -> Fewer | None:
    """`sample` (m, q): coefficients of predictors like those that will be asked for."""
    (K, entry), mean = model.unit_gram, model.weights[None]
    B = mean if basis is None else np.concatenate([mean, (basis.roots[:, None] * basis.U).T])
    weights = np.abs(mean[0]) + 0.5 * np.abs(sample @ B[1:]).mean(axis=0)
    if not 0.0 < weights.max() < np.inf:
        return None
    which = _chosen(K, np.sqrt(weights + _LEAST * weights.max()), len(K) // SHARE)
    try:
        factor = cho_factor(K[np.ix_(which, which)] + _RIDGE * np.eye(len(which)))
    except LinAlgError:
        return None
    mine = np.ascontiguousarray(cho_solve(factor, K[which] @ B.T).T)
    left = B.copy()
    left[:, which] -= mine
    errors = model.variance**2 * (left @ (K @ left.T))
    sizes = model.variance * (np.abs(B).sum(axis=1) + np.abs(mine).sum(axis=1)) * (1.0 + 1e-9)
    # Correlations are at most 1, and known to `entry`; two sums over all centres.
    room = 1.02 * (2.0 * gamma(len(K) + 16) + entry)
    found = Fewer(which, mine, 0.5 * (errors + errors.T), sizes, room)
    planes = np.concatenate([np.ones((len(sample), 1)), 0.5 * sample], axis=1)
    return found if np.quantile(found.missed(np, planes), 0.9) <= _SMALL else None


def _chosen(K: Float, scale: Float, count: int) -> Index:
    """Pivots of a Cholesky factorisation of scale_i K_ij scale_j, many at a time: any are sound."""
    n = len(K)
    factor, left, found = np.zeros((0, n)), scale * scale, np.zeros(0, dtype=np.intp)
    while len(found) < count:
        some = np.argsort(-left)[: 2 * _BLOCK]
        rows = scale[some, None] * K[some] * scale - factor[:, some].T @ factor
        L, pivots, rank, _ = lapack.dpstrf(rows[:, some], lower=1)
        rank = min(rank, _BLOCK, count - len(found))
        if not rank:
            break
        order = pivots[:rank] - 1
        more = np.linalg.solve(np.tril(L[:rank, :rank]), rows[order])
        factor, found = np.concatenate([factor, more]), np.concatenate([found, some[order]])
        left = np.maximum(left - np.einsum("ij,ij->j", more, more), 0.0)
        left[found] = 0.0
    return np.sort(found)
