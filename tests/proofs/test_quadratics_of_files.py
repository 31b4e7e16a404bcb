"""Multipliers of quadratics over leaves: never above the minimum, and near it where they can be."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np

import gpcert as gc
from gpcert.bounds.factory import shape_of
from gpcert.proofs.leaf import multipliers
from judge.proofs import provable, rejected

RNG = np.random.default_rng(7)


def test_concave_quadratics_over_boxes_in_a_ball_of_norm_1_are_sharp() -> None:
    """The minimum lies at a corner; the ball alone would make them convex at a price that has nothing to do
    with the size of the box.
    """
    shape = shape_of(gc.Ball(np.zeros(3), 1.0, norm=1), np.ones(3, dtype=bool))
    for _ in range(40):
        middle, half = 0.2 * RNG.uniform(-1, 1, 3), 10.0 ** RNG.uniform(-3, -1)
        low, high = middle - half, middle + half
        domain = shape.domain(low, high, middle, np.ones(3))
        assert domain is not None
        g, H = RNG.normal(size=3), -np.diag(10.0 ** RNG.uniform(-1, 2, 3))
        corners = np.array(list(product((-half, half), repeat=3)))
        least = float((corners @ g + 0.5 * np.einsum("ij,jk,ik->i", corners, H, corners)).min())
        found = multipliers(domain, g, H, np.inf)
        assert least - 1e-5 * abs(least) <= found.value <= least + 1e-12


def test_quadratics_of_one_coordinate_are_exact() -> None:
    """Convex ones inside and at an end, and others."""
    shape = shape_of(gc.Box([0.0], [1.0]), np.ones(1, dtype=bool))
    for _ in range(200):
        low, high = np.sort(RNG.uniform(-1, 1, (2, 1)), axis=0)
        domain = shape.domain(low, high, np.zeros(1), np.ones(1))
        assert domain is not None
        g, H = RNG.normal(size=1), RNG.normal(size=(1, 1)) * RNG.choice([0.0, 1.0, 30.0])
        inner = np.clip(-g / H[0], low, high) if H[0, 0] > 0.0 else low
        d = np.array([low[0], high[0], inner[0]])
        least = float((g[0] * d + 0.5 * H[0, 0] * d * d).min())
        assert abs(multipliers(domain, g, H, np.inf).value - least) <= 1e-14 * (1.0 + abs(H[0, 0]))


def test_a_ball_of_norm_1_is_proved_as_reported(tmp_path: Path) -> None:
    """0.03 was lost of the upper end."""
    post, (answer, *_) = provable(302375, turn=302375).ask()
    found = gc.probability_range(post, answer.region, answer.label, max_nodes=30, proof=tmp_path / "p.json")
    assert found.proof.exact
    gc.save(post, tmp_path / "model.safetensors")
    assert rejected(tmp_path / "model.safetensors", [tmp_path / "p.json"]) == []


def test_chord_or_bent_tangent_is_chosen_as_the_checker_chooses(tmp_path: Path) -> None:
    """From a corner of its box a leaf sees both end alike: the multipliers fitted one, the checker took the
    other.
    """
    post, (answer, *_) = provable(530200, "formula", turn=128).ask(tmp_path)
    gc.save(post, tmp_path / "model.safetensors")
    files = [Path(file.path) for file in answer.proof]
    assert len(files) == 1
    assert rejected(tmp_path / "model.safetensors", files) == []
