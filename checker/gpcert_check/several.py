"""One-vs-rest (V9, V9'): P_c = p_c / sum_j p_j, every p_j = E sigma(f_j) of a latent of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from flint import arb

from gpcert_check.joint import prove_jointly
from gpcert_check.leaves import Slice, leaves
from gpcert_check.links import link_of
from gpcert_check.model_file import Model
from gpcert_check.reading import fields, listed, need
from gpcert_check.regions import Box

Ends = tuple[arb, arb]


class OneVsRest:
    """Several latents, each a two-class problem; a leaf bounds each p_j from one side or both."""

    def __init__(self, model: Model) -> None:
        _, link = fields(model.likelihood, "name link")
        need(model.C >= 2, "one-vs-rest needs several latents")
        self.latents, self.link, self.classes = model.latents, link_of(link), model.C

    def value(self, claim: Any, point: Sequence[float]) -> arb:
        """An enclosure of P(label), or of its margin, at a point."""
        p: list[arb] = [self.link.expectation(*latent.at(point)) for latent in self.latents]
        total = sum(p, arb(0))
        own = p.pop(claim.label)
        if claim.quantity == "probability":
            return own / total
        return (own - reduce(lambda a, b: a.max(b), p)) / total

    def prove(self, claim: Any, region: Box, proof: Any) -> None:
        """A tree whose leaves enclose the p_j well enough for the claim."""
        if proof is None:
            need(claim.quantity == "probability" and not claim.strictly, "a claim without a proof")
            need(claim.value <= 0 if claim.sense > 0 else claim.value >= 1, "a claim without a proof")
            return
        every = list(leaves(fields(proof, "tree")[0], region))
        prove_jointly(self, region, claim, [box for box in every if "joint" in box[2]])
        boxes = [box for box in every if "joint" not in box[2]]
        ends = [[(arb(0), arb(1))] * self.classes for _ in boxes]
        for c, latent in enumerate(self.latents):
            self._bound(Slice(latent, region, 1), c, False, boxes, ends)
            self._bound(Slice(latent, region, -1), c, True, boxes, ends)
        for each in ends:
            need(claim.met(extreme(each, claim)), "the classes' bounds on a leaf do not prove the claim")

    def _bound(self, view: Slice, c: int, upper: bool, boxes: Sequence[Any], ends: list[list[Ends]]) -> None:
        """The lower (upper) bounds of p_c on all leaves that give one."""
        parts, levels = [], []
        for i, (low, high, leaf) in enumerate(boxes):
            entry = listed(fields(leaf, "classes")[0], self.classes, "classes")[c]
            part = None if entry is None else fields(entry, "", "lower upper")[upper]
            if part is None:
                continue
            need(isinstance(part, dict), "a class's part of a leaf must be an object")
            level = self.link.level(part, view.latent)
            parts.append((low, high, part))
            levels.append(level)
            a, b = ends[i][c]
            ends[i][c] = (a, 1 - level.probability) if upper else (level.probability, b)
        view.prove(parts, levels, False)


def extreme(ends: Sequence[Ends], claim: Any) -> arb:
    """The smallest (largest) value of what is claimed, given enclosures of all p_j."""
    side = 0 if claim.sense > 0 else 1
    own = ends[claim.label][side]
    others = [pair for j, pair in enumerate(ends) if j != claim.label]
    if claim.quantity == "probability":
        bound: arb = own / (own + sum((pair[1 - side] for pair in others), arb(0)))
        return bound
    need(side == 0, "a margin is bounded below everywhere, above at points")
    least = arb(1)
    for j, (_, most) in enumerate(others):
        rest = [pair for i, pair in enumerate(others) if i != j]
        if own >= most:
            margin = (own - most) / (own + most + sum((pair[1] for pair in rest), arb(0)))
        else:
            margin = (own - most) / (own + most + sum((pair[0] for pair in rest), arb(0)))
        least = least.min(margin)
    return least
