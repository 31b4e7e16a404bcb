"""Other kernels where bounds are equalities: a centre at the corner, at the reference or far off, ends of
ranges, sets so small that one order is all (J14, J15, Lemma K, K4 to K7, Theorem K for means).
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
from flint import arb, arb_series

import gpcert as gc
from gpcert.bounds.batched.cells import _kernel, _Smooth
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.geometry.domain import BoxDomain
from gpcert.bounds.local.radial.expansion import _delta_range, _frame, expand_radial
from gpcert.bounds.local.radial.forms import _smooth, forms_of
from gpcert.bounds.local.radial.functional import radial_pieces
from gpcert.bounds.local.radial.scalar import _cap, _Ends, _finite, _line, expand_scalar
from gpcert.bounds.local.radial.slice import make_radial_slice
from gpcert.engine import centres as engine_centres
from gpcert.engine import profiles
from gpcert.engine.backend import Backend
from gpcert.engine.centres import Centres
from gpcert.engine.profiles import profile_of
from gpcert.engine.radial import RadialSums
from helpers.laws import TermLaws
from helpers.worst import Corner, column, exactly, model, plane, row_around_zero
from judge.kernels import covariance

ROUGH, SMOOTH, RATIONAL = gc.Matern32(1.0, 1.0), gc.Matern52(1.0, 1.0), gc.RationalQuadratic(1.0, 1.0, 2.0)
KERNELS = ROUGH, SMOOTH, RATIONAL
BACKEND = Backend()


def phi(kernel, z, order=0):
    """A derivative of the kernel of z, half a squared distance, as a ball."""
    if order == 0:
        return covariance(kernel, [(2 * arb(z)).sqrt()])
    series = covariance(kernel, [(2 * arb_series([arb(z), arb(1)], order + 1)).sqrt()])
    return series[order] * arb(order).fac()


def first_and_second(kernel):
    """-phi'(0) and phi''(0)."""
    return {ROUGH: (arb(3), None), SMOOTH: (arb(5) / 3, arb(25) / 3), RATIONAL: (arb(1), arb(3) / 2)}[kernel]


def power(kernel, r, d=None):
    """J14's pi^2 at r, J15's for d features."""
    first, second = first_and_second(kernel)
    value, slope = phi(kernel, r), phi(kernel, r, 1)
    left = 1 - value**2 - 2 * arb(r) * slope**2 / first
    if d is None:
        return left
    bend, nu = phi(kernel, r, 2), second - first**2
    beta, c = 1 / (2 * second / nu + d), slope + first * value
    square = (2 * arb(r) * bend) ** 2 + 4 * arb(r) * bend * c + d * c**2
    return left - (square - beta * (2 * arb(r) * bend + d * c) ** 2) / (2 * second)


@exactly
def test_profiles():
    """Every column of the tables of J14 and J15, at the end of r and next to 0."""
    for kernel in KERNELS:
        profile, (first, second) = profile_of(kernel), first_and_second(kernel)
        for R in (1e-6, 1e-3, 0.1, 0.6, 1.2):
            with patch.object(profiles, "_TOUCH", 1.0):
                ends = profile.ends(BACKEND, column(R))
            G, value = -first / phi(kernel, R, 1), phi(kernel, R)
            assert arb(ends.grow[0]) >= G
            assert arb(ends.level[0]) >= G * value
            assert arb(ends.chord[0]) >= G * (1 - value) / arb(R)
            for r in (R, 1e-3 * R):
                lost = (-first / phi(kernel, r, 1)) * power(kernel, r).sqrt()
                assert arb(ends.constant[0]) + 2 * arb(r) * arb(ends.square[0]) >= lost
            if second is None:
                continue
            thirds = profile.thirds(BACKEND, column(R))
            G = second / phi(kernel, R, 2)
            assert arb(thirds.grow[0]) >= G
            assert arb(thirds.level[0]) >= G * value
            assert arb(thirds.chord[0]) >= G * (1 - value) / arb(R)
            assert 1 + arb(thirds.linear[0]) >= -G * phi(kernel, R, 1) / first
            assert 2 * arb(R) * arb(thirds.square[0]) >= G * power(kernel, R, 1).sqrt()
            c = G * (phi(kernel, R, 1) + first * value) - (second - first**2) * arb(R)
            assert 2 * arb(R) * arb(thirds.trace[0]) + arb(1e-60) >= c


