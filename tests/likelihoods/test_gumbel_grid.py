"""Softmax of independent latents beyond 4,096 nodes: H10 of docs/maths/likelihoods.md for every step h."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import acb, arb

from gpcert.likelihoods.integrals.gumbel import (
    _COS,
    _ETA,
    _MOST,
    _TAILS,
    TARGET,
    _grid,
    gumbel_integral,
    unmoved,
)
from helpers.oracle import bits


def one_uncertain(mean: np.ndarray, d: float) -> list[arb]:
    """E softmax for latents `mean` (C,) of which only the last varies, with variance d: one integral."""
    weights = [arb(float(m)).exp() for m in mean[:-1]]
    total, s, m = sum(weights, arb(0)), arb(d).sqrt(), arb(float(mean[-1]))

    def expected(value):
        def integrand(z, _):
            return value((s * z + m).exp()) * (-z * z / 2).exp() / (2 * arb.pi()).sqrt()

        return acb.integral(integrand, -12, 12).real + arb(0, 1e-30)

    others = [expected(lambda t, w=w: w / (total + t)) for w in weights]
    return [*others, 1 - sum(others, arb(0))]


@pytest.mark.parametrize("deviation", [300.0, 330.0, 400.0, 600.0, 1e3])
def test_probabilities_hold_on_coarse_grids(deviation):
    mean = np.array([0.3, -0.4, 1.0, 0.2])
    d = np.array([0.0, 0.0, 0.0, deviation**2])
    p, error = gumbel_integral(mean, d)
    with bits(120):
        for computed, bound, exact in zip(p, error, one_uncertain(mean, deviation**2), strict=True):
            assert abs(arb(float(computed)) - exact) <= arb(float(bound))


@pytest.mark.parametrize("deviation", [300.0, 400.0, 1e3, 1e4])
def test_the_error_grows_with_the_step(deviation):
    """The stated error for e = 0 (certain latents), evaluated apart: all but the first term carry lambda."""
    grid = _grid(np.zeros(3), np.array([0.0, 0.0, deviation**2]), unmoved(3), 1)
    assert grid.size >= _MOST
    with bits(120):
        h = arb(grid.h)
        discretisation = 2 / ((2 * arb.pi() * arb(_ETA) / h).exp() - 1)
        rest = 3 * (h / arb(0.25)) * (arb(_TAILS) + 3 * arb(TARGET))
        assert arb(grid.error) >= discretisation + rest


@pytest.mark.parametrize("s", [0.05, 0.5, 2.0, 20.0])
@pytest.mark.parametrize("stretch", [0.2, 1.0, 7.0, 300.0])
def test_sums_over_coarse_grids_are_bounded(s, stretch):
    """(b) of H10: h sum_i of a Gaussian average of t exp(-kappa t), t = e^-x, is at most 1.5 lambda l_1."""
    h = stretch * (0.25 + 0.8 * s)
    with bits(80):
        kappa, size = arb(_COS), 1 / arb(_COS) + 1 / (arb(1).exp() * arb(_COS))

        def majorant(y):
            def integrand(z, _):
                t = (s * z - y).exp()
                return t * (-kappa * t).exp() * (-z * z / 2).exp() / (2 * arb.pi()).sqrt()

            return acb.integral(integrand, -9, 9).real

        shift = 0.3 * h
        count = math.ceil((9 * s + 40) / h) + 1
        total = sum((majorant(arb(shift + i * h)) for i in range(-min(count, 60), min(count, 60))), arb(0))
        assert arb(h) * total <= arb(1.5) * max(1.0, stretch) * size
