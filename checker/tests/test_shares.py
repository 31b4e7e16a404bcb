"""Probabilities of a softmax on cells (V15 (c), V18), against sampling."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest
from flint import arb

from bases import bases
from gpcert_check.anchors import Near, Normal, probabilities
from gpcert_check.balls import read_region
from gpcert_check.claims import Claim
from gpcert_check.reading import Reject
from gpcert_check.shares import Slopes, _met, misses
from making import Prover, at, ball, box, everywhere, hexed, sample
from softmax_toys import SoftToy
from test_anchors import free, law_of

KINDS = pytest.mark.parametrize("correlated", [True, False])


def test_laws_nearby_have_probabilities_nearby() -> None:
    """V18, in balls: half of what a margin loses, and hardly less."""
    rng, sharpest = random.Random(3), 1.0
    for trial in range(60):
        first = law_of(rng, None, (0.02, 1.0)[trial % 2])
        second = law_of(rng, first, (0.05, 0.5)[trial % 3 % 2])
        if trial % 4 == 0:  # only means move: that of one class against another
            first = Normal([0.0, 0.0, -30.0], [[0.001, 0.0], [0.0, 0.001], [0.0, 0.0]])
            second = Normal([-0.1, 0.1, -30.0], first.L)
        pairs = list(combinations(range(3), 2))
        gap = [arb(first.mean[a]) - first.mean[b] - (arb(second.mean[a]) - second.mean[b]) for a, b in pairs]
        ends = {pair: (second.variogram(*pair),) * 2 for pair in pairs}
        near = Near(first, dict(zip(pairs, map(abs, gap), strict=True)), ends, free)
        q = probabilities(second, 22, free)
        assert q is not None
        for c in range(3):
            p = probabilities(first, 22, free)
            assert p is not None
            room = near.lost / 2 - abs(q[c] - p[c])
            assert room > -1e-7
            sharpest = min(sharpest, float(room / near.lost))
            for sense in (1, -1):
                edge = float((p[c] - sense * near.lost / 2).mid())
                assert _met(near, Claim("probability", c, sense, False, edge - sense * 1e-6))
                assert not _met(near, Claim("probability", c, sense, False, edge + sense * 1e-6))
    assert sharpest < 0.02


@KINDS
def test_means_and_variances_move_as_their_slopes_say(correlated: bool, tmp_path: Path) -> None:
    """V15 (c) at points of a cell, in floats; slopes help where cells are small."""
    rng, better = random.Random(5), 0
    for seed in range(12):
        toy = SoftToy(seed, correlated=correlated)
        subject = Prover(toy, tmp_path / "m", toy.facts()).checker.subject
        x, far = [rng.uniform(-1, 1) for _ in range(2)], [rng.choice([0.02, 0.3]), rng.uniform(0.01, 0.5)]
        square = arb(far[0]) ** 2 + arb(far[1]) ** 2
        near = subject.near([arb(a) for a in x], square, [arb(a) for a in far])
        base = subject.latents[0]
        slopes = Slopes(base, [arb(a) for a in x], base.covariances(x), square, [arb(a) for a in far])
        for _ in range(40):
            step = [rng.choice([-1.0, 1.0, rng.uniform(-1, 1)]) * a for a in far]
            z = [a + d * s for a, d, s in zip(x, step, toy.scale, strict=True)]
            (m, S), (m0, S0) = toy.joint(z), toy.joint(x)
            for a, b in combinations(range(3), 2):
                alpha = [arb(p) - q for p, q in zip(toy.alpha[a], toy.alpha[b], strict=True)]
                moved = abs((m[a] - m[b]) - (m0[a] - m0[b]))
                whole = (subject._norm(a, b) * toy.s2).sqrt()
                found = slopes.moved(alpha, subject._norm(a, b))
                assert found > moved - 1e-12
                better += bool(found < whole * square.sqrt() * 0.7)
                v = S[a][a] + S[b][b] - S[a][b] - S[b][a]
                v0 = S0[a][a] + S0[b][b] - S0[a][b] - S0[b][a]
                low, high = v0 - 4 * near.lost, v0 + 4 * near.lost
                assert low - 1e-9 <= v <= high + 1e-9
    assert better > 100


@KINDS
def test_ends_of_variances_hold(correlated: bool, tmp_path: Path) -> None:
    """V15 (c) of single variances, with indefinite parts as they are proved."""
    rng = random.Random(6)
    for seed in range(10):
        toy = SoftToy(seed, correlated=correlated, size=rng.choice([1.0, 100.0]))
        subject = Prover(toy, tmp_path / "m", toy.facts()).checker.subject
        if correlated:
            continue
        x, far = [rng.uniform(-1, 1) for _ in range(2)], [rng.uniform(0.01, 0.3), rng.uniform(0.01, 0.3)]
        square = arb(far[0]) ** 2 + arb(far[1]) ** 2
        base = subject.latents[0]
        k = base.covariances(x)
        slopes = Slopes(base, [arb(a) for a in x], k, square, [arb(a) for a in far])
        for c, latent in enumerate(subject.latents):
            low, high = slopes.ends(latent, arb(toy.joint(x)[1][c][c]), subject._explained(c, c, k))
            for _ in range(40):
                step = [rng.choice([-1.0, 1.0, rng.uniform(-1, 1)]) * a for a in far]
                z = [a + d * s for a, d, s in zip(x, step, toy.scale, strict=True)]
                assert low - 1e-9 <= max(toy.joint(z)[1][c][c], 0.0) <= high + 1e-9


@pytest.mark.parametrize("norm", ["2", "1", "0"])
def test_cells_that_miss_a_ball_have_no_point_of_it(norm: str) -> None:
    rng, seen = random.Random(7), {True: 0, False: 0}
    for _ in range(200):
        domain = [[-1.0] * 3, [1.0] * 3]
        region = read_region(ball([0.1, 0.0, -0.2], 1.0, norm, [0, 1, 2], domain, [1.0, 0.5, 0.7]), 3)
        ends = [sorted(rng.choice([-0.9, 0.1, rng.uniform(-1, 1)]) for _ in range(2)) for _ in range(3)]
        lower, upper = ([Fraction(pair[i]) for pair in ends] for i in (0, 1))
        found = misses(region, lower, upper)
        seen[found] += 1
        points = [
            [float(a) + rng.random() * float(b - a) for a, b in zip(lower, upper, strict=True)]
            for _ in range(20)
        ]
        points += [[min(max(x, float(a)), float(b)) for x, a, b in zip(region.x, lower, upper, strict=True)]]
        assert any(map(region.contains, points)) is not found or not found
        assert found is not region.contains(points[-1])
    assert min(seen.values()) > 10
    assert not misses(read_region(box([0.0], [1.0]), 1), [Fraction(0)], [Fraction(1)])


@pytest.mark.parametrize("name", ["range of a softmax", "range of independent latents"])
def test_only_what_is_true_is_proved(name: str, tmp_path: Path) -> None:
    (base,) = [each for each in bases() if each.name == name]
    proof, region = base.file["claims"][0]["proof"], base.file["regions"][0]
    points = [sample(read_region(region, 2), random.Random(i)) for i in range(60)]
    values = [base.toy.truth(z)[1] for z in points]

    def told(claim: dict[str, object]) -> bool:
        (tmp_path / "p").write_text(json.dumps(base.prover.file([region], [claim])))
        try:
            base.prover.checker.check(str(tmp_path / "p"))
        except Reject:
            return False
        return True

    low, high = min(values), max(values)
    assert told(everywhere(1, ">", low - 0.02, proof))
    assert not told(everywhere(1, ">=", low + 1e-6, proof))
    assert not told(everywhere(1, "<=", high - 1e-6, proof))
    assert not told(everywhere(1, ">", 0.0, None))
    assert not told(everywhere(1, ">=", 1e-9, None))
    assert not told(everywhere(1, "<=", 1 - 1e-9, None))
    assert not told(everywhere(1, "<", 1.0, None))
    assert told(everywhere(1, "<=", 1.0, None))
    assert not told(everywhere(1, ">=", low - 0.02, {"tree": proof["tree"][:2]}))
    for at_ in (0.11, 0.1001):  # the ball has points in that corner
        nodes = [
            each | {"at": at_.hex()} if each.get("at") == (0.119).hex() else each for each in proof["tree"]
        ]
        assert not told(everywhere(1, ">=", low - 0.02, {"tree": [*nodes[:4], {"outside": True}]}))
    assert not told(everywhere(1, ">=", low - 0.02, {"tree": [{"outside": True}]}))
    z, own = points[0], values[0]
    assert told(at(1, ">=", own - 1e-6, z))
    assert not told(at(1, ">=", own + 1e-6, z))
    assert not told(at(1, "<=", own - 1e-6, z))
    assert not told(at(1, "<=", 1.0, [9.0, 9.0]))
    assert not told(everywhere(1, ">=", low - 0.02, {"tree": [{"ref": hexed([1e300, 0.0])}]}))
