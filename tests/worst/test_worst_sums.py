"""Sums of Gaussian kernels where bounds of their higher orders are equalities: one centre, L d along L^-1 v,
|L d| = |L^-1 v|, the end of the box (X2, X5, X6, C1, J2, J5, J11, J23, J24, J27).
"""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
from flint import arb

from gpcert.bounds.local.gaussian import sums as scalar
from gpcert.engine import forms, shells
from gpcert.engine.fewer import Fewer
from gpcert.engine.forms import Forms
from helpers.laws import TermLaws
from helpers.worst import Corner, column, engine_sum, exactly, grown, model, plane, sum_around_zero

#: Metric and far corner: a centre at metric * corner makes X5 an equality there.
CASES = [([1.0], [1.0]), ([1.0], [0.3]), ([1.0, 2.25, 4.0], [0.5, 0.3, 0.2])]


def parallel(metric, corner):
    return model([np.multiply(metric, corner)], [1.0])


def best_theta(form, domain):
    return float(np.sqrt(domain.reach @ form.matrix @ domain.reach))


@exactly
def test_all_higher_orders_by_one_norm():
    for metric, corner in CASES:
        for constant in (0.0, -0.7, 0.02):
            post = parallel(metric, corner)
            f = sum_around_zero(post, [-1.0], np.zeros(len(corner)), corner, metric, constant)
            assert arb(f.lower_bound(False).value) <= grown(post, [-1.0], corner, constant)


@exactly
def test_higher_orders_as_forms():
    """Of few features by the tensor, of many flattened; any theta is sound, here the best one."""
    for metric, corner in [
        *CASES[:2],
        (np.linspace(1, 4, 13), np.full(13, 0.2)),
        (np.ones(30), np.full(30, 0.15)),
    ]:
        post = parallel(metric, corner)
        f = sum_around_zero(post, [-1.0], np.zeros(len(corner)), corner, metric)
        with patch.multiple(scalar, _THETA=1.0, largest_root=best_theta):
            assert arb(f.lower_bound(True).value) <= grown(post, [-1.0], corner)


@exactly
def test_higher_orders_by_absolute_values():
    """X2: nearly an equality for small a, and far smaller than X5 where |v| is large against |d|."""
    post = model([[3.0]], [1.0])
    f = sum_around_zero(post, [-1.0], [0.0], [0.02], [1.0])
    with patch.multiple(scalar, _THETA=1.0, largest_root=best_theta):
        assert arb(f.lower_bound(True).value) <= grown(post, [-1.0], [0.02])


@exactly
def test_norms_of_tiny_remainders_have_room_for_cancellation():
    """X5 and J2: the squared norm is a difference of numbers 1e18 times as large."""
    for h in np.geomspace(1e-4, 1e-2, 20):
        post = parallel([1.0], [h])
        rest = grown(post, [1.0], [h])
        kernel = (-(arb(h) ** 2) / 2).exp()
        a = arb(h) ** 2
        rest -= kernel * (1 + a + a * a / 2)
        found = sum_around_zero(post, [1.0], [0.0], [h], [1.0]).tail(3)
        assert rest <= arb(found)
        f = engine_sum(post, [1.0], [0.0], [h], [1.0])
        assert rest <= arb(float(f.remainder(f.known(f.hessian()), 3)[0])) * a * (1 + 1e-9)


@exactly
def test_rows_of_order_two():
    """J2 and J5 at the end of a box, the bend of J4 included."""
    for metric, corner in CASES:
        for constant, bend in ((0.0, 0.0), (-0.7, 0.0), (0.0, 0.3), (0.1, 0.0)):
            post = parallel(metric, corner)
            f = engine_sum(post, [-1.0], np.zeros(len(corner)), corner, metric, constant=constant, bend=bend)
            r = arb(float(np.dot(corner, corner))) / 2
            exact = grown(post, [-1.0], corner, constant) - 2 * arb(bend) * (r.exp() - 1)
            assert arb(float(f.order_two()[0])) <= exact + arb(1e-14)


def just_missed(post, b, corner, constant=0.0, bend=0.0):
    """The `still` that makes e^r f slightly negative at the corner."""
    r = arb(float(np.dot(corner, corner))) / 2
    return -1e-12 - float((grown(post, b, corner, constant) - 2 * arb(bend) * (r.exp() - 1)).mid())


