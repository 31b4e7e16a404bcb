"""The engine on torch's CPU: definiteness, answers, and the tests of a device: `make test-full`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import gpcert as gc
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.levels.registry import curves_of
from gpcert.engine.backend import Backend, Torch
from gpcert.engine.boxes import boxes
from gpcert.engine.facts import Facts
from gpcert.engine.forms import Forms
from gpcert.engine.lines import latent_lines
from gpcert.engine.planes import plane, variance_plane
from gpcert.engine.profiles import profile_of
from gpcert.engine.quadratic import minima
from gpcert.engine.root import smallest, verdicts
from gpcert.engine.rows import Around, Rows
from gpcert.engine.squares import Squares
from gpcert.engine.sums import Sums
from gpcert.engine.trust import flaw
from gpcert.engine.values import amplitudes, points
from gpcert.kernels import RBF, Matern32, Matern52, RationalQuadratic
from gpcert.regions import hulls
from gpcert.validation import freeze
from helpers.exact import small_model
from helpers.oracle import is_psd

CPU = Torch("cpu")


def test_this_cpu_is_trusted():
    assert flaw(CPU) is None


class Fewer(Torch):
    """Numbers of 24 bits."""

    def array(self, values):
        return super().array(np.asarray(values, dtype=np.float32).astype(np.float64))


class Fixed(Torch):
    """Numbers of 60 bits after the point, relative to the largest one of their row: emulated products."""

    def array(self, values):
        unit = 2.0**-60 * np.abs(values).max(axis=-1, keepdims=True, initial=2.0**-1000)
        return super().array(np.round(values / unit) * unit)


class Rough(Torch):
    """A special function of 24 bits."""

    def erfc(self, values):
        return super().erfc(values.float()).double()


@pytest.mark.parametrize("device", [Fewer, Fixed, Rough])
def test_a_device_with_fewer_digits_is_refused(device):
    assert flaw(device("cpu")) is not None


def test_matrices_are_definite_on_torch_as_well():
    rng = np.random.default_rng(3)
    for _ in range(20):
        A = rng.standard_normal((8, 4, 4))
        H, D = A + A.transpose(0, 2, 1), 10.0 ** rng.uniform(-1, 2, (8, 4))
        ok, more = CPU.definite(CPU.array(H), CPU.array(D))
        for i in np.flatnonzero(CPU.numpy(ok)):
            assert is_psd(H[i], CPU.numpy(more)[i])


def test_the_best_diagonals_on_torch_prove_what_those_on_numpy_do():
    rng = np.random.default_rng(6)
    A = rng.standard_normal((40, 6, 6)) * 0.3
    H, g = A + A.transpose(0, 2, 1), rng.standard_normal((40, 6)) * rng.choice([0.1, 3.0], (40, 6))
    low, high = -rng.random((40, 6)), rng.random((40, 6))
    ends = [np.where([b >> j & 1 for j in range(6)], low, high) for b in range(64)]
    at = [np.sum((g + 0.5 * np.einsum("ijk,ik->ij", H, end)) * end, axis=1) for end in ends]
    least = np.min(at, axis=0)
    found = [
        backend.numpy(
            minima(backend, *(backend.array(each) for each in (g, H, low, high, least - 0.01)), 2, True).value
        )
        for backend in (Backend(), CPU)
    ]
    assert (found[1] <= least).all()
    assert ((found[0] >= least - 0.01) == (found[1] >= least - 0.01)).mean() > 0.9


@pytest.mark.parametrize("balls", [False, True])
@pytest.mark.parametrize(
    "kernel", [RBF(0.8, 4.0), Matern32(1.2, 4.0), Matern52(1.0, 4.0), RationalQuadratic(0.8, 4.0)], ids=repr
)
@pytest.mark.parametrize("likelihood", ["probit", "logit"])
def test_torch_and_numpy_do_not_contradict_each_other(likelihood, kernel, balls):
    torch.set_num_threads(1)
    post = small_model(n=30, d=4, likelihood=likelihood, kernel=kernel)
    x = np.random.default_rng(4).standard_normal((50, 4))
    for features in (np.arange(4), np.array([1, 3])):
        few = x[:, features]
        rest = np.delete(x, features, axis=1)
        rows = Rows(few - 0.2, few + 0.2, few - 0.2, few + 0.2, rest, np.where(x[:, 0] > 0, 1.0, -1.0))
        rows = replace(rows, centre=few, axes=0.0 * few + 0.2) if balls else rows
        found = []
        for backend in (Backend(), CPU):
            facts = Facts(
                backend, model_of(post), features, post.centres.mean(axis=0), balls, profile_of(kernel)
            )
            found.append(
                (
                    smallest(facts, curves_of(post.likelihood), rows, 0.02),
                    verdicts(facts, curves_of(post.likelihood), rows),
                )
            )
        for one, two in zip(*found, strict=True):
            assert (one.lower <= two.upper).all()
            assert (two.lower <= one.upper).all()
            settled = (one.upper - one.lower <= 0.02) == (two.upper - two.lower <= 0.02)
            assert settled.mean() > 0.9


def test_ends_of_balls_are_the_same_doubles_on_torch():
    """Bit for bit: an end that is rounded the other way is another region."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((4000, 3)) * 10.0 ** rng.uniform(-300, 300, (4000, 3))
    x[:3] = [0.0, -0.0, 5e-324], [2.0**-1022, -(2.0**-1022), 1.0], [1.0, -1.0, 1.0 + 2.0**-52]
    radius = 10.0 ** rng.uniform(-320, 300, (4000, 1))
    radius[:3, 0] = 5e-324, 2.0**-53, 2.0**-54
    for domain in (None, (np.full(3, -1.0), np.array([0.5, np.inf, 1e200]))):
        ends = None if domain is None else tuple(map(CPU.array, domain))
        ours = hulls(x, radius, domain)
        theirs = hulls(CPU.array(x), CPU.array(radius), ends, CPU.xp)
        for one, two in zip(ours, theirs, strict=True):
            assert np.isfinite(one).any()
            assert CPU.numpy(two).tobytes() == one.tobytes()


