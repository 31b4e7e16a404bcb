"""The sentence of a claim: counts and intervals are true, and every part of the region is in it."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import gpcert as gc
from gpcert.results.wording import Words, proved, sentences, unit_tables, while_moving

WORDS = Words(("well", "ill"), ("age", "bmi", "dose"), unit="standard deviations")
X = np.zeros(3)


@pytest.mark.parametrize(
    ("ball", "told"),
    [
        (gc.Ball(X, 0.1), "while all 3 features are off by up to R each, in any combination"),
        (gc.Ball(X, 0.1, 2), "while all 3 features are off by a Euclidean distance of up to R"),
        (gc.Ball(X, 0.1, 1), "while all 3 features are off by up to R in sum"),
        (gc.Ball(X, 0.1, 3), "while all 3 features are off by up to R in the 3-norm"),
        (gc.Ball(X, 0.1, features=[0]), "while “age” is off by up to R"),
        (
            gc.Ball(X, 0.1, features=[0, 2]),
            "while “age” and “dose” are off by up to R each, in any combination",
        ),
        (
            gc.Ball(X, 2, 0, domain=(0, 1)),
            "while nothing moves",
        ),
        (
            gc.Ball(X, 0.1, 1, domain=(0, math.inf)),
            "while all 3 features are off by up to R in sum, staying at or above 0",
        ),
        (
            gc.Ball(X, 0.1, 1, domain=([0, -1, 0], 1)),
            "while all 3 features are off by up to R in sum, "
            "each within its own limits (“age”: 0 to 1, “bmi”: -1 to 1, “dose”: 0 to 1)",
        ),
        (
            gc.Ball(X, 0.1, domain=([0, -math.inf, -1], [math.inf, math.inf, 1])),
            "while all 3 features are off by up to R each, in any combination, each within its own limits "
            "(“age”: from 0 on, “bmi”: none, “dose”: -1 to 1)",
        ),
        (gc.Box(X, X), "while the row is anywhere in its box"),
    ],
)
def test_the_region_in_words(ball: gc.Ball | gc.Box, told: str) -> None:
    assert while_moving(ball, "0.1", WORDS) == told.replace("R", "0.1 standard deviations")
    plain = while_moving(ball, "0.1", Words(WORDS.classes, WORDS.features))
    assert plain == told.replace("R", "0.1")


def test_the_claim_of_the_issue() -> None:
    moving = while_moving(
        gc.Ball(np.zeros(30), 0.1), "0.1", Words(noun="measurements", unit="standard deviations")
    )
    assert proved(153, 169, True, 0.5, moving) == (
        "For 153 of 169 rows (90.5 %, 95 % Wilson interval 85.1 to 94.1 %) the predicted class is right and "
        "proved not to change while all 30 measurements are off by up to 0.1 standard deviations each, in "
        "any combination."
    )
    assert "the predicted class is proved not to change" in proved(1, 2, False, 0.5, moving)
    assert "is right and has a probability proved to stay above 0.7 while" in proved(1, 2, True, 0.7, moving)


@pytest.fixture(scope="module")
def clf() -> gc.GPClassifier:
    Z = np.random.default_rng(0).normal(size=(20, 2))
    return gc.GPClassifier(max_evals=0).fit(Z, np.where(Z[:, 0] > 0, "b", "a"))


def test_every_kind_of_answer_has_a_sentence(clf: gc.GPClassifier) -> None:
    Z = np.random.default_rng(1).normal(size=(5, 2))
    post, regions = clf.posterior_, gc.balls(Z, 0.1)
    truth = np.where(Z[:, 0] > 0, "b", "a")
    words = Words(("a", "b"), ("u", "v"))
    verdicts = gc.certify(clf, regions)
    safe = sum(v.status == "safe" for v in verdicts)
    (said,) = sentences(list(verdicts), words)
    assert said.startswith(f"For {safe} of 5 rows (")
    right = [v.label == t for v, t in zip(verdicts, truth, strict=True)]
    held = sum(v.status == "safe" and ok for v, ok in zip(verdicts, right, strict=True))
    (said,) = sentences(list(verdicts), words, right)
    assert said.startswith(f"For {held} of 5 rows (")
    ranges = list(gc.probability_range(clf, regions))
    (said,) = sentences(ranges, words)
    widest = max(Fraction(r.upper) - Fraction(r.lower) for r in ranges)
    assert Fraction(said.rpartition("at most ")[2].split()[0]) >= widest
    assert "the probability of “b”" in said
    radii = list(gc.certified_radius(clf, Z, max_radius=0.3))
    (said,) = sentences(radii, words)
    half = Fraction(said.partition("off by up to ")[2].split()[0])
    assert sum(Fraction(r.safe) >= half for r in radii) >= 3
    attacks = [gc.attack(post, region) for region in regions]
    (said,) = sentences(attacks, words, predicted=[a.label for a in attacks])
    assert said.endswith("evidence, no proof.")
    (said,) = sentences([gc.explain(clf, Z, 0.1)], words)
    assert "While one of 2 features alone is off by up to 0.1, its mean influence" in said
    (said,) = sentences([gc.explain(clf, Z, 0.1, domain=(-9, 9))], words)
    assert "off by up to 0.1, staying between -9 and 9, its mean influence" in said
    said = sentences([gc.evaluate(clf, Z, truth, [0.05, 0.1])], words)
    assert len(said) == 2
    said = sentences(list(gc.latent_range(clf, regions)), words)
    assert [("mean" in said[0]), ("variance" in said[1])] == [True, True]
    (said,) = sentences(list(gc.robustness(clf, regions)), words)
    assert "class" not in said
    assert "the probability of “b”" in said


def test_one_answer_and_a_mean_have_their_sentence(clf: gc.GPClassifier) -> None:
    """Features that stand still are not counted; a mean speaks of all its points."""
    Z = np.random.default_rng(1).normal(size=(5, 2))
    whole = gc.explain(clf, Z, 0.1, features=[1])
    said, again = (e.summary().splitlines()[-1] for e in (whole, whole.mean()))
    for text in (said, again):
        assert "While “x1” alone is off by up to 0.1, its mean influence" in text
        assert "over 5 rows" in text
        low, high = map(Fraction, text.rpartition("[")[2].removesuffix("].").split(", "))
        assert low <= sum(map(Fraction, whole.lower[:, 1])) / 5
        assert high >= sum(map(Fraction, whole.upper[:, 1])) / 5
    truth = np.where(Z[:, 0] > 0, "b", "a")
    found = gc.evaluate(clf, Z, truth, [0.05, 0.1])
    assert found.summary().splitlines()[-2:] == sentences([found])
    verdict = gc.certify(clf, gc.Ball(Z[0], 0.1))
    assert verdict.summary() == "\n".join([str(verdict), *sentences([verdict])])


def test_kinds_and_radii_apart_many_radii_together(clf: gc.GPClassifier) -> None:
    Z = np.random.default_rng(2).normal(size=(10, 2))
    two = [*gc.certify(clf, gc.balls(Z, 0.2)), *gc.certify(clf, gc.balls(Z, 0.1))]
    said = sentences(two)
    assert ["0.1 each" in said[0], "0.2 each" in said[1]] == [True, True]
    own = list(gc.certify(clf, gc.balls(Z, np.linspace(0.01, 0.1, 10))))
    (said,) = sentences(own)
    assert "up to the radius of its row each" in said
    text = gc.certify(clf, gc.balls(Z, 0.1)).summary()
    assert text.splitlines()[1:] == sentences(list(gc.certify(clf, gc.balls(Z, 0.1))), Words(("a", "b")))


@pytest.mark.parametrize(
    ("unit", "radius", "far"),
    [
        ("standard deviations", "1", "1 standard deviation"),
        ("standard deviations", "0.1", "0.1 standard deviations"),
        (None, "3", "3 times the scale (1)"),
    ],
)
def test_a_radius_has_its_unit(unit: str | None, radius: str, far: str) -> None:
    ball = gc.Ball(X, 0.1, scale=np.ones(3))
    told = while_moving(ball, radius, Words(unit=unit))
    see = " (see the table of units)" if unit else ""
    assert told == f"while all 3 features are off by up to {far} each, in any combination{see}"


def test_a_share_is_of_rows_however_many_radii_were_asked(clf: gc.GPClassifier) -> None:
    """Twelve radii about four rows are twelve sentences about four rows, never one about 48."""
    Z = np.random.default_rng(3).normal(size=(4, 2))
    radii = np.linspace(0.01, 0.12, 12).round(2)
    table = {"u": Z[:, 0], "v": Z[:, 1]}
    answers = gc.certify_table(clf, table, radii=radii.tolist())
    told = answers.sentences()
    for radius, said in zip(radii.tolist(), told, strict=True):
        safe = sum(a.status == "safe" for a in answers if a.region.radius == radius)
        assert said.startswith(f"For {safe} of 4 rows (")
        assert f"by up to {radius} each" in said
    shown = answers.summary().splitlines()[1:]
    assert [shown[0], shown[-1]] == [told[0], told[-1]]
    assert shown[1:-1] == ["... 10 more sentences, which a report shows"]
    own = list(gc.certify(clf, gc.balls(Z.repeat(3, axis=0) + np.arange(12)[:, None], radii)))
    (said,) = sentences(own, Words(unit="standard deviations"))
    assert "up to the radius of its row (in standard deviations) each" in said


@pytest.mark.parametrize(
    ("radius", "told"),
    [
        ("0.9", "while nothing moves"),
        ("2", "while up to 2 of all 3 features take any values, staying between 0 and 1"),
        ("2.9", "while up to 2 of all 3 features take any values, staying between 0 and 1"),
        ("7", "while all 3 features take any values, staying between 0 and 1"),
        (
            "the radius of its row",
            "while as many of all 3 features as the radius of its row says take any values, staying between "
            "0 and 1",
        ),
    ],
)
def test_counts_of_features_are_whole_and_no_more_than_there_are(radius: str, told: str) -> None:
    assert while_moving(gc.Ball(X, 2, 0, domain=(0, 1)), radius, WORDS) == told


def test_a_scale_of_few_features_is_told() -> None:
    ball = gc.Ball(X, 0.5, scale=[1.0, 2.0, 4.0])
    words = Words(features=WORDS.features)
    assert "0.5 times the scale (“age”: 1, “bmi”: 2, “dose”: 4) each" in while_moving(ball, "0.5", words)


@pytest.mark.parametrize(
    ("norm", "told"),
    [
        (math.inf, "off by up to 0.5 units each, in any combination"),
        (2, "off by a Euclidean distance of up to 0.5, counted in their own units"),
        (1, "off by up to 0.5, counted in their own units, in sum"),
        (3, "off by up to 0.5, counted in their own units, in the 3-norm"),
    ],
)
def test_units_of_many_features_are_a_table(norm: float, told: str) -> None:
    """What it says is what the ball is: the points at these distances are in it, a little farther is not."""
    unit, limits = np.array([52.1734, 0.3, 4.0, 1e-9, 7.0]), (-np.inf, np.array([np.inf, 2.0, 2.0, 2.0, 2.0]))
    words = Words(features=("area", "bmi", "dose", "tiny", "still"))
    balls = [
        gc.Ball(np.zeros(5), r, norm, features=[0, 1, 2, 3], scale=unit, domain=limits) for r in (0.5, 0.1)
    ]
    assert while_moving(balls[0], "0.5", words) == (
        f"while 4 of 5 features are {told}, each within its own limits (see the table of units)"
    )
    ((head, rows),) = unit_tables(balls, words)
    alone = "up to" if norm == math.inf else "alone up to"
    assert head == ("feature", "radius 1", f"at 0.1: {alone}", f"at 0.5: {alone}", "limits")
    assert rows[0] == ("area", "52.1734", "5.21734", "26.0867", "none")
    assert rows[1] == ("bmi", "0.3", "0.03", "0.15", "up to 2")
    assert [row[0] for row in rows] == ["area", "bmi", "dose", "tiny"]
    for j, row in enumerate(rows):
        for ball, far in zip(balls, (row[3], row[2]), strict=True):
            step = np.eye(5)[j]
            assert ball.contains(-float(far) * step * (1 - 1e-12))
            assert not ball.contains(-float(far) * step * 1.001)
    assert unit_tables([gc.Ball(np.zeros(5), 1.0, norm)], words) == []


def test_the_table_of_units_is_where_its_sentence_is(tmp_path: Path) -> None:
    """In the summary, on a terminal, on the page: own units of standard deviations, the models apart."""
    random = np.random.default_rng(0)
    table = dict(zip("abcde", random.normal(size=(5, 30)) * [[1], [20], [300], [1], [1]], strict=True))
    y = table["a"] + table["b"] / 20 > 0
    clf = gc.GPClassifier(gc.RBF([2.0, 40.0, 600.0, 2.0, 2.0]), max_evals=0).fit(table, y)
    other = gc.GPClassifier(gc.RBF([2.0, 40.0, 600.0, 2.0, 2.0]), max_evals=0).fit(
        {name: 2.0 * values for name, values in table.items()}, y
    )
    answers, doubled = (gc.certify_table(m, table, radii=[0.05, 0.1], scale="std") for m in (clf, other))
    deviation = float(np.std(table["c"]))
    told = answers.summary().splitlines()
    assert sum("(see the table of units)" in line for line in told) == 2
    (line,) = [line for line in told if line.split()[0] == "c"]
    unit, *far = map(float, line.split()[1:])
    for shown, truth in zip((unit, *far), (deviation, 0.05 * deviation, 0.1 * deviation), strict=True):
        assert 0.999 * truth < shown <= truth
    both = (answers + doubled).summary().splitlines()
    assert [line[:12] for line in both if line.startswith("Units")] == ["Units 1 of 2", "Units 2 of 2"]
    shares = gc.evaluate(clf, table, y, [0.05, 0.1], scale="std").summary().splitlines()
    assert shares[-3].split()[1:] == line.split()[1:]  # of column c
    answers.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    for cell in ("1 standard deviation", line.split()[1], line.split()[2], line.split()[3]):
        assert cell in text


def test_a_radius_above_another_threshold_does_not_speak_of_the_class(clf: gc.GPClassifier) -> None:
    """Within it the class may change: with the threshold 0.2 it does, at a point of every second ball."""
    Z = np.random.default_rng(3).normal(size=(6, 2))
    found = list(gc.certified_radius(clf, Z, threshold=0.2, max_radius=1.0))
    wide = [r for r in found if (gc.attack(clf, gc.Ball(r.ball.x, r.safe))).success]
    assert wide
    (said,) = sentences(found)
    assert "keep a probability of the predicted class above 0.2, proved, while" in said
    assert "the predicted class, proved" not in said
    near = list(gc.certified_radius(clf, Z, threshold=0.99, max_radius=1.0))
    assert not any(r.safe for r in near)  # nor is it proved of the rows themselves, where nothing moves
    (said,) = sentences(near)
    assert said.startswith("For 0 of 6 rows a radius is proved within which a probability of ")
    assert sentences(near[:1])[0].startswith("For no row a radius is proved")


def test_a_change_from_the_row_is_no_width_of_an_interval(clf: gc.GPClassifier) -> None:
    """Definition 1 looks up and down from a point: the interval is wider than either."""
    Z = np.random.default_rng(1).normal(size=(5, 2))
    found = list(gc.robustness(clf, gc.balls(Z, 0.5), x=Z))
    (said,) = sentences(found)
    half, most = (Fraction(part.split()[0].strip(",")) for part in said.split("at most ")[1:])
    reached = sorted(Fraction(r.range.max.lower) - Fraction(r.range.min.upper) for r in found)
    assert reached[-1] <= most
    assert reached[2] <= half
    assert max(Fraction(r.upper) for r in found) < reached[-1]


def test_the_coarsest_tolerance_is_told(clf: gc.GPClassifier) -> None:
    regions = gc.balls(np.random.default_rng(1).normal(size=(2, 2)), 0.1)
    fine, coarse = (list(gc.probability_range(clf, regions, tolerance=t)) for t in (0.001, 0.1))
    assert sentences([fine[0], coarse[1]])[0].endswith("(each end known to within 0.1).")


def test_radii_in_many_units_are_told_apart(clf: gc.GPClassifier) -> None:
    """A radius means something else in every unit: no sentence may speak of several."""
    Z = np.random.default_rng(1).normal(size=(10, 2))
    found = [gc.certified_radius(clf, z, scale=1.0 + k, max_radius=1.0) for k, z in enumerate(Z)]
    told = [r for r in found if r.safe > 0]
    said = [text for text in sentences(found) if "keeps the predicted class" in text]
    assert len(said) == len(told) > 8
    assert all("times the scale" in text for text in said)


def test_an_attack_on_another_class_is_no_change_of_the_predicted_one(
    clf: gc.GPClassifier, tmp_path: Path
) -> None:
    """Rows that are predicted as another class anyway were told as changed, as counterexamples, and as a
    contradiction of what is proved.
    """
    Z = np.array([[-1.0, 0.0], [-1.5, 0.2], [1.0, 0.0], [1.2, 0.3], [1.4, -0.2]])
    regions = gc.balls(Z, 0.01)
    attacks, verdicts = gc.attack(clf, regions, label="a"), gc.certify(clf, regions)
    assert [a.success for a in attacks] == [False, False, True, True, True]
    own, other = attacks.sentences()
    assert "found one for 0 of 2 rows; for 2 of 2" in own
    assert "another class than “a” while" in other
    assert "found one for 3 of 3 rows, whatever their predicted class" in other
    assert "change of the predicted class" not in gc.attack(clf, regions[4], label="a").summary()
    gc.report([verdicts, attacks], tmp_path / "page.html")
    assert "A counterexample" not in (tmp_path / "page.html").read_text(encoding="utf-8")
