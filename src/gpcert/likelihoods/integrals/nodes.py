"""Expectations of softmax as weighted averages over nodes z: a tensor trapezoid rule and a lattice.

f = mean + factor z with z standard normal; p = softmax(f) at every node.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from gpcert.likelihoods.base import UNIT
from gpcert.validation import Float

_TARGET = 1e-12
_REACH = 7.0  # 2 Q(7) < 3e-12: where the Gaussian sums are cut
_MOST = 1000  # nodes per axis; beyond it the step grows and the error says so
_ANGLES = np.linspace(0, math.pi / 2, 16, endpoint=False)
_LATTICE = 8191


class Average(NamedTuple):
    """Probabilities p (N, C) at the nodes, weights (N,) of sum 1, proved error of the average."""

    p: Float
    weights: Float
    error: float


def derivatives(average: Average) -> tuple[Float, Float]:
    """E dp_c/df_j (C, C) and E d2p_c/df_j df_k (C, C, C) by the average."""
    p, weights, _ = average
    eye = np.eye(p.shape[1])
    weighted = p * weights[:, None]
    one = weighted.sum(axis=0)
    two = weighted.T @ p
    pairs = (weighted[:, :, None] * p[:, None, :]).reshape(len(p), -1)
    three = (pairs.T @ p).reshape(p.shape[1], p.shape[1], p.shape[1])
    three = 0.5 * (three + three.swapaxes(1, 2))
    first = np.diag(one) - two
    # p_c ((d_cj - p_j)(d_ck - p_k) - p_j (d_jk - p_k)), d the Kronecker symbol
    second = (
        np.einsum("c,cj,ck->cjk", one, eye, eye)
        - eye[:, :, None] * two[:, None, :]
        - eye[:, None, :] * two[:, :, None]
        - eye[None] * two[:, :, None]
        + 2 * three
    )
    return first, second


def tensor_average(mean: Float, cov: Float) -> Average:
    """Three classes: mean (3,), cov (3, 3). Error: docs/maths/likelihoods.md#three-classes."""
    difference = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    factor = _balanced_factor(difference @ cov @ difference.T)
    (z1, w1, e1), (z2, w2, e2) = (axis_rule(np.ptp(np.append(column, 0.0))) for column in factor.T)
    f = np.zeros((z1.size * z2.size, 3))
    for j in range(2):
        f[:, j] = np.add.outer(factor[j, 0] * z1, factor[j, 1] * z2).ravel()
    f += mean - mean.max()
    weights = np.multiply.outer(w1, w2).ravel()
    total = weights.sum()
    error = e1 + e2 + e1 * e2
    # Dividing by the sum of weights, which is 1 up to the same error, costs as much again.
    normalised = 2 * error / (1 - error) if error < 0.5 else 1.0
    return Average(_softmax(f), weights / total, normalised + UNIT * (2 * len(f) + 200))


def lattice_average(mean: Float, cov: Float) -> Average:
    """Any C: mean (C,), cov (C, C). An estimate (typically to 1e-3); only |error| <= 1 is proved."""
    values, vectors = np.linalg.eigh(cov)
    order = np.argsort(-values)
    factor = vectors[:, order] * np.sqrt(np.maximum(values[order], 0.0))
    # Multiples of square roots of primes modulo 1 (Richtmyer), folded once (baker's map), mirrored.
    multiples = np.multiply.outer(np.arange(1.0, _LATTICE + 1), np.sqrt(_primes(mean.size)))
    z = ndtri(np.clip(np.abs(2 * np.mod(multiples, 1.0) - 1), UNIT, 1 - UNIT))
    f = (mean - mean.max()) + np.concatenate([z, -z]) @ factor.T
    return Average(_softmax(f), np.full(len(f), 1 / len(f)), 1.0)


def _primes(count: int) -> Float:
    primes: list[int] = []
    candidate = 2
    while len(primes) < count:
        if all(candidate % p for p in primes):
            primes.append(candidate)
        candidate += 1
    return np.array(primes, dtype=np.float64)


def _balanced_factor(cov: Float) -> Float:
    """A (2, 2) factor of cov, rotated so that the product of its columns' spreads, the cost, is small."""
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    cosines, sines = np.cos(_ANGLES), np.sin(_ANGLES)
    rotations = np.stack([np.stack([cosines, -sines], -1), np.stack([sines, cosines], -1)], -2)
    factors = root @ rotations
    spreads = np.ptp(np.concatenate([factors, np.zeros((len(_ANGLES), 1, 2))], axis=1), axis=1)
    chosen: Float = factors[np.argmin(np.prod(np.maximum(spreads, 1.0), axis=1))]
    return chosen


def axis_rule(spread: float, target: float = _TARGET, reach: float = _REACH) -> tuple[Float, Float, float]:
    """Nodes, weights and relative error of the trapezoid rule along one axis."""
    a = math.sqrt(2 * math.log(2 / target))
    if spread * a > 0.93 * math.pi:
        a = 0.93 * math.pi / spread
    log_bound = a * a / 2 + math.log(2 / math.cos(spread * a / 2))
    h = max(2 * math.pi * a / (log_bound - math.log(target)), 2 * reach / _MOST)
    count = math.ceil(reach / h)
    z = h * np.arange(-count, count + 1.0)
    # min: for a huge spread nothing is proved, and exp must not overflow.
    error = math.exp(min(log_bound - 2 * math.pi * a / h, 0.0)) / -math.expm1(-2 * math.pi * a / h)
    tail = 2 * float(ndtr(-h * count))
    return z, h / math.sqrt(2 * math.pi) * np.exp(-0.5 * z * z), error + tail


def _softmax(f: Float) -> Float:
    f = np.exp(f - f.max(axis=1, keepdims=True))
    f /= f.sum(axis=1, keepdims=True)
    return f
