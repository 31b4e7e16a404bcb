"""Traps that referees have set for radii, influences, evaluations and their arguments; the judge decides."""

import os
import signal

import numpy as np
import pytest

import gpcert as gc
from gpcert.search import Minimiser
from judge.refute import complaints

TWO = gc.Posterior([[0.0, 0.0], [1.0, 1.0]], [3.0, -4.0], np.zeros((2, 2)), kernel=gc.RBF())


def false(post, *answers):
    return complaints(post, answers, np.random.default_rng(0))


@pytest.mark.parametrize("norm", [1.0, 2.0, 7.0, 2000.0, np.inf])
@pytest.mark.parametrize("most", [1.0, np.inf])
def test_units_in_which_the_domain_has_no_size(norm, most):
    """Lengths that underflow are not 0: the far end of the domain is in every ball of this radius."""
    kernel = gc.RBF(lengthscale=2e-18)
    post = gc.Posterior([[0.0], [1e-17]], [3.0, -4.0], np.zeros((2, 2)), kernel=kernel)
    r = gc.certified_radius(post, [0.0], norm, most, domain=(0.0, 1e-17), scale=1e308)
    assert false(post, r) == []
    assert r.safe < 1e-300


@pytest.mark.parametrize("rtol", [1e-9, 1e-12, 1e-15, 1e-20])
def test_radii_asked_for_more_finely_than_doubles_go(rtol):
    coarse = gc.certified_radius(TWO, [0.0, 0.0], max_radius=3.0)
    fine = gc.certified_radius(TWO, [0.0, 0.0], max_radius=3.0, rtol=rtol)
    assert false(TWO, fine) == []
    assert fine.safe > (1.0 - 1e-3) * coarse.safe


def test_whole_numbers_in_norm_0():
    r = gc.certified_radius(TWO, [0.0, 0.0], 0, max_radius=1.5, domain=(-0.01, 0.01))
    assert r.safe == 1.0


def test_features_given_by_an_iterator_are_those_of_every_point():
    X = np.array([[0.0, 0.0], [0.5, 0.2]])
    e = gc.explain(TWO, X, 0.3, features=iter([0, 1]))
    assert false(TWO, e, e.mean()) == []
    assert (e.lower == gc.explain(TWO, X, 0.3).lower).all()
    t = gc.evaluate(TWO, X, TWO.predict(X), [0.1, 0.5], features=iter([1]))
    assert false(TWO, t) == []
    assert t.balls[1].features == (1,)


def test_ctrl_c_ends_an_evaluation_in_the_middle_of_a_proof(monkeypatch):
    """What was asked before it stands, the rest is unknown."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    kernel = gc.RBF(1.0, 9.0)
    R = np.linalg.inv(kernel(X) + np.eye(40))
    post = gc.Posterior(X, rng.standard_normal(40), 0.5 * (R + R.T), kernel=kernel)
    tell, boxes = Minimiser.tell, []

    def interrupted(side, *box):
        boxes.append(box)
        if len(boxes) == 100:  # by then some points are proved, and many are not
            os.kill(os.getpid(), signal.SIGINT)
        return tell(side, *box)

    monkeypatch.setattr(Minimiser, "tell", interrupted)
    t = gc.evaluate(post, X, post.predict(X), [0.2, 0.5])
    assert len(boxes) == 100
    left = np.array([label is None for label in t.labels])
    assert 0 < left.sum() < len(left)
    assert (t.verdicts[left] == "unknown").all()
    assert (t.attacked >= left.mean()).all()  # what was not asked may be right


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda: gc.Ball([0.0], 10**400), "radius must be numbers"),
        (lambda: gc.Ball([10**400], 1.0), "x must be numbers"),
        (lambda: gc.Ball([0.0], 1.0, norm=10**400), "norm must be numbers"),
        (lambda: gc.Ball([0.0], 1.0, domain=(0, 10**400)), "domain must be numbers"),
        (lambda: gc.certified_radius(TWO, [0.0, 0.0], max_radius=10**400), "max_radius must be a double"),
        (lambda: gc.certified_radius(TWO, [0.0, 0.0], rtol=10**400), "rtol must be a double"),
        (
            lambda: gc.certify(TWO, [0.0, 0.0], gc.Ball([0.0, 0.0], 0.1), max_seconds=10**400),
            "max_seconds must",
        ),
        (lambda: gc.attack(TWO, gc.Ball([0.0, 0.0], 0.1), starts=1.5), "starts must be a whole number >= 1"),
        (lambda: gc.attack(TWO, gc.Ball([0.0, 0.0], 0.1), starts=np.inf), "starts must be a whole number"),
        (lambda: gc.evaluate(TWO, [[0.0, 0.0]], [[1], [1, 2]], [0.1]), "y must hold one label per point"),
        (lambda: gc.explain(TWO, np.empty((0, 2)), 0.1).mean(), "the mean must be over at least one point"),
        (
            lambda: gc.certify(TWO, [0.0, 0.0], gc.Ball([0.0, 0.0], 0.1), np.longdouble("1e-400")),
            "threshold must be > 0",
        ),
    ],
)
def test_arguments_beyond_the_doubles_get_one_sentence(ask, sentence):
    with pytest.raises(gc.InvalidInputError, match=sentence) as raised:
        ask()
    assert "\n" not in str(raised.value)


def test_thresholds_of_another_precision():
    t = gc.evaluate(TWO, [[0.0, 0.0]], [1], [0.1], threshold=np.longdouble("0.6"))
    assert false(TWO, t) == []
