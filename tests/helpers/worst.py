"""Worst cases: models of a few centres for which an inequality is an equality, and exact sums of kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flint import arb

from gpcert.bounds.facts.model import model_of
from gpcert.bounds.geometry.domain import BoxDomain, scaled_box
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.bounds.local.gaussian.sums import Covariances, KernelSum
from gpcert.engine.backend import Backend
from gpcert.engine.boxes import boxes
from gpcert.engine.facts import Facts
from gpcert.engine.planes import Plane
from gpcert.engine.profiles import profile_of
from gpcert.engine.quadratic import Minima
from gpcert.engine.root import Rows
from gpcert.engine.sums import Sums
from gpcert.engine.values import amplitudes, points
from gpcert.kernels import RBF, Kernel
from gpcert.likelihoods import Probit
from gpcert.posterior import Posterior
from helpers.oracle import bits

Numbers = Sequence[float] | np.ndarray
#: Tests in ball arithmetic of so many bits.
exactly = bits(240)
#: Of the weights of a plane, which bounds pay for elsewhere.
ROUNDING = arb(1e-13)


def column(*values: float) -> np.ndarray:
    """(N,)."""
    return np.array(values, dtype=float)


def model(centres: object, weights: Numbers, R: object = None, **options: object) -> Posterior:
    """A posterior of Gaussian kernels with lengthscale and variance 1, without a precision unless given."""
    X = np.array(centres, dtype=float).reshape(len(weights), -1)
    R = np.zeros((len(X), len(X))) if R is None else np.array(R, dtype=float)
    options = {"kernel": RBF(np.ones(X.shape[1]), 1.0), "likelihood": Probit(), **options}
    return Posterior(X, np.array(weights, dtype=float), R, **options)


def square(x: Numbers, y: Numbers) -> arb:
    """|x - y|^2 / 2 as a ball."""
    return sum(((arb(float(a)) - arb(float(b))) ** 2 for a, b in zip(x, y, strict=True)), arb(0)) / 2


def grown(post: Posterior, b: Numbers, x: Numbers, constant: float = 0.0, still: float = 0.0) -> arb:
    """e^r f of a sum of kernels around 0 (lengthscales and variance 1), as a ball."""
    r = square(x, 0.0 * np.asarray(x))
    terms = (arb(float(w)) * (r - square(x, c)).exp() for w, c in zip(b, post.centres, strict=True))
    return sum(terms, arb(float(still))) + arb(float(constant)) * r.exp()


def lower(
    post: Posterior,
    b: Numbers,
    xh: Numbers,
    x: Numbers,
    still: float,
    constant: float,
    lost: float,
    bend: float = 0.0,
) -> arb:
    """What a plane around xh says at x, but for `ROUNDING`."""
    near = (-square(x, xh)).exp()
    kernels = sum(
        (arb(float(w)) * (-square(x, c)).exp() for w, c in zip(b, post.centres, strict=True)), arb(0)
    )
    rest = arb(float(constant)) - arb(float(lost)) - 2 * arb(float(bend)) * (1 - near)
    return kernels + arb(float(still)) * near + rest - ROUNDING


def sum_around_zero(
    post: Posterior, b: Numbers, low: Numbers, high: Numbers, metric: Numbers, constant: float = 0.0
) -> KernelSum:
    """The sum over [low, high], seen from 0 in the metric L^2 (any is sound)."""
    zero, every = np.zeros(post.n_features), np.arange(post.n_features)
    slice_ = make_slice(model_of(post), zero, every)
    v, k, relative, _ = slice_.visit(zero)
    low, high = np.array(low, dtype=float), np.array(high, dtype=float)
    around = Covariances(slice_, BoxDomain(*scaled_box(low, high, zero, zero + 1.0)), v, k, relative)
    around.__dict__["metric"] = np.array(metric, dtype=float)
    return KernelSum(around, np.array(b, dtype=float), constant)


def row_around_zero(
    post: Posterior, low: Numbers, high: Numbers, metric: Numbers | None = None, kernel: Kernel | None = None
) -> tuple:
    """The engine's points and boxes of one row, seen from 0."""
    zero, every = np.zeros((1, post.n_features)), np.arange(post.n_features)
    profile = profile_of(post.kernel if kernel is None else kernel)
    facts = Facts(Backend(), model_of(post), every, post.centres.mean(axis=0), False, profile)
    if metric is not None:
        facts.__dict__["metric"] = np.array(metric, dtype=float)
    low, high = (np.array(end, dtype=float)[None] for end in (low, high))
    rows = Rows(low, high, low, high, np.zeros((1, 0)), column(1.0))
    return points(facts, zero, amplitudes(facts, rows.standing)), boxes(facts, rows, zero)


def plane(
    b: Numbers, constant: float = 0.0, bend: float = 0.0, still: float = 0.0, parts: object = None
) -> Plane:
    """One exact sum as the engine's plane."""
    b, zero = np.array(b, dtype=float)[None], column(0.0)
    size = column(float(np.abs(b).sum()) * (1 + 1e-12))
    return Plane(b, column(still), column(constant), zero, column(bend), size, zero, parts)


def engine_sum(
    post: Posterior, b: Numbers, low: Numbers, high: Numbers, metric: Numbers | None = None, **terms: float
) -> Sums:
    """The engine's sum of one row, seen from 0."""
    return Sums(*row_around_zero(post, low, high, metric), plane(b, **terms))


class Corner:
    """A set whose quadratics are known at its far corner alone, which is all that is asked here."""

    def __init__(self, boxes):
        self._boxes = boxes

    def __getattr__(self, name):
        return getattr(self._boxes, name)

    def quadratic(self, g, H, diagonal, base, excess, size, tries, best=0):
        d = self._boxes.high
        H = H + diagonal[:, :, None] * np.eye(d.shape[1])
        value = base + (g * d).sum(axis=1) + 0.5 * ((H @ d[:, :, None])[:, :, 0] * d).sum(axis=1) - excess
        return Minima(value, d, 0.0 * d, 0.0 * d)
