"""The seven ways in which a referee broke the prototype's floating point, each against ball arithmetic.

Every case must give true bounds, or one clear error, after few boxes: none may crash or split without end.
"""

import math

import numpy as np
import pytest
from flint import arb, arb_mat

import gpcert as gc
from helpers.exact import refute, small_model
from helpers.oracle import bits
from judge import Truth
from judge.models import Model

LINKS = ["probit", "logit"]
#: Far more boxes than any of these cases needs; a search that reaches it would not have ended.
ENDLESS = 800


def laplace(X, l, variance, W):
    """(K + W^-1)^-1 (n, n) for the RBF kernel."""
    R = np.linalg.inv(gc.RBF(l, variance)(X) + np.eye(len(X)) / W)
    return 0.5 * (R + R.T)


def seed(number=0):
    return np.random.default_rng(number)


def four_leaves(rng, d, J, w):
    """Points (+-a, +-a) with weights +-p: odd orders cancel, the minimum over |x_J| <= w is at (w, -w)."""
    points, weights, height = [(0.0, 0.0)], [0.0], 0.0
    for _ in range(int(rng.integers(1, 4))):
        a, p = rng.uniform(0.2, 1.2), 4 * rng.uniform(0.5, 3.0)
        height += 4 * p * math.exp(-a * a) * math.sinh(a * w) ** 2
        points += [(a, a), (-a, -a), (a, -a), (-a, a)]
        weights += [p, p, -p, -p]
    weights[0] = 0.5 * height
    order = rng.permutation(len(points))
    X = np.zeros((len(points), d))
    X[:, J] = np.array(points)[order]
    return X, np.array(weights)[order]


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize(("d", "explained"), [(25, False), (25, True), (3, True), (12, False)])
def test_trap_1_curvature_that_is_rounding_noise(number, d, explained):
    rng, J, w = seed(number), [0, d - 1], 0.2
    X, weights = four_leaves(rng, d, J, w)
    R = laplace(X, 1.0, 1.0, 1e-3) if explained else np.zeros((len(X), len(X)))
    post = gc.Posterior(X, weights, R, kernel=gc.RBF())
    half = np.full(d, 1e-4)
    half[J] = w
    for max_nodes in (1, 30):
        answer = gc.probability_range(post, gc.Box(-half, half), max_nodes=max_nodes)
        x = np.zeros(d)
        x[J] = w, -w
        assert Truth(post).at_least(x, 1, answer.lower)
        assert refute(post, gc.Box(-half, half), answer, rng) == []


def quartic(offset, l, values):
    """Centres around `offset` and weights whose mean is a quartic in u = x / l - offset, -0.05 at u = -1.

    Solved in ball arithmetic: e^{u^2 / 2} mu(u) = sum_p m_p u^p with m_4 = -0.12: a tail that comes out too
    small neglects exactly the term that makes the mean negative.
    """
    n = len(values)
    m2, m3, m4 = -0.3, 0.12, -0.12
    moments = [-0.05 - (m2 - m3 + m4), 0.0, m2, m3, m4, *[0.0] * (n - 5)]
    rows = [arb(float(v)) ** p / math.factorial(p) if p else arb(1) for p in range(n) for v in values]
    b = arb_mat(n, n, rows).solve(arb_mat(n, 1, [arb(m) for m in moments]))
    k = [(arb(float(v)) * arb(float(v)) / 2).exp() for v in values]
    return ((offset + values) * l)[:, None], np.array([float((b[i, 0] * k[i]).mid()) for i in range(n)])


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize(
    ("offset", "spread", "l"),
    [(0.0, 0.45, 1.0), (100.0, 0.06, 1.0), (1e3, 0.12, 1.0), (1e5, 0.4, 1.0), (2000 * 2.0**7, 0.45, 2.0**-7)],
)
def test_trap_2_distances_far_from_the_origin(number, offset, spread, l):
    rng = seed(number)
    values = np.linspace(-spread, spread, 6) * (1 - 0.1 * rng.random(6))
    values = np.round(values * 2**26) / 2**26 if offset < 1e5 else np.round(values * 2**20) / 2**20
    X, weights = quartic(offset, l, values)
    R = laplace(X, l, 1.0, 1e-3)
    post = gc.Posterior(X, weights, R, kernel=gc.RBF(l))
    region = gc.Box([(offset - 1) * l], [(offset + 1) * l])
    for max_nodes in (1, 4, 200):
        answer = gc.probability_range(post, region, max_nodes=max_nodes)
        assert Truth(post).at_least(region.lower, 1, answer.lower)
        assert refute(post, region, answer, rng) == []


