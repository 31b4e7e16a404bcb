"""Every statement of docs/maths/batches.md that a bound rests on, in ball arithmetic at random rows."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, fmpq

from gpcert.bounds.levels.registry import curves_of
from gpcert.engine.backend import Backend
from gpcert.engine.lines import lines
from gpcert.engine.planes import mean_plane, plane
from gpcert.engine.quadratic import dominated, lower_bounds
from gpcert.engine.rounding import normal_down, normal_up, tail_squares
from gpcert.engine.shells import bounded
from gpcert.engine.sums import Sums
from gpcert.rounding import gamma
from helpers.oracle import BITS, bits, examples, is_psd, rational
from helpers.rows import random_batch
from judge import Truth

KINDS = ("laplace", "psd", "indefinite", "zero")
CPU = Backend()


def batches(seed, count, **options):
    rng = np.random.default_rng(seed)
    found = 0
    for i in range(6 * count):
        batch = random_batch(rng, kind=KINDS[i % 4], offset=float(rng.choice([0.0, 1e3])), **options)
        if batch is not None:
            found += 1
            yield rng, batch
        if found == count:
            return
    raise AssertionError("too few models that the engine knows")


def test_means_and_variances_at_points_are_enclosed():
    for _, batch in batches(1, examples(12)):
        truth = Truth(batch.post)
        with np.errstate(all="ignore"):
            mean, variance = batch.at.mean(), batch.at.variance
        with bits(BITS):
            for row, x in enumerate(batch.references):
                mu, S = truth.latent(batch.point(row, x))
                assert not np.isfinite(mean[0][row]) or arb(mean[0][row]) <= mu
                assert not np.isfinite(mean[1][row]) or arb(mean[1][row]) >= mu
                assert not np.isfinite(variance[0][row]) or arb(variance[0][row]) <= S
                assert not np.isfinite(variance[1][row]) or arb(variance[1][row]) >= S


def test_most_enclosures_are_narrow():
    widths = [
        (batch.at.mean()[1] - batch.at.mean()[0]) / (1.0 + np.abs(batch.at.mean()[1]))
        for _, batch in batches(2, 12)
    ]
    assert np.median(np.concatenate(widths)) < 1e-9


def orders_of_three(sums):
    """With a number for order three, with a form of some centres, and of all."""
    return sums.order_three(2), bounded(sums, 2, 3), bounded(sums, 2, 100)


def level(batch, t, x, truth):
    """sign mu - t sqrt(c + max(S, 0)) at a point (D,), c = 1 for the probit; m_p at p = Phi(t)."""
    mu, S = truth.latent(x)
    return mu, (arb(1) + S.max(arb(0))).sqrt() * arb(t)


@pytest.mark.parametrize("balls", [False, True])
def test_the_bounds_of_planes_lie_below_the_level_on_the_whole_row(balls):
    tight = 0
    for rng, batch in batches(3, examples(16), balls=balls):
        if not batch.facts.has_planes:
            continue
        truth, targets = Truth(batch.post), rng.uniform(0.03, 0.97, len(batch.rows))
        with np.errstate(all="ignore"):
            low, high = batch.at.variance
            line = lines(CPU, curves_of(batch.post.likelihood), targets, 0.5 * (low + high), low, 0.02)
            sums = Sums(batch.at, batch.boxes, plane(batch.at, batch.rows.sign, line))
            bounds = sums.order_two(), *orders_of_three(sums)
        with bits(BITS):
            for row, sign in enumerate(batch.rows.sign):
                for x in batch.inside(row, rng, 2):
                    mu, curve = level(batch, float(line.t[row]), x, truth)
                    value = batch.grown(row, x) * (arb(sign) * mu - curve)
                    for bound in bounds:
                        assert not bound[row] > -np.inf or value >= arb(float(bound[row]))
                        tight += bool(value - arb(float(bound[row])) < 0.1) if bound[row] > -np.inf else 0
    assert tight > 20 * examples(16)  # and they say something


@pytest.mark.parametrize("balls", [False, True])
def test_the_bounds_of_means_lie_below_the_mean_on_the_whole_row(balls):
    for rng, batch in batches(4, examples(12), balls=balls):
        truth = Truth(batch.post)
        with np.errstate(all="ignore"):
            sums = Sums(batch.at, batch.boxes, mean_plane(batch.at, batch.rows.sign))
            rough = sums.order_two()
            bounds = rough, *orders_of_three(sums)
            means = sums.latent(rough)
        with bits(BITS):
            for row, sign in enumerate(batch.rows.sign):
                for x in batch.inside(row, rng, 2):
                    mu = arb(sign) * truth.latent(x)[0]
                    for bound in bounds:
                        assert not bound[row] > -np.inf or batch.grown(row, x) * mu >= arb(float(bound[row]))
                    assert not means[row] > -np.inf or mu >= arb(float(means[row]))


@pytest.mark.parametrize("share", [1.0, 0.05])
@pytest.mark.parametrize("order", [2, 3, 4])
def test_remainders_in_the_metric_are_bounded(order, share):
    """On the box, and near the reference alone."""
    for rng, batch in batches(5 + order, examples(8)):
        with np.errstate(all="ignore"):
            sums = Sums(batch.at, batch.boxes, mean_plane(batch.at, batch.rows.sign))
            H, metric = sums.hessian(), batch.facts.metric
            known = sums.value**2 + (sums.gradient**2) @ (1.0 / metric)
            if order >= 3:
                known = known + 0.5 * np.einsum("ijk,j,k->i", H * H, 1.0 / metric, 1.0 / metric)
            if order == 4:
                known = known + sums.cubic(100)[2]
            near = None if share == 1.0 else share**2 * batch.boxes.span
            found = sums.remainder(known, order, near)
        Z = batch.facts.moving
        with bits(BITS):
            for row in np.flatnonzero(np.isfinite(found)):
                box = batch.boxes
                d = box.low[row] + rng.random(len(metric)) * (box.high[row] - box.low[row])
                d = 0.999 * share * d
                total = arb(0)
                for beta, z in zip(sums.bk[row], Z, strict=True):
                    v = [arb(a) - arb(b) for a, b in zip(z.tolist(), batch.at.y[row].tolist(), strict=True)]
                    a = sum((arb(s) * each for s, each in zip(d.tolist(), v, strict=True)), arb(0))
                    head = sum((a**p / arb(p).fac() for p in range(order)), arb(0))
                    total += arb(float(beta)) * (a.exp() - head)
                size = sum(
                    (arb(m) * arb(s) ** 2 for m, s in zip(metric.tolist(), d.tolist(), strict=True)), arb(0)
                )
                # The polynomial's own rounding is paid for elsewhere: here it is exact.
                assert abs(total) <= arb(float(found[row])) * size


def test_pairs_of_many_features_are_not_kept(monkeypatch):
    """2,000 centres with 225 features would keep 407 MB as long as the model lives."""
    _, batch = next(batches(14, 1, n=8, d=3))
    sums = Sums(batch.at, batch.boxes, mean_plane(batch.at, batch.rows.sign))
    many = np.tile(np.arange(len(batch.rows)), 1 + CPU.few // len(batch.rows))
    found = []
    n, d = batch.facts.moving.shape
    vars(batch.facts).pop("pairs", None)
    for more in (-1, 0):
        monkeypatch.setattr(batch.facts.backend, "most_pairs", n * d * (d + 1) // 2 + more)
        found.append(sums.take(many).hessian())
        assert ("pairs" in vars(batch.facts)) == (more == 0)
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)


def test_hessians_of_few_rows_and_of_many_are_within_their_rounding():
    """J5, (ii): with the packed pairs and without them, entry by entry."""
    for _, batch in batches(14, examples(4), n=8, d=3):
        sums = Sums(batch.at, batch.boxes, mean_plane(batch.at, batch.rows.sign))
        times = 1 + CPU.few // len(batch.rows)
        many = sums.take(np.tile(np.arange(len(batch.rows)), times))
        found = [np.concatenate([sums.take(np.array([row])).hessian() for row in range(len(batch.rows))])]
        found.append(many.hessian()[: len(batch.rows)])
        size = np.abs(sums.bk).sum(axis=1) * (batch.facts.reach + batch.at.norms) ** 2
        for row in np.flatnonzero(np.isfinite(size)):
            y, z = (
                [[rational(v) for v in x] for x in X] for X in (batch.at.y[row : row + 1], batch.facts.moving)
            )
            for j, k in np.ndindex(*found[0].shape[1:]):
                exact = sum(
                    (
                        rational(b) * (v[j] - y[0][j]) * (v[k] - y[0][k])
                        for b, v in zip(sums.bk[row], z, strict=True)
                    ),
                    fmpq(0),
                )
                for H in found:
                    assert abs(rational(H[row, j, k]) - exact) <= rational(3.1 * gamma(8 + 32) * size[row])


@pytest.mark.parametrize("centres", [8, 5])
def test_order_three_is_bounded_by_its_form(centres):
    """J11, and what is subtracted of its norm: at most |T_3|^2 / 6, the tensor entry by entry; also where
    some of the centres are in the form and the others in rho.
    """
    others_count = 0
    for rng, batch in batches(9, examples(8), n=8, d=3):
        with np.errstate(all="ignore"):
            sums = Sums(batch.at, batch.boxes, mean_plane(batch.at, batch.rows.sign))
            N, lack, cube, rho = sums.cubic(centres)
        d = batch.at.y.shape[1]
        with bits(BITS):
            lengths = [arb(m).sqrt() for m in batch.facts.metric.tolist()]
            for row in np.flatnonzero(np.isfinite(lack)):
                y = [arb(each) for each in batch.at.y[row].tolist()]
                v = [
                    [(arb(z) - b) / c for z, b, c in zip(each, y, lengths, strict=True)]
                    for each in batch.facts.moving.tolist()
                ]
                beta = [arb(each) for each in sums.bk[row].tolist()]
                where = np.ndindex(d, d, d)
                tensor = [
                    sum((b * w[i] * w[j] * w[k] for b, w in zip(beta, v, strict=True)), arb(0))
                    for i, j, k in where
                ]
                assert arb(float(cube[row])) <= sum((t * t for t in tensor), arb(0)) / 6 or cube[row] == 0
                D = [arb(each) for each in rng.standard_normal(d).tolist()]
                term = sum(
                    (
                        b * sum((s * w for s, w in zip(D, each, strict=True)), arb(0)) ** 3
                        for b, each in zip(beta, v, strict=True)
                    ),
                    arb(0),
                )
                square = sum((s * s for s in D), arb(0))
                form = sum(
                    (D[i] * D[j] * arb(float(N[row, i, j])) for i in range(d) for j in range(d)), arb(0)
                )
                form = form + arb(float(lack[row])) * square
                others = arb(float(rho[row])) * square.sqrt()
                assert abs(term / 6) <= square * (form.sqrt() + others)
                others_count += bool(rho[row] > 0)
                assert (N[row] == N[row].T).all()
    assert bool(others_count) == (centres < 8)


def exact_quadratic(g, H, point):
    """g.d + d^T H d / 2 at a point of doubles, exactly."""
    d = [rational(v) for v in point]
    linear = sum((rational(a) * b for a, b in zip(g, d, strict=True)), fmpq(0))
    bends = (rational(H[j, k]) * d[j] * d[k] for j in range(len(d)) for k in range(len(d)))
    return linear + sum(bends, fmpq(0)) / 2


@pytest.mark.parametrize("best", [False, True])
def test_quadratics_are_bounded_and_matrices_are_definite(best):
    rng = np.random.default_rng(8)
    settled = 0
    for _ in range(examples(6)):
        N, d = 8, int(rng.integers(1, 6))
        A = rng.standard_normal((N, d, d)) * 10.0 ** rng.uniform(-3, 1, (N, 1, 1))
        H, g = A + A.transpose(0, 2, 1), rng.standard_normal((N, d))
        low, high = -rng.random((N, d)), rng.random((N, d))
        exact = rng.standard_normal(N) * 3.0
        found = lower_bounds(CPU, g, H, low, high, exact, 3, best)
        for i in range(N):
            for _ in range(6):
                corner = np.where(rng.random(d) < 0.5, low[i], high[i])
                assert not found[i] > -np.inf or exact_quadratic(g[i], H[i], corner) >= rational(found[i])
            settled += bool(found[i] >= exact[i])
        D = 10.0 ** rng.uniform(-2, 2, (N, d))
        for ok, certain in ((dominated(CPU, H, D), D), CPU.definite(H, D)):
            for i in np.flatnonzero(ok):
                assert is_psd(H[i], certain[i])
    assert settled >= examples(6)


def test_the_best_diagonals_prove_almost_the_minimum_and_never_more():
    """Q1 and the barrier of J20, where the minimum over the ends is that over the box: diagonals of H are
    negative. A sharp linear part settles some coordinates, a weak one none.
    """
    rng = np.random.default_rng(9)
    proved = {False: 0, True: 0}
    for _ in range(examples(4)):
        N, d = 12, 6
        A = rng.standard_normal((N, d, d)) * 0.3
        H = A + A.transpose(0, 2, 1)
        np.einsum("ijj->ij", H)[...] = -rng.random((N, d))
        g = rng.standard_normal((N, d)) * rng.choice([0.1, 3.0], (N, d))
        low, high = -rng.random((N, d)), rng.random((N, d))
        least = []
        for i in range(N):
            ends = [np.where([b >> j & 1 for j in range(d)], low[i], high[i]) for b in range(2**d)]
            least.append(min(exact_quadratic(g[i], H[i], end) for end in ends))
        need = np.array([float(value.p) / float(value.q) for value in least]) - 0.02
        for best in proved:
            found = lower_bounds(CPU, g, H, low, high, need, 2, best)
            assert all(not v > -np.inf or rational(v) <= exact for v, exact in zip(found, least, strict=True))
            proved[best] += int((found >= need).sum())
    assert proved[True] > max(proved[False], examples(4) * 12 * 0.7)


def test_narrow_and_small_quadratics_are_proved_as_others_are():
    """Coordinates that hardly move cost nothing, nor do rows with fewer free ones than their neighbours, and
    the size of a quadratic does not matter; true to the last digit, in fractions.
    """
    rng, N, d = np.random.default_rng(4), 24, 6
    A = rng.standard_normal((N, d, d)) * 0.3
    H, g = A + A.transpose(0, 2, 1), 0.2 * rng.standard_normal((N, d))
    np.einsum("ijj->ij", H)[...] = -rng.random((N, d))
    g[::3, :3] = 5.0  # settled
    low, high = -rng.random((N, d)), rng.random((N, d))
    corners = [np.where([b >> j & 1 for j in range(d)], low, high) for b in range(2**d)]
    least = [min(exact_quadratic(g[i], H[i], end[i]) for end in corners) for i in range(N)]
    need = np.array([float(value.p) / float(value.q) for value in least]) - 0.02
    proved = int((lower_bounds(CPU, g, H, low, high, need, 2, True) >= need).sum())
    for scale in (1e-6, 1e-13, 1e9):
        found = lower_bounds(CPU, scale * g, scale * H, low, high, scale * need, 2, True)
        assert int((found >= scale * need).sum()) == proved
    more = [np.pad(each, [(0, 0)] + [(0, 1)] * (each.ndim - 1), constant_values=0.1) for each in (g, H)]
    ends = np.pad(low, ((0, 0), (0, 1))), np.pad(high, ((0, 0), (0, 1)), constant_values=1e-60)
    found = lower_bounds(CPU, *more, *ends, need, 2, True)
    assert int((found >= need).sum()) == proved > N / 3
    for i in range(N):
        for end in corners:
            last = np.append(end[i], 1e-60)
            assert not found[i] > -np.inf or exact_quadratic(more[0][i], more[1][i], last) >= rational(
                found[i]
            )


def test_the_normal_law_on_arrays_is_on_its_side():
    x = np.concatenate([np.linspace(-40.0, 40.0, 2001), 10.0 ** np.linspace(-300, 2, 200), [-1e300, 1e300]])
    low, high = normal_down(CPU, x), normal_up(CPU, x)
    with bits(2400):
        for each, a, b in zip(x.tolist(), low.tolist(), high.tolist(), strict=True):
            if abs(each) > 40:
                assert (a, b >= 1e-290) == (0.0, True) if each < 0 else (a < 1.0 and b == 1.0)
                continue
            exact = (-arb(each) / arb(2).sqrt()).erfc() / 2
            assert arb(a) <= exact <= arb(b) or b == 1.0
    assert (high - low <= 1e-11 * high + 1e-290).all()
    assert normal_down(CPU, np.array([np.nan]))[0] == 0.0
    assert normal_up(CPU, np.array([np.nan]))[0] == 1.0


def test_tails_of_the_exponential_series_are_bounded_from_above():
    squares = np.concatenate([10.0 ** np.linspace(-30, 1.2, 60), [16.0]])
    for order in (2, 3, 4):
        found = tail_squares(CPU, order, squares)
        with bits(600):
            for square, bound in zip(squares.tolist(), found.tolist(), strict=True):
                x = arb(square)
                exact = x.exp() - sum((x**p / arb(p).fac() for p in range(order)), arb(0))
                assert arb(bound) >= exact
                assert arb(bound) <= exact * (1 + arb(1e-6)) + arb(1e-200)
    assert tail_squares(CPU, 2, np.array([16.1, 1.0]))[0] == np.inf


def test_nan_is_never_certain():
    for _, batch in batches(11, 2):
        bad = batch.at.k * np.nan
        at = type(batch.at)(batch.facts, batch.at.amplitudes, batch.at.y, bad, batch.at.unit)
        with np.errstate(all="ignore"):
            sums = Sums(at, batch.boxes, mean_plane(at, batch.rows.sign))
            assert not (sums.order_two() >= -1e300).any()
            assert not (sums.order_three(2) >= -1e300).any()
            assert not any((bounded(sums, 2, centres) >= -1e300).any() for centres in (3, 100))
