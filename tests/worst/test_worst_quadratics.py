"""Quadratics over boxes, balls and few coordinates where relaxations are exact (Q1 to Q4, J6, J7, J13, J20,
B3 to B7, B11, Z1, Z3), and the smallest matrices that R4 must refuse.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np

from gpcert.bounds.geometry.ball import BallDomain
from gpcert.bounds.geometry.ball_quadratic import unit_lower_bound
from gpcert.bounds.geometry.ball_separable import separable_bound
from gpcert.bounds.geometry.box_quadratic import quadratic_lower_bound
from gpcert.bounds.geometry.domain import BoxDomain
from gpcert.bounds.geometry.remnant import remnant
from gpcert.bounds.geometry.sparse import SparseDomain, Suspects
from gpcert.bounds.geometry.unit_ball import UnitBall, pair_bound
from gpcert.bounds.local.forms import Pieces, Remainder, least
from gpcert.engine.backend import Backend
from gpcert.engine.balls import Cap, farthest, separable
from gpcert.engine.boxes import Boxes
from gpcert.engine.quadratic import Minima, _best, dominated, dual, remnants
from gpcert.rounding import is_certainly_psd
from helpers.laws import TermLaws
from helpers.oracle import is_psd
from helpers.quadratics import exact
from helpers.worst import column, model, row_around_zero

BACKEND = Backend()


def concave(seed, d):
    """g, H < 0, low, high: the least value is that of a vertex."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((d, d))
    return rng.standard_normal(d), -(A @ A.T) - 0.1 * np.eye(d), -rng.random(d), rng.random(d)


def below(value, g, H, d):
    """Whether it is at most g.d + d^T H d / 2, exactly."""
    return Fraction(float(value)) <= Fraction(*map(int, (exact(g, H, d).p, exact(g, H, d).q)))


def vertices(low, high):
    return (np.array(v) for v in product(*zip(low, high, strict=True)))


def test_boxes():
    """Q1, Q2, J20, and the slopes of Q3 at every vertex."""
    for seed in range(40):
        d = 1 + seed % 4
        g, H, low, high = concave(seed, d)
        if seed % 3 == 0:
            g, H = g + 4.0 * np.sign(g), 0.2 * H  # faces are settled
        found = quadratic_lower_bound(g, H, low, high)
        batch = (each[None] for each in (g, H, low, high))
        row = _best(BACKEND, *batch, column(10.0))
        for v in vertices(low, high):
            for some, value in ((found, found.value), (row, row.value[0])):
                slopes = np.ravel(some.slopes)
                ends = np.where(slopes > 0, v - low, high - v)
                assert below(value + np.abs(slopes) @ ends - 1e-12, g, H, v)
                assert below(value, g, H, v)


def test_duals_of_rows():
    """Q2 with H + D = 0, where it is the chord, from any point."""
    for low, high, g in ((-1.0, 2.0, 0.3), (0.5, 1.5, -0.2), (-1.0, 1.0, 0.0)):
        for y in (0.0, 0.7, high):
            terms = (column(*each)[:, None] for each in ((g,), (y,), (low,), (high,)))
            g1, y1, low1, high1 = terms
            found = dual(BACKEND, g1, np.array([[[-1.0]]]), low1, high1, np.ones((1, 1)), y1).value[0]
            assert min(g * e - 0.5 * e * e for e in (low, high)) >= found


def test_definite_matrices():
    """J7: the least eigenvalue is that of the Frobenius norm, nearly; R4: a negative one below rounding."""
    d = 60
    H = -1.001 / (d - 1) * (np.ones((d, d)) - np.eye(d))
    assert not dominated(BACKEND, H[None], np.ones((1, d)))[0]
    rng = np.random.default_rng(0)
    for x, y in rng.random((200, 2)) + 0.1:
        A = np.array([[x, y], [y, np.nextafter(y * y / x, 0.0)]])
        assert is_psd(A) or not is_certainly_psd(A)


