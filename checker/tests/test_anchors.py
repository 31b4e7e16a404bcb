"""V15: sums against integrals in balls, laws nearby, cells, and proofs by references."""

from __future__ import annotations

import json
import math
import random
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from flint import acb, arb

from gpcert_check import anchors
from gpcert_check.anchors import Near, Normal, around, probabilities
from gpcert_check.arithmetic import dot
from gpcert_check.balls import read_region
from gpcert_check.reading import Reject
from making import Prover, ball, box, everywhere, hexed, sample
from softmax_toys import SoftToy, anchored
from tampers import accepted

KINDS = pytest.mark.parametrize("correlated", [True, False], ids=["correlated", "independent"])
#: Unit vectors times a number, with which L z = length times one standard normal number, exactly.
DIRECTIONS = {2: ((3.0, 4.0), 5.0), 3: ((2.0, 3.0, 6.0), 7.0)}


def free(terms: int) -> None:
    """Sums that cost nothing."""


def integral(mean: list[float], rates: list[float], c: int) -> arb:
    """E softmax_c of mean + rates z, one normal z, enclosed by Arb's integrator."""

    def integrand(z: acb, _: Any) -> acb:
        total = sum(
            ((acb(m - mean[c]) + (r - rates[c]) * z).exp() for m, r in zip(mean, rates, strict=True)), acb(0)
        )
        return (-z * z / 2).exp() / (2 * acb.pi()).sqrt() / total

    beyond = (arb(10) / arb(2).sqrt()).erfc()
    return acb.integral(integrand, -10, 10).real + arb(0).union(beyond)


@pytest.mark.parametrize("classes", [3, 4])
def test_a_sum_contains_the_integral(classes: int) -> None:
    """Of latents that are multiples of one normal number, seen along several axes."""
    rng, (direction, length) = random.Random(classes), DIRECTIONS[classes - 1]
    for size in (0.0, 0.01, 0.125, 0.5):
        mean = [rng.gauss(0, 1) for _ in range(classes)]
        rates = [size * rng.randrange(-16, 17) / 16 for _ in range(classes)]
        law = Normal(mean, [[rate * x for x in direction] for rate in rates])
        truth = [integral(mean, [rate * length for rate in rates], c) for c in range(classes)]
        widths = []
        for exponent in (8, 14, 22)[: 5 - classes + 1]:
            found = probabilities(law, exponent, free)
            assert found is not None
            assert all(p.contains(q) for p, q in zip(found, truth, strict=True))
            widths.append(max(float(p.rad()) for p in found))
        assert widths[-1] < 40 * math.exp(-14 if classes == 4 else -22)


def test_sums_without_end_are_not_begun() -> None:
    assert (
        probabilities(Normal([0.0] * 5, [[100.0 * (i == j) for j in range(4)] for i in range(5)]), 14, free)
        is None
    )
    with pytest.raises(Reject, match="too widely"):
        probabilities(Normal([0.0] * 3, [[1e300, 0.0], [0.0, 1.0], [0.0, 0.0]]), 8, free)
    with pytest.raises(Reject, match="finite"):
        around([arb(2) ** 5000] * 3, [[arb(int(a == b)) for b in range(3)] for a in range(3)])


def law_of(rng: random.Random, near: Normal | None, size: float) -> Normal:
    """A law of three latents, at random, or `size` away from another one."""
    base = near or Normal([0.0] * 3, [[0.0] * 2 for _ in range(3)])
    rows = [[x + size * rng.gauss(0, 1) for x in row] for row in base.L]
    return Normal([m + size * rng.gauss(0, 1) for m in base.mean], rows)


def test_laws_nearby_have_margins_nearby() -> None:
    """V15 (b), in balls; means that move are almost worth what they cost."""
    rng, sharpest = random.Random(2), 1.0
    for trial in range(60):
        first = law_of(rng, None, (0.02, 1.0)[trial % 2])
        second = law_of(rng, first, (0.05, 0.5)[trial % 3 % 2])
        if trial % 4 == 0:  # only means move: that of one class against another
            first = Normal([0.0, 0.0, -30.0], [[0.001, 0.0], [0.0, 0.001], [0.0, 0.0]])
            second = Normal([-0.1, 0.1, -30.0], first.L)
        pairs = list(combinations(range(3), 2))
        gap = {
            (a, b): arb(first.mean[a]) - first.mean[b] - (arb(second.mean[a]) - second.mean[b])
            for a, b in pairs
        }
        ends = {pair: (second.variogram(*pair),) * 2 for pair in pairs}
        near = Near(first, {pair: abs(x) for pair, x in gap.items()}, ends, free)
        p, q = probabilities(first, 14, free), probabilities(second, 14, free)
        assert p is not None
        assert q is not None
        for c, j in [*pairs, *(pair[::-1] for pair in pairs)]:
            room = q[c] - q[j] - (p[c] - p[j] - near.lost)
            assert room > -1e-4
            assert q[c] - q[j] > -1e-4 or not near.ahead(c, j)
            sharpest = min(sharpest, float(room / near.lost))
    assert sharpest < 0.02


