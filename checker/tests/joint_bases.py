"""Proof files whose leaves compare classes at one point (V9'), made by trying."""

from __future__ import annotations

import math
import random
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import gpcert_check.joint as joint
from gpcert_check.balls import read_region
from gpcert_check.claims import Claim
from gpcert_check.joint import Comparison, _look, weights
from gpcert_check.leaves import Slice
from making import Prover, Toy, at, ball, box, everywhere, expectation, hexed, level_down, sample, solved
from truth import needed_mean, psi_told

LOGIT = {"name": "logit"}


def _part(toy: Toy, c: int, p: float, x: list[float]) -> dict[str, Any]:
    """The level p of a class, whose plane touches at x."""
    link, variance = toy.likelihood["link"], toy.latent(x, c)[1]
    if link["name"] == "five_erf":
        return {"p": p.hex()} | psi_told(link, p, variance, toy.s2)
    if link != LOGIT:
        t = level_down(p)
        return {"t": t.hex()} | ({"tau": (t / (2 * math.sqrt(1 + variance))).hex()} if t > 0 else {})
    m = needed_mean(LOGIT, p, variance)
    part: dict[str, Any] = {"p": p.hex(), "rate": hexed([variance, m - 1e-9, m + 1e-9])}
    if p > 0.5:
        return part | {"tangent": hexed([variance, m - 1e-9, m + 1e-9])}
    S = [0.0, variance, 1.001 * toy.s2]
    slope = (needed_mean(LOGIT, p, variance + 1e-3) - m) / 1e-3
    heights = hexed([needed_mean(LOGIT, p, s) + 1e-9 for s in S])
    steep = max(0.0, -2 * slope * (2 + variance) ** 0.5)
    return part | {"curve": {"c": (2.0).hex(), "S": hexed(S), "m": heights}, "nu": steep.hex()}


def _compared(prover: Prover, region: Any, claim: Claim, rival: int | None, order: bool) -> dict[str, Any]:
    """One comparison, with good hints."""
    toy, several = prover.toy, prover.checker.subject
    x = [float((a + b) / 2) for a, b in zip(region.lower, region.upper, strict=True)]
    found = weights(claim, rival, toy.C)
    p = [expectation(toy.likelihood["link"], *toy.latent(x, c)) for c in range(toy.C)]
    parts = [_part(toy, c, p[c] if w > 0 else 1 - p[c], x) for c, w in enumerate(found)]
    if order and rival is not None:
        t = (level_down(p[claim.label]) + level_down(p[rival])) / 2
        parts = [_part(toy, c, 0.5, x) if c in (claim.label, rival) else None for c in range(toy.C)]
        for c, level in ((claim.label, t), (rival, -t)):
            spread = math.sqrt(1 + toy.latent(x, c)[1])
            parts[c] = {"t": level.hex()} | ({"tau": (level / (2 * spread)).hex()} if level > 0 else {})
    data: dict[str, Any] = {"ref": hexed([x[j] for j in region.moving]), "classes": parts}
    ends = [[end[j] for j in region.moving] for end in (region.lower, region.upper)]
    comparison = Comparison(*ends, claim, rival, data | {"programmes": None})
    for c, latent in enumerate(several.latents):
        for sign in (1, -1):
            _look(several, Slice(latent, region, sign), c, sign, [comparison])
    norm = getattr(region, "norm", "inf")
    balls = [None] if norm == "inf" else [[0.0, 0.0], [0.3, 0.0], [1.0, 0.0], [5.0, 0.0]]
    told = [
        max((_solved(total, pair) for pair in balls), key=lambda each: each[0])[1]
        for total in comparison.totals(region, order)
    ]
    return data | {"programmes": told if order else told[0]}


def _solved(total: joint.Total, pair: list[float] | None) -> tuple[float, dict[str, Any]]:
    kept: dict[str, Any] = {}

    def probe(*given: Any) -> Any:
        value, D, y = solved(*given)
        kept.update(D=hexed(D), y=hexed(y))
        return value

    saved, joint.quadratic = joint.quadratic, probe
    more = {} if pair is None else {"ball": hexed(pair)}
    try:
        zero = hexed([0.0] * len(total.g))
        return float(total.least({"D": zero, "y": zero, **more}).mid()), kept | more
    finally:
        joint.quadratic = saved


def joint_file(
    seed: int, link: dict[str, Any], classes: int, norm: str
) -> tuple[Toy, Prover, dict[str, Any]]:
    """A lower bound of P; of probits also an upper one, a margin and an order."""
    toy = Toy(seed, 2, 2 if norm == "2" else 1, classes=classes, link={"name": "one_vs_rest", "link": link})
    prover = Prover(toy, Path(mkdtemp()) / "m.safetensors")
    x = [0.1] * toy.D
    region = ball(x, 0.1, "2") if norm == "2" else box([a - 0.1 for a in x], [a + 0.1 for a in x])
    exact = read_region(region, toy.D)
    shares = [toy.truth(sample(exact, random.Random(i))) for i in range(60)]
    label = max(range(classes), key=lambda c: shares[0][c])
    own = [s[label] for s in shares]
    margin = min(s[label] - max(s[:label] + s[label + 1 :]) for s in shares)
    rivals = [c for c in range(classes) if c != label]
    claims = []
    for sense, value, sign in ((">=", min(own) - 0.02, 1), ("<=", max(own) + 0.02, -1)):
        claim = Claim("probability", label, sign, False, value)
        leaf = {"joint": [_compared(prover, exact, claim, None, False)]}
        claims.append(everywhere(label, sense, value, {"tree": [leaf]}))
    if link["name"] != "probit":  # integrals take their time: one claim
        return toy, prover, prover.file([region], claims[: 1 if link == LOGIT else 2])
    for value, order in ((margin - 0.03, False), (0.0, True)):
        claim = Claim("margin", label, 1, order, value)
        told = [_compared(prover, exact, claim, rival, order) for rival in rivals]
        leaf = {"joint": told, "value": value.hex()}
        claims.append(
            everywhere(
                label, ">" if order else ">=", value - 0.01 * (not order), {"tree": [leaf]}, quantity="margin"
            )
        )
    claims.append(at(label, "<=", 1.0, x))
    return toy, prover, prover.file([region], claims)
