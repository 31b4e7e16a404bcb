"""Where the first cover proves less than the answer: patience, weaker claims, smaller balls, clipped S."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpcert as gc
from gpcert.bounds.factory import BoundFactory
from gpcert.claims import around
from gpcert.proofs.file import ProofText
from gpcert.proofs.record import Goal, Node
from gpcert.proofs.softmax import _LabelCover
from helpers.exact import small_model
from judge import queries
from judge.proofs import provable, rejected

POST = small_model()
TOLD = {"t": "0x0.0p+0", "tree": []}


@pytest.fixture(autouse=True)
def _time_for_exports(monkeypatch: pytest.MonkeyPatch) -> None:
    """How much an export proves must not depend on what else the machine does."""
    monkeypatch.setattr(queries, "SECONDS", dict.fromkeys(queries.OPTIONS, 30.0))


def answered(
    monkeypatch: pytest.MonkeyPatch, proved: Callable[[Goal], float]
) -> tuple[ProofText, list[Goal]]:
    """A file whose attempts prove these numbers; and what was tried."""
    tried: list[Goal] = []

    def attempt(self: ProofText, goal: Goal) -> tuple[float, Any]:
        tried.append(goal)
        return proved(goal), TOLD

    monkeypatch.setattr(ProofText, "_attempt", attempt)
    return ProofText(POST, BoundFactory(POST)), tried


@pytest.mark.parametrize(
    "kernel", [gc.RBF(1.0, 1.0), gc.Matern32(1.0, 1.0), gc.RationalQuadratic(1.0, 1.0, 2.0)]
)
@pytest.mark.parametrize("likelihood", ["probit", "logit"])
@pytest.mark.parametrize(("q", "at"), [(6.0, 0.02), (6.0, 0.8), (2.0, 0.5)])
def test_variances_below_zero_cost_a_file_nothing(
    kernel: gc.Kernel, likelihood: str, q: float, at: float, tmp_path: Path
) -> None:
    """R = 6/k: S is -5 at the centre and passes 0 nearby; what the search knows, the file proves."""
    post = gc.Posterior([[0.0]], [1.5], [[q]], kernel=kernel, likelihood=likelihood)
    box = gc.Box([at - 0.05], [at + 0.05])
    for label in (0, 1):
        answer = gc.probability_range(post, box, label, proof=tmp_path / f"{label}.json")
        assert answer.proof.lower >= answer.lower - 0.001
        assert answer.proof.upper <= answer.upper + 0.001
    gc.save(post, tmp_path / "model.safetensors")
    assert rejected(tmp_path / "model.safetensors", sorted(tmp_path.glob("*.json"))) == []


@pytest.mark.parametrize("number", [302330, 310821, 310375])
def test_ranges_of_which_files_proved_less_by_more_than_0_005(number: int, tmp_path: Path) -> None:
    """A mean far from all centres where the precision is negative; variances below 0 on boxes that no halving
    makes small.
    """
    post, (answer, *_) = provable(number, turn=number).ask(tmp_path)
    lower = answer.lower if isinstance(answer, gc.ProbabilityRange) else answer.margin.lower
    assert answer.proof.lower >= lower - 0.005
    gc.save(post, tmp_path / "model.safetensors")
    assert rejected(tmp_path / "model.safetensors", [Path(answer.proof.path)]) == []


@pytest.mark.parametrize(
    ("number", "family"),
    [(900502, "kernel"), (900545, "formula"), (1101290, "kernel"), (1101515, "kernel")],
)
def test_far_from_all_centres_kernels_bound_the_variance(number: int, family: str, tmp_path: Path) -> None:
    """V8': regions of many lengthscales on which S hardly changes; files lacked 0.004 to 0.09 there."""
    post, (answer, *_) = provable(number, family).ask(tmp_path)
    assert answer.proof.lower >= answer.lower - 1e-6
    assert answer.proof.upper <= answer.upper + 1e-6
    gc.save(post, tmp_path / "model.safetensors")
    assert rejected(tmp_path / "model.safetensors", [Path(answer.proof.path)]) == []


def test_a_second_attempt_splits_although_halving_seemed_to_help_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = provable(330229, "norm 0", turn=1)
    post, (answer, *_) = query.ask(tmp_path)
    assert answer.proof.exact
    gc.save(post, tmp_path / "model.safetensors")
    assert rejected(tmp_path / "model.safetensors", [Path(answer.proof.path)]) == []
    attempt = ProofText._attempt
    monkeypatch.setattr(ProofText, "_attempt", lambda self, goal: attempt(self, goal._replace(patient=False)))
    assert not query.ask(tmp_path)[1][0].proof.exact