@pytest.mark.parametrize("likelihood", LINKS)
@pytest.mark.parametrize("tolerance", [0.2, 1e-3])
def test_trap_3_the_inner_end_is_attained_at_a_double_inside(likelihood, tolerance):
    """Ends of this ball are no doubles: x -+ 0.1 * scale is rounded inward for witnesses, else outward."""
    post = small_model(likelihood=likelihood)
    ball = gc.Ball([0.1, 0.7], 0.1, scale=[0.3, 3.0])
    answer = gc.probability_range(post, ball, tolerance=tolerance)
    outer, inner = ball.box(), ball.inner_box()
    assert (outer.lower < inner.lower).any()
    assert not ball.contains(outer.lower)
    for point in (answer.argmin, answer.argmax):
        assert ball.contains(point)
    assert refute(post, ball, answer, seed()) == []


@pytest.mark.parametrize("tolerance", [0.02, 1e-4])
def test_trap_3_the_outer_end_is_certified_not_the_inner_end_less_the_tolerance(tolerance):
    """A narrow valley that a local search from the middle misses: stopped at once, it must not be trusted."""
    X = np.array([[-0.9], [0.9]])
    post = gc.Posterior(X, [-6.0, -1.0], np.zeros((2, 2)), kernel=gc.RBF(0.15), mean=2.0)
    region = gc.Box([-1.0], [1.0])
    for max_nodes in (0, 1, 2, 5, 20):
        answer = gc.probability_range(post, region, tolerance=tolerance, max_nodes=max_nodes)
        assert Truth(post).at_least([-0.9], 1, answer.lower)


@pytest.mark.parametrize("ulps", [1, 2, 3, 7])
@pytest.mark.parametrize("start", [1.0, 0.1, -1e6, 1e-300])
def test_trap_4_boxes_of_a_few_doubles(start, ulps):
    """Their centre -+ half-width need not cover them."""
    post = gc.Posterior([[start], [start + 1.0]], [40.0, -30.0], 0.2 * np.eye(2), kernel=gc.RBF(0.5))
    end = start
    for _ in range(ulps):
        end = math.nextafter(end, math.inf)
    region = gc.Box([start], [end])
    answer = gc.probability_range(post, region, tolerance=1e-15, max_nodes=ENDLESS)
    assert answer.status in ("converged", "numerical limit")
    assert refute(post, region, answer, seed()) == []


@pytest.mark.parametrize("likelihood", LINKS)
@pytest.mark.parametrize("tolerance", [0.02, 1e-4])
def test_trap_4_time_stamps_in_nanoseconds(likelihood, tolerance):
    """Doubles lie 256 apart there and x / l rounds by a tenth, but the region is an interval of reals."""
    T, l = 1763193600.0e9, 3e3
    X = np.array([[T], [T + 2560.0], [T + 4096.0]])
    post = gc.Posterior(X, [2.0, -1.0, 1.0], laplace(X, l, 1.0, 1.0), kernel=gc.RBF(l), likelihood=likelihood)
    region = gc.Box([T - 4096.0], [T + 4096.0])
    answer = gc.probability_range(post, region, tolerance=tolerance, max_nodes=ENDLESS)
    assert refute(post, region, answer, seed()) == []
    exact = Truth(post)
    with bits(256):
        points = [[arb(T) + arb(8192) * i / 400 - 4096] for i in range(401)]
    for x in points:
        assert exact.at_least(x, 1, answer.lower)
        assert exact.at_most(x, 1, answer.upper)


def test_trap_4_the_stored_doubles_are_the_model():
    """x / l with l = 3: no scaled copy of the data is exact, so the bound must account for the rounding."""
    X = np.array([[1e6], [1e6 + 0.1], [1e6 - 0.7]]) * 3.0
    post = gc.Posterior(X, [3e3, -2e3, -1e3], laplace(X, 3.0, 1.0, 10.0), kernel=gc.RBF(3.0))
    for half in (0.0, 1e-9, 1e-3, 1.0):
        region = gc.Box([3e6 - half], [3e6 + half])
        answer = gc.probability_range(post, region, tolerance=1e-9, max_nodes=100)
        assert refute(post, region, answer, seed()) == []


@pytest.mark.parametrize("likelihood", LINKS)
@pytest.mark.parametrize("half", [4.0, 20.0, 22.5, 27.0, 50.0, 500.0])
def test_trap_5_series_are_not_cut_short_and_nan_is_never_certain(half, likelihood):
    X = np.array([[0.0], [3.0]])
    R = laplace(X, 1.0, 1.0, 1.0)
    post = gc.Posterior(X, [1.0, -1.5], R, kernel=gc.RBF(), likelihood=likelihood)
    region = gc.Box([-half], [half])
    answer = gc.probability_range(post, region, max_nodes=ENDLESS)
    assert answer.status == "converged"
    assert refute(post, region, answer, seed()) == []


