"""Facts of a model and supporting planes where their inequalities are equalities: at the reference, and at a
point whose features are those of the reference although its kernel there is 0 (F1 to F5, G1 to G8, J4, J17).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from flint import arb

import gpcert as gc
from gpcert.bounds.facts.definite import inverse_contraction
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.geometry.domain import BoxDomain
from gpcert.bounds.levels.registry import curves_of
from gpcert.bounds.local.gaussian.plane import SECOND, plane_at
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.bounds.local.planes import support
from gpcert.bounds.local.radial.functional import kernel_below
from gpcert.bounds.local.radial.slice import make_radial_slice
from gpcert.engine.backend import Backend
from gpcert.engine.lines import latent_lines, lines
from gpcert.engine.planes import Square, plane, variance_plane
from gpcert.engine.root import Rows
from gpcert.engine.squares import _THIRD, Squares
from gpcert.engine.thin import Basis, Thin
from helpers.functionals import form_value, packed_value, plane_value, third_order
from helpers.functionals import grown as grown_of_row
from helpers.laws import TermLaws
from helpers.oracle import bits
from helpers.rows import Batch
from helpers.worst import ROUNDING, column, exactly, lower, model, row_around_zero
from helpers.worst import plane as exact_plane
from judge import Truth

FAR = 12.0  # lengthscales: k is 1e-31
LIFT = 9e-4


def worst_models():
    """(model, reference, point): G1, G2, G8 or J4 is an equality at the point."""
    one = model([[0.0]], [0.3], [[0.5]])
    yield one, [0.0], [0.0]
    yield one, [0.4], [0.4]
    two = model(
        [[0.0], [FAR]], [0.0, 0.0], [[1.0, -LIFT], [-LIFT, 1.0]]
    )  # psi(x) = psi(xh), S = 0, k(x, xh) = 0
    yield two, [0.0], [FAR]
    yield model([[0.0]], [0.0], [[1.0 + LIFT]]), [0.0], [0.0]  # S = -lift
    apart = model([[0.0], [1.0]], [0.0, 0.0], [[-0.3, 0.3], [0.3, -0.3]])  # the negative part is k_x - k_xh
    yield apart, [0.0], [1.0]


def truth(post, x, t):
    """mu - t sqrt(c + max(S, 0)), probit."""
    mean, S = Truth(post).latent(x)
    return mean - arb(float(t)) * (1 / arb(post.likelihood.scale) ** 2 + S.max(arb(0))).sqrt()


@exactly
def test_planes_of_one_model():
    for post, xh, x in worst_models():
        slice_ = make_slice(model_of(post), np.array(xh), np.array([0]))
        S, r, largest = slice_.latent(np.array(xh))[1], slice_.visit(np.array(xh)).r, slice_.largest_variance
        for p in (0.02, 0.3, 0.7, 0.99):
            level = curves_of(post.likelihood).level(p)
            found = support(slice_.model, level, slice_.mean, slice_.prior, S, largest)
            if found is not None:
                b = found.weights(slice_.model.weights, r)
                assert lower(post, b, xh, x, found.still, found.constant, found.lost) <= truth(
                    post, x, level.t
                )
        for tau in (1.0, -1.0):  # of -S and of S themselves, without the mean
            found = support(slice_.model, (tau, 0.0), 0.0, slice_.prior, S, largest)
            b = found.weights(0.0 * slice_.model.weights, r)
            exact = -arb(tau) * Truth(post).variance(x)
            assert lower(post, b, xh, x, found.still, found.constant, found.lost) <= exact


@exactly
def test_planes_of_rows():
    """The engine's, for definite and indefinite precisions; the reference is moved to 0."""
    for post, xh, x in worst_models():
        moved = model(post.centres - np.array(xh), post.weights, post.precision)
        x = np.array(x) - np.array(xh)
        at, _ = row_around_zero(moved, [-1.0], [1.0])
        for p in (0.02, 0.3, 0.7, 0.99):
            line = lines(
                at.facts.backend,
                curves_of(post.likelihood),
                column(p),
                at.variance[0].clip(0),
                column(2.0),
                0.02,
            )
            found = plane(at, column(1.0), line)
            terms = (each[0] for each in (found.still, found.constant, found.lost, found.bend))
            assert lower(moved, found.b[0], [0.0], x, *terms) <= truth(moved, x, line.t[0])


