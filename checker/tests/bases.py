"""One proof file of every kind, each with its toy: what tampering starts from."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from gpcert_check.balls import read_region
from gpcert_check.claims import Claim
from gpcert_check.few import restricted
from gpcert_check.leaves import Slice
from gpcert_check.planes import Probit
from joint_bases import joint_file
from making import Prover, Toy, at, ball, box, everywhere, hexed, leaf_for, level_down, proved_range, sample
from radial_toys import RadialToy
from softmax_toys import SoftToy, anchored, wins
from truth import needed_mean, psi_told

LOGIT = {"name": "logit"}
FIVE_ERF = {"name": "five_erf"}
FLOORED = {"name": "floored", "link": {"name": "probit", "scale": (1.0).hex()}, "floor": (0.02).hex()}
ONE_VS_REST = {"name": "one_vs_rest", "link": {"name": "probit", "scale": (1.0).hex()}}


_RATIONAL = partial(RadialToy, kind="rational_quadratic")


@dataclass
class Base:
    name: str
    toy: Toy
    prover: Prover
    file: dict[str, Any]


def _two(name: str, seed: int, region: dict[str, Any], style: str, slack: float = 0.03, **about: Any) -> Base:
    facts = about.pop("facts", None)
    label = about.pop("label", 1)
    toy = about.pop("kind", Toy)(seed, **about)
    prover = Prover(toy, Path(mkdtemp()) / "m.safetensors", facts)
    return Base(name, toy, prover, proved_range(prover, region, label, style, slack))


def _own_levels(base: Base) -> Base:
    """Every leaf of the first claim names its level itself."""
    proof = base.file["claims"][0]["proof"]
    proof["tree"] = [node | {"t": proof["t"]} if "ref" in node else node for node in proof["tree"]]
    return base


def _spread(base: Base) -> Base:
    """Envelopes of the variance as well (V8')."""
    for claim in base.file["claims"]:
        if claim["kind"] == "everywhere":
            claim["proof"]["tree"] = [node | {"spread": True} for node in claim["proof"]["tree"]]
    return base


def _logit(seed: int) -> Base:
    """Both sides of 1/2 of the logistic, by hand: one leaf each on a small box."""
    toy = Toy(seed, 3, 2, link=LOGIT)
    prover = Prover(toy, Path(mkdtemp()) / "m.safetensors")
    region = box([0.0, 0.1], [0.2, 0.3])
    exact = read_region(region, 2)
    latent, claims = prover.checker.model.latents[0], []
    top = float(latent.top.upper()) * 1.001
    middle = [0.1, 0.2]
    values = [toy.truth(sample(exact, random.Random(i)))[1] for i in range(200)]
    for sense, value in ((">=", min(values) - 0.05), ("<=", max(values) + 0.05)):
        p = value if sense == ">=" else 1 - value
        view = Slice(latent, exact, 1 if sense == ">=" else -1)
        proof: dict[str, Any] = {"p": p.hex()}
        hints: dict[str, Any] = {}
        spread = toy.latent(middle)[1]
        if p < 0.5:
            S = [top * i / 8 for i in range(9)]
            proof["curve"] = {
                "c": (2.0).hex(),
                "S": hexed(S),
                "m": hexed([needed_mean(LOGIT, p, s) + 1e-9 for s in S]),
            }
            step = 1e-3
            slope = (needed_mean(LOGIT, p, spread + step) - needed_mean(LOGIT, p, spread)) / step
            hints["nu"] = max(0.0, -2 * slope * (2 + spread) ** 0.5).hex()
        else:
            m = needed_mean(LOGIT, p, spread)
            hints["tangent"] = hexed([spread, m - 1e-9, m + 1e-9])
        level = prover.checker.subject.link.level(proof, latent)
        lower, upper = ([end[j] for j in exact.moving] for end in (exact.lower, exact.upper))
        value_, leaf = leaf_for(view, level, lower, upper, hints)
        assert value_ > 0, (sense, p, value_)
        claims.append(everywhere(1, sense, value, proof | {"tree": [leaf]}))
    claims.append(at(1, "<=", toy.truth(middle)[1] + 1e-6, middle))
    return Base("logit", toy, prover, prover.file([region], claims))


def _five_erf(seed: int) -> Base:
    """scikit-learn's formula: a root below 1/2, a line above, and a number where the mean alone decides."""
    toy = Toy(seed, 3, 2, link=FIVE_ERF)
    prover = Prover(toy, Path(mkdtemp()) / "m.safetensors")
    region = box([0.0, 0.1], [0.2, 0.3])
    exact = read_region(region, 2)
    latent, claims, middle = prover.checker.model.latents[0], [], [0.1, 0.2]
    lower, upper = ([end[j] for j in exact.moving] for end in (exact.lower, exact.upper))
    values = [toy.truth(sample(exact, random.Random(i)))[1] for i in range(200)]
    told = (
        (">=", min(values) - 0.05, False),
        ("<=", max(values) + 0.05, False),
        (">=", min(values) - 0.2, True),
    )
    for sense, value, flat in told:
        p = value if sense == ">=" else 1 - value
        level = prover.checker.subject.link.level({"p": p.hex()}, latent)
        hints = psi_told(FIVE_ERF, p, toy.latent(middle)[1], toy.s2, flat)
        view = Slice(latent, exact, 1 if sense == ">=" else -1)
        found, leaf = leaf_for(view, level, lower, upper, hints)
        assert found > 0, (sense, p, found)
        nodes = [leaf] if not flat else [{"envelope": True} | hints]
        claims.append(everywhere(1, sense, value, {"p": p.hex(), "tree": nodes}))
    claims.append(at(1, "<=", toy.truth(middle)[1] + 1e-9, middle))
    claims.append(at(0, ">=", toy.truth(middle)[0] - 1e-9, middle))
    return Base("five erf", toy, prover, prover.file([region], claims))


def _one_vs_rest(seed: int) -> Base:
    """Three classes: a lower and an upper bound of P, and the label by a margin."""
    toy = Toy(seed, 3, 2, classes=3, link=ONE_VS_REST)
    prover = Prover(toy, Path(mkdtemp()) / "m.safetensors")
    region = box([0.0, 0.1], [0.2, 0.2])
    exact = read_region(region, 2)
    points = [sample(exact, random.Random(i)) for i in range(100)]
    p = [[_own(toy, z, c) for z in points] for c in range(3)]
    lower, upper = ([end[j] for j in exact.moving] for end in (exact.lower, exact.upper))
    link, entries = Probit(ONE_VS_REST["link"]), []
    for c, latent in enumerate(prover.checker.model.latents):
        entry = {}
        for side, sign, bound in (("lower", 1, min(p[c]) - 0.02), ("upper", -1, 1 - max(p[c]) - 0.02)):
            if bound <= 0:
                continue
            t = level_down(bound)
            hints = {"tau": (t / (2 * (1 + toy.latent([0.1, 0.15], c)[1]) ** 0.5)).hex()} if t > 0 else {}
            level = link.level({"t": t.hex()}, latent)
            value, leaf = leaf_for(Slice(latent, exact, sign), level, lower, upper, hints)
            assert value > 0, (c, side)
            entry[side] = leaf | {"t": t.hex()}
        entries.append(entry)
    shares = [toy.truth(z) for z in points]
    label = max(range(3), key=lambda c: shares[0][c])
    proof = {"tree": [{"classes": entries}]}
    low, high = min(s[label] for s in shares), max(s[label] for s in shares)
    margins = [s[label] - max(s[:label] + s[label + 1 :]) for s in shares]
    claims = [
        everywhere(label, ">=", low - 0.08, proof),
        everywhere(label, "<=", high + 0.08, proof),
        everywhere(label, ">=", min(margins) - 0.15, proof, quantity="margin"),
        at(label, "<=", low + 1e-9, points[[s[label] for s in shares].index(low)]),
        at(label, "<=", margins[0] + 1e-9, points[0], quantity="margin"),
    ]
    return Base("one-vs-rest", toy, prover, prover.file([region], claims))


def _supports(seed: int) -> Base:
    """A ball of norm 0 in which two of three features may move, one box for each pair of them."""
    toy = Toy(seed, 3, 3)
    prover = Prover(toy, Path(mkdtemp()) / "m.safetensors")
    region = ball([0.1, 0.0, 0.1], 2.0, "0", None, [[-0.2] * 3, [0.3] * 3])
    whole = read_region(region, 3)
    values = [toy.truth(sample(whole, random.Random(i)))[1] for i in range(300)]
    claims = []
    for sense, value in ((">=", min(values) - 0.03), ("<=", max(values) + 0.03)):
        claim = Claim("probability", 1, 1 if sense == ">=" else -1, False, value)
        pairs = [[0, 1], [0, 2], [1, 2]]
        parts = [{"features": few, "proof": prover.two(restricted(whole, few), claim)} for few in pairs]
        claims.append(everywhere(1, sense, value, {"supports": parts}))
    return Base("supports", toy, prover, prover.file([region], claims))


def _softmax(seed: int, correlated: bool) -> Base:
    """Three classes of a softmax: one that wins everywhere, another that loses at a point."""
    region = box([0.0, 0.1], [0.2, 0.2])
    toy, prover, proof, label = wins(seed, region, correlated)
    claims = [
        everywhere(label, ">", 0.0, proof, quantity="margin"),
        at((label + 1) % 3, "<", 0.0, [0.1, 0.15], quantity="margin"),
    ]
    name = "softmax" if correlated else "softmax of independent latents"
    return Base(name, toy, prover, prover.file([region], claims))


def _anchored(seed: int) -> Base:
    """The same by integrals at a reference."""
    toy, prover, region, proof, label = anchored(seed, False)
    claims = [everywhere(label, ">", 0.0, proof, quantity="margin")]
    return Base("softmax by integrals", toy, prover, prover.file([region], claims))


def _share(seed: int, correlated: bool) -> Base:
    """A range of one class of a softmax, and points that attain its inner ends, about."""
    region = ball([0.1, 0.15], 0.02, "2")
    toy = SoftToy(seed, correlated=correlated)
    prover = Prover(toy, Path(mkdtemp()) / "m.safetensors", toy.facts())
    exact = read_region(region, 2)
    points = [sample(exact, random.Random(i)) for i in range(60)]
    values = [toy.truth(z)[1] for z in points]
    nodes = [{"split": 0, "at": (0.1).hex()}, {"ref": hexed([0.09, 0.15])}, {"split": 0, "at": (0.119).hex()}]
    corner = [{"split": 1, "at": (0.169).hex()}, {"ref": hexed([0.1195, 0.15])}, {"outside": True}]
    proof = {"tree": [*nodes, {"ref": hexed([0.11, 0.15])}, *corner]}
    claims = [
        everywhere(1, ">=", min(values) - 0.02, proof),
        everywhere(1, "<=", max(values) + 0.02, proof),
        at(1, "<=", min(values) + 1e-6, points[values.index(min(values))]),
        at(1, ">=", max(values) - 1e-6, points[values.index(max(values))]),
        everywhere(2, ">=", 0.0, None),
    ]
    name = "range of a softmax" if correlated else "range of independent latents"
    return Base(name, toy, prover, prover.file([region], claims))


def _own(toy: Toy, z: list[float], c: int) -> float:
    from making import expectation

    return expectation(toy.likelihood["link"], *toy.latent(z, c))


def _lines() -> Base:
    """Two one-sided lines and the balance of their extremes; safe and unsafe verdicts besides."""
    toy = Toy(31, 3, 2)
    prover = Prover(toy, Path(mkdtemp()) / "m.safetensors")
    x, far = [0.1, -0.2], float("inf")
    sides = [([-far, -far], [x[0], far]), ([x[0], -far], [far, far])]
    regions = [ball(x, 0.4, "inf", [0], [list(a), list(b)]) for a, b in sides]
    claims = []
    for i, region in enumerate(regions):
        part = proved_range(prover, region, slack=0.02)["claims"]
        claims += [each | {"region": i} for each in part]
    low, high = ([float.fromhex(claims[4 * i + j]["value"]) for i in (0, 1)] for j in (0, 1))
    terms = [
        {"sign": 1 if i else -1, "extreme": extreme, "region": i}
        for i in (0, 1)
        for extreme in ("max", "min")
    ]
    most = high[1] - low[0] + (high[1] - low[0])
    claims.append(
        {
            "kind": "balance",
            "label": 1,
            "sums": [terms],
            "count": 1,
            "lower": (-2.0).hex(),
            "upper": (most + 0.1).hex(),
        }
    )
    point = box(x, x)
    value = toy.truth(x)[1]
    claims.append(everywhere(1, ">" if value > 0.5 else "<", 0.5, None, 2))
    return Base("lines", toy, prover, prover.file([*regions, point], claims))


@cache
def bases() -> list[Base]:
    indefinite = [{"jitter": (1e-9).hex(), "contraction": (1.001).hex(), "negative": (0.9).hex()}]
    lower, upper = [-0.3, -0.4, 0.2], [0.5, 0.3, 0.2]
    domain = [[-1.0, -1.0], [1.0, 0.2]]
    return [
        _two("plane", 4, box(lower, upper), "plane", n=4, D=3),
        _two("tree", 5, box([-0.8, -0.8], [0.8, 0.8]), "plane", 0.001),
        _own_levels(_two("other class", 5, box([-0.1, -0.3], [0.4, 0.3]), "plane", 0.01, label=0)),
        _two("forms", 5, box([-0.3, -0.4], [0.4, 0.3]), "forms"),
        _two("inf", 7, ball([0.1, 0.0], 0.3, "inf", None, domain, [1.0, 1.3]), "plane"),
        _two("norm 2", 8, ball([0.1, 0.0], 0.3, "2", None, domain, [1.0, 1.3]), "plane", 0.05),
        _two("norm 1", 9, ball([0.1, 0.0], 0.3, "1", [0, 1]), "plane", 0.05),
        _two(
            "norm 0",
            10,
            ball([0.1, 0.0, 0.1], 1.0, "0", None, [[-0.4] * 3, [0.3] * 3]),
            "plane",
            0.08,
            n=3,
            D=3,
        ),
        _two("indefinite", 11, box([-0.3, -0.4], [0.4, 0.3]), "plane", indefinite=True, facts=indefinite),
        _two("witness", 12, box([-0.3, -0.4], [0.4, 0.3]), "plane", facts=[{"witness": hexed(Toy(12).W[0])}]),
        _two("far", 13, box([9.0, 9.0], [9.5, 9.5]), "envelope", 0.2),
        _spread(_two("spread", 13, box([3.0, 3.0], [3.1, 3.1]), "envelope", 0.2)),
        _logit(14),
        _five_erf(14),
        _two("floored", 7, box([-0.3, -0.4], [0.4, 0.3]), "plane", link=FLOORED),
        _one_vs_rest(15),
        _two("matern", 4, box([-0.1, -0.1], [0.2, 0.1]), "plane", kind=partial(RadialToy, kind="matern32")),
        _two("rational", 6, ball([0.1, 0.0], 0.15, "2"), "plane", 0.05, kind=_RATIONAL),
        _supports(10),
        _softmax(21, True),
        _softmax(21, False),
        _anchored(22),
        _share(23, True),
        _share(24, False),
        Base("joint", *joint_file(16, ONE_VS_REST["link"], 3, "2")),
        Base("joint logit", *joint_file(19, LOGIT, 2, "inf")),
        Base("joint five erf", *joint_file(19, FIVE_ERF, 2, "inf")),
        _lines(),
    ]
