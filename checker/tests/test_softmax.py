"""V11 and V12 against formulas of the tests' own: covariances, shared parts, planes, and who wins."""

from __future__ import annotations

import json
import math
import random
from itertools import permutations, product
from pathlib import Path
from unittest import mock

import pytest
from flint import arb, fmpq, fmpq_mat

from gpcert_check.balls import read_region
from gpcert_check.claims import Checker, Claim
from gpcert_check.leaves import Slice
from gpcert_check.reading import Reject
from gpcert_check.softmax import Ahead
from making import Prover, at, box, everywhere, hexed, leaf_for, sample
from softmax_toys import SoftToy, shared, wins
from tampers import accepted

WINS, LOSES = (1, True), (-1, True)
KINDS = pytest.mark.parametrize("correlated", [True, False], ids=["correlated", "independent"])


def prover_of(toy: SoftToy, folder: Path) -> Prover:
    return Prover(toy, folder / "m.safetensors", toy.facts())


def point(rng: random.Random) -> list[float]:
    return [rng.uniform(-1.5, 1.5) for _ in range(2)]


@KINDS
def test_who_wins_at_a_point_is_true(correlated: bool, tmp_path: Path) -> None:
    """What is decided agrees with the integral, and much is decided."""
    rng, decided = random.Random(3), 0
    for seed in range(12):
        toy = SoftToy(seed, correlated=correlated, size=3.0)
        subject = prover_of(toy, tmp_path).checker.subject
        for _ in range(8):
            z = point(rng)
            p, (mean, S) = toy.truth(z), toy.joint(z)
            for c in range(3):
                for j in {0, 1, 2} - {c}:
                    gap = mean[c] - mean[j] - max(shared(S, c, j, 3 - c - j), 0)
                    if abs(gap) > 1e-6:
                        assert subject._beats(c, j, 1, z) == (gap > 0)
                margin = p[c] - max(p[:c] + p[c + 1 :])
                if abs(margin) > 1e-3:  # an integral tells where Theorem 4 does not (V15)
                    assert subject.decided(Claim("margin", c, *WINS, 0.0), z) == (margin > 0)
                    assert subject.decided(Claim("margin", c, *LOSES, 0.0), z) == (margin < 0)
                for how, sign in ((WINS, 1), (LOSES, -1)):
                    if subject.decided(Claim("margin", c, *how, 0.0), z):
                        decided += 1
                        assert sign * margin > -1e-4
    assert decided > 100


@KINDS
@pytest.mark.parametrize("excess", [1.0, 1.0005])
def test_shared_covariances_and_clipped_variances(correlated: bool, excess: float, tmp_path: Path) -> None:
    """Q, `spare` and the lift, also where the stored precision is too large and variances are negative."""
    rng, clipped = random.Random(5), 0
    for seed in range(10):
        toy = SoftToy(seed, correlated=correlated, size=10.0 if correlated else 1e4)
        toy.R = [[[excess * x for x in row] for row in R] for R in toy.R]
        subject = prover_of(toy, tmp_path).checker.subject
        for z in [*toy.X, *(point(rng) for _ in range(5))]:
            mean, S = toy.joint(z)
            t = [max(0.0, -S[c][c]) for c in range(3)]
            clipped += max(t) > 1e-5
            k = subject.latents[0].covariances(z)
            for c in range(3):
                for j in range(3):
                    if c == j:
                        continue
                    (one,) = subject._contrasts(c, j)
                    form = float(
                        sum(a * one.R[i, m] * b for i, a in enumerate(k) for m, b in enumerate(k)).mid()
                    )
                    s = shared(S, c, j, 3 - c - j)
                    gap = float((one.m0 + sum(a * b for a, b in zip(one.alpha, k, strict=True))).mid())
                    assert math.isclose(gap, mean[c] - mean[j], abs_tol=1e-9)
                    assert math.isclose(form, s, abs_tol=1e-9)
                    assert max(t[c], t[j]) / 2 <= float(one.spare.upper()) + 1e-12
                    assert abs(s) <= float(one.crude.upper())
    assert (clipped > 0) == (excess > 1 and not correlated)