@exactly
def test_rows_of_order_three():
    """J5 with the Hessian, J11 with its best theta, of all centres and of none (rho), J6 and J7 besides."""
    for metric, corner in [*CASES, ([1.0], [0.1])]:
        post = parallel(metric, corner)
        for bend in (0.0, 0.3):
            still = just_missed(post, [-1.0], corner, bend=bend)
            f = engine_sum(post, [-1.0], np.zeros(len(corner)), corner, metric, still=still, bend=bend)
            assert not f.order_three(5)[0] >= 0
            if len(corner) > 1:
                continue
            for centres, theta in ((1, 1.0), (0, 1e8)):
                with patch.object(shells, "_THETA", (theta, theta)):
                    form = shells._Form.of(f, centres)
                    assert not form.within(form.span, 5)[0] >= 0


@exactly
def test_a_slope_in_r_that_helps():
    """X6, a constant above 0: nearly an equality on a small set that a linear part pulls to its corner."""
    h, b, constant = 0.3, [-2.0], 1.0
    post = model([[h]], [1.0])
    f = engine_sum(post, b, [0.0], [h], [1.0], still=just_missed(post, b, [h], constant), constant=constant)
    assert not f.order_three(5)[0] >= 0
    assert arb(sum_around_zero(post, b, [0.0], [h], [1.0], constant).lower_bound(False).value) <= grown(
        post, b, [h], constant
    )


@exactly
def test_norms_of_a_cubic_that_is_seen_in_part():
    """J11: two centres whose cubics cancel, one of them in the form; 2.45 rho is what the other may take."""
    post = model([[0.5], [0.5]], [1.0, 1.0])
    f = engine_sum(post, [1.0, -1.0], [0.0], [1.0], [1.0])
    assert f.cubic(1)[2][0] <= 0.0
    one = engine_sum(model([[0.5]], [1.0]), [1.0], [0.0], [1.0], [1.0])
    k = float((-arb(0.125)).exp().mid())
    assert one.cubic(1)[2][0] <= (k * 0.125) ** 2 / 6


@exactly
def test_shells_begin_where_they_say():
    """J24: a valley at the inner edge of a shell, m large (any is sound)."""
    far, near = 0.01, 0.005
    post = model([[1.0], [-1.0]], [1.0, 1.0])
    b = [1.0 - near, 1.0 + near]  # the quadratic's minimum is at d = near
    f = engine_sum(post, b, [0.0], [far], [1.0], still=just_missed(post, b, [near]))
    with patch.multiple(shells, _THETA=(1.0, 1.0), _FAR=100.0):
        form = shells._Form.of(f, 2)
        assert not form.within(column(far**2), 5, column(near**2))[0] >= 0


@exactly
def test_sums_seen_by_fewer_centres():
    """J23: a centre that nothing stands for, so far that its value and gradient are little of its norm."""
    h = 3.9
    post = parallel([1.0], [h])
    f = engine_sum(post, [-1.0], [0.0], [h], [1.0])
    fewer = Fewer(np.array([0]), np.zeros((1, 1)), np.ones((1, 1)), column(1.0), 0.0)
    missed = fewer.missed(np, -np.ones((1, 1)))
    seen = replace(f, few=replace(f, plane=plane([0.0])), missed=missed)
    assert arb(float(seen.order_two()[0])) <= grown(post, [-1.0], [h])
    corner = replace(seen, boxes=Corner(f.boxes))
    assert arb(float(corner.order_three(0)[0])) <= grown(post, [-1.0], [h])


def forms_at_the_corner(f, corner, sharp=True):
    """The minorant at the far corner, whose direction chooses theta."""
    aim = np.asarray(corner, dtype=float)[None]
    base, g, H, excess = Forms(f).minorant(aim, sharp)
    return arb(float((base + (g * aim).sum() + 0.5 * aim @ H[0] @ aim.T - excess)[0, 0]))


