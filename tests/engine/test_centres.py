"""Sums of radial kernels centre by centre (J29), and what minima leave of a box (J30), in ball arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb

import gpcert as gc
from gpcert.engine.backend import Backend
from gpcert.engine.boxes import Boxes
from gpcert.engine.centres import Centres
from gpcert.engine.quadratic import minima, remnants
from gpcert.engine.squares import Squares
from helpers.functionals import functionals
from helpers.oracle import BITS, bits, examples
from helpers.rows import random_batch

KERNELS = {
    "matern32": gc.Matern32,
    "matern52": gc.Matern52,
    "rational quadratic": gc.RationalQuadratic,
    "little alpha": lambda scale, variance: gc.RationalQuadratic(scale, variance, 0.05),
}
KINDS = ("laplace", "psd", "indefinite", "laplace")


def batches(seed, count, make):
    rng = np.random.default_rng(seed)
    found = 0
    while found < count:
        offset = float(rng.choice([0.0, 1e3]))
        batch = random_batch(rng, kind=KINDS[found % 4], offset=offset, make=make)
        if batch is not None:
            found += 1
            yield rng, batch


def parts(batch, rng):
    """Each box, or a part of it, which need not hold the reference."""
    low, high = batch.boxes.low, batch.boxes.high
    ends = np.sort(rng.random((2, *low.shape)), axis=0) if rng.random() < 0.5 else np.array([0.0, 1.0])
    return Boxes(batch.facts, low + ends[0] * (high - low), low + ends[1] * (high - low))


def inside(batch, where, row, rng, count):
    """Displacements in the row's part of its box, and the points (D,) there, to the last bit."""
    low, high = where.low[row], where.high[row]
    shares = rng.random((count, len(low)))
    for share in (*shares, *np.round(shares)):
        d = np.clip(low + share * (high - low), low, high)
        x = batch.point(row, batch.references[row] + d * batch.facts.lengths)
        yield d, x


def bounded(batch, where, plane, rng):
    """Minima with and without what planes leave out, and what remains of each box."""
    aim = where.low + rng.random(where.low.shape) * (where.high - where.low)
    squares = Squares(batch.at, plane) if rng.random() < 0.5 else None
    with np.errstate(all="ignore"):
        found, _, _ = Centres(batch.at, where, plane).minimum(squares, aim, 2)
        return found, remnants(np, where.low, where.high, found)


@pytest.mark.parametrize("name", KERNELS)
def test_functionals_lie_above_their_minima_and_beside_remnants_above_0(name):
    """As they are, and less a number between their minimum and some value, so that a part is negative."""
    known, nearly, beside = 0, 0, 0
    for rng, batch in batches(1, examples(12), KERNELS[name]):
        where = parts(batch, rng)
        for plane, value in functionals(batch, rng):
            first = bounded(batch, where, plane, rng)[0]
            shift = np.zeros(len(first.value))
            for row in np.flatnonzero(first.value > -np.inf):
                x = next(x for _, x in inside(batch, where, row, rng, 1))
                shift[row] = first.value[row] + rng.random() * (float(value(row, x)) - first.value[row])
            lower = plane._replace(constant=plane.constant - shift)
            found, (below, above, start, stop) = bounded(batch, where, lower, rng)
            with bits(BITS):
                for row in np.flatnonzero(found.value > -np.inf):
                    least, moved = arb(float(found.value[row])), arb(float(shift[row]))
                    for d, x in inside(batch, where, row, rng, 1):
                        exact = value(row, x) - moved
                        # x is where d leads to but for its last bits, and so was the constant moved
                        outward = arb(1e-9) * (abs(exact) + abs(moved) + arb(float(plane.size[row])))
                        assert exact >= least - outward
                        known += 1
                        nearly += bool(exact - least < arb("0.3") * (abs(exact) + abs(least)))
                        gone = ((d < below[row]) | (d > above[row])).any()
                        if least < 0 and (gone or ((d > start[row]) & (d < stop[row])).any()):
                            beside += 1
                            assert exact >= -outward
    assert known > 8 * examples(12)
    assert nearly > examples(12)
    assert beside > examples(12) // 3


def test_rows_of_a_batch_have_the_minima_they_have_alone():
    for name in ("matern32", "matern52"):
        for rng, batch in batches(2, examples(4), KERNELS[name]):
            for plane, _ in functionals(batch, rng):
                with np.errstate(all="ignore"):
                    aim, squares = batch.boxes.low * 0.0, Squares(batch.at, plane)
                    whole, _, _ = Centres(batch.at, batch.boxes, plane).minimum(squares, aim, 2)
                    for row in range(len(aim)):
                        one = np.array([row])
                        few = Centres(batch.at.take(one), batch.boxes.take(one), plane.take(one))
                        found, _, _ = few.minimum(squares.take(one), aim[one], 2)
                        scale = 1.0 + np.abs(plane.size[row])
                        np.testing.assert_allclose(
                            found.value[0], whole.value[row], rtol=1e-5, atol=1e-7 * scale
                        )


def test_no_number_of_a_hopeless_box_is_a_bound():
    for rng, batch in batches(3, 4, gc.Matern52):
        (plane, _), *_ = functionals(batch, rng)
        for wrong in (np.nan, np.inf):
            bad = plane._replace(lost=plane.lost + wrong)
            with np.errstate(all="ignore"):
                found, _, _ = Centres(batch.at, batch.boxes, bad).minimum(None, batch.boxes.low, 2)
                ends = remnants(np, batch.boxes.low, batch.boxes.high, found)
            assert not (found.value > -np.inf).any()
            assert np.array_equal(ends[0], batch.boxes.low)
            assert np.array_equal(ends[1], batch.boxes.high)
            assert np.isnan(ends[2]).all()


@pytest.mark.parametrize("d", [1, 3, 10, 30])
def test_numbers_beyond_single_precision_or_none_at_all_are_no_minima(d):
    rng = np.random.default_rng(d)
    A = rng.standard_normal((6, d, d))
    H, g = A + A.transpose(0, 2, 1), rng.standard_normal((6, d))
    low, high = -rng.random((6, d)), rng.random((6, d))
    g[0, 0], g[1, 0], H[2, 0, 0], H[3, 0, 0], H[4] = np.nan, np.inf, np.nan, 1e60, 1e200 * H[4]
    with np.errstate(all="ignore"):
        found = minima(Backend(), g, H, low, high, np.full(6, 1e9), 2, 2)
        alone = minima(Backend(), g[5:], H[5:], low[5:], high[5:], np.full(1, 1e9), 2, 2)
    assert not (found.value[:3] > -np.inf).any()
    assert found.value[5] > -np.inf
    assert found.value[5] == pytest.approx(alone.value[0])
    for row in (3, 4, 5):
        for share in rng.random((20, d)):
            x = low[row] + share * (high[row] - low[row])
            assert not found.value[row] > g[row] @ x + 0.5 * x @ H[row] @ x


def test_a_limit_on_boxes_is_kept_where_many_are_bounded_together():
    X = np.random.default_rng(0).standard_normal((60, 6))
    fitted = gc.GPClassifier(kernel=gc.Matern52(1.0, 10.0), max_evals=0).fit(X, X[:, 0] > 0)
    for most in (1, 2, 7, 40):
        assert gc.probability_range(fitted, gc.Ball(X[0], 2.0), max_nodes=most).nodes == most
        assert gc.latent_range(fitted, gc.Ball(X[0], 2.0), tolerance=1e-6, max_nodes=most).nodes == most