def fractions(rng: random.Random, rows: int, columns: int) -> fmpq_mat:
    return fmpq_mat(rows, columns, [fmpq(rng.randrange(-9, 10), 8) for _ in range(rows * columns)])


def largest_row(A: fmpq_mat) -> fmpq:
    return max(sum(map(abs, row), fmpq(0)) for row in A.tolist())


def definite(A: fmpq_mat) -> bool:
    """Whether a symmetric matrix is positive definite, by its leading minors."""
    rows = A.tolist()
    return all(fmpq_mat([row[:m] for row in rows[:m]]).det() > 0 for m in range(1, len(rows) + 1))


def test_a_residual_below_one_leaves_a_covariance() -> None:
    """V11 in rationals: 0 < |g|^2 - z^T R z <= (1 + rho) |g|^2 in feature spaces of two dimensions, of two
    classes and two centres, whatever symmetric R has rho < 1; both ends are nearly attained.
    """
    rng, sharp = random.Random(11), [0, 0]
    pairs = [(c, i) for c in range(2) for i in range(2)]
    one = fmpq_mat([[int(p == q) for q in pairs] for p in pairs])
    for trial in range(30):
        features = fractions(rng, 2, 2) if trial else fmpq_mat([[1, 0], [0, 1]])
        sites = [g * g.transpose() * min(trial, 1) for g in (fractions(rng, 2, 2), fractions(rng, 2, 2))]
        W = fmpq_mat([[sites[i][c, e] if i == j else 0 for e, j in pairs] for c, i in pairs])
        Phi = fmpq_mat([[features[i, m] if c == e else 0 for e, m in pairs] for c, i in pairs])
        K, P = Phi * Phi.transpose(), fractions(rng, 4, 4) if trial else one
        P, smooth = P + P.transpose(), one + K * W
        E = P * smooth
        square = largest_row(K) ** 2 * largest_row(E) * largest_row(E.transpose())
        share = fmpq(int((arb(2) ** 50 / arb(square).sqrt()).lower().floor().unique_fmpz()), 2**50)
        share *= fmpq(999, 1000)
        assert share**2 * square < 1
        for sign in (1, -1):
            form = Phi.transpose() * (W * smooth.inv() + P * share * sign) * Phi
            assert definite(one - form)
            assert definite(form + one)
            sharp[0] += not definite(one * fmpq(99, 100) - form)
            sharp[1] += not definite(form + one * fmpq(99, 100))
    assert min(sharp) > 0


def loosened(seed: int, size: float) -> SoftToy:
    """A toy whose precision is another by a random symmetric matrix of this size."""
    toy, rng = SoftToy(seed), random.Random(seed)
    P = [[rng.gauss(0, size) for _ in range(9)] for _ in range(9)]
    for (c, e), R in zip(product(range(3), repeat=2), toy.R, strict=True):
        for i, j in product(range(3), repeat=2):
            R[i][j] += P[3 * c + i][3 * e + j] + P[3 * e + j][3 * c + i]
    return toy


def test_a_large_residual_widens_what_it_should(tmp_path: Path) -> None:
    """V12 and V15 (c) where rho is 0.9, by formulas of the test; nothing is clipped."""
    rng = random.Random(13)
    for seed in range(5):
        small = float(prover_of(loosened(seed, 1e-6), tmp_path).checker.subject.rho.mid())
        toy = loosened(seed, 0.9e-6 / small)
        subject = prover_of(toy, tmp_path).checker.subject
        rho, x = float(subject.rho.mid()), point(rng)
        assert 0.89 < rho < 0.91
        for z in [*toy.X, *(point(rng) for _ in range(20))]:
            S, b = toy.joint(z)[1], [rng.gauss(0, 1) for _ in range(3)]
            assert sum(b[p] * S[p][q] * b[q] for p in range(3) for q in range(3)) > 0
            for c, j in permutations(range(3), 2):
                (one,) = subject._contrasts(c, j)
                assert one.spare == 0
                assert math.isclose(float(one.crude.mid()), math.sqrt(0.75) * (1 + rho) * toy.s2)
                assert abs(shared(S, c, j, 3 - c - j)) < one.crude
        for half in (1e-3, 2.0):
            region = read_region(box([a - half for a in x], [a + half for a in x]), 2)
            square = region.cell(region.lower, region.upper, x, toy.scale).reach([1, 1])
            with mock.patch("gpcert_check.softmax.Near") as sharper:
                subject.on(region, region.lower, region.upper, {"ref": hexed(x)})
            with mock.patch("gpcert_check.softmax.Near") as made:
                subject.near([arb(a) for a in x], square)
            points = [sample(region, rng) for _ in range(30)]
            for (a, b), ends in sharper.call_args.args[2].items():
                for S in (toy.joint(z)[1] for z in points):
                    assert ends[0] - 1e-9 <= S[a][a] + S[b][b] - S[a][b] - S[b][a] <= ends[1] + 1e-9
            S, most = toy.joint(x)[1], 2 * (1 + rho) * toy.s2
            wide = most * sum((half / scale) ** 2 for scale in toy.scale)
            for (a, b), ends in made.call_args.args[2].items():
                here = S[a][a] + S[b][b] - S[a][b] - S[b][a]
                change = 2 * math.sqrt(here * wide) + wide
                truth = max(here - change, 0.0), min(here + change, most)
                assert all(math.isclose(float(p.mid()), q) for p, q in zip(ends, truth, strict=True))


