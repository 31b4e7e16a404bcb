"""Two answers to one question say together all that either says, and nothing more."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import gpcert as gc
from gpcert.results import ProofFile
from gpcert.settings import Settings
from gpcert.store import merge
from gpcert.store.joining import joined
from helpers.exact import small_model

POST = small_model()
X = np.random.default_rng(3).standard_normal((4, 2))
BALL = gc.Ball(X[0], 0.6)
FILE = ProofFile("p.json", "0" * 64, "1" * 64, True, 0.0, 1.0)


def with_settings(answer, **settings):
    return replace(answer, about=replace(answer.about, settings=Settings(**settings)))


def ranges():
    """One range, known more and less, by searches that were ended."""
    sharp = gc.probability_range(POST, BALL, tolerance=1e-5)
    rough = [gc.probability_range(POST, BALL, tolerance=1e-5, max_nodes=n) for n in (0, 1, 2, 4, 8, 16)]
    half = replace(
        sharp,
        status=gc.Status.NODES,
        max=gc.Enclosure(sharp.max.lower - 0.03, sharp.max.upper + 0.01),
        about=replace(sharp.about, settings=Settings(1e-5, max_nodes=3.0)),
    )
    return [*rough, half, sharp]


def mirrored(answer):
    """The same with the other end open."""
    return replace(
        answer,
        min=gc.Enclosure(answer.min.lower - 0.015, answer.min.upper),
        max=gc.Enclosure(answer.max.lower + 0.025, answer.max.upper - 0.01),
    )


def test_a_range_has_the_narrower_of_each_two_ends_with_its_point():
    found = ranges()
    half = found[-2]
    for old, new in [
        *pairwise(found),
        *pairwise(found[::-1]),
        (half, mirrored(half)),
        (mirrored(half), half),
    ]:
        whole = joined(old, new)
        for end in ("min", "max"):
            a, b, c = (getattr(each, end) for each in (old, new, whole))
            assert (c.lower, c.upper) == (max(a.lower, b.lower), min(a.upper, b.upper))
        for point, end in (("argmin", "min"), ("argmax", "max")):
            side = "upper" if end == "min" else "lower"
            of = next(
                x for x in (old, new) if getattr(getattr(x, end), side) == getattr(getattr(whole, end), side)
            )
            assert np.array_equal(getattr(whole, point), getattr(of, point))
        narrow = max(whole.min.width, whole.max.width) <= whole.tolerance
        assert (whole.status is gc.Status.CONVERGED) == narrow
        assert joined(whole, old) is joined(whole, new) is whole
        assert gc.results.answer_from_dict(whole.to_dict()) == whole


def test_the_settings_are_those_for_which_the_whole_is_as_narrow_as_asked():
    """An answer at 0.02, then a sharper search that was ended: one end narrower, one wider."""
    sharp = gc.probability_range(POST, BALL, tolerance=1e-5)
    good = with_settings(
        replace(
            sharp,
            min=gc.Enclosure(max(0.0, sharp.min.lower - 0.01), sharp.min.upper),
            max=gc.Enclosure(sharp.max.lower - 0.015, sharp.max.upper),
        ),
        tolerance=0.02,
    )
    late = with_settings(
        replace(
            sharp,
            max=gc.Enclosure(sharp.max.lower - 0.0259, sharp.max.upper),
            status=gc.Status.NODES,
            nodes=64,
        ),
        tolerance=1e-4,
        max_nodes=64.0,
    )
    for pair in ((good, late), (late, good)):
        whole = joined(*pair)
        assert (whole.status, whole.tolerance) == (gc.Status.CONVERGED, 0.02)
        assert (whole.min, whole.max) == (sharp.min, good.max)
    # Both were ended, and what they say together is narrow enough for the first.
    near = gc.Enclosure(sharp.max.lower - 0.001, sharp.max.upper)
    ends = gc.Enclosure(late.min.lower - 0.015, late.min.upper), near
    ended = with_settings(replace(late, min=ends[0], max=ends[1]), tolerance=0.02, max_nodes=5.0)
    assert max(ended.min.width, ended.max.width) <= 0.02
    whole = joined(late, ended)
    assert (whole.status, whole.tolerance) == (gc.Status.CONVERGED, 0.02)


def test_a_store_serves_no_answer_that_is_worse_than_the_one_it_had(tmp_path):
    for k, tolerance in enumerate((0.02, 0.1, 0.2)):
        for nodes in (1, 2, 4, 8):
            path = tmp_path / f"{k}-{nodes}.db"
            first = gc.probability_range(POST, BALL, tolerance=tolerance, store=path)
            late = gc.probability_range(POST, BALL, tolerance=1e-4, max_nodes=nodes, store=path)
            again = gc.probability_range(POST, BALL, tolerance=tolerance, store=path)
            assert again.status is gc.Status.CONVERGED
            for end in ("min", "max"):
                ends = [getattr(each, end) for each in (first, late, again)]
                assert ends[2].width <= min(tolerance, ends[0].width, ends[1].width)


def test_stores_put_together_have_the_ends_of_both(tmp_path):
    half = ranges()[-2]
    for name, answer in (("1", half), ("2", mirrored(half))):
        store = gc.Store(tmp_path / f"{name}.db")
        store.add_model(POST)
        store.put([answer])
    one, two = (gc.Store(tmp_path / f"{name}.db") for name in "12")
    assert merge(one, two) == (1, 0)
    (whole,) = one.load()
    assert whole == joined(half, mirrored(half))
    assert one.answers()["width"] == [whole.min.width + whole.max.width]


def test_a_proof_stays_where_it_proves_these_numbers():
    half = replace(ranges()[-2], proof=FILE)
    assert joined(half, mirrored(half)).proof is None
    bare = replace(half, proof=None)
    for pair in ((half, bare), (bare, half)):
        assert joined(*pair).proof == FILE
    wide = replace(half, min=gc.Enclosure(0.0, half.min.upper), proof=FILE)
    assert joined(bare, wide) is bare
    assert joined(wide, bare).proof is None


def test_what_is_decided_comes_before_what_is_not():
    safe = gc.certify(POST, X[0], gc.Ball(X[0], 0.01))
    assert safe.status is gc.VerdictStatus.SAFE
    open_ = replace(
        safe,
        status=gc.VerdictStatus.UNKNOWN,
        ended=gc.Status.NODES,
        margin=gc.Enclosure(-0.5, safe.margin.upper - 1e-9),
    )
    for pair in ((safe, open_), (open_, safe)):
        whole = joined(*pair)
        assert whole.status is gc.VerdictStatus.SAFE
        assert (whole.margin.lower, whole.margin.upper) == (safe.margin.lower, open_.margin.upper)
    other = replace(open_, margin=gc.Enclosure(-0.2, safe.margin.upper))
    assert joined(open_, other).margin == gc.Enclosure(-0.2, open_.margin.upper)
    assert joined(open_, other).status is gc.VerdictStatus.UNKNOWN


def test_a_radius_has_the_larger_safe_and_the_smaller_refuted_one():
    fine = gc.certified_radius(POST, X[0], rtol=1e-3, max_radius=5.0)
    assert fine.counterexample is not None
    one = replace(fine, safe=0.5 * fine.safe, status=gc.Status.TIME)
    far = replace(fine, unsafe=2.0 * fine.unsafe, status=gc.Status.TIME)
    for pair in ((one, far), (far, one)):
        whole = joined(*pair)
        assert (whole.safe, whole.unsafe, whole.status) == (fine.safe, fine.unsafe, gc.Status.CONVERGED)
        assert np.array_equal(whole.counterexample, fine.counterexample)
    assert joined(fine, one) is fine


def test_influences_and_evaluations_join_entry_by_entry():
    influences = gc.explain(POST, X[:1], 0.2)
    d = influences.lower.shape[1]
    odd = (np.arange(d) % 2 == 1)[None]
    low, high = influences.lower, influences.upper
    ends = (np.where(odd, low - 0.1, low), high), (low, np.where(odd, high, high + 0.1))
    told = influences.balls, influences.label, influences.feature_names, influences.about
    one, other = (type(influences).of(*each, *told) for each in ends)
    whole = joined(one, other)
    assert np.array_equal(whole.lower, influences.lower)
    assert np.array_equal(whole.upper, influences.upper)
    found = gc.evaluate(POST, X[:1], POST.predict(X[:1]), [0.01, 0.05, 5.0])
    assert found.verdicts.tolist() == [["safe", "safe", "unsafe"]]
    blank = {"verdicts": np.array([["safe", "unknown", "unknown"]]), "safe": np.array([0.01])}
    less = replace(
        found,
        **blank,
        unsafe=np.array([np.inf]),
        counterexamples=np.full((1, X.shape[1]), np.nan),
        certified=np.array([1.0, 0.0, 0.0]),
        attacked=np.ones(3),
    )
    for pair in ((found, less), (less, found)):
        whole = joined(*pair)
        assert whole.verdicts.tolist() == found.verdicts.tolist()
        assert (whole.safe, whole.unsafe) == (found.safe, found.unsafe)
        assert np.array_equal(whole.attacked, found.attacked)


def contradictory(kind):
    if kind == "range":
        answer = ranges()[-1]
        return answer, replace(answer, min=gc.Enclosure(answer.min.upper + 0.01, answer.min.upper + 0.02))
    if kind == "verdict":
        answer = gc.certify(POST, X[0], gc.Ball(X[0], 0.01))
        margin, there = gc.Enclosure(-0.1, -0.05), {"counterexample": X[0], "probability": 0.4}
        return answer, replace(answer, status=gc.VerdictStatus.UNSAFE, margin=margin, argmin=X[0], **there)
    answer = gc.certified_radius(POST, X[0], rtol=1e-3, max_radius=5.0)
    return answer, replace(answer, safe=0.1 * answer.safe, unsafe=0.5 * answer.safe)


@pytest.mark.parametrize("kind", ["range", "verdict", "radius"])
def test_of_answers_that_contradict_each_other_neither_is_kept(kind, tmp_path):
    one, other = contradictory(kind)
    store = gc.Store(tmp_path / "runs.db")
    store.add_model(POST)
    store.put([one])
    assert joined(one, other) is joined(other, one) is None
    with pytest.warns(gc.ContradictionWarning, match="contradict each other and are not kept"):
        store.put([other])
    assert list(store.load()) == []
    store.put([one])
    assert list(store.load()) == [one]


def test_a_whole_is_as_old_as_its_older_half():
    half = ranges()[-2]
    old = replace(half, about=replace(half.about, version="0.9.10"))
    new = replace(mirrored(half), about=replace(half.about, version="0.10.2"))
    assert joined(old, new).version == joined(new, old).version == "0.9.10"


@pytest.mark.parametrize("values", [("ill", "well"), (-1, 1), (2, 1), (True, False)])
def test_an_evaluation_is_asked_again_whatever_its_classes_are_called(values, tmp_path):
    """A point that was not asked has no label, which is no class: neither a text nor -1."""
    post, path = small_model(classes=list(values)), tmp_path / "runs.db"
    X, y = post.centres[:3], [values[0]] * 3
    for nodes in (0, 1, 50):
        found = gc.evaluate(post, X, y, [0.05, 0.4], max_nodes=nodes, store=path)
        assert set(found.labels.tolist()) <= set(values)
    whole = [answer for answer in gc.Store(path).load() if isinstance(answer, gc.Evaluation)]
    assert len(whole) == 3
