"""A label is a value of the model's classes, in every question, answer, file and picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpcert as gc
from gpcert.claims import Quantity
from gpcert.classes import Label, called, position, positions
from gpcert.errors import InvalidInputError
from judge.refute import complaints

X = np.array([[0.0], [1.0], [2.0], [3.0]])
BALL, POINT = gc.Ball([2.5], 0.25), gc.Box([2.5], [2.5])

#: Pairs of classes whose values could be taken for positions, for each other, or for code.
PAIRS: list[list[Any]] = [
    [1, 2],
    [-1, 1],
    [1, 0],
    [2, 1],
    ["1", "0"],
    [False, True],
    [0.5, 1.5],
    [1.0, 2.0],
    ["mal'ignant", 'be"nign'],
    ["<b>a</b>", "$x$\N{RIGHT-TO-LEFT OVERRIDE}\n"],
]
THREE: list[list[Any]] = [[2, 1, 0], ["2", "0", "1"], [-1, 0, 1], ["a", "b", "class 1"]]


def model(classes: list[Any]) -> gc.Posterior:
    """The first class is on the left; of three, the last in the middle."""
    if len(classes) == 2:
        weights = np.array([-1.0, -0.6, 0.7, 1.0])
        return gc.Posterior(X, weights, 0.1 * np.eye(4), kernel=gc.RBF(), classes=classes)
    weights = np.array([[1.0, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 1.0], [0.0, 0.4, 0.3, 0.0]]).T
    return gc.Posterior(
        X, weights, 0.1 * np.stack([np.eye(4)] * 3), kernel=gc.RBF(), likelihood="softmax", classes=classes
    )


def forms(value: Label) -> list[Any]:
    """What prints as the value does."""
    same: list[Any] = [value, np.array([value])[0], str(value)]
    return [*same, float(value), np.float32(value)] if type(value) is int else same


@pytest.mark.parametrize("classes", PAIRS + THREE)
def test_a_class_is_found_by_whatever_prints_as_it_does(classes: list[Any]) -> None:
    post = model(classes)
    assert post.labels == tuple(classes)
    for c, value in enumerate(classes):
        for form in forms(value):
            assert position(post.labels, form) == c, form
    assert positions(post.labels, list(np.array(classes))) == list(range(len(classes)))


@pytest.mark.parametrize(
    ("classes", "label", "sentence"),
    [
        ([1, 2], 0, "label must be one of 1, 2, got 0"),
        ([1, 2], True, "label must be one of 1, 2, got True"),
        ([1, 2], np.True_, "label must be one of 1, 2, got True"),
        ([1, 2], "1.0", "label must be one of 1, 2, got '1.0'"),
        ([1, 2], float("nan"), "label must be one of 1, 2, got nan"),
        ([1, 2], b"1", "label must be one of 1, 2, got b'1'"),
        ([False, True], 1, "label must be one of False, True, got 1"),
        (["ill", "well"], 1, "label must be one of 'ill', 'well', got 1"),
        (["ill", "well"], "il", "label must be one of 'ill', 'well', got 'il' (did you mean 'ill'?)"),
        (["ill", "well"], {"ill"}, "label must be one of 'ill', 'well', got {'ill'}"),
        ([1, 2, 3], None, "label must be one of 1, 2, 3, got none"),
    ],
)
def test_another_label_is_one_sentence_with_the_classes(
    classes: list[Any], label: Any, sentence: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        position(classes, label)
    assert str(caught.value) == sentence


def test_many_classes_are_named_in_part() -> None:
    with pytest.raises(InvalidInputError, match=r"^label must be one of 0, 1, .* 11, \.\.\., got 40$"):
        position(range(40), 40)
    with pytest.raises(InvalidInputError, match=r"^label must be one of 0, 1, got a int too long to show$"):
        position([0, 1], 10**5000)


@pytest.mark.parametrize("classes", PAIRS + THREE)
def test_every_question_is_about_the_class_of_that_value(classes: list[Any]) -> None:
    post, rng = model(classes), np.random.default_rng(0)
    p, every = post.probability([[2.5]])[0], list(post.labels)
    for c, value in enumerate(classes):
        for form in forms(value):
            r = gc.probability_range(post, POINT, form)
            assert (r.label, type(r.label)) == (value, type(value))
            assert r.min.lower <= p[c] <= r.max.upper
            assert r.max.upper - r.min.lower < 0.02
        assert gc.robustness(post, BALL, value).label == value
        found = gc.attack(post, BALL, label=value)
        assert found.probability == pytest.approx(post.probability([found.x])[0, c])
        slope = post.probability_gradient([[2.5]])[0, c, 0]
        assert gc.explain(post, [[2.5]], 0.05, value).sign[0, 0] == np.sign(slope)
        answers = gc.probability_range(post, BALL, value), gc.robustness(post, BALL, value), found
        assert complaints(post, list(answers), rng, []) == []
    v = gc.certify(post, BALL)
    assert v.label == every[int(p.argmax())]
    radius = gc.certified_radius(post, [2.5], max_radius=1.0)
    assert complaints(post, [v, radius], rng, []) == []
    assert radius.label == v.label


@pytest.mark.parametrize("classes", PAIRS + THREE)
def test_a_batch_takes_a_label_for_each_region(classes: list[Any]) -> None:
    post = model(classes)
    labels = [classes[i % len(classes)] for i in range(7)]
    regions = gc.balls(np.linspace(0.0, 3.0, 7)[:, None], 0.1)
    for ask in (gc.probability_range, gc.robustness, gc.attack):
        together = ask(post, regions, label=np.array(labels))
        assert [answer.label for answer in together] == labels
        for answer, region, label in zip(together, regions, labels, strict=True):
            alone = ask(post, region, label=label)
            assert str(answer).partition(";")[0] == str(alone).partition(";")[0]


def test_the_default_is_the_second_of_two_classes() -> None:
    for classes in PAIRS:
        post = model(classes)
        asked = gc.probability_range(post, BALL), gc.robustness(post, BALL), gc.explain(post, [[2.5]], 0.1)
        assert [answer.label for answer in asked] == [classes[1]] * 3
        assert gc.latent_range(post, BALL).label == classes[1]
        assert gc.attack(post, BALL).label == gc.certify(post, BALL).label == post.predict([[2.5]])[0]


def test_labels_of_latents() -> None:
    two, three = model([1, 2]), model([2, 1, 0])
    assert gc.latent_range(two, BALL, 2.0).key == gc.latent_range(two, BALL).key
    with pytest.raises(InvalidInputError, match="label must be 2, for which the only latent speaks, got 1"):
        gc.latent_range(two, BALL, 1)
    mean = three.latent([[2.5]])[0][0]
    for c, value in enumerate(three.labels):
        found = gc.latent_range(three, POINT, value)
        assert found.mean.lower <= mean[c] <= found.mean.upper
        assert complaints(three, [found], np.random.default_rng(0), []) == []
    several = gc.Posterior(X, three.weights, three.precision, kernel=gc.RBF(), likelihood=None)
    assert gc.latent_range(several, POINT, 1).mean.lower <= mean[1]
    with pytest.raises(InvalidInputError, match="label must be one of 0, 1, 2, got none"):
        gc.latent_range(several, POINT)
    one = gc.Posterior(X, two.weights, two.precision, kernel=gc.RBF(), likelihood=None)
    assert gc.latent_range(one, POINT).label is None
    with pytest.raises(InvalidInputError, match="label must be None for one latent, got 0"):
        gc.latent_range(one, POINT, 0)


@pytest.mark.parametrize("classes", PAIRS + THREE)
def test_true_labels_are_values(classes: list[Any]) -> None:
    post = model(classes)
    rows = np.array([[0.2], [2.8], [2.9]])
    y = post.predict(rows)
    for truth in (y, [str(each) for each in y.tolist()]):
        found = gc.evaluate(post, rows, truth, [0.01])
        assert found.clean == 1.0
        assert found.labels.tolist() == found.truth.tolist() == y.tolist()
        assert complaints(post, [found], np.random.default_rng(0), []) == []
    own = y[1]
    part = gc.testing.assert_certified(post, rows, y, 0.01, 1.0, label=str(own))
    assert part.truth.tolist() == [each for each in y.tolist() if each == own]
    assert gc.certified_score(0.01)(post, rows, y) == 1.0
    table = gc.certify_table(post, {"x0": rows[:, 0], "t": y}, target="t", radii=[0.01])
    assert table.truth == tuple(y.tolist())
    assert "right and safe: 100" in table.summary()
    several = gc.certify_table(post, {"x0": rows[:, 0], "t": y}, target="t", radii=[0.01, 0.02])
    assert "right and safe:" not in several.summary()  # a share of rows is one at a radius
    assert table.columns()["label"] == table.columns()["true"] == y.tolist()


@pytest.mark.parametrize("classes", PAIRS + THREE)
def test_files_hold_the_value_and_refuse_others(classes: list[Any], tmp_path: Path) -> None:
    post = model(classes)
    v, e = gc.certify(post, BALL), gc.evaluate(post, X[:1], post.predict(X[:1]), [0.1])
    answers = [gc.probability_range(post, BALL, classes[0]), v, e, gc.explain(post, [[2.5]], 0.1, classes[0])]
    gc.save_answers(tmp_path / "a.json", answers)
    read = gc.load_answers(tmp_path / "a.json")
    assert list(read) == answers
    assert [type(a.label) for a in read[:2]] == [type(a.label) for a in answers[:2]]
    assert read[0].about.classes == tuple(classes)
    for wrong in (7, "7", None, [1], not classes[0] if isinstance(classes[0], bool) else 1 == 1):
        data = answers[0].to_dict() | {"label": wrong}
        if wrong not in classes or type(wrong) is not type(classes[0]):
            with pytest.raises(InvalidInputError, match=r"^label must be"):
                gc.ProbabilityRange.from_dict(data)


def test_the_name_is_the_name_of_the_class_wherever_it_is_shown() -> None:
    names = {"malignant": "malignant", 1: "class 1", -1: "class -1", False: "class False", 0.5: "class 0.5"}
    names |= {"1": "class 1", "a\nb": "a\\nb", "": "class "}
    for value, name in names.items():
        assert called(value) == name
    assert str(Quantity("probability", "malignant")) == "the probability of malignant"
    clf = gc.GPClassifier(max_evals=0).fit(X, [1, 1, 7, 7])
    answers = (
        gc.probability_range(clf, BALL),
        gc.certify(clf, [2.5], BALL),
        gc.attack(clf, BALL, [2.5]),
        gc.explain(clf, [2.5], 0.25),
        gc.robustness(clf, BALL),
    )
    for answer in answers:
        assert "P(class 7)" in str(answer), answer
        assert "class 1" not in str(answer) + answer.summary(), answer
        assert "classes[" not in str(answer) + answer.summary(), answer


def test_names_of_strangers_are_text() -> None:
    post = model(PAIRS[-1])
    for label in post.labels:
        for answer in (gc.probability_range(post, BALL, label), gc.explain(post, [[2.5]], 0.1, label)):
            lines = answer.summary().splitlines()
            assert all(line.isprintable() for line in lines)
            assert lines == answer.summary().split("\n")
            assert "<b>a" not in answer._repr_html_()