@exactly
def test_planes_of_any_predictor():
    """J17: two centres that hardly know each other, and a direction that predicts nothing or the wrong."""
    for sites, U in ((0.01, [1.0, -1.0]), (0.01, [1.0, 0.0]), (1.0, [0.6, 0.8])):
        roots, U = np.sqrt([sites, sites]), np.array(U) / np.linalg.norm(U)
        K = np.array([[1.0, np.exp(-0.5)], [np.exp(-0.5), 1.0]])
        Y = U + roots * (K @ (roots * U))
        thin = Thin(Backend(), 1.0, 0.0, Basis(roots, U[:, None], Y[:, None], column(0.5)), (0.0, 0.0))
        k = np.exp(-0.125) * np.ones(2)
        found = thin.predictors(k[None], column(1e-15))
        M = K + np.eye(2) / sites
        S = arb(1) - sum(arb(a) * arb(b) for a, b in zip(k, np.linalg.solve(M, k), strict=True))
        assert arb(found.low[0]) <= S + arb(1e-13)
        assert arb(found.high[0]) + arb(1e-13) >= S
        above = 2.0 + found.most[0]  # c = 2: (c + k.(what w leaves))^2 <= (c + S)(c + most)
        assert arb(3.0 - k @ found.w[0]) ** 2 <= (2 + S) * arb(above) + arb(1e-13)
        m = found.w[0] @ M @ found.w[0]  # G2: -S >= -1 - m + 2 w.k at the point itself
        assert 2.0 * k @ found.w[0] - (2.0 - found.least[0]) <= -float(S.mid()) + 1e-13
        assert 1.0 - found.least[0] >= m - 1e-13


@exactly
def test_squares_left_out_by_planes():
    """G6 to G8 as the set shrinks: all that is left out, to a share of the order of the set's size."""
    R = [[0.5, 0.1], [0.1, 0.4]]
    post = model([[0.3], [1.2]], [0.3, -0.4], R)
    h = 1e-5
    slice_ = make_slice(model_of(post), np.zeros(1), np.array([0]))
    domain = BoxDomain(np.array([-h]), np.array([h]))
    variance = slice_.latent(np.zeros(1))[1]
    for level in (curves_of(post.likelihood).level(0.05), (1.0, 0.0), (-1.0, 0.0)):
        found = plane_at(slice_, domain, np.zeros(1), level, slice_.largest_variance)
        flat = found.lower_bound(True)._replace(value=0.0, point=np.array([h]))
        parts, rest = found._between(flat)
        form = sum(arb(float(part[0, 0])) for part in parts) - arb(float(rest.diagonal[0]))
        whole = not isinstance(level, tuple)
        b = found.b if whole else found.b - slice_.model.weights
        spaces = []
        for x in (h, 0.0):
            exact = truth(post, [x], level.t) if whole else -arb(level[0]) * Truth(post).variance([x])
            spaces.append(exact - lower(post, b, [0.0], [x], found.still, found.constant, 0.0))
        left = spaces[0] - spaces[1]  # the second is rounding, which counts for so small a set
        assert form * arb(h) ** 2 / 2 <= left * (1 + arb(1e-3))
        assert form * arb(h) ** 2 / 2 >= left * arb("0.98")  # else nothing above would notice
    assert variance[0] > 0


@exactly
def test_squares_whose_orders_cancel():
    """G6 to G8: R leaves one direction, along which the second order of k_x - k_xh takes from the first."""
    step = 0.025
    X = step * column(-1.0, 0.0, 1.0)
    first, bent = column(-1.0, 0.0, 1.0) / (2 * step), column(1.0, -2.0, 1.0) / (math.sqrt(3) * step**2)
    K = np.exp(-0.5 * (X[:, None] - X) ** 2)
    for h, share, link, level in (
        (0.03, 0.0375, gc.Probit(), (-1.0, 0.0)),
        (0.03, 0.0375, gc.Probit(0.03), 0.02),
        (0.1, 0.15, gc.Probit(), (1.0, 0.0)),
    ):
        root = math.sqrt(1.0 - share**2)
        w = share * first - root * bent if level == (1.0, 0.0) else root * first + share * bent
        post = model(X[:, None], np.zeros(3), np.outer(w, w) / (w @ K @ w) * (1.0 - 1e-9), likelihood=link)
        slice_ = make_slice(model_of(post), np.zeros(1), np.array([0]))
        line = level if isinstance(level, tuple) else curves_of(link).level(level)
        found = plane_at(
            slice_, BoxDomain(column(0.0), column(h)), np.zeros(1), line, slice_.largest_variance
        )
        flat = found.lower_bound(True)._replace(value=0.0, point=column(h))
        parts, rest = found._between(flat)
        form = sum(arb(float(part[0, 0])) for part in parts) - arb(float(rest.diagonal[0]))
        exact = (
            -arb(level[0]) * Truth(post).variance([h])
            if isinstance(level, tuple)
            else truth(post, [h], line.t)
        )
        below = lower(post, found.b, [0.0], [h], found.still, found.constant, 0.0) + ROUNDING
        assert form * arb(h) ** 2 / 2 <= (exact - below) * (arb(h) ** 2 / 2).exp() + arb(1e-13)


