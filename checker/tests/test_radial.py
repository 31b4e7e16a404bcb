"""V13 against formulas of the tests' own: profiles, one centre on a range, leaves over boxes and balls."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
from flint import arb

from gpcert_check import radial
from gpcert_check.balls import read_region
from gpcert_check.claims import Checker
from gpcert_check.leaves import Point, Slice
from gpcert_check.planes import Plane, Probit
from gpcert_check.profiles import profile_of
from gpcert_check.radial import below, span, view_of
from gpcert_check.reading import Reject
from making import Prover, at, ball, box, everywhere, hexed, leaf_for, level_down, proved_range, sample
from radial_toys import KERNELS, RadialToy, phi
from tampers import accepted, true

KINDS = pytest.mark.parametrize("kind", KERNELS)


def profile(kind: str, alpha: float = 1.7):
    about = {"type": kind, "lengthscale": (1.0).hex(), "variance": (1.0).hex()}
    return profile_of(about | ({"alpha": alpha.hex()} if kind == "rational_quadratic" else {}))[0]


@KINDS
def test_profiles_and_their_slopes(kind: str) -> None:
    one = profile(kind)
    for z in (0.0, 1e-9, 0.03, 0.7, 4.0, 60.0):
        assert math.isclose(float(one.value(arb(z)).mid()), phi(kind, z, 1.7), rel_tol=1e-12)
        if z > 1e-3:
            step = 1e-5 * z
            slope = (phi(kind, z + step, 1.7) - phi(kind, z - step, 1.7)) / (2 * step)
            assert math.isclose(float(one.slope(arb(z)).mid()), slope, rel_tol=1e-4, abs_tol=1e-18)
    assert one.slope(arb(0)).is_finite() == (kind != "matern12")
    for z in (0.41, 0.5, 0.59):
        assert one.value(arb(0.5, 0.1)).contains(phi(kind, z, 1.7))
    assert one.value(arb(0, 1e-20)).contains(1)  # a distance that may be 0, or, as a ball, below


@KINDS
def test_at_a_corner_the_bent_tangent_is_chosen_whatever_rounds(kind: str) -> None:
    """There it equals the chord at both ends and is nearer between; an exporter has to know which."""
    rng, one = random.Random(5), profile(kind)
    for _ in range(50):
        z = rng.uniform(0.1, 40.0)
        assert below(one, arb(-1), arb(z), arb(-rng.uniform(0.01, 0.9) * z), arb(0)).curve < 0


@KINDS
@pytest.mark.parametrize("sign", [1, -1])
def test_one_centre_is_bounded_on_its_range(kind: str, sign: int) -> None:
    """b phi(z + delta) >= the quadratic everywhere, and nearly so somewhere."""
    rng, one = random.Random(2), profile(kind)
    for trial in range(80):
        z = rng.choice([0.0, 1e-6, 0.02, 0.5, 3.0])
        low = -z * rng.choice([1.0, 0.9, 0.3, 1e-9, 0.0])
        high = rng.choice([0.001, 0.3, 2.0, 1e-9])
        part = below(one, arb(sign * 1.3), arb(z), arb(low), arb(high))
        gaps = []
        for i in range(101):
            delta = low + (high - low) * i / 100
            told = part.constant + part.slope * delta + part.curve * delta * delta / 2
            gaps.append(sign * 1.3 * phi(kind, max(z + delta, 0.0), 1.7) - float(told.lower()))
        assert min(gaps) > -1e-12, (trial, z, low, high)
        assert min(gaps) < 1e-6 or kind == "matern12"


def test_a_weight_of_unknown_sign_counts_as_negative() -> None:
    one = profile("matern32")
    for b in (arb(0, 1e-3), arb(0)):
        part = below(one, b, arb(0.4), arb(-0.2), arb(0.5))
        for delta in (-0.2, 0.0, 0.1, 0.5):
            told = part.constant + part.slope * delta + part.curve * delta * delta / 2
            assert float(told.lower()) <= float(b.lower()) * phi("matern32", 0.4 + delta, 1.7) + 1e-12


def test_the_range_of_a_distance() -> None:
    rng = random.Random(4)
    for _ in range(40):
        x = [rng.uniform(-1, 1) for _ in range(2)]
        region = read_region(box(x, [a + rng.uniform(0.1, 1) for a in x]), 2)
        cell = region.cell(region.lower, region.upper, [a + 0.05 for a in x], [1.3, 0.8])
        v = [rng.uniform(-2, 2) for _ in range(2)]
        low, high = span(cell, [arb(a) for a in v])
        found = []
        for _ in range(200):
            z = sample(region, rng)
            d = [(a - b - 0.05) / s for a, b, s in zip(z, x, (1.3, 0.8), strict=True)]
            found.append(sum(a * a / 2 - a * w for a, w in zip(d, v, strict=True)))
        assert float(low.lower()) <= min(found) + 1e-12
        assert max(found) <= float(high.upper()) + 1e-12


@KINDS
def test_a_leaf_lies_below_the_latent(kind: str, tmp_path: Path) -> None:
    """mu - t sqrt(c + S) at sampled points of boxes and balls is at least the value of the leaf."""
    rng, least = random.Random(KERNELS.index(kind)), math.inf
    for seed in range(8):
        toy = RadialToy(seed, kind, indefinite=seed % 4 == 3)
        fact = {"jitter": (1e-9).hex(), "contraction": (1.3).hex(), "negative": (1.3).hex()}
        prover = Prover(toy, tmp_path / "m.safetensors", [fact] if seed % 4 == 3 else None)
        x, size = [rng.uniform(-0.6, 0.6) for _ in range(2)], (0.01, 0.2, 0.7)[seed % 3]
        shape = (box(x, [a + size for a in x]), ball(x, size, "2"), ball(x, size, "1"))[seed % 3]
        region = read_region(shape, 2)
        t = rng.choice([-0.8, 0.0, 0.7])
        sign = rng.choice([1, -1])
        view = view_of(prover.checker.model.latents[0], region, sign)
        link = prover.checker.subject.link
        level = link.level({"t": t.hex()}, view.latent)
        hints = {"touch": (size * size * rng.choice([0.0, 0.05]) + 1e-6).hex()} | (
            {"tau": (0.3).hex()} if t > 0 else {}
        )
        lower, upper = ([end[j] for j in region.moving] for end in (region.lower, region.upper))
        value, _ = leaf_for(view, level, lower, upper, hints, toy.X[0] if seed == 7 else None)
        c = float(link.c.mid())
        for _ in range(150):
            mean, variance = toy.latent(sample(region, rng))
            gap = sign * mean - t * math.sqrt(c + variance) - float(value.lower())
            assert gap > -1e-9, (seed, t)
            least = min(least, gap)
    assert least < 0.05


@KINDS
def test_the_quadratic_lies_below_everywhere(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Point by point, one or two centres, references inside and outside: no term may be missing."""
    rng, tight, caught = random.Random(9), 0, []
    monkeypatch.setattr(radial, "quadratic", lambda g, H, *_: caught.append((g, H)) or arb(0))
    for trial in range(60):
        toy = RadialToy(trial, kind, n=rng.choice([1, 2]), D=1)
        toy.alpha = [[rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1) for _ in toy.X]]
        latent = Prover(toy, tmp_path / "m.safetensors").checker.model.latents[0]
        near, width = toy.X[0][0], rng.choice([0.05, 0.3, 1.0])
        x = near + rng.choice([-1.0, -0.6, 0.0, 0.4]) * width
        region = read_region(box([x], [x + width]), 1)
        reference = rng.choice([x, x + 0.6 * width, x + width, 2 * near - x])
        hints = {"touch": (0.01).hex(), "D": hexed([0.0]), "y": hexed([0.0]), "ref": hexed([reference])}
        level = Probit(toy.likelihood).level({"t": (0.0).hex()}, latent)
        (base,) = view_of(latent, region, 1)._values([(region.lower, region.upper, hints)], [level])
        g, H = caught.pop()
        gaps = []
        for i in range(61):
            point = x + width * i / 60
            d = (point - reference) / toy.scale[0]
            told = base + g[0] * d + H[0, 0] * d * d / 2
            gaps.append(toy.latent([point])[0] - float(told.lower()))
        assert min(gaps) > -1e-9, trial
        tight += min(gaps) < 1e-6
    assert tight > 20


