"""Supporting planes and bounds of sums of kernels, in ball arithmetic at corners, random points, minima."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.geometry.domain import BoxDomain, scaled_box
from gpcert.bounds.levels.registry import curves_of
from gpcert.bounds.local.gaussian.plane import SECOND, plane_at
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.bounds.local.radial.plane import kernel_below, radial_plane
from gpcert.bounds.local.radial.slice import make_radial_slice
from gpcert.bounds.one.gaussian import mean_over
from gpcert.likelihoods import FiveErf, Floored, Logit, Probit
from gpcert.regions import Ball
from gpcert.rounding import gamma
from helpers.exact import Case, random_region
from helpers.exact import random_posterior as several_kernels
from helpers.oracle import (
    BoxCase,
    bits,
    examples,
    half_square,
    lengthscale,
    posteriors,
    random_box,
    random_posterior,
)
from judge import Truth
from judge.links import expectation

seeds = st.integers(0, 2**32 - 1)
levels = st.sampled_from([1e-9, 1e-3, 0.05, 0.2, 0.4, 0.499999, 0.5, 0.5001, 0.6, 0.8, 0.95, 0.999, 1 - 1e-9])
BITS = 240
KERNELS = [
    "matern52", "matern32", "matern12", "rational quadratic", "sum", "product", "other sum", "other product",
    "sum of products",
]  # fmt: skip


def placed(post, box, sign=1.0):
    slice_ = make_slice(model_of(post), box.reference, np.arange(post.n_features), sign)
    return slice_, BoxDomain(*scaled_box(box.lower, box.upper, box.reference, lengthscale(post)))


def plane_of(post, box, p, sign=1.0):
    slice_, domain = placed(post, box, sign)
    level = curves_of(post.likelihood).level(p)
    with np.errstate(all="ignore"):
        level = level.within((0.0, slice_.largest_variance))
        return level, plane_at(slice_, domain, box.reference, level, slice_.largest_variance)


def scaled_sum(post, plane, box, x):
    """e^r (sum_i b_i k_i(x) + constant) + still as a ball."""
    grow = half_square(x, box.reference, post).exp()
    variance = arb(float(post.kernel.variance))
    kernels = (variance * (-half_square(x, centre, post)).exp() for centre in post.centres)
    total = sum((arb(float(b)) * k for b, k in zip(plane.b, kernels, strict=True)), arb(plane.constant))
    return total * grow + arb(plane.still)


def points_of(box, rng, count=6):
    return [box.reference, box.lower, box.upper, *box.points(rng, count)]


@settings(max_examples=examples(150))
@given(posteriors(n=st.integers(1, 12), d=st.integers(1, 5)), levels, seeds, st.sampled_from([1.0, -1.0]))
def test_a_plane_lies_below_what_it_supports(post, p, seed, sign):
    """G1, G2: e^r (mu - t sqrt(c + max(S, 0))) >= the plane less its excess, with the stored doubles."""
    rng = np.random.default_rng(seed)
    box = random_box(rng, post)
    level, plane = plane_of(post, box, p, sign)
    if plane is None:  # not a posterior of this kernel: how often is counted below
        return
    truth = Truth(post)
    with bits(BITS):
        c = 1 / arb(post.likelihood.scale) ** 2
        for x in points_of(box, rng):
            mean, S = truth.latent(x)
            root = (c + (S if bool(S >= 0) else arb(0) if bool(S <= 0) else S.union(arb(0)))).sqrt()
            value = (arb(sign) * mean - arb(level.t) * root) * half_square(x, box.reference, post).exp()
            assert value >= scaled_sum(post, plane, box, x) - arb(plane.excess)


def tried(plane):
    """As if the plane had failed by little at a corner, so that G6 is tried."""
    return plane.lower_bound(True)._replace(value=0.0, point=plane.around.domain.reach)


def between(post, plane, box, x):
    """G6 as a ball: what is known of the space between the plane and what it supports at x, in e^r f."""
    parts, rest = plane._between(tried(plane))
    reach = plane.around.domain.reach
    size = float(reach @ sum(np.abs(part) for part in parts) @ reach)  # as `subtract` counts their rounding
    matrix = sum(parts) - np.diag(rest.diagonal)
    d = [
        (arb(float(a)) - arb(float(b))) / arb(float(c))
        for a, b, c in zip(x, box.reference, lengthscale(post), strict=True)
    ]
    form = sum((arb(float(matrix[i, j])) * d[i] * d[j] for i in range(len(d)) for j in range(len(d))), arb(0))
    return form / 2 - arb(rest.rounding) - arb(gamma(60) * (size + rest.diagonal @ reach**2))


def supported(post, level, box, x, sign=1.0):
    """e^r (mu - t sqrt(c + max(S, 0))) as a ball."""
    mean, S = Truth(post).latent(x)
    S = S if bool(S >= 0) else arb(0) if bool(S <= 0) else S.union(arb(0))
    root = (1 / arb(post.likelihood.scale) ** 2 + S).sqrt()
    return (arb(sign) * mean - arb(level.t) * root) * half_square(x, box.reference, post).exp()


@settings(max_examples=examples(100))
@given(
    posteriors(n=st.integers(1, 12), d=st.integers(1, 5)),
    levels,
    seeds,
    st.sampled_from([1e-3, 0.05, 0.5, 1.0]),
    st.sampled_from([1.0, -1.0]),
)
def test_a_plane_of_second_order_lies_below_what_it_supports(post, p, seed, size, sign):
    """G6, G7 at points, corners and the relaxation's minimum, with the stored doubles, and its bound."""
    rng = np.random.default_rng(seed)
    box = random_box(rng, post, size / math.sqrt(post.n_features))
    level, plane = plane_of(post, box, p, sign)
    with np.errstate(all="ignore"):
        bound = None if plane is None else plane.bent(tried(plane))
    if bound is None:
        return
    least = np.clip(box.reference + bound.point * lengthscale(post), box.lower, box.upper)
    with bits(BITS):
        for x in [least, *points_of(box, rng)]:
            value = supported(post, level, box, x, sign)
            sum_ = scaled_sum(post, plane, box, x) - arb(plane.excess)
            assert value >= sum_ + between(post, plane, box, x)
            assert value >= arb(bound.value)
            assert value / half_square(x, box.reference, post).exp() >= arb(bound.latent)


