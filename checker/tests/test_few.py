"""V14: a ball of norm 0 is the union of what its supports can do."""

from __future__ import annotations

import json
import random
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import pytest

from bases import bases
from gpcert_check.balls import read_region
from gpcert_check.few import MOST_SUPPORTS, covers, prove, restricted
from gpcert_check.reading import Reject
from making import ball, box, sample
from tampers import accepted, true


def region(count: float, moving: int = 4, features=None):
    ends = [[-0.5] * moving + [0.1], [0.6] * moving + [0.1]]
    return read_region(ball([0.1] * (moving + 1), count, "0", features, ends), moving + 1)


def test_a_support_is_a_box_or_a_smaller_ball() -> None:
    whole = region(2.0)
    part = restricted(whole, [1, 3])
    assert (part.moving, type(part).__name__) == ([1, 3], "Box")
    assert part.lower == [whole.lower[j] if j in (1, 3) else whole.lower[4] for j in range(5)]
    assert part.upper == [whole.upper[j] if j in (1, 3) else whole.upper[4] for j in range(5)]
    more = restricted(whole, [0, 1, 3])
    assert (more.moving, more.norm, more.radius) == ([0, 1, 3], "0", 2.0)
    assert not more.contains([0.2, 0.2, 0.1, 0.2, 0.1])
    assert restricted(region(1.0), [0, 1]).norm == "0"


@pytest.mark.parametrize("count", [1.0, 2.0, 3.0])
def test_every_point_lies_in_a_support(count: float) -> None:
    rng, whole = random.Random(1), region(count)
    parts = [restricted(whole, list(few)) for few in combinations(range(4), int(count))]
    covers([list(few) for few in combinations(range(4), int(count))], whole)
    for _ in range(200):
        z = sample(whole, rng)
        assert any(part.contains(z) for part in parts)


@pytest.mark.parametrize(
    "supports",
    [
        [],
        [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3]],  # 2 and 3 together
        [[0, 1, 2], [0, 3], [1, 3]],
        [[0], [1], [2], [3]],
        [[0, 1, 2, 3], [0]],
        [[0, 1]] * 6,
    ],
)
def test_supports_that_leave_points_out_are_refused(supports: list[list[int]]) -> None:
    with pytest.raises(Reject, match="V14"):
        covers(supports, region(2.0))


def test_supports_that_cover_in_other_ways() -> None:
    covers([[0, 1, 2, 3]], region(2.0))
    covers([[0, 1, 2], [0, 3], [1, 3], [2, 3]], region(2.0))
    covers([[0, 1, 2, 3]], region(7.0))


class Recorder:
    """A subject that notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[int], object]] = []

    def prove(self, claim: object, part, proof: object) -> None:
        self.asked.append((part.moving, proof))


def test_every_support_is_proved_and_nothing_else_is_taken() -> None:
    model = SimpleNamespace(n=3)

    def asked(proof, where=None):
        found = Recorder()
        prove(found, model, None, where or region(1.0), proof)
        return found.asked

    parts = [{"features": [j], "proof": j} for j in range(4)]
    assert asked({"supports": parts}) == [([j], j) for j in range(4)]
    assert asked({"tree": []}) == [([0, 1, 2, 3], {"tree": []})]
    wrong = [
        parts[:3],
        [*parts[:3], {"features": [4], "proof": 0}],  # stands still
        [*parts[:3], {"features": [3, 2], "proof": 0}],
        [*parts[:3], {"features": [3, 3], "proof": 0}],
        [*parts[:3], {"features": [-1], "proof": 0}],
        [*parts[:3], {"features": [], "proof": 0}],
        [*parts[:3], {"features": 3, "proof": 0}],
        [*parts[:3], {"features": [True], "proof": 0}],
        [*parts[:3], {"features": [3]}],
        [*parts[:3], parts[3] | {"more": 1}],
        [*parts[:3], 7],
        {"0": parts},
        None,
    ]
    for each in wrong:
        with pytest.raises(Reject):
            asked({"supports": each})
    with pytest.raises(Reject):
        asked({"supports": parts, "tree": []})
    with pytest.raises(Reject, match="only a ball of norm 0"):
        asked({"supports": parts}, read_region(box([0.0] * 5, [1.0] * 5), 5))
    with pytest.raises(Reject, match="only a ball of norm 0"):
        asked({"supports": parts}, read_region(ball([0.0] * 5, 1.0, "1"), 5))


def test_hostile_numbers_of_supports_are_refused_at_once() -> None:
    many = region(20.0, 40)
    with pytest.raises(Reject, match=f"more than {MOST_SUPPORTS}"):
        covers([list(range(40))], many)
    parts = [{"features": [0], "proof": None}] * 200_000
    with pytest.raises(Reject, match="more work"):
        prove(Recorder(), SimpleNamespace(n=5000), None, region(1.0), {"supports": parts})


def test_a_proof_by_supports(tmp_path: Path) -> None:
    """Accepted and true; without one support, or with another's proof twice, it is none."""
    base = next(each for each in bases() if each.name == "supports")
    assert accepted(base.prover.checker, tmp_path / "p", json.dumps(base.file))
    assert true(base.toy, base.file)
    claim = base.file["claims"][0]
    parts = claim["proof"]["supports"]
    for wrong in (parts[1:], [*parts[:-1], parts[0] | {"proof": parts[-1]["proof"]}]):
        file = base.file | {"claims": [claim | {"proof": {"supports": wrong}}]}
        assert not accepted(base.prover.checker, tmp_path / "p", json.dumps(file))