@exactly
def test_squares_beside_a_long_step():
    """G6, (i): psi at the reference is short and nearly along the step, so that B is nearly as long as q."""
    step, h, angle, size = 0.1, 4e-3, 0.95, 1e-4
    X = step * column(-1.0, 0.0, 1.0)
    K = np.exp(-0.5 * (X[:, None] - X) ** 2)
    first = column(-1.0, 0.0, 1.0) / (2 * step)
    bent = column(1.0, -2.0, 1.0) / step**2 + column(0.0, 1.0, 0.0)
    aside = math.sqrt(0.5 * (1.0 - angle**2)) * bent - angle * first
    w = column(0.0, 1.0, 0.0) + size * aside
    post = model(X[:, None], np.zeros(3), np.outer(w, w) / (w @ K @ w) * (1.0 - 1e-13),
                 likelihood=gc.Probit(1e6))  # fmt: skip
    slice_ = make_slice(model_of(post), np.zeros(1), np.array([0]))
    level = curves_of(post.likelihood).level(0.02)
    found = plane_at(slice_, BoxDomain(column(0.0), column(h)), np.zeros(1), level, slice_.largest_variance)
    parts, rest = found._between(found.lower_bound(True)._replace(value=0.0, point=column(h)))
    form = sum(arb(float(part[0, 0])) for part in parts) - arb(float(rest.diagonal[0]))
    below = lower(post, found.b, [0.0], [h], found.still, found.constant, 0.0) + ROUNDING
    space = (truth(post, [h], level.t) - below) * (arb(h) ** 2 / 2).exp()
    assert form * arb(h) ** 2 / 2 <= space + arb(1e-9)


@exactly
def test_what_a_kernel_has_beyond_its_first_order():
    """G6, (iii): |g_2|^2 = 2 (1 + r - e^-r (1 + 2 r)) for small r."""
    r = arb(2) ** -30
    assert 2 * (1 + r - (-r).exp() * (1 + 2 * r)) <= arb(SECOND) * (2 * r) ** 2


def rows_at_zero(post, h):
    """One row [0, h] of one feature, seen from 0."""
    at, where = row_around_zero(post, [0.0], [h])
    zero = np.zeros((1, 1))
    rows = Rows(zero, zero + h, zero, zero + h, zero[:, :0], column(1.0))
    return Batch(post, at.facts, rows, zero, at, where)


def planes_of_a_row(batch, level):
    """(plane, functional) of a level, or of S (1.0) and -S (-1.0) themselves."""
    truth = Truth(batch.post)
    if isinstance(level, float):
        found = variance_plane(batch.at, column(level), column(0.0))
        return found, lambda x: arb(level) * truth.variance(x)
    S = batch.at.variance[0].clip(0)
    line = lines(batch.facts.backend, curves_of(batch.post.likelihood), column(*level), S, S + 2.0, 0.02)
    found = plane(batch.at, column(1.0), line)
    t = arb(float(line.t[0]))
    tau = arb(float(line.slope[0]))

    def value(x):
        mean, S = truth.latent(x)
        if line.rising[0]:  # the tangent, not the curve below it
            return mean - tau * S + arb(float(line.constant[0]))
        return mean - t * (arb(float(line.c[0])) + S).sqrt()

    return found, value


RADIAL_KERNELS = (gc.RBF(1.0, 1.0), gc.RationalQuadratic(1.0, 1.0, 2.0), gc.Matern52(1.0, 1.0))


@exactly
def test_squares_left_out_by_rows():
    """J25 as the set shrinks: all that is left out."""
    h = 1e-5
    for kernel in RADIAL_KERNELS:
        post = model([[0.3], [1.2]], [0.3, -0.4], [[0.5, 0.1], [0.1, 0.4]], kernel=kernel)
        batch = rows_at_zero(post, h)
        for level in ((0.05,), (0.9,), 1.0, -1.0):
            found, value = planes_of_a_row(batch, level)
            _, matrix, loss = Squares(batch.at, found).within(batch.boxes.squares, column(h)[None])
            form = form_value(matrix[0], [arb(h)]) / 2
            here, there = (value([x]) - plane_value(batch, found, 0, np.array([x])) for x in (0.0, h))
            left = there - here
            assert form <= left * (1 + arb(1e-3))
            assert form >= left * arb("0.98")  # else nothing above would notice
            assert loss[0] <= 1e-3 * float(left)


