"""Level curves where lines and roots touch them, constants of links where suprema are attained, and lines
through a point whose remainders are equalities (L2, L3, G3, W1 to W4, S1, S3, J21, U1, U2, R2, R5, J8).
"""

from __future__ import annotations

import math

import numpy as np
from flint import arb, arb_series

import gpcert as gc
from gpcert.bounds.batched import lines as through
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.levels.registry import curves_of
from gpcert.bounds.levels.steps import Chords, StepCurves, lost
from gpcert.engine import lines as rows
from gpcert.engine.backend import Backend
from gpcert.engine.rounding import tail_squares
from gpcert.likelihoods.prediction import COEFFICIENTS, DRIFT, GAP, LAMBDAS, SLOPE
from gpcert.rounding import exp_down, exp_up, tail_norm_up
from helpers.laws import TermLaws
from helpers.worst import column, exactly, model
from judge.links import expectation

BACKEND = Backend()
LINKS = gc.Probit(), gc.Probit(0.5), gc.Logit()
VARIANCES = 0.0, 0.3, 1.0, 4.0


def cleared(link, mean, S, p):
    """Whether E sigma >= p there, but for 1e-12."""
    return expectation(link, arb(mean), arb(S), 1) + arb(1e-12) >= arb(p)


@exactly
def test_tangents_and_roots():
    """Next to where they touch, at 0 and at the largest variance."""
    for link in LINKS:
        for p in (0.01, 0.2, 0.45, 0.55, 0.9, 0.999):
            level = curves_of(link).level(p)
            for S in VARIANCES:
                places = [0.0, 20.0, *(max(S + i * 5e-4 * (1 + S), 0.0) for i in range(-5, 6))]
                if level.concave:
                    tau, kappa = level.tangent(S, 20.0)
                    assert all(cleared(link, tau * x - kappa, x, level.p) for x in places)
                else:
                    steep, c, kappa = level.root(S, 20.0)
                    assert all(cleared(link, -(steep * math.sqrt(c + x) + kappa), x, level.p) for x in places)
                    tau, kappa = level.chord(S, S + 3.0)
                    assert all(cleared(link, tau * x - kappa, x, level.p) for x in (S, S + 1.5, S + 3.0))


@exactly
def test_tangents_and_roots_of_rows():
    """The engine's, probit."""
    curves = curves_of(LINKS[1])
    for p in (0.01, 0.45, 0.55, 0.999):
        for S in VARIANCES:
            line = rows.lines(BACKEND, curves, column(p), column(S), column(20.0), 0.02)
            slope, c, constant = (float(each[0]) for each in (line.slope, line.c, line.constant))
            mean = slope * S - constant if line.rising[0] else -(slope * math.sqrt(c + S) + constant)
            assert cleared(LINKS[1], mean, S, line.p[0])


@exactly
def test_deficits_and_surpluses():
    """At the middle of a link, where it is steepest; probit anywhere, at the variance that counts."""
    for link in (*LINKS, gc.FiveErf()):
        curves = curves_of(link)
        top = (expectation(link, arb(1e-6), arb(0), 1) - expectation(link, arb(-1e-6), arb(0), 1)) / arb(2e-6)
        assert arb(curves.slope) >= top - arb(1e-9)
        if isinstance(link, gc.FiveErf):
            continue
        level = curves.level(0.5)
        m = level.curve(0.0)[0]
        for deficit in (1e-3, 0.1):
            assert cleared(link, m - deficit, 0.0, level.after_deficit(deficit, 0.0))
            assert cleared(link, m + deficit, 3.0, level.after_surplus(deficit, 3.0))
    floored = gc.Floored(gc.Probit(), 0.1)
    level = curves_of(floored).level(0.3)
    assert cleared(floored, level.curve(1.0)[1] + 1e-12, 1.0, level.p)
    assert cleared(floored, level.curve(1.0)[1] - 0.1, 1.0, level.after_deficit(0.1, 1.0))
    assert curves_of(floored).bounds((0.4, 0.4), (1.0, 1.0))[0] <= expectation(floored, arb(0.4), arb(1), 1)
    found, t = (
        rows.lines(BACKEND, curves_of(LINKS[0]), column(0.3), column(1.0), column(2.0), 0.02),
        column(0.2),
    )
    z = arb(float(found.t[0]))
    for moved, mean in (
        (rows.after_deficit(BACKEND, curves_of(LINKS[0]), found, t), z - arb(0.2)),
        (rows.after_surplus(BACKEND, curves_of(LINKS[0]), found, t, column(0.0)), z + arb(0.2)),
    ):
        assert cleared(LINKS[0], mean, 0.0, float(moved[0]))


