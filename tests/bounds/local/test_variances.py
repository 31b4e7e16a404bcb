"""X8: the range of the variance that the kernel's metric allows, against ball arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.bounds.facts.model import model_of
from gpcert.bounds.geometry.domain import BoxDomain, BoxShape, scaled_box
from gpcert.bounds.levels.registry import curves_of
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.bounds.local.planes import variances
from gpcert.bounds.one.gaussian import RbfBound
from gpcert.kernels import RBF
from gpcert.posterior import Posterior
from helpers.oracle import BITS, bits, examples, posteriors, random_box
from judge import Truth


def ends(post, lower, upper, start):
    slice_ = make_slice(model_of(post), start, np.arange(post.n_features))
    away = RbfBound(curves_of(post.likelihood), BoxShape(lower, upper), slice_).away(
        BoxDomain(*scaled_box(lower, upper, start, slice_.lengthscale))
    )
    return variances(slice_.model, slice_.prior, slice_.latent(start)[1], away, slice_.largest_variance)


def contained(post, box, x):
    """max(S(x), 0) lies in the range, for certain."""
    with np.errstate(all="ignore"):
        low, high = ends(post, box.lower, box.upper, box.reference)
    with bits(BITS):
        S = Truth(post).latent(x)[1]
        return (low <= 0.0 or bool(arb(low) <= S)) and bool(arb(high) >= S)


@settings(max_examples=examples(200))
@given(post=posteriors(n=st.integers(1, 8), d=st.integers(1, 4)), seed=st.integers(0, 2**32 - 1))
def test_the_variance_stays_in_its_range(post, seed):
    rng = np.random.default_rng(seed)
    box = random_box(rng, post)
    for x in (box.lower, box.upper, *box.points(rng, 2)[:4]):
        assert contained(post, box, x)


@pytest.mark.parametrize("distance", [1e-3, 0.1, 1.0, 3.0])
def test_the_range_is_attained_by_a_noiseless_observation(distance):
    """R = K^-1 of one centre: S = s2 (1 - e^{-t^2}) at distance t. From the centre, sqrt(S) moves almost as
    fast as the metric allows: a constant that is too small would be caught here.
    """
    post = Posterior([[0.0]], [1.0], [[1.0 / 2.0]], kernel=RBF(1.0, 2.0))
    _, high = ends(post, np.zeros(1), np.full(1, distance), np.zeros(1))
    largest = 2.0 * -np.expm1(-(distance**2))
    assert largest <= high
    assert high <= min(2.0, 4.0 * -np.expm1(-0.5 * distance**2)) * (1 + 1e-4) + 1e-6