@KINDS
def test_a_plane_lies_below(correlated: bool, tmp_path: Path) -> None:
    """V12: the value of a leaf is at most e^(|d|^2/2) (m_D +- s_k) at every point, nearly so at some."""
    rng, least = random.Random(7), math.inf
    for seed in range(6):
        toy = SoftToy(seed, correlated=correlated, size=3.0)
        subject = prover_of(toy, tmp_path).checker.subject
        x, half = point(rng), (0.02, 0.4, 1.0)[seed % 3]
        region = read_region(box([a - half for a in x], [a + half for a in x]), 2)
        c, j = rng.sample(range(3), 2)
        (one,) = subject._contrasts(c, j)
        for sign, each in ((1, one), (-1, one.mirrored())):
            for what in ("plane", "crude", "mean"):
                view = Slice(each, region, 1)
                value, _ = leaf_for(view, Ahead(what), region.lower, region.upper, {}, x)
                for _ in range(60):
                    z = sample(region, rng)
                    mean, S = toy.joint(z)
                    r = sum(((a - b) / s) ** 2 for a, b, s in zip(z, x, toy.scale, strict=True)) / 2
                    s = sign * shared(S, c, j, 3 - c - j)
                    truth = mean[c] - mean[j] + {"plane": s, "crude": -abs(s), "mean": 0.0}[what]
                    gap = math.exp(r) * truth - float(value.lower())
                    assert gap >= -1e-9, (seed, sign, what)
                    least = min(least, gap)
    assert least < 0.1


def test_sites_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    toy = SoftToy(1)
    checker = prover_of(toy, tmp_path).checker
    for wrong in (
        toy.facts()[0] | {"more": []},
        {"sites": []},
        {"sites": toy.facts()[0]["sites"][:-1]},
        None,
    ):
        with pytest.raises(Reject):
            checker.subject.verify(wrong)
    toy.R = [[[1.9 * x for x in row] for row in R] for R in SoftToy(1, size=1e3).R]
    with pytest.raises(Reject, match="V11"):
        prover_of(toy, tmp_path)