@pytest.mark.parametrize("likelihood", LINKS)
@pytest.mark.parametrize("weights", [[1e200, -1e200], [1e160, 1e160], [-1.7e308, 1.0], [5e-324, -5e-324]])
@pytest.mark.parametrize("max_nodes", [1, 20])
def test_trap_5_overflowing_coefficients(weights, likelihood, max_nodes):
    X = np.array([[0.0], [1.0]])
    post = gc.Posterior(X, weights, laplace(X, 1.0, 1.0, 1.0), kernel=gc.RBF(), likelihood=likelihood)
    for region in (gc.Box([0.3], [0.5]), gc.Box([0.3], [0.7]), gc.Box([-30.0], [30.0])):
        answer = gc.probability_range(post, region, max_nodes=max_nodes)
        assert refute(post, region, answer, seed()) == []


@pytest.mark.parametrize("likelihood", LINKS)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("R", [0.0, -1e-300, -1e-12, -0.1, -10.0, 1.0, 1.0 + 1e-12, 1.5, 100.0])
def test_trap_6_the_variance_of_the_stored_precision_whatever_it_is(R, sign, likelihood):
    """S below 0 (clipped), above s2, or exactly 0: nothing about R is taken on trust."""
    post = gc.Posterior([[0.0]], [sign], [[R]], kernel=gc.RBF(), likelihood=likelihood, mean=-0.2 * sign)
    for region in (gc.Box([-0.3], [0.5]), gc.Box([-2.0], [1.0]), gc.Box([0.0], [1e-9])):
        for max_nodes in (1, 4, 50):
            answer = gc.probability_range(post, region, tolerance=1e-3, max_nodes=max_nodes)
            assert refute(post, region, answer, seed()) == []


@pytest.mark.parametrize("claim", [0.0, 1e-6, 1e6])
def test_trap_6_a_false_site_precision_is_not_believed(claim):
    """R <= diag(W) is a fact to verify: W stored with the model may be anything."""
    X = np.array([[-0.5], [0.0], [0.4]])
    R = laplace(X, 1.0, 2.0, 5.0)
    post = gc.Posterior(
        X, [1.0, -2.0, 1.5], R, kernel=gc.RBF(1.0, 2.0), factors={"site_precision": np.full(3, claim)}
    )
    region = gc.Box([-1.0], [1.0])
    for max_nodes in (1, 3, 100):
        answer = gc.probability_range(post, region, tolerance=1e-3, max_nodes=max_nodes)
        assert refute(post, region, answer, seed()) == []


ONE = [[0.0]]
#: centres, weights, W of the precision (or the precision), lengthscale, variance, lower, upper, tolerance
CRASHES = {
    "width 0": (ONE, [1.0], 1.0, 1.0, 1.0, [0.3], [0.3], 0.02),
    "width 0, tolerance 1e-10": (ONE, [1.0], 1.0, 1.0, 1.0, [0.3], [0.3], 1e-10),
    "width 0, tolerance 1e-300": (ONE, [1.0], 1.0, 1.0, 1.0, [0.3], [0.3], 1e-300),
    "width 1e-12": (ONE, [1.0], 1.0, 1.0, 1.0, [0.3], [0.3 + 1e-12], 0.02),
    "width 1e-12, tolerance 1e-15": (ONE, [1.0], 1.0, 1.0, 1.0, [0.3], [0.3 + 1e-12], 1e-15),
    "width 1, tolerance 1e-13": (ONE, [1.0], 1.0, 1.0, 1.0, [-0.3], [0.7], 1e-13),
    "smallest width": (ONE, [1.0], 1.0, 1.0, 1.0, [0.0], [5e-324], 0.02),
    "1,000 lengthscales": (ONE, [1.0], 1.0, 1.0, 1.0, [-500.0], [500.0], 0.02),
    "far from data": (ONE, [1.0], 1.0, 1.0, 1.0, [1000.0], [1001.0], 0.02),
    "far, large variance": (ONE, [1.0], 1.0, 1.0, 1e9, [1000.0], [1001.0], 0.02),
    "distance overflows": (ONE, [1.0], 1.0, 1.0, 1.0, [1e200], [2e200], 0.02),
    "the whole line": (ONE, [1.0], 1.0, 1.0, 1.0, [-8e307], [8e307], 0.02),
    "tiny lengthscale": (ONE, [1.0], 1.0, 1e-300, 1.0, [-1.0], [1.0], 0.02),
    "huge lengthscale": (ONE, [1.0], 1.0, 1e300, 1.0, [-1.0], [1.0], 0.02),
    "precision 0": (ONE, [1.0], np.zeros((1, 1)), 1.0, 1.0, [0.3], [0.5], 0.02),
    "precision off the diagonal": (
        [[0.0], [1.0]],
        [1.0, -1.0],
        1.0 - np.eye(2),
        1.0,
        1.0,
        [-1.0],
        [1.0],
        0.02,
    ),
    "S < -1": (ONE, [1.0], np.full((1, 1), 100.0), 1.0, 1.0, [-0.3], [0.5], 0.02),
    "S > s2": (ONE, [1.0], np.full((1, 1), -10.0), 1.0, 1.0, [-1.0], [1.0], 0.02),
    "weights 0": (ONE, [0.0], 1.0, 1.0, 1.0, [-0.5], [0.5], 0.02),
    "weights 0, tolerance 1e-16": (ONE, [0.0], 1.0, 1.0, 1.0, [-0.5], [0.5], 1e-16),
    "tiny weights": ([[0.0], [1.0]], [1e-170, -1e-170], 1.0, 1.0, 1.0, [-1e-3], [1e-3], 1e-16),
    "duplicates": (np.zeros((5, 1)), [1e-3] * 5, 1e4, 1.0, 1e6, [-0.1], [0.1], 0.02),
    "variance 1e12": (np.linspace(-1, 1, 8)[:, None], [1e-10] * 8, 1e4, 1.0, 1e12, [-0.1], [0.1], 0.02),
    "variance 1e-6": (ONE, [1.0], 1.0, 1.0, 1e-6, [-0.1], [0.1], 0.02),
    "variance 1e-300": (ONE, [1.0], 1.0, 1.0, 1e-300, [-0.1], [0.1], 0.02),
    "offset 1e16": ([[1e16]], [1.0], 1.0, 1.0, 1.0, [1e16], [1e16 + 2], 0.02),
    "tolerance 1": (ONE, [1.0], 1.0, 1.0, 1.0, [0.3], [0.5], 1.0),
    "saturated": (ONE, [100.0], 1.0, 1.0, 1.0, [-0.3], [0.5], 1e-17),
}


