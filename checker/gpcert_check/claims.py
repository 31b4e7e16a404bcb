"""A proof file: what it claims, and whether it proves that."""

from __future__ import annotations

from typing import Any, NamedTuple

from flint import arb, ctx

from gpcert_check.balls import read_region
from gpcert_check.explain import Extremes, balance
from gpcert_check.families import holds_at, prove, subject_of, verify
from gpcert_check.model_file import Model
from gpcert_check.reading import content, fields, integer, listed, need, real, reals, strict
from gpcert_check.regions import Box
from gpcert_check.words import Names
from gpcert_check.work import Work

MOST_CLAIMS = 50_000
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
        self.subject = subject_of(self.model)
        self.names = Names(self.model.features, self.model.classes, self.model.D)
        self._proved: list[Any] = [...] * (self.model.C if self.model.blocks is None else 1)

    def check(self, path: str) -> list[str]:
        """The sentences that the file proves; `Reject` says which step fails."""
        ctx.prec, self.subject.spent, Work.spent = self.model.bits, 0, 0  # every file begins anew
        names = "format model facts regions claims"
        kind, sha, facts, regions, claims, about = fields(strict(content(path)), names, "about")
        need(kind == "gpcert-proof-1", "the format must be gpcert-proof-1")
        need(sha == self.model.sha256, "the proof is about another model")
        need(isinstance(claims, list) and isinstance(regions, list), "claims and regions must be lists")
        need(0 < len(claims) <= MOST_CLAIMS, f"a proof needs claims, at most {MOST_CLAIMS}")
        found = [read_region(each, self.model.D) for each in regions]
        for c, fact in enumerate(listed(facts, len(self._proved), "facts")):
            self._verify(c, fact)
        self.names.read(about)
        self.claims, self.regions, extremes = claims, regions, Extremes()
        named = [self.names.region(*pair) for pair in zip(regions, found, strict=True)]
        head = f"PROVED for the model {self.model.sha256}, of doubles named by their shortest decimals:"
        return [head, *(self._claim(each, found, named, extremes) for each in claims)]

    def _verify(self, c: int, fact: Any) -> None:
        """V1 for latent c, unless the same fact has been proved before."""
        if self._proved[c] == fact:
            return
        self._proved[c] = ...
        verify(self.model, self.subject, c, fact)
        self._proved[c] = fact

    def _claim(self, data: Any, regions: list[Box], named: list[str], extremes: Extremes) -> str:
        kind = data.get("kind") if isinstance(data, dict) else None
        need(kind in ("everywhere", "at", "balance"), "a claim is everywhere, at, or balance")
        most = self.subject.classes - 1
        if kind == "balance":
            return balance(data, extremes, most, named)
        names = f"kind quantity label region sense value {'proof' if kind == 'everywhere' else 'point'}"
        _, quantity, label, region, sense, value, given = fields(data, names)
        need(quantity in ("probability", "margin"), "the quantity is probability or margin")
        need(isinstance(sense, str) and sense in _SENSES, "the sense is >=, >, <= or <")
        claim = Claim(quantity, integer(label, 0, most), *_SENSES[sense], real(value))
        i, whole = integer(region, 0, len(regions) - 1), kind == "everywhere"
        box, point = regions[i], [] if whole else reals(given, self.model.D)
        if whole and box.moving:
            prove(self.subject, self.model, claim, box, given)
        else:
            need(not whole or given is None, "nothing moves in the region: no proof is needed")
            z = point or [*map(float, box.lower)]
            need(box.contains(z), "the point lies outside the region")
            need(holds_at(self.subject, claim, z), "the value at the point is not as claimed")
        if quantity == "probability":
            extremes.learn(str(kind), claim, i)
        where = "everywhere in" if whole else f"at the point ({', '.join(map(repr, point))}) of"
        return f"{quantity} of {self.names.of(claim.label)} {sense} {claim.value!r} {where} {named[i]}"
