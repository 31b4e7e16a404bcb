"""Orders three and four of rows as forms (J27), in ball arithmetic at random rows."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from flint import arb

from gpcert.bounds.facts.model import model_of
from gpcert.engine import forms
from gpcert.engine.backend import Backend
from gpcert.engine.boxes import boxes
from gpcert.engine.facts import Facts
from gpcert.engine.forms import Forms
from gpcert.engine.planes import variance_plane
from gpcert.engine.rows import Rows
from gpcert.engine.squares import Squares
from gpcert.engine.sums import Sums, seen_by_few
from gpcert.engine.values import amplitudes, points
from gpcert.kernels import RBF
from helpers.batches import as_if_large
from helpers.exact import small_model
from helpers.functionals import form_value, functionals, steps
from helpers.oracle import BITS, bits, examples
from helpers.rows import random_batch

WAYS = {
    "one tensor": {"_TENSOR": 24, "_ALONE": 12},
    "a tensor and a form": {"_TENSOR": 24, "_ALONE": 0},
    "two forms": {"_TENSOR": 0},
}


def batches(seed, count, kinds=("laplace", "psd", "indefinite", "zero"), **options):
    rng = np.random.default_rng(seed)
    found = 0
    while found < count:
        offset = float(rng.choice([0.0, 1e3]))
        batch = random_batch(rng, kind=kinds[found % len(kinds)], offset=offset, make=RBF, **options)
        if batch is not None:
            found += 1
            yield rng, batch


def parts_of(batch, rng):
    """A part of each box, which need not hold the reference."""
    low, high = batch.boxes.low, batch.boxes.high
    ends = np.sort(rng.choice([0.0, 0.3, 0.7, 1.0], (2, *low.shape)), axis=0)
    return replace(batch.boxes, low=low + ends[0] * (high - low), high=low + ends[1] * (high - low))


def inside(batch, where, row, rng):
    """Points (D,) of the row's part: raw doubles that lie in it; of a ball, points of the whole row."""
    if batch.rows.axes is not None:
        yield from batch.inside(row, rng, 1)
        return
    scale, here = batch.facts.lengths, batch.references[row]
    for share in (*rng.choice([0.0, 1.0], (2, len(here))), rng.random(len(here))):
        d = where.low[row] + share * (where.high[row] - where.low[row])
        yield batch.point(row, here + (1.0 - 1e-9) * d * scale)


def check(batch, rng, sums, value, sharp, joined=None):
    """Bounds of the whole box and of a part of it, with squares if `joined` is given; how many are close."""
    said, squares = 0, None if joined is None else Squares(sums.at, sums.plane)
    with np.errstate(all="ignore"):
        whole = Forms(sums)
        whole.minorant(batch.boxes.high, sharp)
        for where in (batch.boxes, parts_of(batch, rng))[: 2 if batch.rows.axes is None else 1]:
            aim = np.where(rng.random(where.low.shape) < 0.5, where.low, where.high)
            base, g, H, excess = whole.on(where).minorant(aim, sharp, squares, bool(joined))
            assert np.array_equal(H, H.transpose(0, 2, 1), equal_nan=True)
            sure = np.isfinite(base - excess + np.abs(H).sum(axis=(1, 2)) + np.abs(g).sum(axis=1))
            with bits(BITS):
                for row in np.flatnonzero(sure):
                    for x in inside(batch, where, row, rng):
                        d = steps(batch, row, x)
                        below = form_value(H[row], d) / 2 + arb(float(base[row])) - arb(float(excess[row]))
                        below += sum((arb(float(a)) * e for a, e in zip(g[row], d, strict=True)), arb(0))
                        exact = batch.grown(row, x) * value(row, x)
                        assert exact >= below
                        said += bool(exact - below < arb("0.05"))
    return said


@pytest.mark.parametrize("way", WAYS)
def test_forms_lie_below_functionals_on_boxes_with_and_without_the_reference(way):
    said = [0, 0]
    with patch.multiple(forms, **WAYS[way]):
        for rng, batch in batches(1, examples(20)):
            if not batch.facts.has_planes:
                continue
            for plane, value in functionals(batch, rng)[::2]:
                for sharp in (True, False):
                    said[sharp] += check(batch, rng, Sums(batch.at, batch.boxes, plane), value, sharp)
    assert said[0] > 20 * examples(20)
    assert said[1] > said[0]


def test_forms_with_the_squares_that_planes_leave_out():
    """J25 beside them, and J28 in them: true, and larger where the minimum is expected."""
    rows, larger = 0, [0, 0]
    for rng, batch in batches(4, examples(20)):
        if not batch.facts.has_planes:
            continue
        for plane, value in functionals(batch, rng):
            sums, aim = Sums(batch.at, batch.boxes, plane), batch.boxes.high
            with np.errstate(all="ignore"):
                flat = at_aim(Forms(sums).minorant(aim), aim)
            rows += len(flat)
            for joined in (False, True):
                check(batch, rng, sums, value, True, joined)
                with np.errstate(all="ignore"):
                    found = Forms(sums).minorant(aim, True, Squares(batch.at, plane), joined)
                    larger[joined] += int((at_aim(found, aim) > flat).sum())
    assert min(larger) > 0.3 * rows


def at_aim(found, aim):
    """The values of quadratics at points (N, d)."""
    forms_ = np.einsum("ni,nij,nj->n", aim, found.H, aim)
    return found.base + np.sum(found.g * aim, axis=1) + 0.5 * forms_ - found.excess


def test_forms_of_balls_and_of_fewer_centres():
    with as_if_large():
        for rng, batch in batches(2, examples(4), ("sites",), balls=True, n=20):
            (plane, value), *_ = functionals(batch, rng)
            sums = seen_by_few(Sums(batch.at, batch.boxes, plane))
            check(batch, rng, sums, value, True)


@pytest.mark.parametrize("way", WAYS)
def test_rows_of_a_batch_have_the_forms_they_have_alone(way):
    """Of a model whose norms do not cancel to rounding: what is left there depends on the order of a sum."""
    post, x = small_model(n=30, d=4, kernel=RBF(1.5, 4.0)), np.random.default_rng(3).standard_normal((12, 4))
    facts = Facts(Backend(), model_of(post), np.arange(4), post.centres.mean(axis=0))
    rows = Rows(x - 0.2, x + 0.2, x - 0.2, x + 0.2, x[:, :0], np.ones(12))
    at, where, ones = points(facts, x, amplitudes(facts, rows.standing)), boxes(facts, rows, x), np.ones(12)
    with patch.multiple(forms, **WAYS[way]):
        for each in (variance_plane(at, ones, 0.0 * ones), variance_plane(at, -ones, 0.0 * ones)):
            every, squares = Forms(Sums(at, where, each)), Squares(at, each)
            found = every.minorant(where.high, True, squares, True)
            for row in range(12):
                one = np.array([row])
                fresh = Forms(Sums(at.take(one), where.take(one), each.take(one)))
                pairs = (
                    (every.take(one), squares.take(one)),
                    (fresh, Squares(fresh.sums.at, fresh.sums.plane)),
                )
                for few, beside in pairs:
                    for a, b in zip(found, few.minorant(where.high[one], True, beside, True), strict=True):
                        np.testing.assert_allclose(b[0], a[row], rtol=1e-6, atol=1e-7 * np.abs(a[row]).max())