@exactly
def test_squares_of_rows_whose_orders_cancel():
    """J25: R leaves one direction, along which the second order of k_x - k_xh takes from the first."""
    step = 0.025  # between the errors of differences and of rounding
    X = step * column(-1.0, 0.0, 1.0)
    for kernel, two in ((RADIAL_KERNELS[0], 1.0), (RADIAL_KERNELS[1], 1.5)):
        first = column(-1.0, 0.0, 1.0) / (2 * step)
        bent = column(1.0, -2.0, 1.0) / (math.sqrt(3 * two) * step**2)
        for h, share, link, level in (
            (0.03, 0.0375, gc.Probit(), 1.0),
            (0.03, 0.0375, gc.Probit(0.03), (0.02,)),
            (0.1, 0.15, gc.Probit(), -1.0),
        ):
            h, share = 1.25 * h / two**0.5, 1.25 * share
            root = math.sqrt(1.0 - share**2)
            w = share * first - root * bent if level == -1.0 else root * first + share * bent
            R = np.outer(w, w) / (w @ kernel(X[:, None]) @ w) * (1.0 - 1e-9)
            post = model(X[:, None], np.zeros(3), R, likelihood=link, kernel=kernel)
            batch = rows_at_zero(post, h)
            found, value = planes_of_a_row(batch, level)
            _, matrix, _ = Squares(batch.at, found).within(batch.boxes.squares, column(h)[None])
            x = np.array([h])
            space = (value(x) - plane_value(batch, found, 0, x)) * grown_of_row(batch, 0, x)
            assert form_value(matrix[0], [arb(h)]) / 2 <= space + arb(1e-13)


@exactly
def test_squares_of_rows_beside_a_long_step():
    """J25, B: psi at the reference is short and nearly along the step, so that B is nearly as long as q."""
    step, h, angle, size = 0.1, 4e-3, 0.95, 1e-4
    X = step * column(-1.0, 0.0, 1.0)
    K = np.exp(-0.5 * (X[:, None] - X) ** 2)
    first = column(-1.0, 0.0, 1.0) / (2 * step)
    bent = column(1.0, -2.0, 1.0) / step**2 + column(0.0, 1.0, 0.0)
    aside = math.sqrt(0.5 * (1.0 - angle**2)) * bent - angle * first
    w = column(0.0, 1.0, 0.0) + size * aside
    post = model(X[:, None], np.zeros(3), np.outer(w, w) / (w @ K @ w) * (1.0 - 1e-13),
                 likelihood=gc.Probit(1e6))  # fmt: skip
    batch = rows_at_zero(post, h)
    found, value = planes_of_a_row(batch, (0.02,))
    _, matrix, _ = Squares(batch.at, found).within(batch.boxes.squares, column(h)[None])
    x = np.array([h])
    space = (value(x) - plane_value(batch, found, 0, x) + ROUNDING) * grown_of_row(batch, 0, x)
    assert form_value(matrix[0], [arb(h)]) / 2 <= space + arb(1e-9)


@exactly
def test_squares_of_kernels_that_are_known_roughly():
    """J25: all k, or all slopes, too large by what they may be wrong by: the form's error, and its size."""
    wrong, h = 1e-3, 1e-3
    for kernel in RADIAL_KERNELS[:2]:
        post = model([[0.8]], [0.0], [[0.9]], kernel=kernel)
        batch = rows_at_zero(post, h)
        exact = {}
        for side in (0.0, 1.0):
            more, steep = batch.at.k * (1.0 + side * wrong), batch.at.steep
            if steep is not None:
                steep = steep * (1.0 + side * wrong)
            at = replace(batch.at, k=more, unit=column(wrong), steep=steep, evaluation=column(wrong))
            falls = (column(0.9), column(0.9), column(0.9), np.array([True]), np.array([True]))
            rises = (column(2.0), column(0.0), column(0.0), np.array([False]), np.array([False]))
            for name, square in (("falls", falls), ("rises", rises)):
                found = Squares(at, exact_plane([0.0])._replace(square=Square(*square)))
                exact[name, side] = found.form
        J = [float(exact["rises", side].Q[0, 0, 0]) for side in (0.0, 1.0)]
        assert J[1] - J[0] <= exact["rises", 1.0].error[0]
        assert 1.1 * (J[1] - J[0]) >= exact["rises", 1.0].error[0]  # else nothing here would notice
        Q = [float(exact["falls", side].Q[0, 0, 0]) for side in (0.0, 1.0)]
        assert Q[0] - Q[1] <= exact["falls", 1.0].error[0]
        assert 1.1 * (Q[0] - Q[1]) >= exact["falls", 1.0].error[0]


