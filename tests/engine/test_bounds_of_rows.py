"""Every statement of docs/maths/batches.md that a bound rests on, in ball arithmetic at random rows."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, fmpq

from gpcert.engine.backend import Backend
from gpcert.engine.planes import mean_plane
from gpcert.engine.quadratic import minima
from gpcert.engine.rounding import normal_down, normal_up, tail_squares
from gpcert.engine.sums import Sums
from helpers.oracle import BITS, bits, examples, rational
from helpers.rows import random_batch

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
            found = minima(CPU, g, H, low, high, need, 2, best).value
            assert all(not v > -np.inf or rational(v) <= exact for v, exact in zip(found, least, strict=True))
            proved[best] += int((found >= need).sum())
    assert proved[True] > max(proved[False], examples(4) * 12 * 0.7)


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
