"""Verdicts about models of scikit-learn hold for its `predict`, whose formula is not symmetric (D3)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

import gpcert as gc
from gpcert.likelihoods.prediction import TIE, TOTAL
from gpcert.questions.decision import settled

#: Two points 2 apart, so many lengthscales that P is 1/2 - 5e-9 almost everywhere; the mean has both signs.
SHORT = GaussianProcessClassifier(1.0 * RBF(0.05), optimizer=None).fit([[-1.0], [1.0]], [0, 1])
GRID = np.linspace(-1.0, 1.0, 401)[:, None]


def test_the_room_is_larger_than_the_gap_of_the_formula() -> None:
    assert abs(TOTAL - 1.0) / 2 < TIE < 1e-8


def test_predict_contradicts_the_probabilities_there() -> None:
    """The fact this is about: the class of the larger probability is 0 where `predict` says 1."""
    x = [[0.3]]
    assert SHORT.predict(x)[0] == 1
    assert SHORT.predict_proba(x)[0, 0] > 0.5


@pytest.mark.parametrize("centre", [-1.0, -0.9, -0.5, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("radius", [0.05, 0.4, 1.5])
@pytest.mark.parametrize("many", [False, True])
def test_verdicts_agree_with_predict(centre: float, radius: float, many: bool) -> None:
    ball = gc.Ball([centre], radius)
    v = gc.certify(SHORT, [ball] * 20)[0] if many else gc.certify(SHORT, ball)
    said = set(SHORT.predict(GRID[np.abs(GRID[:, 0] - centre) <= radius]).tolist())
    if v.status == "safe":
        assert said == {v.label}
    if v.status == "unsafe":
        assert v.counterexample is not None
        assert SHORT.predict([v.counterexample])[0] != v.label


def test_roots_next_to_one_half_settle_nothing() -> None:
    """Of a batch, too, a label is proved only beyond TIE."""
    post, steps = gc.from_sklearn(SHORT), np.array([-2.0, -0.5, 0.5, 2.0]) * TIE

    def points(side: int, at: np.ndarray) -> np.ndarray:
        return np.ones((len(at), 1))

    roots = SimpleNamespace(lower=0.5 + steps[None], upper=0.5 + steps[None] + 1e-12, points=points)
    safe, unsafe = settled(post, roots, np.zeros(4, dtype=np.intp), 0.5, "cpu")  # type: ignore[arg-type]
    assert safe.tolist() == [False, False, False, True]
    assert unsafe.tolist() == [True, False, False, False]


def test_clear_labels_are_still_decided() -> None:
    assert gc.certify(SHORT, gc.Ball([-1.0], 0.1)).status == "safe"
    assert gc.certify(SHORT, gc.Ball([1.0], 0.1)).status == "safe"
    assert gc.certify(SHORT, gc.Ball([0.3], 0.01)).status == "unknown"
    assert gc.certify(SHORT, gc.Ball([-1.0], 2.0)).status == "unsafe"


def test_a_label_that_is_more_probable_but_not_by_enough_can_be_kept(tmp_path: Path) -> None:
    """P(0) > 1/2 everywhere, by less than TIE: unknown, with a margin above 0 that a file gives back."""
    v = gc.certify(SHORT, gc.Ball([-1.0], 0.9))
    assert v.status == "unknown"
    assert 0.0 < v.margin.lower <= TIE
    gc.save_answers(tmp_path / "kept.json", v)
    assert gc.load_answers(tmp_path / "kept.json")[0].margin == v.margin
    assert gc.certify(SHORT, gc.Ball([-1.0], 0.9), store=tmp_path / "kept.db").margin == v.margin
    assert gc.certify(SHORT, gc.Ball([-1.0], 0.9), store=tmp_path / "kept.db").margin == v.margin


@pytest.mark.parametrize(("centre", "radius"), [(1.0, 0.5), (1.0, 0.6), (-1.0, 0.8), (-1.0, 2.0), (1.0, 2.0)])
def test_attacks_succeed_only_where_predict_changes(centre: float, radius: float) -> None:
    a = gc.attack(SHORT, gc.Ball([centre], radius), [centre])
    assert not a.success or SHORT.predict([a.x])[0] != a.label


def test_radii_and_accuracies_agree_with_predict() -> None:
    r = gc.certified_radius(SHORT, [-1.0], max_radius=3.0)
    assert set(SHORT.predict(GRID[GRID[:, 0] + 1.0 <= r.safe])) == {0}
    assert r.counterexample is not None
    assert SHORT.predict([r.counterexample])[0] == 1
    e = gc.evaluate(SHORT, [[-1.0], [-0.5], [0.3]], [0, 0, 1], [0.1, 0.9, 1.5])
    assert set(e.verdicts[2]) == {"unknown"}  # a tie: nothing is said of it
    assert not e.wrong.any()