@bits(900)
def test_cubics_of_squares_of_rows():
    """J28: all of the third order, whichever way the step goes."""
    post = model([[0.3, 0.5], [1.2, -0.4], [-0.6, 0.9]], [0.3, -0.4, 0.1],
                 [[0.5, 0.1, 0.0], [0.1, 0.4, 0.1], [0.0, 0.1, 0.3]])  # fmt: skip
    at, where = row_around_zero(post, [0.0, 0.0], [0.1, 0.1])
    zero = np.zeros((1, 2))
    batch = Batch(post, at.facts, Rows(zero, zero, zero, zero, zero[:, :0], column(1.0)), zero, at, where)
    for level in ((0.05,), (0.9,), 1.0, -1.0):
        found, _ = planes_of_a_row(batch, level)
        T, wrong = Squares(batch.at, found).cubic
        assert wrong[0] < 1e-10
        for e in (column(1.0, 0.0), column(0.0, 1.0), column(1.0, 1.0), column(1.0, -1.0)):
            D = [arb(float(a)) * arb(float(m)).sqrt() for a, m in zip(e, batch.facts.metric, strict=True)]
            exact = third_order(batch, found, 0, e)
            assert abs(packed_value(T[0], D) - exact) <= arb("1e-10")
            assert abs(exact) > arb("1e-3")


@exactly
def test_cubics_of_kernels_that_are_known_roughly():
    """J28: k too large by what it may be wrong by, of a far centre; A at the other end of what it may be."""
    wrong, none, no, yes = 1e-3, column(0.0), np.array([False]), np.array([True])
    post = model([[6.0]], [0.0], [[1.0]])
    batch = rows_at_zero(post, 1e-3)
    vars(batch.facts)["lift"] = 0.0

    def cubic(side, *square):
        at = replace(batch.at, k=batch.at.k * (1.0 + side * wrong), unit=column(wrong))
        T, error = Squares(at, exact_plane([0.0])._replace(square=Square(column(2.0), *square))).cubic
        return float(T[0, 0, 0]), float(error[0])

    for square in ((none, none, no, no), (none, none, no, yes)):
        (one, _), (two, error) = cubic(0.0, *square), cubic(1.0, *square)
        assert abs(two - one) <= error <= 1.1 * abs(two - one)
    small = 1e-4  # the root's part alone
    (one, _), (two, error) = (cubic(side, column(small), column(small), yes, yes) for side in (0.0, 1.0))
    assert abs(two - one) <= error <= 1.1 * abs(two - one)
    (one, _), (two, error) = cubic(0.0, column(small), column(small), yes, yes), (
        cubic(0.0, column(small), column(3 * small), yes, yes))  # fmt: skip
    assert abs(two - one) <= error <= 1.1 * abs(two - one)


@exactly
def test_what_a_kernel_has_beyond_its_second_order():
    """J28: |g_3|^2 = 2 + 3/4 rho^2 - 2 e^(-rho/2) (1 + rho/2 + rho^2/2), rho = |d|^2, for small steps."""
    rho = arb(2) ** -20
    assert 2 + rho**2 * 3 / 4 - 2 * (-rho / 2).exp() * (1 + rho / 2 + rho**2 / 2) <= arb(_THIRD) * rho**3


