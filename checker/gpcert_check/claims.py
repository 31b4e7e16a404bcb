"""A proof file: what it claims, and whether it proves that."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

from flint import arb

from gpcert_check.balls import read_region
from gpcert_check.explain import Extremes, balance
from gpcert_check.indefinite import contractions
from gpcert_check.model import Model
from gpcert_check.reading import content, fields, integer, listed, need, real, reals, strict
from gpcert_check.several import OneVsRest
from gpcert_check.two_classes import TwoClasses

__all__ = ["Checker"]

MOST_CLAIMS, MOST_REGIONS = 100_000, 100_000
_SENSES = {">=": (1, False), ">": (1, True), "<=": (-1, False), "<": (-1, True)}


class Claim(NamedTuple):
    """quantity of `label` >= value (sense 1) or <= value (-1), on a region or at a point of it."""

    quantity: str
    label: int
    sense: int
    strictly: bool
    value: float

    def met(self, q: arb) -> bool:
        """Whether the ball certainly is on the right side."""
        difference = self.sense * (q - self.value)
        return bool(difference > 0 if self.strictly else difference >= 0)


class Checker:
    """One model, and any number of proofs about it; facts about the model are proved once."""

    def __init__(self, path: str) -> None:
        self.model = Model(path)
        likelihood = self.model.likelihood
        several = isinstance(likelihood, dict) and likelihood.get("name") == "one_vs_rest"
        self.subject: Any = (OneVsRest if several else TwoClasses)(self.model)
        self._proved: list[Any] = [...] * self.model.C

    def check(self, path: str) -> list[str]:
        """The sentences that the file proves; `Reject` says which step fails."""
        proof = strict(content(path))
        format_, sha, facts, regions, claims = fields(proof, "format model facts regions claims")
        need(format_ == "gpcert-proof-1", "the format must be gpcert-proof-1")
        need(sha == self.model.sha256, "the proof is about another model")
        need(
            isinstance(claims, list) and 1 <= len(claims) <= MOST_CLAIMS,
            "a proof needs between 1 and 100000 claims",
        )
        need(
            isinstance(regions, list) and len(regions) <= MOST_REGIONS,
            "a proof may have at most 100000 regions",
        )
        found = [read_region(each, self.model.D) for each in regions]
        for c, fact in enumerate(listed(facts, self.model.C, "facts")):
            self._verify(c, fact)
        extremes = Extremes()
        named = [_named(i, each) for i, each in enumerate(regions)]
        return [self._claim(each, found, named, extremes) for each in claims]

    def _verify(self, c: int, fact: Any) -> None:
        """V1 for latent c, unless the same fact has been proved before."""
        if self._proved[c] is not ... and self._proved[c] == fact:
            return
        self._proved[c] = ...
        latent = self.model.latents[c]
        if isinstance(fact, dict) and "jitter" in fact:
            contractions(latent, fact)
        elif fact is None:
            need(
                self.model.witness is not None,
                "V1: the model has no site precisions, and the proof no witness",
            )
            latent.verify(self.model.witness[c])
        else:
            latent.verify(reals(fields(fact, "witness")[0], latent.n))
        self._proved[c] = fact

    def _claim(self, data: Any, regions: list[Any], named: list[str], extremes: Extremes) -> str:
        kind = data.get("kind") if isinstance(data, dict) else None
        need(kind in ("everywhere", "at", "balance"), "a claim is everywhere, at, or balance")
        most = self.subject.classes - 1
        if kind == "balance":
            return balance(data, extremes, most, len(regions))
        last = "proof" if kind == "everywhere" else "point"
        _, quantity, label, region_, sense, value, given = fields(
            data, f"kind quantity label region sense value {last}"
        )
        need(quantity in ("probability", "margin"), "the quantity is probability or margin")
        need(isinstance(sense, str) and sense in _SENSES, "the sense is >=, >, <= or <")
        claim = Claim(quantity, integer(label, 0, most), *_SENSES[sense], real(value))
        i = integer(region_, 0, len(regions) - 1)
        region = regions[i]
        if kind == "at":
            point = reals(given, self.model.D)
            need(region.contains(point), "the point lies outside the region")
            where = f"at the point {_shown(point)} of {named[i]}"
            need(claim.met(self._value(claim, point)), "the value at the point is not as claimed")
        else:
            where = f"everywhere in {named[i]}"
            if region.moving:
                self.subject.prove(claim, region, given)
            else:
                need(given is None, "nothing moves in the region: no proof is needed")
                point = [float(a) for a in region.lower]
                need(
                    region.contains(point) and claim.met(self._value(claim, point)),
                    "the claim fails at the only point",
                )
        if quantity == "probability":
            extremes.learn(kind, claim, i)
        return f"{quantity} of class {claim.label} {sense} {claim.value!r} {where}"

    def _value(self, claim: Claim, point: list[float]) -> arb:
        p = self.subject.probabilities(point)
        own = p.pop(claim.label)
        if claim.quantity == "probability":
            return own
        need(len(p) > 1, "two classes have probabilities, not margins")
        other = p[0]
        for each in p[1:]:
            other = other.max(each)
        return own - other


def _shown(numbers: list[float]) -> str:
    head = ", ".join(map(repr, numbers[:8]))
    return f"({head}{f', ... {len(numbers)} numbers' if len(numbers) > 8 else ''})"


def _named(i: int, data: Any) -> str:
    """A region in words: short ones entirely, long ones by a hash of what the file says."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    if data["kind"] == "box" and len(data["lower"]) <= 8:
        pairs = zip(data["lower"], data["upper"], strict=True)
        return "the box " + " x ".join(f"[{real(a)!r}, {real(b)!r}]" for a, b in pairs)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    if data["kind"] == "box":
        return f"region {i} (a box, {len(data['lower'])} features, SHA-256 {digest}...)"
    free = len(data["x"]) if data["features"] is None else len(data["features"])
    about = f"norm {data['norm']}, radius {real(data['radius'])!r}, {free} of {len(data['x'])} features"
    return f"region {i} (a ball, {about}, SHA-256 {digest}...)"
