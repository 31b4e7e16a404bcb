"""Rows of kernels other than the Gaussian (docs/maths/batches.md, J14 and J15), in ball arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb

import gpcert as gc
from gpcert.engine.backend import Backend
from gpcert.engine.profiles import profile_of
from helpers.oracle import BITS, bits

CPU = Backend()
KERNELS = {
    "matern32": gc.Matern32,
    "matern52": gc.Matern52,
    "rational quadratic": gc.RationalQuadratic,
    "little alpha": lambda scale, variance: gc.RationalQuadratic(scale, variance, 0.05),
    "large alpha": lambda scale, variance: gc.RationalQuadratic(scale, variance, 300.0),
}


def phi(name, z):
    """phi and phi' at a ball z > 0, from the formulas."""
    if name.startswith("matern"):
        nu2 = 3 if name == "matern32" else 5
        s = (2 * nu2 * z).sqrt()
        decay = (-s).exp()
        if nu2 == 3:
            return (1 + s) * decay, -3 * decay
        return (1 + s + s * s / 3) * decay, -arb(5) / 3 * (1 + s) * decay
    alpha = arb(KERNELS[name](1.0, 1.0).alpha)
    value = (-alpha * (1 + z / alpha).log()).exp()
    return value, -value / (1 + z / alpha)


@pytest.mark.parametrize("name", KERNELS)
def test_what_a_radius_needs_is_bounded_and_close(name):
    profile = profile_of(KERNELS[name](1.0, 1.0))
    R = 10.0 ** np.linspace(-12, 0.4, 40)
    ends = profile.ends(CPU, R)
    with bits(2 * BITS):
        for i, most in enumerate(R):
            for share in (1.0, 0.9, 0.5, 0.2, 1e-2, 1e-6):
                r = arb(float(most)) * arb(share)
                value, slope = phi(name, r)
                first = arb(profile.first) if name != "matern52" else arb(5) / 3
                grow = first / -slope
                q = grow * (1 - value)
                square = 1 - value**2 - 2 * r * slope**2 / first
                power = grow * square.nonnegative_part().sqrt()
                assert grow <= arb(float(ends.grow[i]))
                assert grow * value <= arb(float(ends.level[i]))
                assert q / r <= arb(float(ends.chord[i]))
                assert q / r >= first * (1 - arb(1e-30))
                assert power <= arb(float(ends.constant[i])) + arb(float(ends.square[i])) * 2 * r
            # at R itself they are hardly more: what is bounded there is what is reached, or nearly
            value, slope = phi(name, arb(float(most)))
            assert arb(float(ends.grow[i])) <= arb(1.0000001) * first / -slope


def curved(name, z):
    """The second derivative of phi at a ball z >= 0, and at 0."""
    if name == "matern52":
        return arb(25) / 3 * (-(10 * z).sqrt()).exp(), arb(25) / 3
    alpha = arb(KERNELS[name](1.0, 1.0).alpha)
    value = (-(alpha + 2) * (1 + z / alpha).log()).exp()
    return (1 + 1 / alpha) * value, 1 + 1 / alpha


@pytest.mark.parametrize("d", [1, 7])
@pytest.mark.parametrize("name", [name for name in KERNELS if name != "matern32"])
def test_what_a_radius_needs_with_a_hessian_is_bounded(name, d):
    profile = profile_of(KERNELS[name](1.0, 1.0))
    R = 10.0 ** np.linspace(-12, 0.4, 30)
    ends = profile.thirds(CPU, R)
    with bits(2 * BITS):
        first = arb(5) / 3 if name == "matern52" else arb(1)
        for i, most in enumerate(R):
            for share in (1.0, 0.7, 0.2, 1e-2, 1e-6):
                r = arb(float(most)) * arb(share)
                (value, slope), (curve, second) = phi(name, r), curved(name, r)
                grow, nu, spread = second / curve, second - first**2, slope + first * value
                q = grow * (1 - value)
                trace = 2 * r * curve + d * spread
                told = 4 * r * r * curve**2 + 4 * r * curve * spread + d * spread**2
                told = (told - trace**2 / (2 * second / nu + d)) / (2 * second)
                square = 1 - value**2 - 2 * r * slope**2 / first - told
                assert grow <= arb(float(ends.grow[i]))
                assert grow * value <= arb(float(ends.level[i]))
                assert q / r <= arb(float(ends.chord[i]))
                assert q / r >= first * (1 - arb(1e-30))
                assert grow * -slope / first - 1 <= arb(float(ends.linear[i]))
                assert grow * square.nonnegative_part().sqrt() <= arb(float(ends.square[i])) * 2 * r
                assert grow * spread - nu * r <= arb(float(ends.trace[i])) * 2 * r + arb(1e-40) * r


@pytest.mark.parametrize("name", KERNELS)
def test_values_and_slopes_are_enclosed(name):
    profile = profile_of(KERNELS[name](1.0, 1.0))
    z = np.concatenate([10.0 ** np.linspace(-30, 2.5, 200)])
    value, steep = profile.both(np, -z)
    room = (8.0 * profile.exponent(np, -z) + 128.0) * 2.0**-53
    with bits(BITS):
        for i, each in enumerate(z.tolist()):
            exact, slope = phi(name, arb(each))
            assert abs(arb(float(value[i])) - exact) <= arb(float(room[i])) * exact
            assert abs(arb(float(steep[i])) + slope) <= arb(float(room[i])) * -slope
            if profile.second < np.inf:
                bend = curved(name, arb(each))[0]
                assert abs(arb(float(profile.curve(np, -z)[i])) - bend) <= arb(float(room[i])) * bend