@exactly
def test_forms_of_rows():
    """J27: orders three and four with their best theta, and what is beyond by its norm; nearly equalities."""
    ways = {"_TENSOR": 24, "_ALONE": 12}, {"_TENSOR": 24, "_ALONE": 0}, {"_TENSOR": 0}
    for metric, corner in CASES:
        post = parallel(metric, corner)
        f = engine_sum(post, [-1.0], np.zeros(len(corner)), corner, metric)
        exact = grown(post, [-1.0], corner)
        for way in ways:
            with patch.multiple(forms, **way):
                found = forms_at_the_corner(f, corner)
                assert found <= exact
                assert found >= exact - (arb("1e-9") if len(corner) == 1 else 1)
        assert forms_at_the_corner(f, corner, False) <= exact


@exactly
def test_forms_of_rows_centre_by_centre():
    """J27: nearly an equality for small a, and far smaller than the norm where |v| is large against |d|."""
    post = model([[3.0]], [1.0])
    f = engine_sum(post, [-1.0], [0.0], [0.02], [1.0])
    assert forms_at_the_corner(f, [0.02]) <= grown(post, [-1.0], [0.02])


@exactly
def test_forms_of_rows_know_a_part_of_the_norm():
    """J27: the squared norm of an order that is taken from all: of one centre, all of it."""
    post = parallel([1.0], [1.0])
    f = engine_sum(post, [-1.0], [0.0], [1.0], [1.0])
    size = arb(float(f.bk[0, 0])) ** 2
    for way in {"_TENSOR": 24, "_ALONE": 0}, {"_TENSOR": 0}:
        with patch.multiple(forms, **way):
            three, four = Forms(f).orders
            for form, order in ((three, 6), (four, 24)):
                assert arb(float(form.head[0])) * order <= size
                assert arb(float(form.head[0])) * order >= size * arb("0.999")


