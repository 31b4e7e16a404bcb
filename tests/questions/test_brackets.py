"""Radii of many points at once: bisection finds what the roots can tell, and what it tells is true."""

import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.attacks.objectives import LatentMargin
from gpcert.questions.balls import checked_balls
from gpcert.questions.brackets import Asked, Brackets
from gpcert.running import Stopped
from gpcert.settings import Settings
from helpers.oracle import examples
from judge.refute import complaints

ROOTED, BRACKETS = sys.modules["gpcert.questions.rooted"], sys.modules["gpcert.questions.brackets"]
DATA = gc.datasets.load("synthetic2d")
POST = gc.GPClassifier(gc.RBF(1.0, 4.0), max_evals=0).fit(DATA.X_train[:30], DATA.y_train[:30]).posterior_


class Told:
    """Roots that know: safe up to `safe`, unsafe from `unsafe` on, neither in between."""

    def __init__(self, regions, safe, unsafe, prove):
        self.numbers = np.flatnonzero(regions.batch.radius > 0)
        radius, which = regions.batch.radius[self.numbers], regions.batch.x[self.numbers, 0].astype(int)
        self.safe, self.unsafe = (radius <= safe[which]) & prove, radius >= unsafe[which]

    def points(self, _side, place):
        return np.full(1, float(place))


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32 - 1), st.integers(1, 41), st.sampled_from([1, 1, 2, 5]))
def test_bisection_finds_the_last_safe_and_the_first_unsafe_radius(seed, k, at_once):
    """Whatever lies in between; in about log2 k rounds of counterexamples, and few of proofs; fewer where
    several radii of a point are asked in one round, as on a GPU.
    """
    rng = np.random.default_rng(seed)
    m, radii = 20, np.concatenate([[0.0], np.cumsum(rng.random(k - 1) + 0.1)])
    safe = rng.uniform(0.0, 1.2 * radii[-1] + 0.1, m)
    unsafe = safe + np.where(rng.random(m) < 0.8, 1e-9, rng.random(m) * radii[-1])
    asked, counts = rng.random(m) < 0.9, {True: np.zeros(m, int), False: np.zeros(m, int)}

    def decisions(_post, regions, *_rest, fewest, prove):
        if len(regions) >= fewest:
            counts[prove][np.unique(regions.batch.x[:, 0].astype(int))] += 1
            assert len(regions) <= at_once * m
            yield Told(regions, safe, unsafe, prove)

    balls = checked_balls(POST, np.stack([np.arange(m), np.zeros(m)], axis=1), np.inf, 1.0, None, None, 1.0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ROOTED, "decisions", decisions)
        patched.setattr(BRACKETS, "_FEWEST", 1)
        patched.setattr(Asked, "radii_at_once", lambda *_: at_once)
        patched.setattr(BRACKETS, "settled", lambda _post, told, *_: (told.safe, told.unsafe))
        known = Brackets.of(asked, k)
        question = Asked(POST, balls, np.zeros(m, int), 0.5, Settings(), "cpu")
        known.refute(question, radii)
        known.prove(question, radii)
    if np.count_nonzero(asked) < ROOTED.FEWEST:
        assert not counts[False].any()
        return
    positive = np.arange(k) > 0  # the point itself is no ball that the roots know
    last = np.array([np.flatnonzero((radii <= each) & positive).max(initial=-1) for each in safe])
    first = np.array([np.flatnonzero((radii >= each) & positive).min(initial=k) for each in unsafe])
    assert (known.safe == np.where(asked, last + 1, 0)).all()
    assert (known.unsafe == np.where(asked, first, k)).all()
    assert all((known.point(i) is not None) == (asked[i] and first[i] < k) for i in range(m))
    assert counts[False].max() <= np.ceil(np.log(k) / np.log(at_once + 1))
    narrow = np.searchsorted(radii, unsafe) - np.searchsorted(radii, safe, side="right") <= 0
    assert counts[True][narrow].max(initial=0) <= 2


def test_what_the_roots_tell_of_many_radii_is_true_and_what_they_leave_is_asked(monkeypatch):
    """In ball arithmetic; and what is known when every point is asked by itself is known together, too."""
    X, y, radii = DATA.X_test[:16], DATA.y_test[:16], [0.0, 0.1, 0.2, 0.4, 0.8]
    for threshold in (0.5, 0.7):
        with monkeypatch.context() as patched:
            together = gc.evaluate(POST, X, y, radii, threshold=threshold)
            patched.setattr(ROOTED, "FEWEST", 10**9)
            apart = gc.evaluate(POST, X, y, radii, threshold=threshold)
        assert complaints(POST, [together], np.random.default_rng(0)) == []
        assert ((together.verdicts == apart.verdicts) | (apart.verdicts == "unknown")).all()
        assert {"safe", "unsafe"} <= set(together.verdicts.ravel())