def test_what_a_kernel_has_beyond_its_first_order():
    """G6: 2 (1 + r - e^-r (1 + 2 r)) <= SECOND |d|^4, r = |d|^2 / 2, and no smaller factor would do."""
    with bits(BITS):
        rest = [(r, 2 * (1 + r - (-r).exp() * (1 + 2 * r))) for r in (arb(2) ** i for i in range(-40, 12))]
        assert all(norm <= arb(SECOND) * (2 * r) ** 2 for r, norm in rest)
        assert rest[0][1] >= arb("0.999") * arb(SECOND) * (2 * rest[0][0]) ** 2


def below_a_tangent(post, level, plane, box, x):
    """e^r (mu - tau S + kappa) as a ball, with the tangent that the plane supports."""
    slice_ = plane.around.slice
    tau, kappa = level.tangent(sum(slice_.latent(box.reference)[1]) / 2, slice_.largest_variance)
    mean, S = Truth(post).latent(x)
    return (mean - arb(tau) * S + arb(kappa)) * half_square(x, box.reference, post).exp()


@pytest.mark.parametrize("p", [0.02, 0.2, 0.4, 0.6, 0.8, 0.98])
def test_a_plane_of_second_order_loses_the_third_power(p):
    """Near its reference it loses a fifth of what the plane does; a third more claimed would cross."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        post = random_posterior(rng, 8, 3, "laplace", likelihood=Probit())
        middle = post.centres.mean(axis=0)
        step = 0.01 * lengthscale(post)
        box = BoxCase(middle - step, middle + step, middle)
        level, plane = plane_of(post, box, p)
        with bits(BITS):
            for x in (box.lower, box.upper):
                whole = (
                    supported(post, level, box, x) if p < 0.5 else below_a_tangent(post, level, plane, box, x)
                )
                lost = whole - scaled_sum(post, plane, box, x)
                found = between(post, plane, box, x)
                assert arb("0.8") * lost <= found <= lost
                assert not arb("1.34") * found <= lost


@pytest.mark.parametrize("share", [0.2, 0.3, 0.4])
def test_what_lies_beyond_the_first_order_is_paid_for(share):
    """G7: one centre, known exactly, and a set that reaches towards it: there the second order cancels most
    of the first, and a form without its price would cross.
    """
    post = gc.Posterior(np.zeros((1, 1)), np.ones(1), np.array([[0.5]]), kernel=gc.RBF(1.0, 2.0))
    start = np.array([0.02])
    box = BoxCase((1.0 - share) * start, start, start)
    level, plane = plane_of(post, box, 0.8)
    _, rest = plane._between(tried(plane))
    with bits(BITS):
        lost = below_a_tangent(post, level, plane, box, box.lower) - scaled_sum(post, plane, box, box.lower)
        found = between(post, plane, box, box.lower)
        assert 0 < found <= lost
        assert not found + arb(float(rest.diagonal[0] * (share * start[0]) ** 2 / 2)) <= lost


@pytest.mark.parametrize("precision", ["laplace", "variational"])
def test_most_posteriors_have_planes(precision):
    """Nothing above would notice if none had."""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(60):
        post = random_posterior(rng, 8, 3, precision)
        box = random_box(rng, post)
        found += all(plane_of(post, box, p)[1] is not None for p in (0.1, 0.9))
    assert found >= 55


def test_a_plane_is_exact_at_its_reference():
    """To rounding and to the clipped share: value at xh; and a wrong plane is seen by the same arithmetic."""
    rng = np.random.default_rng(1)
    for p in (0.03, 0.3, 0.7, 0.97):
        post = random_posterior(rng, 8, 3, "laplace")
        box = random_box(rng, post)
        level, plane = plane_of(post, box, p)
        x = box.reference
        with bits(BITS):
            mean, S = Truth(post).latent(x)
            value = mean - arb(level.t) * (1 / arb(post.likelihood.scale) ** 2 + S).sqrt()
            size = abs(value) + abs(arb(plane.constant)) + abs(arb(plane.still)) + 1
            assert abs(value - scaled_sum(post, plane, box, x)) <= arb(1e-6) * size
            assert not value >= scaled_sum(post, plane, box, x) + arb(plane.excess) + arb(1e-6) * size


@settings(max_examples=examples(120))
@given(posteriors(n=st.integers(1, 14), d=st.integers(1, 5)), levels, seeds, st.booleans())
def test_the_bound_of_a_sum_holds(post, p, seed, forms):
    """Few features: value <= e^r f less the excess, at corners, random points, the relaxation's minimum."""
    check_sum(post, p, seed, forms)


