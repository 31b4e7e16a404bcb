"""Squares that planes leave out (J25), and the planes of latents (J26), in ball arithmetic at random rows."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb

import gpcert as gc
from gpcert.engine.squares import Squares
from helpers.batches import as_if_large
from helpers.functionals import form_value, functionals, grown, packed_value, plane_value, steps, third_order
from helpers.oracle import BITS, bits, examples
from helpers.rows import random_batch

KERNELS = {
    "gaussian": gc.RBF,
    "matern52": gc.Matern52,
    "rational quadratic": gc.RationalQuadratic,
    "little alpha": lambda scale, variance: gc.RationalQuadratic(scale, variance, 0.05),
}
KINDS = ("laplace", "psd", "indefinite", "laplace")


def batches(seed, count, make, kinds=KINDS, **options):
    rng = np.random.default_rng(seed)
    found = 0
    while found < count:
        offset = float(rng.choice([0.0, 1e3]))
        batch = random_batch(rng, kind=kinds[found % len(kinds)], offset=offset, make=make, **options)
        if batch is not None:
            found += 1
            yield rng, batch


def corners(batch, rng):
    """A corner of each box: any aim is sound."""
    return np.where(rng.random(batch.boxes.low.shape) < 0.5, batch.boxes.low, batch.boxes.high)


@pytest.mark.parametrize("name", KERNELS)
def test_functionals_lie_above_their_planes_and_what_these_leave_out(name):
    raised, nearly = 0, 0
    for rng, batch in batches(1, examples(12), KERNELS[name]):
        with np.errstate(all="ignore"):
            cases = [
                (plane, value, *Squares(batch.at, plane).within(batch.boxes.squares, corners(batch, rng))[1:])
                for plane, value in functionals(batch, rng)
            ]
        for plane, value, matrix, loss in cases:
            assert np.array_equal(matrix, matrix.transpose(0, 2, 1))
            assert np.isfinite(matrix).all()
            with bits(BITS):
                for row in np.flatnonzero(np.isfinite(plane.constant + plane.lost + plane.blur)):
                    for x in batch.inside(row, rng, 1):
                        exact, flat = value(row, x), plane_value(batch, plane, row, x)
                        assert exact >= flat
                        form = form_value(matrix[row], steps(batch, row, x)) / 2
                        space = (exact - flat) * grown(batch, row, x)
                        assert space >= form - arb(float(loss[row]))
                        raised += bool(form > arb(float(loss[row])))
                        nearly += bool(form > arb("0.3") * space)
    assert raised > 20 * examples(12)
    assert nearly > 5 * examples(12)


def test_the_third_order_of_a_square_is_its_cubic():
    """J28: X, from what the square is a little before and a little behind the reference."""
    seen = 0
    for rng, batch in batches(4, examples(8), gc.RBF):
        if not batch.facts.model.definite:
            continue
        with np.errstate(all="ignore"):
            cubics = [(plane, *Squares(batch.at, plane).cubic) for plane, _ in functionals(batch, rng)]
        for plane, T, wrong in cubics:
            for row in np.flatnonzero(np.isfinite(wrong) & (plane.square.steep > 0)):
                e = rng.standard_normal(batch.at.y.shape[1])
                with bits(3 * BITS):
                    root = [arb(float(m)).sqrt() for m in batch.facts.metric]
                    exact = third_order(batch, plane, row, e)
                    D = [arb(float(a)) * b for a, b in zip(e, root, strict=True)]
                    error = arb(float(wrong[row])) * sum((v * v for v in D), arb(0)).sqrt() ** 3
                    found = packed_value(T[row], D)
                    assert abs(found - exact) <= error + abs(exact) * arb("1e-12")
                    seen += bool(error < abs(exact) * arb("1e-3"))
    assert seen > 10 * examples(8)


def test_functionals_lie_above_planes_that_are_raised_to_third_order():
    raised = 0
    for rng, batch in batches(5, examples(16), gc.RBF):
        for plane, value in functionals(batch, rng):
            squares = Squares(batch.at, plane)
            if not squares.has_cubic:
                continue
            with np.errstate(all="ignore"):
                scale, matrix, loss = squares.joined(batch.boxes.squares, corners(batch, rng))
                T, wrong = squares.cubic
            with bits(BITS):
                root = [arb(float(m)).sqrt() for m in batch.facts.metric]
                for row in np.flatnonzero((scale > 0) & np.isfinite(wrong)):
                    for x in batch.inside(row, rng, 1):
                        d = steps(batch, row, x)
                        D = [a * b for a, b in zip(d, root, strict=True)]
                        error = arb(float(wrong[row])) * sum((e * e for e in D), arb(0)).sqrt() ** 3
                        cubic = arb(float(scale[row])) / 2 * (packed_value(T[row], D) - error)
                        below = form_value(matrix[row], d) / 2 + cubic - arb(float(loss[row]))
                        space = (value(row, x) - plane_value(batch, plane, row, x)) * grown(batch, row, x)
                        assert space >= below
                        raised += bool(below > arb("0.5") * space)
    assert raised > 10 * examples(16)


def test_planes_of_predictors_lie_below_and_leave_out_nothing_that_is_known():
    with as_if_large():
        for rng, batch in batches(6, examples(8), gc.RBF, ("sites",), n=20):
            for plane, value in functionals(batch, rng):
                assert batch.at.thin is not None
                assert not Squares(batch.at, plane).known
                with bits(BITS):
                    for row in np.flatnonzero(np.isfinite(plane.constant + plane.lost + plane.blur)):
                        for x in batch.inside(row, rng, 1):
                            assert value(row, x) >= plane_value(batch, plane, row, x)


def test_rows_of_a_batch_have_the_squares_they_have_alone():
    for name in ("gaussian", "matern52"):
        for rng, batch in batches(2, examples(4), KERNELS[name]):
            aim = corners(batch, rng)
            with np.errstate(all="ignore"):
                for plane, _ in functionals(batch, rng):
                    squares = Squares(batch.at, plane)
                    _, matrix, loss = squares.within(batch.boxes.squares, aim)
                    for row in range(len(aim)):
                        one = np.array([row])
                        fresh = Squares(batch.at.take(one), plane.take(one))
                        for few in (fresh, squares.take(one)):
                            found = few.within(batch.boxes.squares[one], aim[one])[1:]
                            scale = np.abs(matrix[row]).max()
                            np.testing.assert_allclose(found[0][0], matrix[row], rtol=1e-9, atol=1e-9 * scale)
                            np.testing.assert_allclose(found[1][0], loss[row], rtol=1e-6)


def test_sets_that_are_too_large_have_no_squares():
    for rng, batch in batches(7, 3, gc.RBF):
        for plane, _ in functionals(batch, rng):
            squares, aim = Squares(batch.at, plane), corners(batch, rng)
            for far in (1e2, 1e200, np.inf, np.nan):
                size = np.where(np.arange(len(aim)) % 2, batch.boxes.squares, far)
                with np.errstate(all="ignore"):
                    found = squares.within(size, aim), squares.joined(size, aim)
                for raised in found:
                    assert all(np.isfinite(each).all() for each in raised)
                    assert not raised.matrix[::2].any()
                    assert not raised.loss[::2].any()


def test_kernels_without_a_second_derivative_leave_out_nothing_that_is_known():
    for rng, batch in batches(3, 2, gc.Matern32):
        (plane, _), *_ = functionals(batch, rng)
        squares = Squares(batch.at, plane)
        assert not squares.known
        _, matrix, loss = squares.within(batch.boxes.squares, corners(batch, rng))
        assert not matrix.any()
        assert not loss.any()