@pytest.mark.parametrize("likelihood", LINKS)
@pytest.mark.parametrize("name", CRASHES)
def test_trap_7_no_crash_and_no_endless_splitting(name, likelihood):
    X, weights, W, l, variance, lower, upper, tolerance = CRASHES[name]
    R = laplace(np.array(X), l, variance, W) if isinstance(W, float) else W
    post = gc.Posterior(X, weights, R, kernel=gc.RBF(l, variance), likelihood=likelihood)
    region = gc.Box(lower, upper)
    answer = gc.probability_range(post, region, tolerance=tolerance, max_nodes=ENDLESS)
    # From these boxes to the lengthscale it takes a thousand halvings, on either side.
    patient = name in ("the whole line", "tiny lengthscale")
    assert answer.status in ("converged", "numerical limit") or (patient and answer.status == "node limit")
    assert refute(post, region, answer, seed()) == []


def test_trap_7_curvature_that_overflows():
    """Half axes as long as the domain, and others shorter than any double: no eigenvalues of infinities."""
    post = Model(kernel="matern12", n=3, d=4, seed=321, units=3).posterior()
    x, scale = post.centres[0], [1e300, 1.0, 1e-200, 1e300]
    domain = np.subtract(x, [1.0, 1.0, 0.0, 1e-9]), np.add(x, [0.0, np.inf, 1.0, 0.0])
    ball = gc.Ball(x, 1e-200, norm=1.5, scale=scale, domain=domain)
    answer = gc.probability_range(post, ball, max_nodes=20)
    assert refute(post, ball, answer, seed()) == []


@pytest.mark.parametrize("likelihood", LINKS)
@pytest.mark.parametrize("tolerance", [1e-8, 1e-10, 1e-12, 1e-15])
def test_trap_7_a_tolerance_below_rounding_ends(tolerance, likelihood):
    """Once only rounding, or a floor of the method, is left, splitting must stop: the answer says so."""
    region = gc.Box([-0.5, -0.5], [0.5, 0.5])
    answer = gc.probability_range(
        small_model(likelihood=likelihood), region, tolerance=tolerance, max_nodes=ENDLESS
    )
    assert answer.status in ("converged", "numerical limit")
    assert max(answer.min.width, answer.max.width) < 1e-6


@pytest.mark.parametrize("lengthscales", [2.0, 8.0, 40.0, 100.0])
def test_trap_7_numerical_limit_is_not_said_of_boxes_that_are_merely_large(lengthscales):
    """e^{2r} makes rounding errors of a large box huge; halving it makes them small."""
    post = small_model(d=1)
    half = 0.5 * lengthscales * 0.8
    answer = gc.probability_range(post, gc.Box([-half], [half]), max_nodes=ENDLESS)
    assert answer.status == "converged"