@settings(max_examples=examples(30), deadline=None)
@given(posteriors(n=st.integers(2, 12), d=st.integers(25, 30)), levels, seeds, st.booleans())
def test_the_bound_of_a_sum_of_many_features_holds(post, p, seed, forms):
    """The same by flattened forms, orders four to seven included."""
    check_sum(post, p, seed, forms)


def check_sum(post, p, seed, forms):
    rng = np.random.default_rng(seed)
    box = random_box(rng, post, 1.0 / math.sqrt(post.n_features))
    slice_, domain = placed(post, box)
    plane = plane_of(post, box, p)[1] or mean_over(slice_, domain, box.reference)
    with np.errstate(all="ignore"):
        bound = plane.lower_bound(forms)
    assert not math.isnan(bound.value)
    if bound.value == -math.inf:
        return
    least = np.clip(box.reference + bound.point * lengthscale(post), box.lower, box.upper)
    with bits(BITS):
        for x in [least, *points_of(box, rng, 5)]:
            lowest = scaled_sum(post, plane, box, x) - arb(plane.excess)
            assert arb(bound.value) <= lowest
            grow = half_square(x, box.reference, post).exp()
            assert arb(bound.latent) <= lowest / grow


@settings(max_examples=examples(60), deadline=None)
@given(posteriors(n=st.integers(1, 12), d=st.sampled_from([1, 2, 5, 26])), levels, seeds)
def test_what_no_form_bounds_has_a_norm_in_the_metric(post, p, seed):
    """X5: the orders from three on, and those beyond the forms, are at most what is subtracted for them."""
    rng = np.random.default_rng(seed)
    box = random_box(rng, post, 1.0 / math.sqrt(post.n_features))
    slice_, domain = placed(post, box)
    plane = plane_of(post, box, p)[1] or mean_over(slice_, domain, box.reference)
    with np.errstate(all="ignore"):
        tails = [(3, plane.tail(3) * plane.around.elliptic)]
        *forms, last = plane._orders
        tails.append((3 + len(forms), 0.5 * last.diagonal))
    scale = [arb(float(each)) for each in lengthscale(post)]
    with bits(BITS):
        for x in points_of(box, rng, 3):
            if (x == box.reference).all():  # both sides are 0
                continue
            d = [(arb(float(a)) - arb(float(b))) / c for a, b, c in zip(x, box.reference, scale, strict=True)]
            orders = exact_orders(post, plane, box.reference, d)
            for first, diagonal in tails:
                if np.isfinite(diagonal).all():
                    form = sum((arb(float(q)) * z * z for q, z in zip(diagonal, d, strict=True)), arb(0))
                    assert abs(orders[0] - sum(orders[1 : 1 + first], arb(0))) <= form


