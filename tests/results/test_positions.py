"""A class whose name is a number is not taken for a position, nor the other way round."""

from __future__ import annotations

import numpy as np

import gpcert as gc

X = np.array([[0.0], [1.0], [2.0], [3.0]])


def test_sentences_tell_positions_as_positions() -> None:
    """Position 1 of the classes 1 and 7 is 7: "P(class 1)" would be read as a statement about the other."""
    clf = gc.GPClassifier(max_evals=0).fit(X, [1, 1, 7, 7])
    ball = gc.Ball([2.5], 0.25)
    answers = (
        gc.probability_range(clf, ball),
        gc.certify(clf, [2.5], ball),
        gc.attack(clf, ball, [2.5]),
        gc.explain(clf, [2.5], 0.25),
        gc.robustness(clf, ball),
    )
    for answer in answers:
        assert "class 1" not in str(answer) + answer.summary(), answer
    assert str(answers[0]).startswith("P(classes[1]) stays in")
    assert "classes[1]" in str(answers[1])