@exactly
def test_planes_of_latents():
    """J26: mean and deviation, and the variance itself, where G1, G2, G8 and J4 are equalities."""
    for post, xh, x in worst_models():
        moved = model(post.centres - np.array(xh), post.weights, post.precision)
        x = np.array(x) - np.array(xh)
        at, _ = row_around_zero(moved, [-1.0], [1.0])
        S, truth_ = at.variance[0].clip(0), Truth(moved)
        mean, exact = truth_.latent(x)
        for t, c in ((0.7, 0.0), (-0.7, 0.0), (0.7, 1.0), (-0.7, 1.0)):
            line = latent_lines(at.facts.backend, column(t), column(c), column(0.2), S)
            found = plane(at, column(1.0), line)
            terms = (each[0] for each in (found.still, found.constant, found.lost, found.bend))
            if np.isfinite(found.b).all():
                value = mean - arb(t) * (arb(c) + exact.max(arb(0))).sqrt() - arb(0.2)
                assert lower(moved, found.b[0], [0.0], x, *terms) <= value
        for side in (1.0, -1.0):
            found = variance_plane(at, column(side), column(0.2))
            terms = (each[0] for each in (found.still, found.constant, found.lost, found.bend))
            assert lower(moved, found.b[0], [0.0], x, *terms) <= arb(side) * exact - arb(0.2)


@exactly
def test_lines_below_a_kernel():
    """G5: where the line touches, and near it."""
    for kernel in (gc.Matern52(1.0, 1.0), gc.Matern12(1.0, 1.0), gc.RationalQuadratic(1.0, 1.0, 2.0),
                   gc.RBF(1.0, 1.0) * gc.Matern32(3.0, 1.0)):  # fmt: skip
        post = model([[0.5]], [1.0], kernel=kernel)
        slice_ = make_radial_slice(model_of(post), np.zeros(1), np.array([0]))
        domain = BoxDomain(np.array([-1.0]), np.array([1.0]))
        share, curl = kernel_below(slice_, domain)
        for d in np.linspace(0.0, 1.0, 41):
            line = share - 0.5 * curl[0] * d * d
            assert line <= float(kernel([[0.0]], [[d]])[0, 0] / kernel.prior_variance) + 1e-13


@exactly
def test_facts_of_a_model():
    """F2 for equal rows, F3 and F5 for one centre, M2 for the negative part, K6, the largest variance."""
    post = model([[0.0], [FAR]], [1.0, 1.0], [[0.5, 0.5], [0.5, 0.5]])
    facts = model_of(post)
    assert facts.weighted(np.ones(2)) ** 2 >= 2.0
    assert facts.contraction >= 1.0
    assert facts.mean_norm**2 >= 2.0
    assert facts.diagonal.sum() >= 2.0
    negative = model_of(model([[0.0], [FAR]], [1.0, 1.0], [[-0.5, -0.5], [-0.5, -0.5]]))
    assert negative.contraction_negative >= 1.0
    single = model_of(model([[0.0]], [1.0], [[-1.0]]))
    assert single.largest_variance(np.ones(1)) >= 2.0
    lifted = model_of(model([[0.0]], [1.0], [[1.0 + LIFT]]))
    assert lifted.deepest >= LIFT
    assert model_of(model([[0.0], [FAR]], [1.0, 1.0], [[1.0 + LIFT, 0.0], [0.0, -1.0]])).lift >= LIFT
    assert inverse_contraction(np.array([[1.3]]), np.array([[1.0]]), 0.0, 1.0, None) >= 1.3
    uneven = model_of(model([[0.0]], [1.0], [[0.5]]))
    wrong = replace(uneven, parts=uneven.parts._replace(defect=column(0.25)))
    assert wrong.excess_variance(column(2.0)) >= 1.0


