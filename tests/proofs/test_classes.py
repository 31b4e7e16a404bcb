"""Sums of classes at the edge of what they prove: a checker, who knows their rests better, accepts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpcert as gc
from gpcert.bounds.factory import BoundFactory
from gpcert.model_file import file_digest
from gpcert.proofs.document import document, everywhere, real, region_entry
from gpcert.proofs.one_vs_rest import JointProver, SeveralClasses
from gpcert.proofs.two_classes import cube_of, placed, root_of
from judge.proofs import rejected


def cancelling() -> gc.Posterior:
    """Three latents whose weights cancel, so that rounding hides what the orders from three on are."""
    rng = np.random.default_rng(8)
    X = 0.6 * rng.normal(size=(29, 1))
    K = gc.RBF()(X)
    R = np.stack([np.linalg.inv(K + np.diag(rng.uniform(0.3, 3.0, len(X)))) for _ in range(3)])
    small = np.linalg.eigh(K)[1][:, :14]
    W = 0.3 * rng.normal(size=(29, 3)) + 3e3 * small @ rng.normal(size=(14, 3))
    W *= 3.0 / max(3.0, float(np.abs(K @ W).max()))
    return gc.Posterior(X, W, R, kernel=gc.RBF(), likelihood=gc.OneVsRest(gc.Logit()))


def stiff(link: object) -> gc.Posterior:
    """Three latents of nearly no noise: residuals of 1e-5, variances next to 0 that rounding moves."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(24, 2))
    K = gc.RBF()(X)
    R = np.stack([np.linalg.inv(K + np.diag(10.0 ** rng.uniform(-11.0, -9.0, len(X)))) for _ in range(3)])
    W = np.stack([each @ rng.uniform(-1.0, 1.0, len(X)) for each in R], axis=1)
    W *= 2.0 / float(np.abs(K @ W).max())
    return gc.Posterior(
        X, 0.01 * W, 0.5 * (R + R.transpose(0, 2, 1)), kernel=gc.RBF(), likelihood=gc.OneVsRest(link)
    )


CASES = [
    (cancelling(), gc.Ball([0.3], 0.17)),
    *((stiff(link), gc.Box([0.2, -0.3], [0.4, -0.15])) for link in (gc.FiveErf(), gc.Probit(), gc.Logit())),
]


@pytest.mark.parametrize(("post", "region"), CASES)
def test_a_sum_at_its_edge_is_accepted(post: gc.Posterior, region: gc.Ball | gc.Box, tmp_path: Path) -> None:
    """The largest number that one comparison proves, by bisection: multipliers fit it to the last digits."""
    model, files = tmp_path / "model.safetensors", []
    gc.save(post, model)
    factory = BoundFactory(post)
    subject, ((share, _), moving) = SeveralClasses(post, factory), placed(factory.pair, 0, region)
    bound = share.apart
    joint = JointProver(bound, subject._levels, cube_of(region, moving), False)
    root = root_of(bound, region, moving, None)
    for place in list(joint._prover(0, True).places(root))[:2]:
        low, high, proof = 0.0, 1.0, None
        for _ in range(45):
            middle = 0.5 * (low + high)
            found, _ = joint._summed(root, place.reference, place.sharp, middle, None)
            if found is None:
                high = middle
            else:
                low, proof = middle, {"tree": [{"joint": [found.entry(region)], "value": real(middle)}]}
        assert proof is not None
        claim = everywhere(0, 0, ">=", low, proof, "probability")
        files.append(tmp_path / f"{len(files)}.json")
        files[-1].write_text(document(file_digest(post), {}, subject.facts, [region_entry(region)], [claim]))
    assert rejected(model, files) == []


@pytest.mark.parametrize(("half", "few"), [(25.0, True), (0.3, False)])
def test_a_wide_box_is_compared_from_one_reference(
    half: float, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the first one lacks far too much no other will do, and halves are tried the sooner."""
    post, region = cancelling(), gc.Box([-half], [half])
    factory, tried = BoundFactory(post), []
    subject, ((share, _), moving) = SeveralClasses(post, factory), placed(factory.pair, 0, region)
    summed = JointProver._summed

    def counted(self: JointProver, *asked: Any) -> Any:
        tried.append(asked)
        return summed(self, *asked)

    monkeypatch.setattr(JointProver, "_summed", counted)
    joint = JointProver(share.apart, subject._levels, cube_of(region, moving), False)
    assert joint.proof(root_of(share.apart, region, moving, None), 0.999)[0] is None
    assert (len(tried) == 1) == few