@exactly
def test_rows_of_other_kernels():
    """J14 and J15: the kernel of the corner itself, and a bend."""
    for kernel in KERNELS:
        for corner in ([0.05], [0.6], [0.02, 0.03]):
            post, r = model([corner], [1.0], kernel=kernel), float(np.dot(corner, corner)) / 2
            first, second = first_and_second(kernel)
            value = phi(kernel, r)
            for bend in (0.0, 0.4):
                at, boxes = row_around_zero(post, np.zeros(len(corner)), corner)
                f = RadialSums(at, Corner(boxes), plane([-1.0], bend=bend))
                exact = -1 - 2 * arb(bend) * (1 - value)
                with patch.object(profiles, "_TOUCH", 1.0):
                    assert arb(float(f.order_two()[0])) <= -first / phi(kernel, r, 1) * exact + arb(1e-12)
                if second is not None:
                    assert arb(float(f.order_three(0)[0])) <= second / phi(kernel, r, 2) * exact + arb(1e-12)


def centred(kernel, centre, b, corner, **terms):
    """J29's quadratic at the far corner, the sum of kernels there, and the sum of one centre."""
    post = model([[centre]], [1.0], kernel=kernel)
    at, where = row_around_zero(post, [0.0], [corner])
    sums = Centres(at, Corner(where), plane([b], **terms))
    with patch.object(engine_centres, "_TOUCH", 1.0), np.errstate(all="ignore"):
        found = float(sums.minimum(None, where.high, 2)[0].value[0])
    z, r = (arb(corner) - arb(centre)) ** 2 / 2, arb(corner) ** 2 / 2
    own = terms.get("still", 0.0) * phi(kernel, r) - 2 * arb(terms.get("bend", 0.0)) * (1 - phi(kernel, r))
    return arb(found), arb(b) * phi(kernel, z) + own, sums


@exactly
def test_centres_one_by_one():
    """J29 where the range ends, or next to 0, where r a, r^2 or r is nearly all; K4; its own kernel."""
    cases = [(1.0, 1.0, 0.01), (1.0, -1.0, 0.01), (0.1, 1.0, 0.005), (-1.0, 1.0, 0.01), (-1.0, -1.0, 0.01)]
    for kernel in KERNELS:
        for centre, b, corner in cases:
            found, exact, _ = centred(kernel, centre, b, corner)
            assert found <= exact + arb(1e-14)
    for b, corner in ((-1.0, 0.02), (1.0, 0.02), (0.0, 0.5)):
        found, exact, _ = centred(RATIONAL, 0.0, b, corner, still=0.3, bend=0.4)
        assert found <= exact + arb(1e-14)
    for centre, low, high in ((0.7, arb("0.045") - arb("0.21"), arb(0)), (-0.7, arb(0), arb("0.255"))):
        of = centred(SMOOTH, centre, 1.0, 0.3)[2]._scalars
        assert arb(float(of.low[0, 0])) <= low
        assert arb(float(of.high[0, 0])) >= high
    lost = centred(RATIONAL, 0.0, 1.0, 0.02)[2].plane._replace(lost=column(0.1), blur=column(0.2))
    at, where = row_around_zero(model([[0.0]], [1.0], kernel=RATIONAL), [0.0], [0.02])
    found = Centres(at, Corner(where), lost).minimum(None, where.high, 2)[0].value[0]
    assert found <= float(phi(RATIONAL, 0.0002)) - 0.3