def five_erf(f):
    """The sum and its first two derivatives, less those of the logistic."""
    parts = [(arb(c), arb(l)) for c, l in zip(COEFFICIENTS.tolist(), LAMBDAS.tolist(), strict=True)]
    x = arb_series([arb(f), arb(1)], 3)
    value = sum(((x * l).erf() + 1) * c / 2 for c, l in parts) - 1 / (1 + (-x).exp())
    return value[0], value[1], 2 * value[2]


@exactly
def test_constants_of_links():
    """W2 to W4 and U2: suprema over a grid."""
    found = [tuple(abs(float(part.mid())) for part in five_erf(f)) for f in np.linspace(-8, 8, 1601)]
    gap, first, second = (max(column) for column in zip(*found, strict=True))
    assert gap <= GAP
    assert first / 2 + second / 2 <= DRIFT
    assert SLOPE >= 0.2502
    s = 1 / (1 + np.exp(-np.linspace(0, 5, 5001)))
    slope = s * (1 - s)
    tops = (
        slope,
        slope * (1 - 2 * s),
        slope * (1 - 6 * s + 6 * s**2),
        slope * (1 - 2 * s) * (1 - 12 * s + 12 * s**2),
    )
    assert all(np.abs(each).max() <= top for each, top in zip(tops, through._LOGISTIC, strict=True))
    z = np.linspace(0, 5, 5001)
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    tops = density, z * density, (z * z - 1) * density, (z**3 - 3 * z) * density
    assert all(np.abs(each).max() <= top for each, top in zip(tops, through._NORMAL, strict=True))


def test_steps_and_chords():
    """S1 for one step; S3 without a slope and with a steep one; lines above a table of two chords."""
    curves = StepCurves(column(0.0, 1e9), column(1.0), column(1.0))
    for mean in (0.5, -0.5):
        least = min(float(expectation(gc.Probit(1e9), arb(mean), arb(S), 1).mid()) for S in (1.0, 4.0))
        most = max(float(expectation(gc.Probit(1e9), arb(mean), arb(S), 1).mid()) for S in (1.0, 4.0))
        assert curves.at_least(mean, (1.0, 4.0)) <= least + 1e-9
        flat = StepCurves(column(-1e9, 0.0), column(0.0), column(0.0))
        assert flat.bounds((mean, mean), (1.0, 4.0))[1] >= most - 1e-9
    z = np.linspace(-6, 6, 4001)
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    for slope in (0.0, 1e6):
        bend = np.abs(z**3 - 2 * z + slope * (2 - 2 * z * z) + slope**2 * z) * density
        assert lost(slope, 0.07) >= 0.07**2 / 8 * bend.max()
    for S, sign in ((1.5, 1.0), (6.0, 1.0), (1.5, -1.0), (6.0, -1.0)):
        table = Chords(column(1.0, 2.0, 3.0), sign * column(-1.0, 1.5, 2.0), 0.1 - sign)
        tau, kappa = table.line_above(S)
        steep, c, below = table.root_above(S, 1.0)
        for s in np.linspace(1.0, 3.0, 201):
            m = np.interp(s, table.s, table.m)
            assert tau * s * s - kappa >= m
            assert -(steep * math.sqrt(c + s * s) + below) >= m
        assert min(-kappa, -(steep * math.sqrt(c + 1.0) + below)) >= table.first


@exactly
def test_lines_through_a_point():
    """U1: one centre, a short line: the fourth orders of the mean and of k^T R k."""
    post, U = model([[1.0]], [1.0], [[0.5]]), column(1e-3)
    found = through._series(model_of(post), np.zeros(1), np.array([0]), U)
    k = (-arb("0.5")).exp()
    for u in (1e-3, -1e-3):
        M = sum(arb(found.M[p, 0]) * arb(u) ** p for p in range(4))
        q = sum(arb(found.q[p, 0]) * arb(u) ** p for p in range(4))
        room = [
            1.001 * (arb(each[0]) * arb(u) ** 4) + arb(1e-15) for each in (found.M_fourth, found.q_fourth)
        ]
        assert abs(k * arb(u).exp() - M) <= room[0]
        assert abs(k * k * (2 * arb(u)).exp() / 2 - q) <= room[1]


@exactly
def test_tails():
    """R5 and R2: series that are cut, one-sided functions."""
    for order in (2, 3, 5):
        for h in (0.01, 0.7, 2.0, 3.9):
            x = arb(h) ** 2
            tail = x.exp() - sum(x**p / arb(p).fac() for p in range(order))
            assert arb(tail_norm_up(order, h)) ** 2 >= tail
            assert arb(float(tail_squares(BACKEND, order, column(h * h))[0])) >= tail
    for x in np.linspace(-3, 3, 200):
        assert arb(exp_down(x)) <= arb(x).exp() <= arb(exp_up(x))


