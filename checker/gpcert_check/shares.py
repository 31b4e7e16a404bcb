"""Probabilities of a softmax on cells, by an integral at a reference (V15, V18)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from flint import arb

from gpcert_check.anchors import Near
from gpcert_check.arithmetic import dot, largest
from gpcert_check.indefinite import variances
from gpcert_check.leaves import leaves
from gpcert_check.model import Latent
from gpcert_check.reading import fields, need
from gpcert_check.regions import Box, Ends
from gpcert_check.work import spend

__all__ = ["Slopes", "holds", "misses", "prove_share"]


class Slopes:
    """V15 (c): how far means and variances move where |d|^2 <= square and |d_j| <= far_j around x; without
    `far` by their norms alone.
    """

    def __init__(self, base: Latent, x: list[arb], k: list[arb], square: arb, far: Any) -> None:
        self.square, self.s2, self._known = square, base.s2, far is not None
        moving = [j for j, a in enumerate(far or ()) if not a.is_zero()]
        self._far = [far[j] for j in moving]
        spend(base.n * len(moving))
        steps = [[(row[j] - x[j]) / base.scale[j] for j in moving] for row in base.X]
        self._slopes = [[c * a for a in row] for c, row in zip(k, steps, strict=True)]  # of every k_i

    def _along(self, weights: Sequence[arb]) -> arb:
        """At least |gradient of the sum of weights times k_i, times d|; where no far is known, anything."""
        if not self._known:
            return arb("inf")
        spend(len(weights) * len(self._far))  # for every pair of classes
        columns = zip(*self._slopes, strict=True)
        gradient = [abs(dot(weights, column)) for column in columns]
        steep = largest([dot(gradient, gradient) * self.square]).sqrt()
        return dot(gradient, self._far).min(steep)

    def moved(self, alpha: Sequence[arb], square_norm: arb) -> arb:
        """At least what the sum of alpha times k_i moves by, of this squared norm."""
        whole = (square_norm * self.s2).sqrt()
        return (whole * self.square.sqrt()).min(self._along(alpha) + whole * self.square)

    def ends(self, latent: Any, here: arb, r: Sequence[arb]) -> tuple[arb, arb]:
        """Of a variance, clipped at 0, that is `here` at x and has r = R k there."""
        low, high, _ = variances(latent, latent.s2 - here, self.square)
        wide = latent.s2 + latent.lift + latent.negative * latent.s2
        lifted = (here + latent.lift).nonnegative_part().upper()
        change = 2 * self._along(r) + (2 * (lifted * wide).sqrt() + wide) * self.square
        return low.max(here - change), high.min((here + change).nonnegative_part())


def prove_share(softmax: Any, claim: Any, region: Box, proof: Any) -> None:
    """A tree whose leaves each tell a reference, from which the claim holds on the leaf's cell."""
    if proof is None:
        need(not claim.strictly, "a claim without a proof")
        need(claim.value <= 0 if claim.sense > 0 else claim.value >= 1, "a claim without a proof")
        return
    for lower, upper, leaf in leaves(fields(proof, "tree")[0], region):
        if "outside" in leaf:
            need(fields(leaf, "outside")[0] is True, "outside must be true")
            need(misses(region, lower, upper), "V18: a cell meets the region")
            continue
        need(_met(softmax.on(region, lower, upper, leaf), claim), "V18: the claim is not proved on a leaf")


def misses(region: Box, lower: Ends, upper: Ends) -> bool:
    """Whether a ball has no point in a cell of its box: not even the one nearest to its centre."""
    nearest: list[Any] = list(region.lower)
    for j, a, b in zip(region.moving, lower, upper, strict=True):
        nearest[j] = min(max(Fraction(getattr(region, "x", nearest)[j]), a), b)
    return not region.contains(nearest)


def holds(softmax: Any, claim: Any, point: Sequence[float]) -> bool:
    """Whether the claim certainly holds at a point."""
    return _met(softmax.near([arb(x) for x in point], arb(0)), claim)


def _met(near: Near, claim: Any) -> bool:
    """V18: P_c is at most half of what margins lose away from the law's; sharper and sharper sums of it."""
    lost = near.lost / 2
    return any(claim.met(p[claim.label] - claim.sense * lost) for p in near.sums())