def test_steepest_of_rows():
    """K5's constant where phi' + 2 z phi'' is largest."""
    z = np.linspace(0.0, 3.0, 30001)[1:]
    s = np.sqrt(6.0 * z)
    assert profile_of(ROUGH).bend >= (np.exp(-s) * (-3.0 + 2.0 * z * 9.0 / s)).max()


def placed(kernel, z):
    """The slice and its group, one centre at half squared distance z."""
    post = model([[float(np.sqrt(2 * z))]], [1.0], kernel=kernel)
    slice_ = make_radial_slice(model_of(post), np.zeros(1), np.array([0]))
    return slice_, slice_.terms[0][0]


@exactly
def test_scalar_remainders():
    """Lemma K: e / delta^2 at the ends of the range, nearly at 0, and e itself."""
    for kernel in (*KERNELS, gc.Matern12(1.0, 1.0), gc.RBF(1.0, 1.0)):
        for z, low, high in ((0.7, -0.3, 0.4), (0.7, -1e-7, 0.5), (2.0, -0.7, 1e-7), (0.7, -1e-5, 1e-6)):
            slice_, group = placed(kernel, z)
            z1, low1, high1 = column(z), column(low), column(high)
            left, right = _Ends(slice_, group, z1, low1), _Ends(slice_, group, z1, high1)
            p, relative = group.phi.derivatives(z1, 4), slice_.relative(group, z1)
            steep = group.phi.derivatives(left.near, 4)
            reach = max(-low, high)
            for order, top in ((3, steep[4] * reach**2 / 24.0), (1, steep[2] / 2.0)):
                square, largest = _cap(left, right, p, order, relative, _finite(top * (1 + 1e-9)))
                for delta in (low, high):
                    terms = [phi(kernel, z, m) * arb(delta) ** m / arb(m).fac() for m in range(order + 1)]
                    e = phi(kernel, arb(z) + arb(delta)) - sum(terms)
                    assert arb(largest[0]) >= e
                    assert arb(square[0]) * arb(delta) ** 2 >= e
            whole = expand_scalar(slice_, group, z1, low1, high1, 1.0, None, False)
            for delta in (low, high):  # as it is used, whichever order
                P = [phi(kernel, z) + arb(whole.shift[0]), *(arb(each[0]) for each in whole.P)]
                e = phi(kernel, arb(z) + arb(delta))
                e -= sum(c * arb(delta) ** m / arb(m).fac() for m, c in enumerate(P))
                rest = whole.remainder
                low_end, high_end = (
                    arb(square[0]) * arb(delta) ** 2 + arb(constant[0])
                    for square, constant in zip(rest.square, rest.constant, strict=True)
                )
                assert -low_end - arb(1e-14) <= e <= high_end + arb(rest.linear[0]) + arb(1e-14)


@exactly
def test_lines_of_a_kink():
    """K7 next to a centre of Matern 1/2, which is nearly a root: both sides are nearly equalities."""
    z, high = 1e-5, 3e-5
    kernel = gc.Matern12(1.0, 1.0)
    slice_, group = placed(kernel, z)
    left, right = (_Ends(slice_, group, column(z), column(end)) for end in (-z, high))
    line = _line(slice_, group, column(z), left, right)
    for share in np.linspace(0.0, 1.0, 101):
        delta = -z + share * (z + high)
        e = float((phi(kernel, max(z + delta, 0.0)) - arb(line.slope[0]) * arb(delta)).mid())
        assert line.bottom[0] <= e <= line.top[0]


@exactly
def test_steepest_second_derivatives():
    """K5: phi' + 2 z phi'' where it is largest."""
    where = {ROUGH: 2 / 3, SMOOTH: 0.9, gc.RBF(1.0, 1.0): 1.5, gc.Matern12(1.0, 1.0): 1e-12}
    for kernel, z in where.items():
        steepest = placed(kernel, 0.5)[1].phi.steepest
        assert arb(steepest) >= phi(kernel, z, 1) + 2 * arb(z) * phi(kernel, z, 2) - arb(1e-4) * (z < 1e-6)


