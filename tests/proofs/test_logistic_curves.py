"""Curves of logistic levels as files tell them: next to the curve, where the search knows it to 1e-12."""

from __future__ import annotations

import math

import pytest
from flint import acb, arb, ctx

from gpcert.bounds.levels.logistic import LogitCurves, LogitLevel, root_below
from gpcert.likelihoods import Logit
from gpcert.proofs.facts import Fact
from gpcert.proofs.links import LogitAt, sharpened
from helpers.oracle import bits


def expected(m: float, S: float) -> arb:
    """E sigma(N(m, S)) but for 1e-32."""
    root, scale = acb(arb(S).sqrt()), 1 / (2 * acb.pi()).sqrt()

    def integrand(z: acb, _: bool) -> acb:
        return (-z * z / 2).exp() * scale / (1 + (-(m + root * z)).exp())

    return acb.integral(integrand, -14, 14, rel_tol=arb(2) ** -110).real


@pytest.mark.parametrize("p", [1e-12, 0.1, 0.5 - 1e-9, 0.5 + 1e-10, 0.9, 1 - 2.2e-15])
@pytest.mark.parametrize("S", [1.5e-5, 0.4, 3.0, 9.9])
def test_a_curve_is_known_to_a_few_units_in_the_last_place(p: float, S: float) -> None:
    before = ctx.prec
    wide = LogitLevel(LogitCurves(Logit()), p).curve(S)
    low, high = sharpened(p, S, *wide)
    assert ctx.prec == before
    assert wide[0] <= low < high <= wide[1]
    # 1 - 2.2e-15 is hardly told from 1: a checker compares numbers of size 1.
    assert high - low < max(8 * math.ulp(high), 1e-11 if p > 1 - 1e-14 else 1e-21)
    with bits(130):
        assert expected(low, S) < p < expected(high, S)


def test_large_variances_are_left_as_they_are() -> None:
    assert sharpened(0.2, 80.0, -7.0, -6.9999999999) == (-7.0, -6.9999999999)


@pytest.mark.parametrize(
    ("p", "S", "top"), [(0.48, 6.3, 8.0), (0.28, 0.08, 4.0), (0.2, 1.3, 4.0), (1e-4, 0.5, 100.0)]
)
def test_a_root_touches_the_curve_at_the_variance_of_a_small_box(p: float, S: float, top: float) -> None:
    """Where it lies lower by 1e-3, as chords between points far from S had it, no halving helps."""
    level = LogitAt(p, Fact(0.0, 0.0, None), top, False, (S,) * 9)
    curve = level.entry["curve"]
    assert curve["S"][0] == 0.0
    assert curve["S"][-1] == top
    assert len(curve["S"]) < 60
    found = root_below(curve["c"], curve["S"], [-m for m in curve["m"]], S)
    assert found is not None
    steep, c, kappa = found
    assert 0.0 <= -level._tangent(S)[1] - (steep * math.sqrt(c + S) + kappa) < 1e-8