@KINDS
def test_the_kernel_of_the_reference_itself(kind: str, tmp_path: Path) -> None:
    """still phi(r) - bend (1 - phi(r)) is bounded by a tangent, wherever it touches."""
    toy = RadialToy(3, kind, n=1, D=1)
    latent = Prover(toy, tmp_path / "m.safetensors").checker.model.latents[0]
    region = read_region(box([0.1], [1.3]), 1)
    view = view_of(latent, region, 1)
    shares = [phi(kind, ((0.1 + 1.2 * i / 100 - 0.2) / toy.scale[0]) ** 2 / 2, 1.7) for i in range(101)]
    for still, bend, touch in ((1.0, 0.0, 0.05), (0.0, 1.0, 0.05), (0.7, 0.4, 0.3)):
        least = min(0.2 + still * share - bend * (1 - share) for share in shares)
        bent = (still + bend) * abs(float(profile(kind).slope(arb(touch)).mid())) + 1e-9
        for D in (bent, 0.5 * bent, 0.0):  # too small a diagonal proves nothing, or what is true
            leaf = {"ref": hexed([0.2]), "D": hexed([D]), "y": hexed([0.0]), "touch": touch.hex()}
            point = Point(view, region.lower, region.upper, leaf)
            point.plane, point.b = Plane(arb(0.2), arb(still), arb(0), arb(bend)), [arb(0)]
            try:
                value = float(view._value(point).lower())
            except Reject:
                assert bent > D
                continue
            assert not value > least + 1e-9
            assert value > least - 0.6 * (still + bend) or bent > D