PLANES, SECONDS, RADIAL = (
    "bounds/local/planes.py",
    "bounds/local/gaussian/plane.py",
    "bounds/local/radial/functional.py",
)
ROWS, THIN, FACTS = "engine/planes.py", "engine/thin.py", "bounds/facts/model.py"
ONE, MANY, ANY = "test_planes_of_one_model", "test_planes_of_rows", "test_planes_of_any_predictor"
LEFT, LINES, KNOWN = "test_squares_left_out_by_planes", "test_lines_below_a_kernel", "test_facts_of_a_model"
CANCEL = "test_squares_whose_orders_cancel"
FAR_ROUGH = "test_cubics_of_kernels_that_are_known_roughly"
CUBIC = "test_cubics_of_squares_of_rows"
SQUARES, LATENTS = "engine/squares.py", "test_planes_of_latents"
ROWS_LEFT, ROWS_CANCEL = "test_squares_left_out_by_rows", "test_squares_of_rows_whose_orders_cancel"
BESIDE = "test_squares_of_rows_beside_a_long_step"
ROUGH = "test_squares_of_kernels_that_are_known_roughly"
TERMS = [
    ("G1", PLANES, "factor = {|1.1 * }steep / longest", ONE),
    ("G1", PLANES, "lost = {|0.9 * }steep * lift /", ONE),
    ("G1", PLANES, "Support(-factor, {|1.1 * }factor * prior[0]", ONE),
    ("G1", PLANES, "kappa + mean + {|1.1 * }factor * c, lost", ONE),
    ("G2", PLANES, "taken = tau * ({2.0|1.9} * prior[1]", ONE),
    ("G2", PLANES, "- S[0] + {|0.9 * }clipped)", ONE),
    ("G2", PLANES, "return Support({2.0|2.1} * tau, fall", ONE),
    ("J4", PLANES, "fall = {2.0|1.8} * max(tau, 0.0)", ONE),
    ("J4", PLANES, "* tau, {|1.1 * }fall, kappa", ONE),
    ("G8", PLANES, "{2.0|2.1} * size * prior[0] *", ONE),
    ("G8", PLANES, "* UNIT), {2.0|1.8} * size * lift", ONE),
    ("G8", PLANES, "Support({2.0|1.9} * tau, still", ONE),
    ("G8", PLANES, "kappa + mean - {|0.9 * }size * S[1]", ONE),
    ("G1", ROWS, "factor = {|1.1 * }slope / longest", MANY),
    ("G1", ROWS, "lost_falling = {|0.9 * }slope * lift", MANY),
    ("G1", ROWS, "slope * 0.0, {|1.1 * }factor * (prior", MANY),
    ("G1", ROWS, "-taken, {|1.1 * }factor * c)", MANY),
    ("G2", ROWS, "taken = slope * ({2.0|1.9} * prior", MANY),
    ("G2", ROWS, "- low + {|0.9 * }lift)\n    lost", MANY),
    ("G2", ROWS, "xp.where(rising, {2.0|2.1} * slope, -factor)", MANY),
    ("J4", ROWS, "bend = {|0.9 * }xp.where(rising, slope", MANY),
    ("J17", THIN, "self.prior - {2.0|1.9} * cross + form", ANY),
    ("J17", THIN, "cross + {|1.1 * }form,", ANY),
    ("J17", THIN, "S - {|0.9 * }missed - slack", ANY),
    ("J17", THIN, "left + {|0.9 * }missed + error", ANY),
    ("J17", THIN, "left = self.prior - {|1.1 * }form", ANY),
    ("J17", THIN, "left = self.prior - {|0.9 * }form", ANY),
    ("G6", SECONDS, "forms = [{|1.1 * }prior * np.eye", LEFT),
    ("G6", SECONDS, "-{|0.9 * }forms[0], -np", LEFT),
    ("G6", SECONDS, "-{|0.9 * }np.outer(q1, q1) / A2", LEFT),
    ("G7", SECONDS, "forms = [{|1.1 * }self._explained]", LEFT),
    ("G6", SECONDS, "kept = {|1.1 * }scale *", LEFT),
    ("G6", SECONDS, "B = bend.longest + {|0.9 * }sqrt_up", "test_squares_beside_a_long_step"),
    ("G6", SECONDS, "lost = {|0.9 * }scale * (1.0 / theta", CANCEL),
    ("G6", SECONDS, "scale * max(1.0 - {|0.9 * }theta", CANCEL),
    ("G6", SECONDS, "worst = flat.point, c.s * c.s * {|0.9 * }SECOND", CANCEL),
    ("G6", SECONDS, "SECOND = {0.75|0.675}", "test_what_a_kernel_has_beyond_its_first_order"),
    ("J25", SQUARES, "first = {|1.1 * }model.prior", ROWS_LEFT),
    ("J25", SQUARES, "{-one|-0.9 * one}, one)[:, None, None] * J", ROWS_LEFT),
    ("J25", SQUARES, "-one, {one|1.1 * one})[:, None, None] * J", ROWS_LEFT),
    ("J25", SQUARES, "Q = Q - {|0.9 * }q1", ROWS_LEFT),
    ("J25", SQUARES, "A2 = {|1.1 * }xp.where(square.root, A2, one)", ROWS_LEFT),
    ("J25", SQUARES, "kept = {|1.1 * }scale *", ROWS_LEFT),
    ("J25", SQUARES, "longest = square.longest + {|0.9 * }sqrt_up", BESIDE),
    ("J25", SQUARES, "lost = {|0.9 * }scale * (1.0 / theta", ROWS_CANCEL),
    ("J25", SQUARES, "xp.clip(1.0 - {|0.9 * }theta", ROWS_CANCEL),
    ("J25", SQUARES, "(_SECOND * {|0.9 * }self._facts.profile.second", ROWS_CANCEL),
    ("J25", SQUARES, "_SECOND = {0.75|0.675}", ROWS_CANCEL),
    ("J25", "engine/profiles.py", "return 1.0 + {|0.7 * }1.0 / self.alpha", ROWS_CANCEL),
    ("J25", SQUARES, "error = ({2.02|1.8} * t + wrong) * wrong", ROUGH),
    ("J25", SQUARES, "mixed = {1.01|0.9} * (wrong", ROUGH),
    ("J25", SQUARES, "({2.0|1.8} * reach + mixed) * mixed", ROUGH),
    ("J28", SQUARES, "_THIRD = {15.0|13.5} / 36.0", "test_what_a_kernel_has_beyond_its_second_order"),
    ("J28", SQUARES, "wrong = {2.02|1.8} * ((form.t", FAR_ROUGH),
    ("J28", SQUARES, "bad = {|0.7 * }unit * s", FAR_ROUGH),
    ("J28", SQUARES, "total = {2.02|1.8} * (form.mixed", FAR_ROUGH),
    ("J28", SQUARES, "apart = xp.clip({1.0|0.9} -", FAR_ROUGH),
    ("J28", SQUARES, "size, error = {0.5|0.45} * prior", FAR_ROUGH),
    ("J28", SQUARES, "wrong * (_MORE / xp.min(facts.metrics[0]) ** {1.5|1.7})", FAR_ROUGH),
    ("J28", SQUARES, "same[None, :, None] * {|0.9 * }xp.sum(Y", CUBIC),
    ("J28", SQUARES, "xp.where(square.falls, -one, {one|0.9 * one})[:, None, None] * T", CUBIC),
    ("J28", SQUARES, "xp.where(square.falls, -one, {one|1.1 * one})[:, None, None] * T", CUBIC),
    ("J28", SQUARES, "T = T + {|0.9 * }(bent / A2", CUBIC),
    ("J28", SQUARES, "same * (xp.sum(w, axis=1) - {|0.9 * }prior)", CUBIC),
    ("J28", SQUARES, "- {|0.9 * }sums[:, :, d]", CUBIC),
    ("J28", SQUARES, "packed_shares(d) / {3.0|3.3}", CUBIC),
    ("J26", "engine/lines.py", "top = ({|0.9 * }tau * c +", LATENTS),
    ("J26", "engine/lines.py", "tau * c + t * t / ({4.0|4.4} * tau)", LATENTS),
    ("J26", "engine/lines.py", "constant = {-|-0.9 * }target - xp.where", LATENTS),
    ("G8", ROWS, "zero + {2.0|2.1} * prior * (1.0", LATENTS),
    ("G8", ROWS, "low - {2.0|1.9} * prior) - target", LATENTS),
    ("G8", ROWS, "xp.where(up, {-high|-0.9 * high}, low", LATENTS),
    ("G8", ROWS, "xp.where(up, zero + {2.0|1.8} * lift, zero", LATENTS),
    ("G8", ROWS, "xp.where(up, zero - {2.0|1.9}, zero + 2.0)", LATENTS),
    ("G8", ROWS, "xp.where(up, zero - 2.0, zero + {2.0|2.1})", LATENTS),
    ("J4", ROWS, "xp.where(up, zero, zero + {|0.9 * }negative)", LATENTS),
    ("G5", RADIAL, "curl = curl + {|0.9 * }math.prod", LINES),
    ("G5", RADIAL, "low += {|1.1 * }math.prod", LINES),
    ("F2", FACTS, "row_weight=row_weight * ({1.0|0.9} +", KNOWN),
    ("F3", "bounds/facts/definite.py", "return float({|0.9 * }(bound + slack)", KNOWN),
    ("F5", "bounds/facts/definite.py", "return float(1.0 + {|0.9 * }np.max(rows", KNOWN),
    ("F4", "bounds/facts/definite.py", "            return [{|0.9 * }diagonal]", KNOWN),
    ("F1", FACTS, "return {|0.9 * }sum_up(self.parts.defect", KNOWN),
    ("F3", FACTS, "gain = {|0.9 * }min(sum_up", KNOWN),
    ("K6", FACTS, "return {|0.9 * }sqrt_up(square", KNOWN),
    ("F3", FACTS, "self.contraction_precision)\n        return {|0.9 * }max(0.0,", KNOWN),
    ("F3", FACTS, "self.variance)\n        return {|0.9 * }max(0.0,", KNOWN),
]  # fmt: skip


class TestTerms(TermLaws):
    terms = TERMS