def test_remnants():
    """Q4: the knapsack is filled by whole coordinates; ends that are not shorter than what they may be."""
    slopes = column(1.0, -1.0, 0.0)
    left = remnant(BoxDomain(column(0.0, -0.5, -0.2), column(1.0, 0.0, 0.1)), -1.0, slopes)
    assert left.norm(column(1.0, 1.0, 1.0)) ** 2 >= 1.0 + 0.2**2
    assert left.norm(column(1.0, 9.0, 0.0)) ** 2 >= 0.5**2 + 9.0 * 0.5**2  # the rest of one coordinate
    long = remnant(BoxDomain(column(0.0, -3.0, -0.2), column(3.0, 0.0, 0.1)), -1.0, slopes)
    assert long.high[0] >= 1.0
    assert long.low[1] <= -1.0
    assert (long.support(column(1.0, -1.0, 1.0)[None]) >= 2.1).all()


POWERS = 1.0, 1.5, 2.0, 3.0, 6.0


def test_suprema_on_balls():
    """B3, B4: Hoelder's inequality is an equality; for p <= 2 squares fill whole coordinates."""
    a = column(0.3, -1.0, 0.7)
    for p in POWERS:
        ball = UnitBall(-np.ones(3), np.ones(3), p)
        u = np.eye(3)[1] * -1.0 if p == 1 else np.sign(a) * np.abs(a) ** (1 / (p - 1))
        u = u / np.linalg.norm(u, p)
        assert ball.support(a[None])[0] >= a @ u * (1 - 1e-14)
        assert -(a @ u) * (1 - 1e-14) >= ball.least(a)
        w = column(0.5, 1.0, 0.8)
        u = np.eye(3)[1] if p <= 2 else w ** (1 / (p - 2))
        u = u / np.linalg.norm(u, p)
        assert ball.square(w) >= w @ (u * u) * (1 - 1e-14)
        cap = 0.5 ** (1 / p)
        small = UnitBall(-np.full(3, cap), np.full(3, cap), p)
        assert small.square(w) >= 1.8 * cap**2 * (1 - 1e-14) or p > 2
        domain = BallDomain(
            column(-1.0, -1.0, -1.0), column(2.0, 1.0, 1.0), column(1.0, 0.0, 0.0), np.ones(3), ball
        )
        assert domain.norm(column(1.0, 0.0, 0.0)) >= 2.0
        assert domain.support(column(1.0, 0.0, 0.0)[None])[0] >= 2.0 * (1 - 1e-15)
        assert domain.absolute(column(1.0, 0.0, 0.0)[None])[0] >= 2.0


def test_quadratics_over_balls():
    """B6, B7, B11: at the vertex or the diagonal of the ball, where the multipliers are exact."""
    for p in POWERS:
        ball = UnitBall(-np.ones(2), np.ones(2), p)
        u = column(1.0, 0.0) if p <= 2 else column(1.0, 1.0) * 0.5 ** (1 / p)
        for gamma in (0.0, 0.3, 2.0):
            g, H = -gamma * u, -np.eye(2)
            least = float(g @ u - 0.5 * u @ u)
            assert unit_lower_bound(g, H, ball).value <= least + 1e-14
            if 1.0 < p < 4 and p != 2:
                m = (gamma + 1.0) / p * np.max(u) ** (2.0 - p)
                with np.errstate(all="ignore"):
                    found = separable_bound(g, H, ball, np.full(2, 1.2), [(u, m)], 0.0)
                assert found <= least + 1e-14
    flat = UnitBall(-np.ones(2), np.ones(2), 1.0)
    assert unit_lower_bound(column(0.0, 0.0), np.diag([-1.0, -0.2]), flat).value <= -0.5