def test_what_a_softmax_may_not_claim(tmp_path: Path) -> None:
    """Neither sizes of margins, nor probabilities, nor trees that leave a rival out."""
    region = box([0.0, 0.1], [0.2, 0.2])
    for correlated in (True, False):
        _, prover, proof, label = wins(21, region, correlated)
        node = proof["tree"][0]["rivals"]

        def told(claim, prover=prover):
            return accepted(prover.checker, tmp_path / "p", json.dumps(prover.file([region], [claim])))

        assert told(everywhere(label, ">", 0.0, proof, quantity="margin"))
        assert told(everywhere(label, ">=", -0.1, proof, quantity="margin"))
        assert not told(everywhere(label, ">", 1e-9, proof, quantity="margin"))
        assert not told(everywhere(label, "<", 0.0, proof, quantity="margin"))
        assert not told(everywhere(label, ">", 0.0, proof))
        assert not told(everywhere(label, ">", 0.0, None, quantity="margin"))
        assert not told(everywhere((label + 1) % 3, ">", 0.0, proof, quantity="margin"))
        rival = next(j for j in range(3) if j != label)
        for wrong in (None, [], node[rival][:1] * 3, [{}], [7], "envelope"):
            rivals = [wrong if j == rival else each for j, each in enumerate(node)]
            assert not told(everywhere(label, ">", 0.0, {"tree": [{"rivals": rivals}]}, quantity="margin"))
        other = {"tree": [{"rivals": [each or node[rival] for each in node]}]}
        assert not told(everywhere(label, ">", 0.0, other, quantity="margin"))
        assert not told(at(label, "<", 0.0, [0.1, 0.15], quantity="margin"))
        assert told(at(label, ">", 0.0, [0.1, 0.15], quantity="margin"))
        assert told(at((label + 1) % 3, "<", 0.0, [0.1, 0.15], quantity="margin"))


@KINDS
def test_the_mean_alone_has_to_beat_the_largest_shared_covariance(correlated: bool, tmp_path: Path) -> None:
    tried = 0
    for seed in range(30):
        toy = SoftToy(seed, correlated=correlated, size=30.0)
        subject = prover_of(toy, tmp_path).checker.subject
        x = [0.1, 0.2]
        region = read_region(box(x, [a + 1e-3 for a in x]), 2)
        mean = toy.joint(x)[0]
        for c, j in ((0, 1), (1, 2), (2, 0)):
            view = Slice(subject._contrasts(c, j)[0], region, 1)
            crude, gap = float(view.latent.crude.mid()), mean[c] - mean[j]
            (outright,) = view._values([(region.lower, region.upper, {"envelope": True})], [Ahead("crude")])
            value, _ = leaf_for(view, Ahead("crude"), region.lower, region.upper, {})
            if abs(gap - crude) > 0.02:
                tried += 0 < gap < crude
                assert (outright > 0) == (value > 0) == (gap > crude)
            if gap < crude - 0.02:  # one part speaks of all s_k, whatever it would show of m_D > 0
                _, leaf = leaf_for(view, Ahead("mean"), region.lower, region.upper, {})
                with pytest.raises(Reject):
                    subject._beaten([view.latent], region, [(region.lower, region.upper, [leaf])])
    assert tried > 5


@KINDS
def test_the_sign_of_a_shared_covariance_counts(correlated: bool, tmp_path: Path) -> None:
    """0 < m_D < s_k: neither m_D > 0 nor a plane of m_D + s_k proves anything."""
    for seed in range(6):
        toy, x = SoftToy(seed, correlated=correlated, size=30.0), [0.1, 0.2]
        mean, S = toy.joint(x)
        c, j = (0, 1) if shared(S, 0, 1, 2) > 0 else (1, 0)
        s = shared(S, c, j, 2)
        toy.m0[c] += s / 2 - (mean[c] - mean[j])
        subject = prover_of(toy, tmp_path).checker.subject
        region = read_region(box(x, [a + 1e-4 for a in x]), 2)
        ends, (one,) = (region.lower, region.upper), subject._contrasts(c, j)
        found = [leaf_for(Slice(one, region, 1), Ahead(what), *ends, {}) for what in ("mean", "plane")]
        assert all(value > 0 for value, _ in found) or s < 0.02
        with pytest.raises(Reject, match="inequality"):
            subject._beaten([one], region, [(*ends, [leaf for _, leaf in found])])
        assert not subject._beats(c, j, 1, x)


def test_correlated_latents_belong_to_a_softmax_and_are_symmetric(tmp_path: Path) -> None:
    toy, path = SoftToy(2), tmp_path / "m.safetensors"
    about = toy.description()
    link = {"name": "probit", "scale": (1.0).hex()}
    for likelihood in ({"name": "one_vs_rest", "link": link}, link):
        toy.write(path, about | {"likelihood": likelihood})
        with pytest.raises(Reject):
            Checker(str(path))
    toy.R[1][0][1] *= 1 + 2**-50  # between two classes
    toy.write(path)
    with pytest.raises(Reject, match="symmetric"):
        Checker(str(path))