def exact_orders(post, plane, reference, d):
    """sum_i b_i k_i e^{a_i}, then its parts of order zero, one, two, ..."""
    totals = [arb(0) for _ in range(7)]
    scale = lengthscale(post)
    for b, centre in zip(plane.b, post.centres, strict=True):
        v = [
            (arb(float(c)) - arb(float(r))) / arb(float(s))
            for c, r, s in zip(centre, reference, scale, strict=True)
        ]
        a = sum((x * y for x, y in zip(d, v, strict=True)), arb(0))
        bk = arb(float(b)) * arb(float(post.kernel.variance)) * (-half_square(reference, centre, post)).exp()
        totals[0] += bk * a.exp()
        for order in range(6):
            totals[1 + order] += bk * a**order / math.factorial(order)
    return totals


def test_bounds_of_sums_are_worth_having():
    """On small sets the bound is near the smallest value: it is not sound by being empty."""
    rng = np.random.default_rng(2)
    for d in (3, 27):
        post = random_posterior(rng, 12, d, "laplace")
        box = random_box(rng, post, 0.1 / math.sqrt(d))
        plane = plane_of(post, box, 0.3)[1]
        values = [float(scaled_sum(post, plane, box, x).mid()) for x in points_of(box, rng, 60)]
        for forms in (False, True):
            bound = plane.lower_bound(forms).value
            assert min(values) - bound <= 0.4 * (max(values) - min(values)) + 1e-6


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from([0.001, 0.02, 0.1, 0.2, 0.3, 0.4, 0.49, 0.4999]),
    st.floats(-6.0, 4.0),
    st.floats(0.0, 1.0),
    st.sampled_from([None, 0.0, 0.3, 0.9, 0.9999]),
    st.sampled_from([Logit(), Probit(), Probit(3.0), Floored(Logit(), 0.01), FiveErf()]),
    seeds,
)
def test_a_root_lies_above_the_level_curve(p, exponent, share, least, likelihood, seed):
    """G3: at mu = -(steep sqrt(c + S) + kappa) the probability is at least p, for every S in [0, largest], or
    from `least` times that on.
    """
    largest = 10.0**exponent
    level, least = curves_of(likelihood).level(p), None if least is None else least * largest
    level = level if least is None else level.within((least, largest))
    root = level.root(share * largest, largest)
    if root is None:
        assert level.concave or isinstance(likelihood, FiveErf | Floored)
        return
    steep, c, kappa = root
    assert steep >= 0 < c
    rng = np.random.default_rng(seed)
    inside = [0.0, largest, share * largest, *(largest * rng.random(2)), *(largest * 1e-3 * rng.random(2))]
    inside = np.maximum(inside, least or 0.0)
    with bits(BITS):
        for S in inside:
            mu = -(arb(steep) * (arb(c) + arb(float(S))).sqrt() + arb(kappa))
            assert expectation(likelihood, mu, arb(float(S)), 1) >= arb(level.p) - arb(1e-13)