def test_variances_that_move_count() -> None:
    """A variance that moves changes who wins, with means as they were: nothing is claimed then."""
    mean = [0.35, 0.0, 0.4]
    first = Normal(mean, [[0.01, 0.0], [0.0, 0.01], [0.0, 0.0]])
    for row, c, j in ((0, 0, 1), (1, 0, 1)):
        second = Normal(
            mean, [[3.0 if i == row == k else x for k, x in enumerate(r)] for i, r in enumerate(first.L)]
        )
        pairs = list(combinations(range(3), 2))
        still = dict.fromkeys(pairs, arb(0))
        there, here = ({pair: (law.variogram(*pair),) * 2 for pair in pairs} for law in (second, first))
        moved, back, same = (
            Near(law, still, ends, free) for law, ends in ((first, there), (second, here), (first, here))
        )
        assert not moved.ahead(c, j)
        assert not back.ahead(c, j)
        assert same.ahead(c, j)
        assert not same.ahead(j, c)
        assert moved.lost > 1
        assert back.lost > 1


@KINDS
@pytest.mark.parametrize("excess", [1.0, 1.0005])
def test_what_a_cell_says_holds_at_its_points(correlated: bool, excess: float, tmp_path: Path) -> None:
    """V15 (c): means and variances of differences lie in their ranges, also where variances are clipped."""
    rng, tight, clipped = random.Random(4), [math.inf, math.inf], 0
    for seed in range(8):
        toy = SoftToy(seed, correlated=correlated, size=10.0 if correlated else 1e4)
        toy.R = [[[excess * x for x in row] for row in R] for R in toy.R]
        subject = Prover(toy, tmp_path / "m.safetensors", toy.facts()).checker.subject
        x = toy.X[0] if seed % 2 else [rng.uniform(-1, 1), rng.uniform(-1, 1)]
        half = (1e-3, 0.05, 0.3)[seed % 3]
        region = read_region(box([a - half for a in x], [a + half for a in x]), 2)
        with mock.patch("gpcert_check.softmax.Near") as made:
            subject.on(region, region.lower, region.upper, {"ref": hexed(x)})
        law, apart, ends, _ = made.call_args.args
        for z in [x, *(sample(region, rng) for _ in range(40))]:
            mean, S = toy.joint(z)
            clipped += min(S[c][c] for c in range(3)) < -1e-5
            V = [[max(S[a][a], 0.0) if a == b else S[a][b] for b in range(3)] for a in range(3)]
            for a, b in combinations(range(3), 2):
                moved = abs(mean[a] - mean[b] - (law.mean[a] - law.mean[b]))
                low, high = (float(end.mid()) for end in ends[a, b])
                v = V[a][a] + V[b][b] - 2 * V[a][b]
                assert moved <= float(apart[a, b].upper()) + 1e-9
                assert low - 1e-9 <= v <= high + 1e-9
                tight[0] = min(tight[0], float(apart[a, b].upper()) - moved)
                tight[1] = min(tight[1], max(v - low, high - v))
    assert max(tight) < (0.02 if excess == 1 else 0.1)
    assert (clipped > 0) == (excess > 1 and not correlated)


@KINDS
def test_references_prove_labels(correlated: bool, tmp_path: Path) -> None:
    _, prover, region, proof, label = anchored(21, correlated)

    def told(region: Any, proof: Any, label: int = label) -> bool:
        claim = everywhere(label, ">", 0.0, proof, quantity="margin")
        return bool(accepted(prover.checker, tmp_path / "p", json.dumps(prover.file([region], [claim]))))

    assert told(region, proof)
    assert told(ball([0.095, 0.145], 0.005, "2"), proof)
    assert not told(box([-1.0, -1.0], [1.0, 1.0]), proof)  # too wide
    rivals = proof["tree"][0]["rivals"]
    other = (label + 1) % 3
    moved = [rivals[other] if c == label else None if c == other else each for c, each in enumerate(rivals)]
    assert not told(region, {"tree": [{"rivals": moved}]}, other)
    for wrong in ({}, {"ref": []}, {"ref": hexed([0.1])}, {"ref": hexed([9.0, 9.0])}, {"ref": None}, None):
        edited = [wrong if c == other else each for c, each in enumerate(rivals)]
        assert not told(region, {"tree": [{"rivals": edited}]})
    both = [each or rivals[other] for each in rivals]
    assert not told(region, {"tree": [{"rivals": both}]})


def test_integrals_of_a_file_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file has as many terms as it likes, up to a limit; another one begins anew."""
    _, prover, region, proof, label = anchored(21, True)
    claim = everywhere(label, ">", 0.0, proof, quantity="margin")
    (tmp_path / "p").write_text(json.dumps(prover.file([region], [claim])))
    summed: list[int] = []
    real = anchors._add
    monkeypatch.setattr(anchors, "_add", lambda *given: summed.append(given[3] == []) or real(*given))
    prover.checker.check(str(tmp_path / "p"))
    spent = prover.checker.subject.spent
    assert spent > sum(summed) > 10
    monkeypatch.setattr("gpcert_check.softmax.MOST_TERMS", spent)
    prover.checker.check(str(tmp_path / "p"))
    monkeypatch.setattr("gpcert_check.softmax.MOST_TERMS", spent - 1)
    with pytest.raises(Reject, match="more work"):
        prover.checker.check(str(tmp_path / "p"))


def test_mean_functions_move_by_their_norm(tmp_path: Path) -> None:
    toy = SoftToy(3)
    subject = Prover(toy, tmp_path / "m.safetensors", toy.facts()).checker.subject
    alpha = [a - b for a, b in zip(toy.alpha[0], toy.alpha[1], strict=True)]
    K = [[toy.kernel(a, b) for b in toy.X] for a in toy.X]
    norm = sum(alpha[i] * float(dot(K[i], alpha).mid()) for i in range(toy.n))
    assert math.isclose(norm, float(subject._norm(0, 1).mid()), rel_tol=1e-9)
