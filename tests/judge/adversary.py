"""Points of a region at which a claim is most likely false: sampling and pattern search in floating point.

Nothing rests on it: whatever it returns is judged exactly, by membership and value. It asks the predictor for
values; where that fails or costs much (softmax of many classes), a formula that ranks points alike.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, softmax

from gpcert.claims import Quantity
from gpcert.errors import GpcertError
from gpcert.likelihoods import Link, Softmax
from gpcert.posterior import Posterior
from gpcert.regions import Ball, Region
from judge.regions import inside, points

_SAMPLES, _AROUND, _ROUNDS = 40, 16, 12


def suspects(
    post: Posterior, region: Region, quantity: Quantity, rng: np.random.Generator, known: list[np.ndarray]
) -> list[np.ndarray]:
    """A few points certainly inside the region: of small, of large and of any value; `known` may be more."""
    d = region.n_features
    inner = [np.reshape(p, (1, d)) for p in known if inside(region, p) is True]
    X = np.concatenate([points(region, rng, _SAMPLES), *inner])
    with np.errstate(all="ignore"):
        values = estimates(post, quantity, X)
        best = [_searched(post, region, quantity, rng, X[_order(s * values)[0]], s) for s in (1, -1)]
    chosen = [
        *best,
        *X[_SAMPLES:],
        *(X[i] for i in (*_order(values)[:1], *_order(-values)[:1], 0, len(X) - 1)),
    ]
    return [x for x in {tuple(x): x for x in chosen}.values() if inside(region, x) is True]


def _order(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.where(np.isnan(values), np.inf, values), kind="stable")


def column(post: Posterior, quantity: Quantity) -> int:
    """Where the model has the class that the quantity is of; the only latent is of the second class."""
    values = range(post.n_latents) if post.classes is None else post.classes.tolist()
    if post.weights.ndim == 1 and quantity.name in ("mean", "variance"):
        assert quantity.label in (None, *values[1:])
        return 0
    return next(c for c, v in enumerate(values) if (type(v), v) == (type(quantity.label), quantity.label))


def estimates(post: Posterior, quantity: Quantity, X: np.ndarray) -> np.ndarray:
    """About quantity at X (m, d), (m,); nan where the predictor has nothing to say."""
    c = column(post, quantity)
    try:
        if quantity.name in ("mean", "variance"):
            mean, variance = post.latent(X)
            chosen = mean if quantity.name == "mean" else variance
            if chosen.ndim == 1:
                return chosen
            return chosen[:, c] if chosen.ndim == 2 else chosen[:, c, c]
        p = _probabilities(post, X)
        if quantity.name == "probability" or post.n_classes == 2:
            return p[:, c]
        return p[:, c] - np.delete(p, c, axis=1).max(axis=1)
    except (GpcertError, np.linalg.LinAlgError, FloatingPointError):
        return np.full(len(X), np.nan)


def _probabilities(post: Posterior, X: np.ndarray) -> np.ndarray:
    if not isinstance(post.likelihood, Softmax | Link):
        return post.probability(X)
    mean, covariance = post.latent(X)
    if isinstance(post.likelihood, Link):
        p = ndtr(mean / np.sqrt(1.0 + covariance))
        return np.stack([1.0 - p, p], axis=1)
    spread = np.diagonal(covariance, axis1=1, axis2=2)  # MacKay's: ranks points as the integral does
    return softmax(mean / np.sqrt(1.0 + 0.4 * np.maximum(spread, 0.0)), axis=1)


def _searched(
    post: Posterior, region: Region, quantity: Quantity, rng: np.random.Generator, x: np.ndarray, sign: int
) -> np.ndarray:
    """From x to smaller sign * quantity, by random and axis-parallel steps of shrinking length."""
    box = region.inner_box()
    width = box.upper - box.lower
    best, length = float((sign * estimates(post, quantity, x[None]))[0]), 0.5
    for _ in range(_ROUNDS):
        steps = rng.standard_normal((_AROUND, len(x))) * (rng.random((_AROUND, len(x))) < 0.5)
        candidates = np.clip(x + length * steps * width, box.lower, box.upper)
        candidates = np.array([_drawn_in(region, c) for c in candidates])
        values = sign * estimates(post, quantity, candidates)
        least = _order(values)[0]
        if values[least] < best:
            x, best = candidates[least], float(values[least])
        else:
            length *= 0.4
    return x


def _drawn_in(region: Region, z: np.ndarray) -> np.ndarray:
    """z drawn towards the centre until a ball of finite norm holds it, up to rounding."""
    if not isinstance(region, Ball) or region.norm in (0, np.inf):
        return z
    step = (z - region.x) / (1.0 if region.scale is None else region.scale)
    largest = np.abs(step).max()
    if not largest > 0 or not np.isfinite(largest):
        return z
    length = largest * float(np.sum((np.abs(step) / largest) ** region.norm) ** (1.0 / region.norm))
    shrink = min(1.0, (1.0 - 1e-12) * region.radius / length) if length > 0 else 1.0
    return region.x + shrink * (z - region.x)