def test_ranges_of_distances():
    """K4: a centre in the box, beside it, and behind an end."""
    domain = BoxDomain(column(-0.4, 0.0), column(0.3, 0.7))
    frame = SimpleNamespace(rho=column(1.0, 2.0), up=column(9.0), down=column(9.0), X_abs=column(1.0), R=9.0)
    for v in ([0.1, 0.5], [2.0, -1.0], [-0.5, 3.0]):
        grid = np.stack(np.meshgrid(np.linspace(-0.4, 0.3, 71), np.linspace(0.0, 0.7, 71)), axis=-1).reshape(
            -1, 2
        )
        v = np.array(v)
        delta = (grid * (0.5 * grid - v)) @ frame.rho
        low, high = _delta_range(domain, v[None], frame, column(-99.0))
        assert low[0] <= delta.min() + 1e-15
        assert high[0] >= delta.max() - 1e-15
    frame = _frame(BoxDomain(column(-0.5), column(1.0)), column(2.0), column(0.3)[:, None])
    assert frame.R >= 1.0
    assert frame.up[0] >= 0.3


def test_norms_of_remainders():
    """K6 for a small set: |g_m|^2 = |psi^(2m)(0)| / m!^2."""
    h, post = 0.01, model([[0.3]], [1.0], kernel=RATIONAL)
    slice_ = make_radial_slice(model_of(post), np.zeros(1), np.array([0]))
    e = expand_radial(slice_, BoxDomain(column(0.0), column(h)), np.zeros(1))
    c = slice_.model.contraction
    second, third = 1.5, 3.0  # phi''(0) and |phi'''(0)|
    assert _smooth(e, 2).matrix[0, 0] * h * h >= c * 0.75 * second * h**4
    assert _smooth(e, 3).matrix[0, 0] * h * h >= c * 15 / 36 * third * h**6
    cells = _Smooth.of(slice_, column(h)[None])
    assert cells.second[0] ** 2 >= c * 0.75 * second * h**4 * (1 - 1e-12)
    assert cells.third[0] ** 2 >= 15 / 36 * third * h**6 * (1 - 1e-12)
    for v, h in ((10.0, 1e-3), (0.1, 1e-2), (0.0, 1e-2)):  # a^3 and a^2, r a and r, r^2 and r
        slice_, group = placed(gc.RBF(1.0, 1.0), 0.5 * v * v)
        sizes = _kernel(slice_, column(v)[None, :, None], column(h)[None])[2]
        _, first, bend = (float(each[0]) for each in group.phi.derivatives(column(0.5 * v * v), 2))
        for d in (h, -h):
            value = math.exp(-0.5 * (v - d) ** 2) - math.exp(-0.5 * v * v) + first * v * d
            assert sizes.second[0, 0] >= abs(value) * (1 - 1e-9)
            beyond = value - 0.5 * first * d * d - 0.5 * bend * (v * d) ** 2
            assert sizes.third[0, 0] >= abs(beyond) * (1 - 1e-5) - 1e-16 * (v < 1)


def mean_at(post, b, h):
    """What Theorem K says of sum_i b_i k_i at h, the end of [0, h], seen from 0."""
    slice_ = make_radial_slice(
        model_of(model(post.centres, b, kernel=post.kernel)), np.zeros(1), np.array([0])
    )
    e = expand_radial(slice_, BoxDomain(column(0.0), column(h)), np.zeros(1))
    pieces = radial_pieces(forms_of(e, 0.0), 1.0, 0.0, 0.0)
    form = sum(part[0, 0] for part in pieces.parts)
    for matrix, diagonal, rounding, constant in pieces.remainders:
        form -= (0.0 if matrix is None else matrix[0, 0]) + (0.0 if diagonal is None else diagonal[0])
        pieces = pieces._replace(base=pieces.base - rounding - constant)
    return pieces.base + pieces.g[0] * h + 0.5 * form * h * h - pieces.excess


