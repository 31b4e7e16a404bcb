"""What is proved of a box: more orders where features are many, and trials that cost only where they fail."""

from __future__ import annotations

import json
from operator import mul
from pathlib import Path

import numpy as np
import pytest
from flint import arb, arb_mat

import gpcert as gc
from gpcert.bounds.factory import BoundFactory
from gpcert.bounds.facts.model import Model
from gpcert.bounds.one.level import LevelBound
from gpcert.proofs import cover
from gpcert.proofs.cover import TRIALS, BoxProver, Envelope
from gpcert.proofs.facts import facts_of
from gpcert.proofs.leaf import Leaf
from gpcert.proofs.levels import Place, ProofLevel
from gpcert.proofs.links import levels_of
from gpcert.proofs.record import Node
from gpcert.proofs.two_classes import cube_of, placed, root_of
from gpcert.validation import Float
from helpers.oracle import bits
from judge.proofs import rejected

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 8))
POST = gc.GPClassifier(gc.RBF(2.0, 2.0), max_evals=0).fit(X, (X[:, 0] * X[:, 1] > 0).astype(int)).posterior_


def test_a_wide_box_of_many_features_is_proved_by_higher_orders(tmp_path: Path) -> None:
    """Whole, as the search does, instead of being halved again and again."""
    answer = gc.probability_range(POST, gc.Ball(X[0], 0.4), max_nodes=2, proof=tmp_path / "p.json")
    assert answer.proof.exact
    told = json.loads((tmp_path / "p.json").read_text())
    leaves = [leaf for claim in told["claims"] if claim.get("proof") for leaf in claim["proof"]["tree"]]
    assert any(len(leaf.get("forms", {"thetas": ()})["thetas"]) == 2 for leaf in leaves)
    gc.save(POST, tmp_path / "model.safetensors")
    assert rejected(tmp_path / "model.safetensors", [tmp_path / "p.json"]) == []


def test_only_trials_in_vain_are_counted() -> None:
    """A search of hundreds of boxes, each proved by the second or third leaf that is tried, is no reason to
    try less on the next.
    """
    region = gc.Ball(X[0], 0.3)
    (bound, _), moving = placed(BoundFactory(POST).pair, 1, region)
    assert isinstance(bound, LevelBound)
    levels = levels_of(gc.Probit(), facts_of(POST)[0], POST.kernel.prior_variance)
    prover = BoxProver(bound, lambda t: levels.at(t, False), cube_of(region, moving))
    root = root_of(bound, region, moving, None)
    p = float(POST.probability(X[:1])[0, 1])
    assert isinstance(prover.proof(root, levels.of(0.5 * p, False, False), False), Leaf)
    assert prover.left == TRIALS
    assert prover.proof(root, levels.of(0.5 + 0.5 * p, False, False), False) is None
    assert prover.left < TRIALS


def test_ends_of_the_variance_have_room_for_the_radii_of_balls(tmp_path: Path) -> None:
    """V8': a radius has 30 bits and rounds at every step of a sum over the centres."""
    for seed in (2, 11):
        rng = np.random.default_rng(seed)
        n, kernel = 3 + seed, gc.Matern32(0.3, 18.0)
        centres = rng.normal(size=(n, 2)) * 3.0
        R = np.linalg.inv(kernel(centres, centres) + np.diag(rng.uniform(0.2, 9.0, n)))
        weights, mean = rng.normal(size=n) * 0.1, -0.5
        post = gc.Posterior(
            centres, weights, 0.5 * (R + R.T), kernel=kernel, likelihood=gc.Logit(), mean=mean
        )
        folder = tmp_path / str(seed)
        gc.probability_range(post, [gc.Ball([0.1, -2.6], 8.0)], max_nodes=30, proof=folder)
        gc.save(post, folder / "model.safetensors")
        assert rejected(folder / "model.safetensors", sorted(folder.glob("*.json"))) == []


def prover_on(region: gc.Region) -> tuple[BoxProver, Node]:
    (bound, _), moving = placed(BoundFactory(POST).pair, 1, region)
    assert isinstance(bound, LevelBound)
    levels = levels_of(gc.Probit(), facts_of(POST)[0], POST.kernel.prior_variance)
    prover = BoxProver(bound, lambda t: levels.at(t, False), cube_of(region, moving))
    return prover, root_of(bound, region, moving, None)


def spread(small: Float, large: Float, model: Model) -> arb:
    """S with every kernel anywhere between two numbers."""
    k = [arb(float(a)).union(arb(float(b))) for a, b in zip(small, large, strict=True)]
    m = [x.mid() for x in k]
    e = [x - y for x, y in zip(k, m, strict=True)]
    r, s = (arb_mat([m, e]) * arb_mat(model.precision.tolist())).tolist()
    sums = [sum(map(mul, a, b), arb(0)) for a, b in ((m, r), (e, r), (e, s))]
    return model.variance - sums[0] - 2 * sums[1] - sums[2]


def test_ends_of_a_variance_hold_with_the_radii_of_a_checker() -> None:
    """V8' in balls: radii have 30 bits, and every sum over the centres rounds them up."""
    prover, root = prover_on(gc.Box(X[0] - 0.02, X[0] + 0.02))
    slice_ = prover.bound.slice
    with bits(100):
        S = spread(*slice_.extremes(root.lower, root.upper), slice_.model)
    low, high = prover._ends(root)
    assert 0.0 < low <= float(S.lower())
    assert high >= float(S.upper())
    assert high - low < 1.00001 * float(S.upper() - S.lower())


def test_no_lower_level_is_looked_for_where_the_mean_alone_proves_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a box of many lengthscales expansions say nothing: one leaf at the level of the mean tells that."""
    prover, root = prover_on(gc.Box([-30.0, *X[0, 1:]], [30.0, *X[0, 1:]]))
    tried: list[float] = []

    def leaf_on(place: Place, level: ProofLevel) -> Leaf | None:
        tried.append(level.t)
        return kept(place, level)

    kept = cover.leaf_on
    monkeypatch.setattr(cover, "leaf_on", leaf_on)
    level = prover.levels(0.0)
    found = prover.proof(root, level, True)
    assert isinstance(found, Envelope)
    assert found.level is not None
    assert sum(t < level.t for t in tried) <= 1
