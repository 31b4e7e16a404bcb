"""Ranges of the latent mean and variance: containment in ball arithmetic, dense search, cells, contract."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.batched.cells import bound_cells
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.local.radial.slice import make_radial_slice
from helpers.exact import CHOICES, KERNELS, Case, extreme_points, random_posterior, random_region, small_model
from helpers.oracle import bits, examples
from judge import Truth

CASES = st.builds(
    Case,
    **{name: st.sampled_from(values) for name, values in (CHOICES | {"kernel": ("rbf", *KERNELS)}).items()},
)


def refuted(post, answer, points):
    """What is false at the points (d,) about an answer, decided in ball arithmetic."""
    found = []
    for x in points:
        with bits(640):
            mean, variance = Truth(post).latent(x)
            variance = variance.nonnegative_part()
            for name, value, each in (("mean", mean, answer.mean), ("variance", variance, answer.variance)):
                if value < each.lower or value > each.upper:
                    found.append((name, x, value, each))
    for name, each in (("mean", answer.mean), ("variance", answer.variance)):
        for point, bound, side in ((each.argmin, each.min.upper, 1), (each.argmax, each.max.lower, -1)):
            if point is None:
                continue
            with bits(640):
                mean, variance = Truth(post).latent(point)
                value = mean if name == "mean" else variance.nonnegative_part()
                if side * value > side * bound:
                    found.append((name, "not attained", point, value, bound))
    return found


@settings(max_examples=examples(60))
@given(CASES)
def test_latent_ranges_hold(case):
    rng = np.random.default_rng(case.seed)
    post = random_posterior(case, rng)
    region = random_region(case, post, rng)
    answer = gc.latent_range(post, region, tolerance=case.tolerance, max_nodes=int(rng.integers(0, 30)))
    inner = region.inner_box()
    points = [inner.lower + rng.random(case.d) * (inner.upper - inner.lower) for _ in range(3)]
    points += extreme_points(post, region, 1, rng)
    points = [x for x in points if region.contains(x)]
    assert refuted(post, answer, points) == []
    for each in (answer.mean, answer.variance):
        assert each.min.lower <= each.min.upper
        assert each.max.lower <= each.max.upper
        for point in (each.argmin, each.argmax):
            assert point is None or region.contains(point)


@settings(max_examples=examples(60))
@given(CASES, st.sampled_from([1e-6, 1e-3, 0.02, 0.3]))
def test_cells_hold(case, width):
    """The bound of many boxes at once, on boxes of every size around the data."""
    if (
        case.precision == "indefinite"
        or "other" in case.kernel
        or case.kernel == "sum of products"
        or case.d > 8
    ):
        return
    rng = np.random.default_rng(case.seed)
    post = random_posterior(case, rng)
    slice_ = make_radial_slice(model_of(post), post.centres[0], np.arange(case.d))
    l = slice_.lengthscale
    start = post.centres[rng.integers(post.n_centres, size=6)] + l * rng.standard_normal((6, case.d))
    lower = np.concatenate([start, post.centres[:1]])
    upper = lower + width * l * rng.random(lower.shape)
    found = bound_cells(slice_, lower, upper, (lower, upper))
    for b in range(len(lower)):
        points = [lower[b] + rng.random(case.d) * (upper[b] - lower[b]) for _ in range(3)]
        corner = np.where(rng.random(case.d) < 0.5, lower[b], upper[b])
        for x in (*points, corner, lower[b], upper[b]):
            with bits(640):
                values = Truth(post).latent(np.clip(x, lower[b], upper[b]))
                for value, each in zip(values, found, strict=True):
                    assert not value < each.min_lower[b]
                    assert not value > each.max_upper[b]
        for quantity, each in enumerate(found):
            with bits(640):
                assert not Truth(post).latent(each.argmin[b])[quantity] > each.min_upper[b]
                assert not Truth(post).latent(each.argmax[b])[quantity] < each.max_lower[b]


def regression(kernel, n=60, d=2, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, d))
    R = np.linalg.inv(kernel(X) + noise**2 * np.eye(n))
    R = 0.5 * (R + R.T)
    return gc.Posterior(X, R @ np.sin(X.sum(axis=1)), R, kernel=kernel, likelihood=None, mean=0.3)


SMOOTH = [gc.RBF(1.0), gc.Matern52(1.0), gc.RationalQuadratic(1.0), gc.RBF(1.0) + gc.Matern52(2.0)]


@pytest.mark.parametrize("kernel", [*SMOOTH, gc.Matern32(1.0), gc.Matern12(1.0)], ids=repr)
def test_a_dense_grid_agrees(kernel):
    post = regression(kernel)
    box = gc.Box([0.1, -0.7], [0.4, -0.5])
    answer = gc.latent_range(post, box, tolerance=1e-3)
    assert answer.status == "converged"
    axes = [np.linspace(a, b, 101) for a, b in zip(box.lower, box.upper, strict=True)]
    kinks = post.centres[[box.contains(x) for x in post.centres]]
    mean, variance = post.latent(np.concatenate([np.stack(np.meshgrid(*axes), -1).reshape(-1, 2), kinks]))
    for each, values in ((answer.mean, mean), (answer.variance, variance)):
        assert each.min.lower <= values.min() <= each.min.upper + 1e-3
        assert each.max.upper >= values.max() >= each.max.lower - 1e-3


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_cells_agree_with_the_search(kernel):
    """The sweep and the search enclose the same numbers; nearly all cells of a fine grid need no search."""
    post = regression(kernel)
    edges = np.linspace(-1.0, 1.0, 41)
    cells = [gc.Box([a, b], [a + 0.05, b + 0.05]) for a in edges[::4] for b in edges[::4]]
    swept = gc.latent_range(post, cells)
    assert all(answer.status == "converged" for answer in swept)
    assert np.mean([answer.nodes == 0 for answer in swept]) > 0.9
    for cell, answer in list(zip(cells, swept, strict=True))[::11]:
        alone = gc.latent_range(post, cell, tolerance=1e-4)
        for one, other in ((answer.mean, alone.mean), (answer.variance, alone.variance)):
            assert one.min.lower <= other.min.upper
            assert other.min.lower <= one.min.upper
            assert one.max.upper >= other.max.lower
            assert other.max.upper >= one.max.lower


def test_cells_that_move_other_features_are_answered_too():
    post = regression(gc.RBF(1.0), d=3)
    x = np.array([0.1, 0.2, -0.3])
    cells = [gc.Ball(x + 0.01 * i, 0.02, features=[0, 1]) for i in range(6)]
    cells += [gc.Ball(x, 0.02, features=[2]), gc.Box(x, x), gc.Box(x - 0.6, x + 0.6), gc.Box(x, x + 0.01)]
    answers = gc.latent_range(post, cells, tolerance=0.05)
    assert [answer.status for answer in answers] == ["converged"] * 10
    rng = np.random.default_rng(0)
    for cell, answer in zip(cells, answers, strict=True):
        box = cell.inner_box()
        for x in (box.lower, box.upper, box.lower + rng.random(3) * (box.upper - box.lower)):
            assert refuted(post, answer, [np.clip(x, box.lower, box.upper)]) == []


def test_the_variance_is_clipped_at_zero():
    post = gc.Posterior([[0.0]], [1.0], [[1.5]], kernel=gc.RBF(1.0, 1.0), likelihood=None)  # S(0) = -1/2
    answer = gc.latent_range(post, gc.Box([-2.0], [2.0]), tolerance=1e-3)
    assert answer.status == "converged"
    assert answer.variance.min.lower == 0.0
    assert answer.variance.min.upper <= 1e-3
    assert answer.variance.max.upper >= post.latent([[2.0]])[1][0]


def test_labels_select_the_latent():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 2))
    kernels = [gc.RBF(1.0), gc.Matern52(2.0), gc.RBF(0.5, 2.0)]
    precision = np.stack([np.linalg.inv(kernel(X) + np.eye(5)) for kernel in kernels])
    precision = 0.5 * (precision + precision.transpose(0, 2, 1))
    post = gc.Posterior(
        X, rng.standard_normal((5, 3)), precision, kernel=kernels, likelihood="softmax", mean=[0, 1, 2]
    )
    box = gc.Box([0.0, 0.0], [0.1, 0.1])
    mean, covariance = post.latent([[0.05, 0.05]])
    for label in range(3):
        answer = gc.latent_range(post, box, label)
        assert answer.label == label
        assert answer.mean.lower <= mean[0, label] <= answer.mean.upper
        assert answer.variance.lower <= covariance[0, label, label] <= answer.variance.upper


@pytest.mark.parametrize(
    ("post", "region", "options", "names"),
    [
        ("model", gc.Box([0.0], [1.0]), {}, "post"),
        (small_model(), gc.Box([0.0, 0.0], [1.0, 1.0]), {"label": 0}, "label"),
        (small_model(), gc.Box([0.0], [1.0]), {}, "region"),
        (small_model(), gc.Box([0.0, 0.0], [1.0, 1.0]), {"tolerance": 0.0}, "tolerance"),
        (small_model(), gc.Box([0.0, 0.0], [1.0, 1.0]), {"progress": 3}, "progress"),
    ],
)
def test_one_clear_sentence_names_what_is_wrong(post, region, options, names):
    with pytest.raises(gc.InvalidInputError, match=rf"^[^\n]*\b{names}\b[^\n]* must [^\n]*, got [^\n]*$"):
        gc.latent_range(post, region, **options)


def test_progress_counts_regions_and_may_stop():
    post = regression(gc.Matern52(1.0))
    cells = [gc.Box([0.01 * i, 0.0], [0.01 * i + 0.01, 0.01]) for i in range(20)]
    seen = []
    found = gc.latent_range(post, cells, progress=seen.append)
    assert (seen[-1].done, seen[-1].total) == (20, 20)
    for p in seen:
        assert p.lower <= found[p.index].mean.min.upper
        assert p.upper >= found[p.index].mean.max.lower
    answers = gc.latent_range(post, cells, progress=lambda *_: True)
    assert len(answers) == 20
    wide = [gc.Box([0.0, 0.0], [2.0, 2.0])] * 3
    stopped = gc.latent_range(post, wide, max_nodes=2, progress=lambda p: p.done == 1)
    assert [answer.status for answer in stopped] == ["node limit", "interrupted", "interrupted"]
    assert stopped[2].mean.min.lower == -np.inf