SUMS, ENGINE, SHELLS = "bounds/local/gaussian/sums.py", "engine/sums.py", "engine/shells.py"
NORM, FORMS = "test_all_higher_orders_by_one_norm", "test_higher_orders_as_forms"
PLAIN = "test_higher_orders_by_absolute_values"
TWO, THREE = "test_rows_of_order_two", "test_rows_of_order_three"
TINY = "test_norms_of_tiny_remainders_have_room_for_cancellation"
HELPS, PART = "test_a_slope_in_r_that_helps", "test_norms_of_a_cubic_that_is_seen_in_part"
FEWER = "test_sums_seen_by_fewer_centres"
ROWS, MINORANT, CENTRES = "engine/forms.py", "test_forms_of_rows", "test_forms_of_rows_centre_by_centre"
HEADS = "test_forms_of_rows_know_a_part_of_the_norm"
TERMS = [
    ("X5", SUMS, "return {|0.9 * }rest * tail_norm_up", NORM),
    ("X5", SUMS, "rest = {|0.9 * }sqrt_up(", NORM),
    ("X5", SUMS, "known = {|1.1 * }constant * constant +", NORM),
    ("X5", SUMS, "{|1.1 * }float((gradient * gradient) @ inverse)", NORM),
    ("X5", SUMS, "known += {0.5|0.55} * float(inverse", NORM),
    ("X5", SUMS, "more += {|1.1 * }math.factorial(order)", FORMS),
    ("X5", SUMS, "c.slice.amplitude * np.exp({0.5|0.55} *", NORM),
    ("X5", SUMS, "+ {slack +|0 * slack + 0 *} gamma(c.v.shape[1] ** 2 + 20)", TINY),
    ("D1", SUMS, "[Remainder(None, {2.0|1.8} * self.tail(3)", NORM),
    ("X6", SUMS, "({|0.9 * }math.expm1(c.radius) / c.radius if concave", NORM),
    ("X6", SUMS, "if concave else {1.0|1.1})", HELPS),
    ("C1", SUMS, "Remainder(matrix, {|0.8 * }power * theta * c.metric, rounding)", FORMS),
    ("C1", SUMS, "matrix, rounding = {|0.8 * }(power / theta) * form.matrix", FORMS),
    ("C1", SUMS, "power = {|0.9 * }c.span ** (order - 2)", FORMS),
    ("C1", SUMS, "T = (((bk / {6.0|6.6})", FORMS),
    ("C4", SUMS, "N = {|0.9 * }Z.T @ (power @ Z) / math.factorial(order) ** 2", FORMS),
    ("G4", SUMS, "Remainder(None, {2.0|1.8} * self._beyond(last", FORMS),
    ("X2", SUMS, "{|0.9 * }c.norm**order / math.factorial(order)) * (1.0", PLAIN),
    ("J2", ENGINE, "return {|0.9 * }sqrt_up(backend, usable)", TWO),
    ("J2", ENGINE, "known = {|1.1 * }seen.value**2 +", TWO),
    ("J2", ENGINE, "+ {|1.1 * }(seen.gradient * seen.gradient) @", TWO),
    ("J2", ENGINE, "first + {0.5|0.55} * (((H * H)", THREE),
    ("J2", ENGINE, "exp({0.|0.4}5 * ((y * y) @ self._facts.metrics[1]))", TWO),
    ("J2", ENGINE, "+ {|0 * }(slack + gamma(d * d + 64) * known) * 1.02", TINY),
    ("J5", ENGINE, "lam = {|0.9 * }seen.remainder(known, 2)[:, None]", TWO),
    ("J5", ENGINE, "self.apart + {0.|0.4}5 * xp.clip(-self.slope", TWO),
    ("X6", ENGINE, "{|0.9 * }constant * chord)", TWO),
    ("J4", ENGINE, "slope - {2.0|1.8} * bend * chord", TWO),
    ("X6", ENGINE, "xp.where(constant >= 0, {|1.1 * }constant,", HELPS),
    ("J5", ENGINE, "- {2.0|1.8} * rest[:, None] * metric", THREE),
    ("J11", ENGINE, "(power @ B)) * ({1.0|0.9} / 36.0)", THREE),
    ("J11", ENGINE, "* beta, axis=1) * ({1.0|1.1} / 6.0)", PART),
    ("J11", ENGINE, "- {2.45|2.2} * rho", PART),
    ("J11", ENGINE, "axis=1) * ({1.0|0.9} / 6.0) * (1.0 + 1e-9)", THREE),
    ("J11", SHELLS, "self.N * ({|0.8 * }b / theta * _UP)", THREE),
    ("J11", SHELLS, "(({|0.8 * }theta + self.lack / theta) * b", THREE),
    ("J11", SHELLS, "- {2.0|1.8} * rest[:, None] * metric", THREE),
    ("J11", SHELLS, "{|0.9 * }self.rho * b * _UP", THREE),
    ("J23", ENGINE, "return {|0.9 * }self.missed * sqrt_up", FEWER),
    ("J23", ENGINE, "lam + ({|0.9 * }self.apart", FEWER),
    ("J23", ENGINE, "(self.slope - {2.0|1.8} * self.apart)[:, None] - 2.0 * rest", FEWER),
    ("J23", "engine/fewer.py", "return ({|0.9 * }xp.sqrt(square)", FEWER),
    ("J27", ROWS, "taken = taken + ({|0.8 * }power / theta)", MINORANT),
    ("J27", ROWS, "spent = spent + {|0.8 * }power * (theta", MINORANT),
    ("J27", ROWS, "power = {|0.9 * }span **", MINORANT),
    ("J27", ROWS, "known + {|1.1 * }form.head", MINORANT),
    ("J27", ROWS, "({2.0|1.8} * rest + spent)", MINORANT),
    ("J27", ROWS, "packed_shares(self.sums.at.y.shape[1]) / {6.0|6.6}", MINORANT),
    ("J27", ROWS, "({1.0|0.9} / math.factorial(order) ** 2)", MINORANT),
    ("J27", ROWS, "({_MORE**2|0.9} / math.factorial(order))", CENTRES),
    ("J27", ROWS, "{6.0|6.6} * xp.clip(length", HEADS),
    ("J27", ROWS, "head = {|1.1 * }math.factorial(order) *", HEADS),
    ("J24", SHELLS, "rest + m * _UP, {|1.1 * }m * beyond", "test_shells_begin_where_they_say"),
    ("J24", SHELLS, "rest + {|0.9 * }m * _UP, m * beyond", "test_shells_begin_where_they_say"),
]  # fmt: skip


class TestTerms(TermLaws):
    terms = TERMS
