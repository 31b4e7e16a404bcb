"""One-vs-rest of two classes: probabilities of two latents, so a threshold, and no margin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpcert as gc
from judge.proofs import rejected

RNG = np.random.default_rng(11)
X = RNG.standard_normal((4, 2))
CENTRES = RNG.standard_normal((7, 2))


def model(link: gc.Probit | gc.Logit) -> gc.Posterior:
    kernel = gc.RBF(1.2, 1.5)
    R = np.linalg.inv(kernel(CENTRES) + 0.5 * np.eye(7))
    R = 0.5 * (R + R.T)
    weights = R @ np.stack([CENTRES[:, 0], 0.3 - CENTRES[:, 0]], axis=1)
    return gc.Posterior(CENTRES, weights, np.stack([R, R]), kernel=kernel, likelihood=gc.OneVsRest(link))


@pytest.mark.parametrize("link", [gc.Probit(), gc.Logit()])
def test_every_question_about_two_classes_is_proved(link: gc.Probit | gc.Logit, tmp_path: Path) -> None:
    post, seen = model(link), set()
    labels = post.predict(X)
    for i, x in enumerate(X):
        ball = gc.Ball(x, 0.2 + 0.4 * i)
        both = [gc.probability_range(post, ball, c, proof=tmp_path / f"range{c}{i}.json") for c in (0, 1)]
        for threshold in (0.5, 0.3):
            named = tmp_path / f"verdict{i}-{threshold}.json"
            both.append(gc.certify(post, x, ball, threshold=threshold, proof=named))
            seen.add((threshold, both[-1].status))
        both.append(gc.certified_radius(post, x, max_radius=1.0, proof=tmp_path / f"radius{i}.json"))
        assert all(answer.proof.exact for answer in both)
    assert {(0.5, "safe"), (0.5, "unsafe"), (0.3, "safe")} <= seen
    assert all(file.exact for file in gc.evaluate(post, X, labels, [0.1, 0.4], proof=tmp_path).proof)
    assert len(gc.explain(post, X, 0.1, proof=tmp_path).proof) == len(X)
    gc.save(post, tmp_path / "model.safetensors")
    assert rejected(tmp_path / "model.safetensors", sorted(tmp_path.glob("*.json"))) == []