@pytest.mark.parametrize("where", ["roots", "search"])
def test_what_is_settled_when_ctrl_c_comes_is_told(monkeypatch, tmp_path, where):
    """A block of points is bisected together, or searched one by one: those without an open radius are kept,
    and a store goes on with the others.
    """
    X, y, radii = DATA.X_test[:16], DATA.y_test[:16], [0.0, 0.1, 0.2, 0.4, 0.8]
    ask = partial(gc.evaluate, POST, X, y, radii, n_jobs=1, store=tmp_path / "runs.db")
    whole, calls = gc.evaluate(POST, X, y, radii, n_jobs=1), []
    module, name, last = {
        "roots": (ROOTED, "decisions", 6),
        "search": (sys.modules["gpcert.questions.evaluate"], "decide", 2),
    }[where]
    call = getattr(module, name)

    def interrupted(*args, **options):
        calls.append(name)
        if len(calls) == last:
            raise KeyboardInterrupt if where == "roots" else Stopped
        return call(*args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(module, name, interrupted)
        part = ask()
    known = part.labels != None  # noqa: E711
    assert 0 < np.count_nonzero(known) < len(X)
    assert (part.verdicts[known] == whole.verdicts[known]).all()
    assert (part.verdicts[~known] == "unknown").all()
    assert complaints(POST, [part], np.random.default_rng(0)) == []
    with monkeypatch.context() as patched:
        patched.setattr(ROOTED, "FEWEST", 10**9)  # what is left must not be all of them
        again = ask()
    assert None not in again.labels.tolist()
    assert (again.verdicts[known] == part.verdicts[known]).all()
    assert complaints(POST, [again], np.random.default_rng(0)) == []


def test_ties_among_many_are_unknown():
    post = gc.Posterior([[-1.0], [1.0]], [-1.0, 1.0], np.zeros((2, 2)), kernel=gc.RBF())
    X = np.concatenate([np.zeros((4, 1)), np.linspace(0.3, 1.0, 20)[:, None]])
    e = gc.evaluate(post, X, np.ones(24, int), [0.1, 0.2, 2.0])
    assert (e.verdicts[:4] == "unknown").all()
    assert (e.verdicts[4:] == ["safe", "safe", "unsafe"]).all()
    assert complaints(post, [e], np.random.default_rng(0)) == []


def test_first_radii_of_many_points_are_tried_together(monkeypatch):
    """Where the tolerance leaves room for it; what they decide is true, and leaves as little open."""
    X, asked = DATA.X_test[:16], []
    decisions = ROOTED.decisions

    def counted(post, regions, *rest, **options):
        asked.append(len(regions))
        return decisions(post, regions, *rest, **options)

    monkeypatch.setattr(ROOTED, "decisions", counted)
    found = {rtol: gc.certified_radius(POST, X, max_radius=1.0, rtol=rtol) for rtol in (1e-3, 0.1)}
    assert asked[-1] == 16
    assert complaints(POST, list(found[0.1]), np.random.default_rng(0)) == []
    for fine, coarse in zip(found[1e-3], found[0.1], strict=True):
        assert coarse.status in ("converged", "radius limit")
        assert max(coarse.safe, fine.safe) <= min(coarse.unsafe, fine.unsafe)


def test_seconds_limit_attacks_too(monkeypatch):
    """Several radii of a model that no batch knows are attacked first, as long as a proof may take."""
    post = gc.Posterior([[-1.0], [1.0]], [-1.0, 1.0], np.zeros((2, 2)), kernel=gc.Matern32())
    asked, call = [], LatentMargin.__call__

    def counted(self, X, y, slopes=True):
        if slopes:  # an attack goes down them
            asked.append(len(X))
        return call(self, X, y, slopes)

    monkeypatch.setattr(LatentMargin, "__call__", counted)
    for seconds in (None, 1e-9):
        asked.clear()
        e = gc.evaluate(post, [[0.5], [-0.5]], [1, 0], [0.1, 0.2, 2.0], max_seconds=seconds, n_jobs=1)
        assert bool(asked) == (seconds is None)
        assert complaints(post, [e], np.random.default_rng(0)) == []