def test_rows_over_balls():
    """J12, J13: a form along the centre, over a ball that no end of the box cuts."""
    o, w, low, high = column(0.4, 0.3), np.ones(2), column(-3.0, -3.0), column(3.0, 3.0)
    inside = Cap(o[None], w[None])
    assert farthest(BACKEND, inside, w, column(99.0))[0] >= 1.5**2
    at, _ = row_around_zero(model([[0.0, 0.0]], [1.0]), low, high)
    boxes = Boxes(at.facts, low[None], high[None], inside)
    for size in (2.0, -1.0, 0.3):
        g = size * o
        least = float(g @ o - 0.5 * o @ o - np.linalg.norm(g - o) - 0.5)
        value, terms = separable(BACKEND, inside, g[None], np.full((1, 2), 0.5), low[None], high[None])
        assert value[0] - 1e-15 * terms[0] <= least
        found = boxes.quadratic(
            g[None], np.zeros((1, 2, 2)), -np.ones((1, 2)), column(-least - 1e-9), column(0.0), column(1.0), 5
        )
        assert not found[0] >= 0


def test_few_coordinates():
    """Z1, Z3: against all supports."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        g, H, low, high = concave(int(rng.integers(1000)), 5)
        H = H - 1.5 * np.diag(np.diagonal(H))  # pairs matter
        forced, metric = np.array([True, False, False, False, False]), rng.random(5)
        bound = pair_bound(g, H, low, high, forced, 2)
        domain = SparseDomain(low, high, np.zeros(5), forced, 2, Suspects(np.zeros(5, dtype=bool)))
        low0 = np.where(forced, low, 0.0)
        for support in combinations(range(1, 5), 2):
            on = forced | np.isin(np.arange(5), support)
            for v in vertices(np.where(on, low, low0), np.where(on, high, low0)):
                assert bound.least() <= g @ v + 0.5 * v @ H @ v + 1e-13
                assert domain.norm(metric) ** 2 >= metric @ (v * v) * (1 - 1e-14)
                assert domain.support(g[None])[0] >= g @ v - 1e-14
                assert (bound.with_each()[on] <= g @ v + 0.5 * v @ H @ v + 1e-13).all()
    both, none = np.ones(2, dtype=bool), np.zeros(2, dtype=bool)
    mixed, alone, ends = -np.eye(2)[::-1], np.diag([-1.0, -0.2]), (-np.ones(2), np.ones(2))
    for forced, count in ((none, 2), (both, 0)):  # two partners share half of what they have in common
        assert pair_bound(np.zeros(2), mixed, *ends, forced, count).least() <= -1.0
    assert pair_bound(np.zeros(2), alone, *ends, none, 1).least() <= -0.5


def test_pieces_put_together():
    """The last step of every local model: what is kept, what is subtracted, in other units and multiplied."""
    one = np.ones((1, 1))
    rest = [Remainder(0.3 * one, column(0.2), 0.1, 0.05)]
    pieces = Pieces(1.0, column(-1.0), [-0.5 * one], rest, 0.07)
    low, high, d = column(0.0), column(0.8), 0.8
    whole = 1.0 - d - 0.25 * d * d - 0.5 * (0.3 + 0.2) * d * d - 0.1 - 0.05 - 0.07
    domain, half = BoxDomain(low, high), BoxDomain(low, 0.5 * high)
    assert pieces.rough(domain) <= whole
    assert least(domain, [pieces], (np.inf, 1e-6)).value <= whole
    assert least(domain, [pieces.times(2.0)], (np.inf, 1e-6)).value <= 2.0 * whole
    assert least(domain, [pieces, pieces], (np.inf, 1e-6)).value <= 2.0 * whole
    assert least(half, [pieces.measured_by(column(2.0), half.reach)], (np.inf, 1e-6)).value <= whole


def test_remnants_of_rows():
    """J30 where the relaxation is the quadratic itself: next to what remains, and at the end of a hole."""
    for slope, D, value, width in ((2.0, 0.0, -0.5, 1.0), (1.0, 1.0, -0.3, 1.0), (0.1, 8.0, -0.5, 1.0)):
        for sign in (1.0, -1.0):
            ends = (0.0, width) if sign > 0 else (-width, 0.0)
            low, high = (np.array([[end]]) for end in ends)
            one = [np.array([[each]]) for each in (0.0, sign * slope, D)]
            with np.errstate(all="ignore"):
                found = remnants(np, low, high, Minima(column(value), *one))
            below, above, start, stop = (float(each[0, 0]) for each in found)
            edges = (above, start, stop) if sign > 0 else (below, start, stop)
            for edge in (each for each in edges if ends[0] < each < ends[1]):
                s = abs(Fraction(edge))
                rise = Fraction(slope) * s + Fraction(D) * s * (Fraction(width) - s) / 2
                assert Fraction(value) + rise >= 0


BOX, REST, BALL = (
    "bounds/geometry/box_quadratic.py",
    "bounds/geometry/remnant.py",
    "bounds/geometry/unit_ball.py",
)
ROWS, QUADRATIC, SEPARABLE = (
    "engine/quadratic.py",
    "bounds/geometry/ball_quadratic.py",
    "bounds/geometry/ball_separable.py",
)
ROUND, PAIRS, SPARSE, DOMAIN = (
    "engine/balls.py",
    "bounds/geometry/unit_ball.py",
    "bounds/geometry/sparse.py",
    "bounds/geometry/ball.py",
)
FORMS, WHOLE = "bounds/local/forms.py", "test_pieces_put_together"
TERMS = [
    ("J30", ROWS, "{2.0|1.8} * lack / (b + root)", "test_remnants_of_rows"),
    ("J30", ROWS, "far = xp.where(roots & (D > 0), {|1.1 * }(b + root) / D", "test_remnants_of_rows"),
    ("J30", ROWS, "b = (steep + {0.5|0.55} * D * width)", "test_remnants_of_rows"),
    ("Theorem 1", FORMS, "lost = slope + ({0.5|0.45} * bend", WHOLE),
    ("Theorem 1", FORMS, "total += {|0.9 * (}rounding + constant{|)}", WHOLE),
    ("Theorem 1", FORMS, "{0.5|0.45} * float(reach @ np.abs(matrix) @ reach)", WHOLE),
    ("Theorem 1", FORMS, "{0.5|0.45} * float(np.abs(diagonal)", WHOLE),
    ("Theorem 1", FORMS, "parts.append(-{|0.9 * }matrix)", WHOLE),
    ("Theorem 1", FORMS, "diagonals.append(-{|0.9 * }diagonal)", WHOLE),
    ("Theorem 1", FORMS, "excess += {|0.9 * }rounding\n", WHOLE),
    ("Theorem 1", FORMS, "constant += {|0.9 * }still", WHOLE),
    ("Theorem 1", FORMS, "value = base + bound.value - {|0.9 * }excess", WHOLE),
    ("Theorem 1", FORMS, " else {|0.9 * }up * matrix,\n                    None if", WHOLE),
    ("Theorem 1", FORMS, "{|0.9 * }up * rounding,", WHOLE),
    ("Theorem 1", FORMS, "{|0.9 * }up * constant,", WHOLE),
    ("Theorem 1", FORMS, "{|0.9 * }up * self.excess", WHOLE),
    ("Theorem 1", FORMS, "{|0.9 * }np.diagonal(up) * diagonal", WHOLE),
    ("Theorem 1", FORMS, "excess += {|0.9 * }each.excess", WHOLE),
    ("Q1", BOX, "constant = float((g + {0.5|0.45} * H_fixed)", "test_boxes"),
    ("Q1", BOX, "least = {|1.1 * }g + positive", "test_boxes"),
    ("Q4", REST, "room = -{|0.9 * }value", "test_remnants"),
    ("Q4", REST, "far = {|0.9 * }room / np.abs(slopes)", "test_remnants"),
    ("Q4", REST, "total = {|0.9 * }multiplier * self.room", "test_remnants"),
    ("Q4", REST, "sum_up(near + {|0.9 * }np.maximum(gain", "test_remnants"),
    ("Q2", ROWS, "c = g - {0.5|0.45} * D * (low + high)\n    Hy", "test_duals_of_rows"),
    ("Q2", ROWS, "terms = {0.5|0.45} * (c + slope) * y", "test_duals_of_rows"),
    ("Q2", ROWS, "y + {0.5|0.45} * D * low * high", "test_duals_of_rows"),
    ("Q2", ROWS, "+ {|0.9 * }xp.minimum(slope * (low - y), slope * (high - y))\n", "test_duals_of_rows"),
    ("J7", ROWS, "room <= {0.999|1.1}", "test_definite_matrices"),
    ("J20", ROWS, "constant = xp.sum((g + {0.5|0.45} * turned)", "test_boxes"),
    ("R4", "rounding.py", "= {np.nextafter(diagonal - shift, -np.inf)|diagonal}", "test_definite_matrices"),
    ("B3", BALL, "np.minimum(box, {|0.9 * }norm_up(slopes", "test_suprema_on_balls"),
    ("B3", BALL, "float(terms.sum()) - {|0.9 * }multiplier - slack", "test_suprema_on_balls"),
    ("B3", BALL, "float(terms.sum()) - {|0.9 * }multiplier\n", "test_suprema_on_balls"),
    ("B4", BALL, "hoelder = {|0.9 * }float(norm_up(weights", "test_suprema_on_balls"),
    ("B4", BALL, "total = {|0.9 * }threshold", "test_suprema_on_balls"),
    ("B4", BALL, "sum_up({|0.5 * }np.maximum(slopes - threshold", "test_suprema_on_balls"),
    ("B4", DOMAIN, "support(({2.0|1.8} * metric * o", "test_suprema_on_balls"),
    ("B4", DOMAIN, "total = (sum_up({|0.9 * }metric * o * o)", "test_suprema_on_balls"),
    ("B3", DOMAIN, "inner = base + {|0.9 * }self.ball.support", "test_suprema_on_balls"),
    ("X4", DOMAIN, "+ {|0.9 * }norm_up(size * self.unit", "test_suprema_on_balls"),
    ("B6", QUADRATIC, "price = {0.5|0.45} * float(norm_up(E", "test_quadratics_over_balls"),
    ("B7", QUADRATIC, "penalty = {0.5|0.45} * (reach", "test_quadratics_over_balls"),
    ("B11", SEPARABLE, "float(values.sum()) - {0.5|0.45} * float(Ay @ y)", "test_quadratics_over_balls"),
    ("B11", SEPARABLE, "float(Ay @ y) - {|0.9 * }m - error", "test_quadratics_over_balls"),
    ("B11", SEPARABLE, "values = [u * (s - {0.5|0.45} * E * u)", "test_quadratics_over_balls"),
    ("B4", ROUND, "xp.sum(metric * o * o, axis=1) + {2.0|1.8} * linear", "test_rows_over_balls"),
    ("B4", ROUND, "* linear + {|0.9 * }xp.max(square", "test_rows_over_balls"),
    ("J13", ROUND, "return size - {0.5|0.45} * m", "test_rows_over_balls"),
    ("J13", ROUND, "size = {0.5|0.55} * m * xp.sum", "test_rows_over_balls"),
    ("J13", ROUND, "a, b = 0.5 * pull - {|0.9 * }lam", "test_rows_over_balls"),
    ("Z3", PAIRS, "np.asarray({0.5|0.45} * np.partition", "test_few_coordinates"),
    ("Z3", PAIRS, "g * e + {0.5|0.45} * diagonal", "test_few_coordinates"),
    ("Z3", PAIRS, "total = float(self.b[own].sum()) + {0.5|0.45}", "test_few_coordinates"),
]  # fmt: skip


class TestTerms(TermLaws):
    terms = TERMS
