"""Planes of the variance itself (G8): below S and -S in ball arithmetic, sharp, and no term of them idle."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from flint import arb

import gpcert as gc
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.geometry.domain import BoxDomain, scaled_box
from gpcert.bounds.local.gaussian.plane import plane_at
from gpcert.bounds.local.gaussian.slice import make_slice
from helpers.oracle import (
    BoxCase,
    bits,
    half_square,
    lengthscale,
)
from judge import Truth

BITS = 320


class At(NamedTuple):
    """A plane, and where it touches."""

    plane: Any
    reference: np.ndarray


def plane_of(post, box, line):
    slice_ = replace(make_slice(model_of(post), box.reference, np.arange(post.n_features)), sign=0.0)
    domain = BoxDomain(*scaled_box(box.lower, box.upper, box.reference, lengthscale(post)))
    with np.errstate(all="ignore"):
        return plane_at(slice_, domain, box.reference, line, math.inf)


def value_at(post, line, x):
    """-tau S + kappa as a ball."""
    return arb(line[1]) - arb(line[0]) * Truth(post).latent(x)[1]


def sum_at(post, at, x):
    """sum_i b_i k_i(x) + still k(x, xh) / s2 + constant as a ball."""
    kernels = ((-half_square(x, centre, post)).exp() for centre in post.centres)
    variance = arb(float(post.kernel.variance))
    terms = (arb(float(b)) * variance * k for b, k in zip(at.plane.b, kernels, strict=True))
    still = arb(at.plane.still) * (-half_square(x, at.reference, post)).exp()
    return sum(terms, arb(at.plane.constant)) + still


def test_the_negative_part_is_paid_for():
    """One centre that is less certain than the prior: S = s2 + k^2 / s2 is convex in k, and without the price
    (J4) its tangent would be claimed to lie above it.
    """
    post = gc.Posterior([[0.0]], [1.0], [[-0.5]], kernel=gc.RBF(1.0, 2.0))
    start = np.array([1.0])
    plane = plane_of(post, BoxCase(start - 0.5, start + 0.5, start), (1.0, 0.0))
    assert plane.still > 0
    at, free = At(plane, start), At(replace(plane, constant=plane.constant + plane.still, still=0.0), start)
    with bits(BITS):
        for x in (start - 0.5, start + 0.5):
            value = value_at(post, (1.0, 0.0), x)
            assert sum_at(post, at, x) <= value < sum_at(post, free, x)


def test_a_variance_below_zero_is_paid_for():
    """A precision a little larger than any posterior's, 1.0005 K^-1: from one centre to the other the square
    that is left out is -0.0005 times that of the kernels, without its lift.
    """
    X, kernel = np.array([[0.0], [1.0]]), gc.RBF(1.0, 2.0)
    R = 1.0005 * np.linalg.inv(kernel(X))
    post = gc.Posterior(X, [1.0, 0.0], (R + R.T) / 2, kernel=kernel)
    plane = plane_of(post, BoxCase(X[0], X[1], X[0]), (-1.0, 0.0))
    assert 2e-3 <= plane.excess <= 6e-3  # 2 delta e^r, delta = 0.0005 s2
    with bits(BITS):
        grow = half_square(X[1], X[0], post).exp()
        value, known = value_at(post, (-1.0, 0.0), X[1]) * grow, sum_at(post, At(plane, X[0]), X[1]) * grow
        assert known - arb(plane.excess) <= value < known


@pytest.mark.parametrize("norm", [math.inf, 2.0])
def test_many_features_are_settled_at_once(norm):
    """Where the variance scaled by e^{2r} and divided again would lose more than the tolerance."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 40))
    y = (X[:, :4].sum(axis=1) > 0).astype(int)
    post = gc.GPClassifier(kernel=gc.RBF(6.0, 8.0), max_evals=0).fit(X, y).posterior_
    for x in X[:3]:
        answer = gc.latent_range(post, gc.Ball(x, 0.08 if norm > 2 else 0.5, norm=norm), max_nodes=12)
        assert answer.status == "converged"
        with bits(BITS):
            variance = Truth(post).latent(answer.variance.argmax)[1]
            assert answer.variance.max.lower <= variance <= answer.variance.max.upper
