"""Batches through the engine: true, never contradicting single answers, the same bits for the same batch."""

from __future__ import annotations

import numpy as np
import pytest

import gpcert as gc
import gpcert.engine.root
from gpcert.errors import InvalidInputError
from gpcert.questions import rooted
from gpcert.regions import hulls_of
from gpcert.settings import Settings
from helpers.batches import contradictions, random_questions
from helpers.exact import refute, small_model

LIMITS = {"max_nodes": 4, "n_jobs": 1}


def ends(answer):
    return answer.min, answer.max, answer.nodes, answer.argmin.tolist(), answer.argmax.tolist()


def test_most_of_an_easy_batch_is_settled_at_the_root():
    post = small_model(n=30, d=3)
    regions = [gc.Ball(x, 0.05) for x in np.random.default_rng(1).standard_normal((40, 3))]
    (found,) = rooted.ranges(post, regions, np.ones(len(regions)), Settings(0.02), "cpu")
    assert found.numbers.tolist() == list(range(40))
    assert (found.upper - found.lower <= 0.02).all(axis=0).sum() > 30
    (decided,) = rooted.decisions(post, regions, np.ones(40, dtype=np.intp), 0.5, Settings(0.02), "cpu")
    assert ((decided.lower > 0.5) | (decided.upper < 0.5)).sum() > 30


def test_the_same_batch_gives_the_same_bits_and_neighbours_change_little():
    rng = np.random.default_rng(7)
    post, regions = random_questions(rng, 24)
    one, two = (gc.probability_range(post, regions, **LIMITS) for _ in range(2))
    assert list(map(ends, one)) == list(map(ends, two))
    fewer = gc.probability_range(post, regions[:17], **LIMITS)
    assert contradictions(fewer, one[:17]) == []


def test_columns_are_the_boxes_of_the_regions():
    rng = np.random.default_rng(8)
    x = rng.standard_normal((20, 3))
    domain = (x.min(axis=0) - 0.01, np.array([np.inf, 9.0, 9.0]))
    plain = [gc.Ball(each, 0.1 * i, features=[0, 2] if i % 2 else None) for i, each in enumerate(x)]
    cut = [gc.Ball(each, 0.3, domain=domain) for each in x]
    scaled = [gc.Ball(each, 0.3, scale=[0.1, 1.0, 7.0]) for each in x]
    for regions in (plain, plain + cut, scaled, [*plain, gc.Box(x[0], x[0] + 1.0)]):
        columns = hulls_of(regions)
        for i, region in enumerate(regions):
            outer, inner = region.box(), region.inner_box()
            for column, end in zip(
                columns, (outer.lower, outer.upper, inner.lower, inner.upper), strict=True
            ):
                assert column[i].tolist() == end.tolist()


def test_limits_progress_and_interrupts_keep_their_meaning(monkeypatch):
    post = small_model(n=30, d=3)
    regions = [gc.Ball(x, 0.05) for x in np.random.default_rng(1).standard_normal((20, 3))]
    assert all(answer.nodes == 0 for answer in gc.probability_range(post, regions, max_nodes=0, n_jobs=1))
    told = []
    answers = gc.probability_range(post, regions, progress=told.append, n_jobs=1)
    assert {p.index for p in told} == set(range(20))
    assert {p.total for p in told} == {20}
    assert all(answer.status == "converged" for answer in answers)
    stopped = gc.probability_range(post, regions, progress=lambda p: True, n_jobs=1)
    assert all(answer.status in ("converged", "interrupted") for answer in stopped)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(rooted, "smallest", interrupted)
    monkeypatch.setattr(rooted, "verdicts", interrupted)
    assert all(answer.status == "interrupted" for answer in gc.probability_range(post, regions))
    X = np.stack([region.centre for region in regions])
    assert all(verdict.ended == "interrupted" for verdict in gc.certify(post, X, regions))


@pytest.mark.parametrize("device", ["gpu", None, 3])
def test_a_device_has_one_of_three_names(device):
    with pytest.raises(InvalidInputError, match="device must be 'auto', 'cpu', 'cuda', got"):
        gc.probability_range(small_model(), gc.Ball([0.0, 0.0], 0.1), device=device)


def test_labels_are_as_many_as_regions():
    regions = [gc.Ball([0.0, 0.0], 0.1)] * 20
    with pytest.raises(
        InvalidInputError, match="label must be one class, or one for each of 20 regions, got 1000"
    ):
        gc.probability_range(small_model(), regions, label=[1] * 1000)


def test_questions_that_ask_others_pass_the_device_on():
    """Where "auto" chooses a GPU, nobody could refuse it."""
    clf = gc.GPClassifier(max_evals=0).fit({"a": [0.0, 1.0, 2.0, 3.0]}, [0, 0, 1, 1])
    for ask in (
        lambda **option: gc.certify_table(clf, {"a": [0.5, 2.5]}, radii=[0.1], **option),
        lambda **option: gc.robustness(clf, gc.balls({"a": [0.5, 2.5]}, 0.1), **option),
    ):
        assert len(ask(device="cpu")) == 2
        with pytest.raises(InvalidInputError, match="device must be 'auto', 'cpu', 'cuda', got 'gpu'"):
            ask(device="gpu")


def test_sides_too_wide_for_doubles_leave_their_rows_to_the_search():
    """Their widths overflow; nothing may be concluded as if they stood still, and nobody is warned."""
    post = small_model()
    regions = [gc.Box([-1.0, 0.0], [-0.9 + 0.01 * i, 0.1]) for i in range(18)]
    wide = gc.Box([-1.2e308, 0.0], [1.2e308, 0.1])
    both = [*regions, wide]
    (roots,) = rooted.ranges(post, both, np.ones(len(both)), Settings(0.02), "cpu")
    assert roots.numbers.tolist() == list(range(18))
    answer = gc.probability_range(post, [*regions, wide], **LIMITS)[-1]
    inside = post.probability(np.column_stack([np.linspace(-3.0, 3.0, 50), np.full(50, 0.05)]))[:, 1]
    assert answer.lower <= inside.min()
    assert inside.max() <= answer.upper


@pytest.mark.parametrize("question", ["_planes", "values_of"])
def test_a_bound_that_a_value_contradicts_is_given_up_and_told(question, monkeypatch):
    """A fault put into the engine: its rows are answered by the search instead, and are true."""
    post, regions = small_model(mean=0.5), [gc.Ball([0.1 * i, 0.0], 0.05) for i in range(16)]
    too_much = {
        "_planes": lambda *given: given[5] * 0.0 + 0.999,
        "values_of": lambda sums, *_: sums.order_two() + 9.0,
    }
    monkeypatch.setattr(gpcert.engine.root, question, too_much[question])
    with pytest.warns(gc.ContradictionWarning, match="nothing is claimed"):
        found = gc.probability_range(post, regions, n_jobs=1)
    monkeypatch.undo()
    assert contradictions(found, gc.probability_range(post, list(regions), n_jobs=1)) == []
    assert all(
        refute(post, region, answer, np.random.default_rng(0)) == []
        for region, answer in zip(regions, found, strict=True)
    )