CURVES, LOGISTIC, FLOORED = "bounds/levels/curves.py", "bounds/levels/logistic.py", "bounds/levels/floored.py"
FIVE, ERF, CHORDS, STEPS = (
    "bounds/levels/five_erf.py",
    "likelihoods/prediction.py",
    "bounds/levels/steps.py",
    "bounds/levels/steps.py",
)
ROWS, LINES = "engine/lines.py", "bounds/batched/lines.py"
TOUCH, MANY, MOVED = (
    "test_tangents_and_roots",
    "test_tangents_and_roots_of_rows",
    "test_deficits_and_surpluses",
)
TOPS, TABLE, POINT = "test_constants_of_links", "test_steps_and_chords", "test_lines_through_a_point"
TERMS = [
    ("L2", CURVES, "top = {|0.9 * }tau * self.c_high", TOUCH),
    ("L2", CURVES, "self.t * self.t / ({4.0|4.4} * tau)", TOUCH),
    ("L3", CURVES, "return tau, kappa {-|+ 1e9 *} 8 * UNIT * (abs(a)", TOUCH),
    ("G3", CURVES, "return (-self.t, {|1.1 * }self.c_low, 0.0)", TOUCH),
    ("L2", CURVES, "drop = {|0.9 * }deficit / sqrt_down", MOVED),
    ("L2", CURVES, "gain = {|1.1 * }surplus / sqrt_up", MOVED),
    ("J21", CURVES, "return {0.399|0.36} * self.scale", MOVED),
    ("L2", LOGISTIC, "return tau, -up(max(upper) + max(rises) + size{| - 2e-6})", TOUCH),
    ("G3", LOGISTIC, "return steep, c, kappa{| + 1e-4}", TOUCH),
    ("G3", LOGISTIC, "kappa = min(kappa, one - slope * (x + c) - {0.25|0.225} * steep", TOUCH),
    ("J21", LOGISTIC, "return {0.25|0.225}\n", MOVED),
    ("J21", LOGISTIC, "self.p - {0.25|0.225} * deficit", MOVED),
    ("W1", FLOORED, "down(self.floor + (1.0 - {2.0|1.8} * self.floor)", MOVED),
    ("W1", FLOORED, "(self.floor + (1.0 - {2.0|1.8} * self.floor) * p for p in self.inner.bounds(mu", MOVED),
    ("W3", ERF, "GAP = {4.4|3.96}e-4", TOPS),
    ("W3", ERF, "SLOPE = {0.26|0.234}", TOPS),
    ("W4", ERF, "DRIFT = {1e-3|0.9e-3}", TOPS),
    ("L2", ROWS, "top = ({|0.9 * }tau * high + t * t", MANY),
    ("L2", ROWS, "top = (tau * high + t * t / ({4.0|4.4} * tau)", MANY),
    ("G3", ROWS, "t * 0.0 + {|1.1 * }low, constant, normal_down", MANY),
    ("L2", ROWS, "drop = {|0.9 * }deficit", MOVED),
    ("L2", ROWS, "gain = {|1.1 * }surplus", MOVED),
    ("S3", CHORDS, "({0.34|0.306} + slope", TABLE),
    ("S3", CHORDS, "{0.25|0.225} * slope))", TABLE),
    ("S3", CHORDS, "s[1:]) if tau > 0.0 else s[:-1]\n{|        highest = s[:-1]\n}", TABLE),
    ("S3", CHORDS, ".min()), {|0.9 * (}-first - steep * float(w[0]){|)})", TABLE),
    ("S1", STEPS, "gap >= 0, {|0.9 * }most * (1.0 + 4 * UNIT), least", TABLE),
    ("S1", STEPS, "gap >= 0, {|1.1 * }least * (1.0 - 4 * UNIT), most", TABLE),
    ("U1", LINES, "M_fourth=(absolute @ grown4) / {24.0|26.4}", POINT),
    ("U1", LINES, "linear = (np.abs(r) @ grown4) / {12.0|15.0}", POINT),
    ("U1", LINES, "third = grown * np.abs(v) * v2 / {6.0|6.6}", POINT),
    ("U1", LINES, "half = {0.5|0.45} * grown * v2", POINT),
    ("R5", "rounding.py", "total += {|0.9 * }term\n", "test_tails"),
    ("R5", "engine/rounding.py", "found = ({|0.9 * }backend.xp.sum(terms", "test_tails"),
]  # fmt: skip


class TestTerms(TermLaws):
    terms = TERMS