def test_other_families_do_not_take_other_kernels(tmp_path: Path) -> None:
    """One-vs-rest and softmax have proofs for the Gaussian kernel; sums are unknown altogether."""
    toy = RadialToy(3, "matern32")
    prover = Prover(toy, tmp_path / "m.safetensors")
    region = read_region(box([0.0, 0.0], [0.1, 0.1]), 2)
    with pytest.raises(Reject, match="Gaussian"):
        Slice(prover.checker.model.latents[0], region, 1)
    for wrong in (
        {"type": "sum"},
        {"type": "matern72"},
        {"type": "matern32", "alpha": (1.0).hex()},
        [],
        None,
    ):
        about = toy.description()
        kernel = wrong if not wrong or wrong["type"] == "sum" else about["kernel"] | wrong
        toy.write(tmp_path / "w.safetensors", about | {"kernel": kernel})
        with pytest.raises(Reject):
            Checker(str(tmp_path / "w.safetensors"))
    about["kernel"] = about["kernel"] | {"type": "rational_quadratic", "alpha": (-1.0).hex()}
    toy.write(tmp_path / "w.safetensors", about)
    with pytest.raises(Reject, match="exponent"):
        Checker(str(tmp_path / "w.safetensors"))


def test_hints_of_a_leaf(tmp_path: Path) -> None:
    """No forms, a touch that is a number >= 0; and a false claim is not proved."""
    toy = RadialToy(5, "matern52")
    prover = Prover(toy, tmp_path / "m.safetensors")
    region = box([0.0, 0.1], [0.2, 0.2])
    file = proved_range(prover, region, 1, "plane")
    assert accepted(prover.checker, tmp_path / "p", json.dumps(file))
    assert true(toy, file)
    claim = file["claims"][0]
    leaf = next(each for each in claim["proof"]["tree"] if "ref" in each)
    forms = {"metric": hexed([1.0] * 2), "thetas": [], "own": False}
    for wrong in ({"touch": (-0.1).hex()}, {"touch": None}, {"forms": forms}):
        nodes = [each | wrong if each is leaf else each for each in claim["proof"]["tree"]]
        other = file | {"claims": [claim | {"proof": claim["proof"] | {"tree": nodes}}]}
        assert not accepted(prover.checker, tmp_path / "p", json.dumps(other))
    value = min(toy.truth(sample(read_region(region, 2), random.Random(i)))[1] for i in range(200)) + 0.01
    proof = claim["proof"] | {"t": level_down(value).hex()}
    claims = [everywhere(1, ">=", value, proof), at(1, ">=", 2.0, [0.1, 0.15])]
    for one in claims:
        assert not accepted(prover.checker, tmp_path / "p", json.dumps(file | {"claims": [one]}))