@settings(max_examples=examples(120), deadline=None)
@given(st.sampled_from(KERNELS), levels, seeds, st.sampled_from(["laplace", "stiff", "spectrum"]))
def test_a_plane_of_any_kernel_is_bounded_from_below(kernel, p, seed, precision):
    """G5: the bound over the set is below mu - t sqrt(c + max(S, 0)) at its points, in ball arithmetic."""
    rng = np.random.default_rng(seed)
    case = Case(
        n=int(rng.integers(1, 9)), d=int(rng.integers(1, 6)), link="scaled probit", precision=precision,
        layout="multimodal", shape="box", place="near", width=0.5, label=1, tolerance=0.02, stop="none",
        seed=seed, kernel=kernel,
    )  # fmt: skip
    post = several_kernels(case, rng)
    region = random_region(case, post, rng)
    slice_ = make_radial_slice(model_of(post), region.centre, np.arange(case.d))
    if not slice_.moderate:
        return
    level = curves_of(post.likelihood).level(p)
    domain = BoxDomain(*scaled_box(region.lower, region.upper, region.centre, slice_.lengthscale))
    plane = radial_plane(slice_, domain, region.centre, level, slice_.largest_variance)
    if plane is None:
        assert "matern12" in kernel or "sum" in kernel or "product" in kernel or precision != "laplace"
        return
    bound = plane.bound
    if bound.latent == -math.inf:
        return
    truth = Truth(post)
    least = np.clip(region.centre + bound.point * slice_.lengthscale, region.lower, region.upper)
    with bits(BITS):
        c = 1 / arb(post.likelihood.scale) ** 2
        for x in [
            least,
            region.centre,
            region.lower,
            region.upper,
            *rng.uniform(region.lower, region.upper, (4, case.d)),
        ]:
            mean, S = truth.latent(x)
            S = S if bool(S >= 0) else arb(0) if bool(S <= 0) else S.union(arb(0))
            assert arb(bound.latent) <= mean - arb(level.t) * (c + S).sqrt()


@settings(max_examples=examples(100), deadline=None)
@given(st.sampled_from(KERNELS), seeds)
def test_a_kernel_lies_above_its_line(kernel, seed):
    """G5: k(x, xh) / k(xh, xh) >= share - sum_j curl_j d_j^2 / 2, in ball arithmetic, kinks included."""
    rng = np.random.default_rng(seed)
    case = Case(
        n=2, d=int(rng.integers(1, 4)), link="probit", precision="laplace", layout="multimodal", shape="box",
        place="near", width=0.5, label=1, tolerance=0.02, stop="none", seed=seed, kernel=kernel,
    )  # fmt: skip
    post = several_kernels(case, rng)
    region = random_region(case, post, rng)
    reference = np.clip(region.centre, region.lower, region.upper)
    slice_ = make_radial_slice(model_of(post), reference, np.arange(case.d))
    domain = BoxDomain(*scaled_box(region.lower, region.upper, reference, slice_.lengthscale))
    share, curl = kernel_below(slice_, domain)
    assert 0.9 * (share > 0) <= np.isfinite(curl).all()
    here = gc.Posterior(reference[None], np.ones(1), np.eye(1), kernel=post.kernel)  # its mean is k(x, xh)
    with bits(BITS):
        top = Truth(here).latent(reference)[0]
        inside = rng.uniform(region.lower, region.upper, (3, case.d))
        for x in (reference, region.lower, region.upper, *inside):
            line = arb(float(share))
            for c, a, b, unit in zip(curl, x, reference, slice_.lengthscale, strict=True):
                line -= arb(float(c)) * ((arb(float(a)) - arb(float(b))) / arb(float(unit))) ** 2 / 2
            assert Truth(here).latent(x)[0] >= top * line