#: Where one order is nearly all that is bounded: r^2, r a, a^3, e.
MEANS = [
    (RATIONAL, [0.0], [-1.0], 0.1),
    (gc.RBF(1.0, 1.0), [0.1], [1.0], 0.01),
    (gc.RBF(1.0, 1.0), [10.0], [-1e20], 1e-3),
    (gc.RBF(1.0, 1.0), [12.0, -12.0], [-1e28, -1e28], 1e-3),
]


@exactly
def test_means_of_other_kernels():
    for kernel, centres, b, h in MEANS:
        post = model(np.array(centres)[:, None], b, kernel=kernel)
        pairs = zip(b, centres, strict=True)
        exact = sum((arb(w) * phi(kernel, (arb(c) - arb(h)) ** 2 / 2) for w, c in pairs), arb(0))
        assert arb(mean_at(post, b, h)) <= exact


TABLE, ENGINE, SCALAR = "engine/profiles.py", "engine/radial.py", "bounds/local/radial/scalar.py"
FORMS, WHOLE, EXPAND = (
    "bounds/local/radial/forms.py",
    "bounds/local/radial/functional.py",
    "bounds/local/radial/expansion.py",
)
SHAPES, CELLS = "kernels/stationary.py", "bounds/batched/cells.py"
ENDS, ROWS, CAPS, LINES = (
    "test_profiles",
    "test_rows_of_other_kernels",
    "test_scalar_remainders",
    "test_lines_of_a_kink",
)
ONE, BEND, CENTRES = "test_centres_one_by_one", "test_steepest_of_rows", "engine/centres.py"
STEEP, RANGE, MEAN, NORMS = (
    "test_steepest_second_derivatives",
    "test_ranges_of_distances",
    "test_means_of_other_kernels",
    "test_norms_of_remainders",
)
TERMS = [
    ("J14", TABLE, "exp_up(backend, {|0.9 * }S), (1.0 + S) * _MORE, chord", ENDS),
    ("J14", TABLE, "S), (1.0 + {|0.9 * }S) * _MORE, chord", ENDS),
    ("J14", TABLE, "chord = {6.0|5.4} * tail_squares(backend, 2, S)", ENDS),
    ("J14", TABLE, "touch = {0.75|0.675} *", ENDS),
    ("J14", TABLE, "{0.25|0.225} * _TOUCH**0.75", ENDS),
    ("J14", TABLE, "whole = {|0.9 * }sqrt_up(backend, tail_squares(backend, 3", ENDS),
    ("J14", TABLE, "chord = {10.0|9.0} * (1.0 / 6.0 + tail_squares(backend, 3, S) / square) / one", ENDS),
    ("J14", TABLE, "last = ({2.0|1.6} / 9.0 + tail", ENDS),
    ("J14", TABLE, "last * 0.0 + {2.0|1.6} / 9.0)", ENDS),
    ("J14", TABLE, "level = 1.0 + {|0.9 * }square / (3.0", ENDS),
    ("J14", TABLE, "grow = {|0.9 * }exp_up(backend, S) / one", ENDS),
    ("J14", TABLE, "grow = exp_up(backend, (alpha + {1.0|0.9}) * log", ENDS),
    ("J14", TABLE, "chord = {|0.9 * }(1.0 + T) * xp.expm1", ENDS),
    ("J14", TABLE, "(alpha + 1.0) * (2.0 * alpha + {1.0|0.5}) * exp_up", ENDS),
    ("J14", TABLE, "square = {0.5|0.45} * sqrt_up(backend, bend", ENDS),
    ("J14", TABLE, "grow * _MORE, (1.0 + {|0.9 * }T) * _MORE", ENDS),
    ("J15", TABLE, "chord = {10.0|9.0} * (1.0 / 6.0 + tail_squares(backend, 3, S) / square) * _MORE", ENDS),
    ("J15", TABLE, "power = {5.0|4.5} * sqrt_up(backend, tail_squares(backend, 5", ENDS),
    ("J15", TABLE, "return Thirds(exp_up(backend, {|0.9 * }S)", ENDS),
    ("J15", TABLE, "(1.0 + S + {|0.9 * }square / 3.0) * _MORE", ENDS),
    ("J15", TABLE, "* _MORE, chord, {|0.9 * }S, power", ENDS),
    ("J15", TABLE, "level = (1.0 + {|0.9 * }T) ** 2", ENDS),
    ("J15", TABLE, "chord = {|0.9 * }level * xp.expm1", ENDS),
    ("J15", TABLE, "power = {0.5|0.45} / alpha", ENDS),
    ("J15", TABLE, "(2.0 * alpha + {4.0|3.0}) * (2.0", ENDS),
    ("J15", TABLE, "grow = exp_up(backend, (alpha + {2.0|1.9})", ENDS),
    ("J15", TABLE, "level, chord, {|0.9 * }T, power", ENDS),
    ("J15", TABLE, "power, {0.5|0.45} * T / alpha", ENDS),
    ("J14", ENGINE, "known = {|1.1 * }xp.clip(xp.abs(value) - value_error", ROWS),
    ("J14", ENGINE, "** 2 / profile.first\n        norm = {|0.9 * }xp.sum", ROWS),
    ("J14", ENGINE, "known + {|1.1 * }xp.clip(length - g_error", ROWS),
    ("J14", ENGINE, "xp.clip({|0.9 * }rest * ends.square - 0.5 * slope", ROWS),
    ("J14", ENGINE, "rest * ends.square - {0.5|0.45} * slope", ROWS),
    ("J14", ENGINE, "base > 0, base, {|0.9 * }base * ends.level", ROWS),
    ("J14", ENGINE, "- {2.0|1.8} * plane.bend * ends.chord", ROWS),
    ("J15", ENGINE, "diagonal = slope - {2.0|1.8} * rest", ROWS),
    ("J15", ENGINE, "told = {|1.1 * }xp.clip(told, 0.0", ROWS),
    ("J15", ENGINE, "lost + {|0.9 * }ends.linear * box.most", ROWS),
    ("J15", ENGINE, "return {1.0|0.8} / (2.0 * profile.second /", ROWS),
    ("J15", ENGINE, "shift = {|0.9 * }profile.first * data.value", ROWS),
    ("J29", CENTRES, "rise = far - of.k + {|1.01 * }of.steep * end", ONE),
    ("J29", CENTRES, "half = {0.5|0.45} * s2 * profile.curve", ONE),
    ("J29", CENTRES, "half = {0.5|0.55} * s2 * profile.curve", ONE),
    ("J29", CENTRES, "lower = (rise + wrong) / square * (1.0 + 8 * UNIT), {|1.1 * }(rise", ONE),
    ("J29", CENTRES, "upper, lower = {|0.9 * }(rise + wrong)", ONE),
    ("J29", CENTRES, "{|0.9 * }box.most(2.0 * ev)", ONE),
    ("J29", CENTRES, "xp.clip(xp.sum(e, axis=1), None, 0.0) * {|0.9 * }radius", ONE),
    ("J29", CENTRES, "xp.sum(flat, axis=1) - {|0.9 * }slope", ONE),
    ("J29", CENTRES, "- slope - {|0.9 * }own * fall", ONE),
    ("J29", CENTRES, "plane.still + {2.0|2.2} * plane.bend", ONE),
    ("J29", CENTRES, "plane.constant - {2.0|1.8} * plane.bend", ONE),
    ("J29", CENTRES, "{|0.9 * }plane.lost + plane.blur", ONE),
    ("J29", CENTRES, "plane.lost + {|0.9 * }plane.blur", ONE),
    ("K4", CENTRES, "nearest * ({0.5|0.55} * nearest - v)", ONE),
    ("K4", CENTRES, "xp.maximum(low * (0.5 * low - v), high * ({0.5|0.45} * high - v))", ONE),
    ("K5", TABLE, "return {0.4061|0.4}", BEND),
    ("Lemma K", SCALAR, "square = {|0.9 * }np.maximum(_per_square(ends[0], left)", CAPS),
    ("Lemma K", SCALAR, "left.delta < 0.0, {|0.9 * }_per_square(ends[0], left)", CAPS),
    ("Lemma K", SCALAR, "largest = {|0.9 * }_finite(np.maximum(np.maximum(ends[0]", CAPS),
    ("Lemma K", SCALAR, "_finite(steep[4] * steep_relative * reach**2 / {24.0|27.0})", CAPS),
    ("Lemma K", SCALAR, "p[3] * x * x * x / {6.0|6.6}", CAPS),
    ("K7", SCALAR, "top = {|(1 - 1e-4) * }np.maximum(left.high", LINES),
    ("K7", SCALAR, "np.where(_usable(value, steep) & (touch > 0.0), {|1e-4 + }np.minimum", LINES),
    ("K5", SHAPES, "(1.0, {0.4061|0.4}, 0.4150)", STEEP),
    ("K5", SHAPES, "(1.0, 0.4061, {0.4150|0.41})", STEEP),
    ("K5", SHAPES, "({1.0|0.9}, 0.4061, 0.4150)", STEEP),
    ("K4", EXPAND, "(nearest * ({0.5|0.55} * nearest - v))", RANGE),
    ("K4", EXPAND, "np.maximum(low * ({0.5|0.45} * low - v)", RANGE),
    ("K4", EXPAND, "high * ({0.5|0.45} * high - v)", RANGE),
    ("K4", EXPAND, "R={0.5|0.45} * norm * norm", RANGE),
    ("K6", FORMS, "factor = {1.5|1.35} * part.R", NORMS),
    ("K6", FORMS, "else {5.0|4.5} / 3.0 * part.R * part.R", NORMS),
    ("K6", CELLS, "second + {0.75|0.675} * np.abs", NORMS),
    ("K6", CELLS, "third + {15.0|13.5} / 36.0", NORMS),
    ("K6", CELLS, "rest = {|0.9 * }np.abs(P2) * R", NORMS),
    ("K6", CELLS, "R * (X + {0.5|0.45} * R)", NORMS),
    ("K6", CELLS, "steep * delta**3 / {6.0|6.6}", NORMS),
    ("K6", CELLS, "second += {|0.9 * }np.abs(P1) * R", NORMS),
    ("K6", CELLS, "R + {0.5|0.45} * np.abs(P2) * X * X", NORMS),
    ("Theorem K", WHOLE, "steepness += {0.5|0.45} * c.R * max(-float(b @ c.P[1])", MEAN),
    ("Theorem K", WHOLE, "steepness = 0.0 if is_joined(len(rho)) else {|0.9 * }_falling", MEAN),
    ("Theorem K", WHOLE, "(span / theta) * cubic.matrix, {|0.8 * }span * theta", MEAN),
    ("Theorem K", WHOLE, "            ({|0.8 * }span / theta) * cubic.matrix,", MEAN),
    ("Theorem K", WHOLE, "+ down * {|0.9 * }rest.square[1]", MEAN),
    ("Theorem K", WHOLE, "yield Remainder({2.0|1.8} * second_moment(weights", MEAN),
    ("Theorem K", FORMS, "third = c.P[2] / {6.0|6.6}", MEAN),
]  # fmt: skip


class TestTerms(TermLaws):
    terms = TERMS