def test_weaker_claims_are_tried_where_less_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    box = gc.Box([0.0, 0.0], [1.0, 1.0])
    text, tried = answered(monkeypatch, lambda goal: goal.value if goal.value <= 0.5 else 0.1)
    assert text.at_least(1, box, 0.503) == pytest.approx(0.499)
    assert [goal.value for goal in tried] == pytest.approx([0.503, 0.499, 0.503, 0.5025])
    assert [goal.patient for goal in tried] == [False, False, True, True]
    text, tried = answered(monkeypatch, lambda goal: goal.value if goal.value <= 0.50299 else 0.1)
    assert text.at_least(1, box, 0.503) == pytest.approx(0.50297)  # nearer and nearer
    text, _ = answered(monkeypatch, lambda goal: goal.value if goal.value >= 0.5 else 0.9)
    assert text.at_most(1, box, 0.497) == pytest.approx(0.501)
    text, _ = answered(monkeypatch, lambda goal: 0.4995)  # nearer than the next one: that is it
    assert text.at_least(1, box, 0.5) == 0.4995
    text, _ = answered(monkeypatch, lambda goal: 0.0)
    assert (text.at_least(1, box, 0.5), text.claims) == (0.0, [])


def test_along_one_feature_patience_comes_before_weaker_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    text, tried = answered(monkeypatch, lambda goal: goal.value if goal.patient else 0.1)
    assert text.at_least(1, gc.Box([0.0, 0.0], [1.0, 0.0]), 0.503) == 0.503
    assert [goal.patient for goal in tried] == [False, True]
    text, tried = answered(monkeypatch, lambda goal: min(goal.value, 0.4995))
    assert text.at_least(1, gc.Box([0.0, 0.0], [1.0, 0.0]), 0.5) == 0.4995  # the same is not tried again
    assert [goal.value for goal in tried] == [0.5, 0.5, 0.49997]


@pytest.mark.parametrize(
    ("number", "family"),
    [
        (1200000, "kernel"),
        (1200133, "kernel"),
        (1200090, "core"),
        (902367, "core"),  # P is enclosed well at points that the search found only
        (902054, "core"),  # and better as the search enclosed it
        (900162, "core"),  # sums are rounded once
        (902144, "core"),  # the curve of a logistic level to 1e-15
    ],
)
def test_points_make_up_for_what_bounds_of_an_explanation_lack(
    number: int, family: str, tmp_path: Path
) -> None:
    """Extremes between the points at which explain evaluates P."""
    post, (answer, *_) = provable(number, family).ask(tmp_path)
    assert isinstance(answer, gc.Explanation)
    assert all(file.exact for file in answer.proof)
    gc.save(post, tmp_path / "model.safetensors")
    assert rejected(tmp_path / "model.safetensors", [Path(file.path) for file in answer.proof]) == []


def test_the_better_of_two_attempts_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    box = gc.Box([0.0, 0.0], [1.0, 1.0])
    for first, second in ((0.4999, 0.3), (0.3, 0.4999)):
        text, _ = answered(monkeypatch, lambda goal, pair=(first, second): pair[goal.patient])
        assert text.at_least(1, box, 0.5) == 0.4999


@pytest.mark.parametrize(("norm", "safe", "edge", "found"), [(2.0, 1.0, 0.7, 0.7), (0.0, 7.0, 5.5, 5.0)])
def test_the_largest_ball_that_can_be_proved_is_claimed_alone(
    norm: float, safe: float, edge: float, found: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ball = gc.Ball(np.zeros(8), 0.0, norm, domain=(-1, 1))
    text, tried = answered(monkeypatch, lambda goal: 0.5 if goal.region.radius <= edge else -np.inf)
    fewer = np.floor if norm == 0 else float
    radius = text.largest(1, lambda r: around(ball, r), safe, 0.5, None, fewer)
    assert found - 0.002 * safe <= radius <= found
    assert len(text.claims) == len(text._entries) == 1
    assert len(tried) < 18
    text, _ = answered(monkeypatch, lambda goal: -np.inf)
    assert (text.largest(1, lambda r: around(ball, r), safe, 0.5, None, fewer), text.claims) == (0.0, [])


def test_a_box_that_misses_a_ball_is_a_leaf_whoever_wins_there() -> None:
    """Of a softmax as of two classes; only points of the ball are of interest."""
    post, (answer, *_) = provable(340367, "softmax", turn=68073).ask()
    box, c = answer.region.box(), answer.label
    covering = _LabelCover(post, c, answer.region, np.ones(2, dtype=bool), 1e9, False)
    corner = Node(box.lower, box.lower + 0.05, box.lower)
    leaf = covering.leaf(corner, True)
    assert leaf is not None
    assert leaf.proved
