"""Two classes: P(1) = E sigma(f), f ~ N(mu, max(0, S)), and proofs about P(label)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flint import arb

from gpcert_check.leaves import leaves
from gpcert_check.links import two_class_link
from gpcert_check.model_file import Model
from gpcert_check.radial import view_of
from gpcert_check.reading import fields, need
from gpcert_check.regions import Box


class TwoClasses:
    """What a model with one latent says, and how a claim about it is proved."""

    classes = 2

    def __init__(self, model: Model) -> None:
        need(model.C == 1, "a two-class likelihood has one latent")
        self.latent, self.link = model.latents[0], two_class_link(model.likelihood)

    def value(self, claim: Any, point: Sequence[float]) -> arb:
        """An enclosure of P(label) at a point."""
        need(claim.quantity == "probability", "two classes have probabilities, not margins")
        mean, variance = self.latent.at(point)
        own: arb = self.link.expectation(mean if claim.label == 1 else -mean, variance)
        return own + (0 if claim.label == 1 else self.link.spare)

    def prove(self, claim: Any, region: Box, proof: Any) -> None:
        """P(label) >= value, or > where the claim is strict; likewise <=, by the other class."""
        need(claim.quantity == "probability", "two classes have probabilities, not margins")
        up = claim.sense > 0
        sign = 1 if (claim.label == 1) == up else -1
        p = (arb(claim.value) if up else 1 - arb(claim.value)) - (self.link.spare if sign < 0 else 0)
        if proof is None:
            return need(p <= self.link.floor and not claim.strictly, "a claim without a proof")
        fields(proof, *self.link.proof_fields)
        parts, common = list(leaves(proof["tree"], region)), self.link.level(proof, self.latent)
        own = [self.link.level(leaf, self.latent) if {"t", "p"} & set(leaf) else common for *_, leaf in parts]
        need(all(level.probability >= p for level in own), "V4: the level lies below the claim")
        view_of(self.latent, region, sign).prove(parts, own, claim.strictly)