def test_rows_of_balls_are_parted_into_features_on_torch_as_on_numpy():
    x, radius = np.random.default_rng(6).random((20, 5)), np.linspace(0.01, 0.3, 20)
    moving, rest = np.array([1, 4]), np.array([0, 2, 3])
    around = Around(freeze(x), radius, (np.zeros(2), np.ones(2)), np.ones(20), moving, rest)
    ours, theirs = (around.on(backend, slice(3, 11)) for backend in (Backend(), CPU))
    assert ours.standing.tolist() == x[3:11][:, rest].tolist()
    assert around.still(4).tolist() == x[4, rest].tolist()
    for name in ("lower", "upper", "inner_lower", "inner_upper", "standing", "sign"):
        assert CPU.numpy(getattr(theirs, name)).tobytes() == getattr(ours, name).tobytes()


def test_later_passes_on_torch_and_numpy_do_not_contradict_each_other():
    rng = np.random.default_rng(7)
    for d, radius, length in ((3, 0.4, 2.0), (34, 0.4, 6.0)):  # halves; order three as a form
        X = rng.standard_normal((40, d))
        y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
        post = gc.GPClassifier(gc.RBF(length, 20.0), max_evals=0).fit(X, y).posterior_
        rows = Rows(X - radius, X + radius, X - radius, X + radius, X[:, :0], np.where(y > 0, 1.0, -1.0))
        curves, found = curves_of(post.likelihood), []
        for backend in (Backend(), CPU):
            facts = Facts(backend, model_of(post), np.arange(d), post.centres.mean(axis=0))
            found.append((smallest(facts, curves, rows, 0.02, splits=3), verdicts(facts, curves, rows, 3)))
        for one, two in zip(*found, strict=True):
            assert (one.lower <= two.upper).all()
            assert (two.lower <= one.upper).all()
            assert np.abs(one.nodes - two.nodes).mean() < 0.5
        narrow = [(each.upper - each.lower <= 0.02).mean() for each, _ in found]
        assert min(narrow) > 0.5
        assert abs(narrow[0] - narrow[1]) < 0.1


def test_shells_on_torch_and_numpy_do_not_contradict_each_other():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((40, 34))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    post = gc.GPClassifier(gc.RBF(6.0, 20.0), max_evals=0).fit(X, y).posterior_
    x, reach = np.repeat(X[:20], 120, axis=0), np.tile(np.linspace(0.1, 0.5, 120), 20)[:, None]
    sign = np.where(post.probability(x).argmax(axis=1) > 0, 1.0, -1.0)
    rows = Rows(x - reach, x + reach, x - reach, x + reach, x[:, :0], sign)
    found = []
    for backend in (Backend(), CPU):
        facts = Facts(backend, model_of(post), np.arange(34), post.centres.mean(axis=0))
        found.append(verdicts(facts, curves_of(post.likelihood), rows))
    one, two = found
    assert (one.lower <= two.upper).all()
    assert (two.lower <= one.upper).all()
    assert np.count_nonzero((one.lower > 0.5) != (two.lower > 0.5)) < 5


@pytest.mark.parametrize("kernel", [RBF(1.5, 4.0), Matern52(1.5, 4.0), RationalQuadratic(1.5, 4.0)], ids=repr)
def test_forms_and_squares_on_torch_are_those_on_numpy(kernel):
    post, x = small_model(n=40, d=4, kernel=kernel), np.random.default_rng(8).standard_normal((20, 4))
    box = Rows(x - 0.2, x + 0.2, x - 0.2, x + 0.2, x[:, :0], np.ones(20))
    found = []
    for backend in (Backend(), CPU):
        facts = Facts(
            backend, model_of(post), np.arange(4), post.centres.mean(axis=0), False, profile_of(kernel)
        )
        rows, here = box.on(backend, slice(0, 20)), backend.array(x + 0.05)
        at, where = points(facts, here, amplitudes(facts, rows.standing)), boxes(facts, rows, here)
        S, target = 0.5 * (at.variance[0] + at.variance[1]), backend.array(np.linspace(-1.0, 1.0, 20))
        line = latent_lines(backend, target, target * target, target, S)
        side = backend.array(np.where(np.arange(20) % 2, 1.0, -1.0))
        for each in (plane(at, rows.sign, line), variance_plane(at, side, target)):
            squares = Squares(at, each)
            numbers = [*squares.within(where.squares, where.high)]
            if isinstance(kernel, RBF):
                forms = Forms(Sums(at, where, each))
                for joined in (False, True):
                    numbers += [*forms.minorant(where.high, True, squares, joined)]
            found.append([backend.numpy(number) for number in numbers])
    for one, two in zip(found[:2], found[2:], strict=True):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-7 * (1e-9 + np.abs(a).max()))
