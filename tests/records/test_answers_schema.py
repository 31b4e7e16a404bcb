"""Answers as data: what they record, that they come back bit for bit, and what strangers may not tell."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gpcert as gc
from gpcert.regions import region_from_dict
from gpcert.results import About, answer_from_dict
from gpcert.schema import encoded
from gpcert.settings import Settings
from helpers.exact import small_model
from judge.queries import OPTIONS, Query

FINITE = st.floats(-1e300, 1e300)


@pytest.mark.parametrize("question", OPTIONS)
def test_every_answer_records_what_it_is_about(question: str) -> None:
    for number in range(8):
        query = Query.pick(10**7 + number, question)
        post, answers = replace(query, batch="list" if query.batch == "processes" else query.batch).ask()
        for answer in answers:
            assert answer.target == post.target
            assert answer.model == post.digest
            assert answer.version == gc.__version__
            assert isinstance(answer.settings, Settings)
            assert answer.settings == Settings() or question != "attack"
            if question not in ("attack", "robustness"):
                assert 0 < answer.settings.tolerance < 1
                assert answer.settings.max_nodes <= 12
                assert answer.settings.max_seconds <= 0.5


def test_settings_are_what_was_asked_and_limits_not_given_are_infinite() -> None:
    post, ball = small_model(), gc.Ball([0.1, 0.2], 0.1)
    r = gc.probability_range(post, ball, tolerance=0.1, max_nodes=7)
    assert r.settings == Settings(0.1, inf, 7.0)
    assert r.tolerance == 0.1
    v = gc.certify(post, ball.x, ball, max_seconds=2)
    assert v.settings == Settings(0.02, 2.0, inf)
    assert gc.certified_radius(post, ball.x, tolerance=0.003, rtol=0.1).settings == Settings(0.003, inf, inf)
    assert gc.robustness(post, ball, tolerance=0.3).settings == Settings(0.3, inf, inf)


def test_a_digest_tells_models_apart_by_every_part() -> None:
    post = small_model()
    parts = {name: getattr(post, name) for name in ("centres", "weights", "precision", "kernel", "mean")}
    parts |= {"likelihood": post.likelihood, "classes": post.classes}
    same = gc.Posterior(**parts)
    assert same.digest == post.digest
    others = [
        {"centres": np.nextafter(post.centres, 9)},
        {"weights": np.nextafter(post.weights, 9)},
        {"precision": post.precision * (1 + 2.0**-50)},
        {"kernel": gc.Matern52()},
        {"mean": 5e-324},
        {"likelihood": "logit"},
        {"classes": ["a", "b"]},
        {"feature_names": ["a", "b"]},
    ]
    assert len({gc.Posterior(**parts | other).digest for other in others} | {post.digest}) == 1 + len(others)


def test_models_with_python_functions_are_like_no_other() -> None:
    def step(f: np.ndarray) -> np.ndarray:
        return (f > 0).astype(float)

    link = gc.Link(step, lambda low, high: (step(low), step(high)))
    one, other = (gc.Posterior([[0.0]], [1.0], [[0.5]], kernel=gc.RBF(), likelihood=link) for _ in "ab")
    assert one.digest == one.digest != other.digest


def text(record: Any) -> str:
    """All that a record is; JSON writes doubles exactly, and the sign of 0."""
    return json.dumps(encoded(record), allow_nan=False)


@pytest.mark.parametrize("question", OPTIONS)
def test_answers_come_back_bit_for_bit(question: str, tmp_path: Path) -> None:
    """Through the dictionary, its JSON text, and a file; every ending, kernel, link, norm of the soak."""
    saved = []
    for number in range(20):
        query = Query.pick(2 * 10**7 + number, question)
        _, answers = replace(query, batch="list" if query.batch == "processes" else query.batch).ask()
        for answer in answers:
            told = json.dumps(answer.to_dict(), allow_nan=False)
            back = answer_from_dict(json.loads(told))
            assert type(back) is type(answer)
            assert json.dumps(back.to_dict()) == told
            assert text(back.claims()) == text(answer.claims())
            assert back == answer
            assert back.key == answer.key
        saved += answers
    gc.save_answers(tmp_path / "a.json", saved)
    assert gc.load_answers(tmp_path / "a.json") == saved


def test_arrays_that_come_back_have_their_types() -> None:
    post = small_model()
    t = gc.evaluate(post, [[0.1, 0.2], [0.3, -0.1]], [0, 1], [0.05, 0.5])
    e = gc.explain(post, [[0.1, 0.2]], 0.1)
    for answer in (t, e):
        back = answer_from_dict(json.loads(json.dumps(answer.to_dict())))
        for name, value in vars(answer).items():
            if isinstance(value, np.ndarray):
                assert vars(back)[name].shape == value.shape
                assert vars(back)[name].dtype.kind == value.dtype.kind
    assert answer_from_dict(e.mean().to_dict()) == e.mean()


@given(arrays(np.float64, 3, elements=FINITE), arrays(np.float64, 3, elements=FINITE))
def test_regions_come_back_bit_for_bit(a: np.ndarray, b: np.ndarray) -> None:
    low, high = np.minimum(a, b), np.maximum(a, b)
    for region in (
        gc.Box(low, high),
        gc.Ball(low, abs(b[0]), 1 + abs(b[1]), features=[2, 0], domain=(-inf, high), scale=1 + np.abs(b)),
        gc.Ball(low, np.float32(0.5), inf),
        gc.Ball(low, 2, 0, domain=(low, high)),
    ):
        back = region_from_dict(json.loads(json.dumps(region.to_dict(), allow_nan=False)))
        assert text(back) == text(region)
        assert back == region
        assert back.digest == region.digest
        assert type(region).from_dict(region.to_dict()) == region


def test_zeros_keep_their_sign_and_infinities_are_words() -> None:
    box = gc.Box([-0.0, 0.0], [0.0, np.float64(1)])
    assert [str(v) for v in gc.Box.from_dict(json.loads(json.dumps(box.to_dict()))).lower] == ["-0.0", "0.0"]
    assert box.digest != gc.Box([0.0, 0.0], [0.0, 1.0]).digest
    told = Settings(0.5).to_dict()
    assert told == {
        "schema": 1,
        "kind": "Settings",
        "tolerance": 0.5,
        "max_seconds": "inf",
        "max_nodes": "inf",
    }
    assert Settings.from_dict(told) == Settings(0.5)
    assert encoded(np.array([nan, -inf, 1.0])) == ["nan", "-inf", 1.0]


def test_a_key_identifies_a_question() -> None:
    post, ball = small_model(), gc.Ball([0.1, 0.2], 0.1)
    other = gc.Posterior(post.centres, 2 * post.weights, post.precision, kernel=post.kernel)
    asked = [
        gc.probability_range(post, ball),
        gc.probability_range(other, ball),
        gc.probability_range(post, gc.Ball([0.1, 0.2], 0.2)),
        gc.probability_range(post, gc.Box([0.0, 0.1], [0.2, 0.3])),
        gc.probability_range(post, ball, label=0),
        gc.probability_range(post, ball, method="paper"),
        gc.probability_range(post, ball, tolerance=0.1),
        gc.probability_range(post, ball, max_nodes=100),
        gc.robustness(post, ball),
        gc.robustness(post, ball, x=ball.x),
        gc.certify(post, ball.x, ball),
        gc.certify(post, ball.x, ball, 0.4),
        gc.certified_radius(post, ball.x, rtol=0.1),
        gc.certified_radius(post, ball.x, rtol=0.2),
        gc.certified_radius(post, ball.x, rtol=0.1, max_radius=0.5),
        gc.attack(post, ball),
        gc.attack(post, ball, rng=1),
        gc.attack(post, ball, x=[0.1, 0.25]),
        gc.explain(post, [ball.x, ball.x], 0.1),
        gc.explain(post, [ball.x, ball.x], 0.1).mean(),
        gc.latent_range(post, ball),
        gc.evaluate(post, [ball.x], [0], [0.1]),
        gc.evaluate(post, [ball.x], [1], [0.1]),
    ]
    assert len({answer.key for answer in asked}) == len(asked)
    assert gc.probability_range(post, gc.Ball([0.1, 0.2], 0.1)).key == asked[0].key


def answers() -> list[Any]:
    post, ball = small_model(), gc.Ball([0.1, 0.2], 0.1)
    return [
        gc.probability_range(post, ball),
        gc.latent_range(post, gc.Box([0.0, 0.1], [0.2, 0.3])),
        gc.certify(post, ball.x, ball),
        gc.certified_radius(post, ball.x, rtol=0.1),
        gc.robustness(post, ball, x=ball.x),
        gc.attack(post, ball),
        gc.explain(post, [ball.x], 0.1),
        gc.evaluate(post, [ball.x], [0], [0.1]),
    ]


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if before:
        yield before
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield from places(value[key], (*before, key))


STRANGE = [
    None,
    True,
    -1,
    7,
    1.5,
    -1e308,
    10**400,
    "text",
    "nan",
    "inf",
    nan,
    [],
    [[[1]]],
    {},
    {"kind": "Box"},
]


def test_no_entry_of_strangers_gets_through_unseen() -> None:
    """Every entry replaced by anything: one sentence, or an answer whose claims can be told, and no NaN."""
    refused = taken = 0
    for answer in answers():
        good = answer.to_dict()
        for place in places(good):
            for strange in [*STRANGE, "gone", "more"]:
                bad = copy.deepcopy(good)
                inside: Any = bad
                for key in place[:-1]:
                    inside = inside[key]
                if strange == "gone":
                    del inside[place[-1]]
                elif strange == "more" and isinstance(inside[place[-1]], dict):
                    inside[place[-1]]["more"] = 1
                else:
                    inside[place[-1]] = copy.deepcopy(strange)
                back = sentence = None
                try:
                    back = answer_from_dict(bad)
                except gc.InvalidInputError as error:
                    sentence = str(error)
                if back is None:
                    refused += 1
                    assert ", got " in sentence or "must be given" in sentence, (place, strange)
                    assert len(sentence) < 300
                    continue
                taken += 1
                assert text(back.claims()) is not None
                assert json.dumps(back.to_dict(), allow_nan=False)
    assert refused > 5 * taken > 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"schema": 2}, "schema must be 1, got 2"),
        ({"schema": True}, "schema must be 1, got True"),
        ({"kind": "Posterior"}, "kind must be one of ProbabilityRange, .*, got 'Posterior'"),
        ({"status": "fine"}, "status must be one of converged, .*, got 'fine'"),
        ({"min": {"lower": 0.3, "upper": 0.2}}, "min.lower must be <= upper, got 0.3 and 0.2"),
        (
            {"min": {"lower": 0.9, "upper": 0.9}, "max": {"lower": 0.1, "upper": 0.1}},
            "must not lie above max",
        ),
        ({"min": {"lower": "nan", "upper": 0.2}}, "min.lower must not be NaN, got 'nan'"),
        ({"max": {"lower": 0.9, "upper": 1.5}}, r"max must be lower and upper end in \[0, 1\]"),
        ({"argmin": [0.0]}, "argmin must have length 2, got 1"),
        ({"nodes": 1.0}, "nodes must be a whole number >= 0, got 1.0"),
        ({"seconds": -1.0}, "seconds must be >= 0, got -1.0"),
        ({"region": {"kind": "Ball"}}, "region must have its entries and no others"),
        ({"extra": 1}, r"ProbabilityRange must have its entries and no others, got \['extra'\]"),
    ],
)
def test_sentences(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(gc.InvalidInputError, match=told):
        answer_from_dict(answers()[0].to_dict() | changes)


def test_regions_are_made_by_their_constructors() -> None:
    good = gc.Ball([0.0, 1.0], 0.5, domain=(0, 1)).to_dict()
    for changes, told in (
        ({"norm": -3.0}, "norm must be 0, >= 1 or inf, got -3.0"),
        ({"radius": "inf"}, "radius must be finite"),
        ({"x": [2.0, 0.0]}, "x must lie in domain"),
        ({"features": [0, 0]}, "features must be distinct"),
        ({"scale": [1.0, 0.0]}, "scale must be > 0"),
        ({"scale": [1.0]}, "scale must have length 2, got 1"),
    ):
        with pytest.raises(gc.InvalidInputError, match=told):
            region_from_dict(good | changes)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_data_is_refused_with_a_sentence(data: Any) -> None:
    for read in (answer_from_dict, region_from_dict, Settings.from_dict, gc.Box.from_dict):
        with pytest.raises(gc.InvalidInputError):
            read(data)


def test_files_of_answers(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    some = answers()
    gc.save_answers(path, some[0])
    assert gc.load_answers(path) == some[:1]
    gc.save_answers(path, tuple(some))
    assert [type(a) for a in gc.load_answers(str(path))] == [type(a) for a in some]
    before = path.read_text()
    for wrong in ([some[0], 7], [{}]):
        with pytest.raises(gc.InvalidInputError, match="answers must be answers, got"):
            gc.save_answers(path, wrong)
    assert path.read_text() == before
    for changed, told in (
        (before.replace('"schema": 1', '"schema": 9', 1), "answer 0: schema must be 1, got 9"),
        (
            before.replace('"nodes"', '"status": 1, "nodes"', 1),
            "distinct names in an object, got 'status' twice",
        ),
        (before.replace("gpcert answers", "other"), "must be a results file of gpcert"),
        (before.replace('"version"', '"versions"', 1), "must hold format, version and a list of answers"),
        ("[" * 10**5, "must be a results file of gpcert"),
    ):
        path.write_text(changed)
        with pytest.raises(gc.InvalidInputError, match=told) as error:
            gc.load_answers(path)
        assert str(path) in str(error.value)


def test_a_file_keeps_what_rows_are_called(tmp_path: Path) -> None:
    """Of a batch: in the results of a command, and in a file of answers that no page can show."""
    post, path = small_model(), tmp_path / "answers.json"
    regions = gc.balls(
        dict(zip("uv", post.centres[:3].T, strict=True)) | {"who": ["Ö", "0", ""]}, 0.1, id="who"
    )
    for batch in (gc.certify(post, regions), gc.latent_range(post, regions)):
        batch.save(path)
        found = gc.load_answers(path)
        assert isinstance(found, gc.Answers)
        assert (found, found.ids, found.post) == (batch, ("Ö", "0", ""), None)
        assert list(found.to_pandas().index) == ["Ö", "0", ""]
        gc.save_answers(path, batch)
        assert gc.load_answers(path).ids == batch.ids
        batch[1:][[1, 0]].save(path)
        assert gc.load_answers(path).ids == ("", "0")
    gc.save_answers(path, list(batch))
    assert gc.load_answers(path).ids == (0, 1, 2)
    document = json.loads(path.read_text())
    for ids in (["a"], ["a", "b", 3], "abc", {"a": 1, "b": 2, "c": 3}):
        path.write_text(json.dumps(document | {"ids": ids}))
        with pytest.raises(gc.InvalidInputError, match="ids must be texts, one for each answer"):
            gc.load_answers(path)


def test_answers_from_files_are_reported_with_true_labels(tmp_path: Path) -> None:
    """Or refused in one sentence, where a page has no place for them."""
    X = np.array([[0.5, 0.1], [-0.5, 0.2], [0.4, -0.3]])
    boxes = [gc.Box(x - 0.1, x + 0.1) for x in X]
    path, page = tmp_path / "a.json", tmp_path / "a.html"
    post = small_model()
    label, truth = post.labels[1], [*post.predict(X[:2]), 1 - post.predict(X[2:])[0]]
    for verdicts in (gc.certify(post, gc.balls(X, 0.1)), gc.certify(post, X, boxes)):
        batch = gc.Answers(verdicts, ["a", "b", "c"], truth=truth)
        batch.save(path)
        found = gc.load_answers(path)
        assert (found, found.ids, found.truth) == (batch, batch.ids, batch.truth)
        assert type(found.truth[0]) is type(post.labels[0])
        gc.report(found, page)
        right = sum(v.status == "safe" for v in verdicts[:2])
        assert f"{right} of 3 right and proved safe" in page.read_text(encoding="utf-8")
    gc.save_answers(path, [gc.explain(post, x[None], 0.1, label) for x in X])
    gc.report(gc.load_answers(path), page)
    assert "mean influence" in page.read_text(encoding="utf-8")
    others = gc.explain(post, X, 0.1, label), gc.evaluate(post, X, truth, [0.1]), gc.latent_range(post, boxes)
    for answers in others:
        gc.save_answers(path, answers)
        found = gc.load_answers(path)
        assert (found[0], found.truth) == (answers[0] if isinstance(answers, gc.Answers) else answers, None)
        with pytest.raises(
            gc.InvalidInputError, match=f"explanations of one row, .* {type(found[0]).__name__}$"
        ):
            gc.report(found, page)
    path.write_text(path.read_text(encoding="utf-8").replace('"answers"', '"truth": [3], "answers"'))
    with pytest.raises(gc.InvalidInputError, match="truth must be texts, one for each answer"):
        gc.load_answers(path)


def test_a_verb_does_not_import_the_page() -> None:
    code = "import sys, gpcert.cli.verbs.certify; sys.exit('gpcert.pages.page' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_answer_without_points_comes_back() -> None:
    e = gc.Explanation.of(np.zeros((0, 2)), np.zeros((0, 2)), (), 1, None, About("", "", (0, 1), Settings()))
    assert answer_from_dict(e.to_dict()).claims() == ()


def test_evaluations_that_cannot_be_are_refused():
    post = small_model()
    X = post.centres[:3]
    told = gc.evaluate(post, X, [0, 1, 0], [0.1], max_nodes=2).to_dict()
    assert gc.Evaluation.from_dict(told).verdicts.dtype == "<U7"
    settings = told["about"]["settings"]
    hostile = [
        {"clean": -1.0},
        {"threshold": "-inf"},
        {"verdicts": [["banana"]] * 3},
        {"about": told["about"] | {"settings": settings | {"tolerance": -1.0}}},
        {"seconds": 10**5000},
    ]
    for change in hostile:
        with pytest.raises(gc.InvalidInputError, match="must"):
            gc.Evaluation.from_dict(told | change)
