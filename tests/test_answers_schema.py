"""Answers as data: what they record of model, settings and version."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

import gpcert as gc
from exact import small_model
from gpcert.settings import Settings
from judge.queries import OPTIONS, Query


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