def indefinite(kernel, seed, n=7, d=3):
    """Less certain than its prior in some directions, as variational posteriors may be."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    K = kernel(X) + 1e-9 * np.eye(n)
    root, A = np.linalg.cholesky(K), rng.normal(size=(n, n))
    C = root @ np.linalg.inv(np.eye(n) + 0.25 * root.T @ root) @ root.T + 0.5 * root @ A @ A.T @ root.T / n
    inverse = np.linalg.inv(K)
    R = inverse - inverse @ C @ inverse
    return gc.Posterior(X, 2.0 * rng.normal(size=n), (R + R.T) / 2, kernel=kernel, likelihood="probit")


@pytest.mark.parametrize(
    "kernel", [gc.RBF(1.5, 2.0), gc.Matern32(1.5, 2.0), gc.RationalQuadratic(1.5, 2.0, 1.0)]
)
@pytest.mark.parametrize("p", [0.02, 0.2, 0.45, 0.55, 0.8, 0.98])
def test_indefinite_precisions_have_planes(kernel, p):
    """G1 with the contraction of the precision itself, G2 with the price of the negative part."""
    for seed in range(3):
        post, rng = indefinite(kernel, seed), np.random.default_rng(seed)
        model, truth = model_of(post), Truth(post)
        start = 0.5 * rng.normal(size=3)
        gaussian = isinstance(kernel, gc.RBF)
        slice_ = (make_slice if gaussian else make_radial_slice)(model, start, np.arange(3))
        domain = BoxDomain(*scaled_box(start - 0.3, start + 0.3, start, slice_.lengthscale))
        at = plane_at if gaussian else radial_plane
        level = curves_of(post.likelihood).level(p)
        plane = at(slice_, domain, start, level, slice_.largest_variance)
        assert not model.definite
        assert plane is not None
        bound = plane.lower_bound(True) if gaussian else plane.bound
        assert bound.latent > -10.0
        with bits(BITS):
            for x in (start, *rng.uniform(start - 0.3, start + 0.3, (6, 3))):
                mean, S = truth.latent(x)
                S = S if bool(S >= 0) else arb(0) if bool(S <= 0) else S.union(arb(0))
                assert arb(bound.latent) <= mean - arb(level.t) * (1 + S).sqrt()


@pytest.mark.parametrize(
    "kernel", ["matern52", "matern32", "matern12", "rational quadratic", "sum", "other product"]
)
def test_planes_of_other_kernels_settle_boxes(kernel):
    """They exist and are sharp: nothing above would notice if they were empty."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        case = Case(
            n=8, d=2, link="probit", precision="laplace", layout="multimodal", shape="box", place="near",
            width=0.2, label=1, tolerance=0.02, stop="none", seed=seed, kernel=kernel,
        )  # fmt: skip
        post = several_kernels(case, rng)
        region = random_region(case, post, rng)
        slice_ = make_radial_slice(model_of(post), region.centre, np.arange(2))
        domain = BoxDomain(*scaled_box(region.lower, region.upper, region.centre, slice_.lengthscale))
        p = post.probability(np.array([region.lower, region.upper, region.centre]))[:, 1].min()
        level = curves_of(post.likelihood).level(float(np.clip(p - 0.1, 1e-3, 0.999)))
        plane = radial_plane(slice_, domain, region.centre, level, slice_.largest_variance)
        found.append(plane is not None and plane.bound.latent > -1.0)
    assert sum(found) >= 6


@pytest.mark.parametrize("norm", [np.inf, 2.0, 1.0, 3.0])
def test_hard_regions_are_settled_and_true(norm):
    """Twenty-six features, half a standard deviation: the range of S would be hopeless there."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 26))
    y = (X[:, :4].sum(axis=1) > 0).astype(int)
    post = gc.GPClassifier(kernel=gc.RBF(6.0, 8.0), max_evals=0).fit(X, y).posterior_
    radius = {np.inf: 0.4, 3.0: 0.8, 2.0: 1.0, 1.0: 1.5}[norm]
    truth, narrow = Truth(post), 0
    for x in X[:4]:
        ball = Ball(x, radius, norm=norm)
        answer = gc.probability_range(post, ball, max_nodes=20)
        narrow += answer.status == "converged"
        worst = gc.attack(post, ball, label=1, starts=4).x
        assert truth.at_least(worst, 1, answer.min.lower)
        assert truth.at_most(answer.argmin, 1, answer.min.upper)
    assert narrow >= 3
