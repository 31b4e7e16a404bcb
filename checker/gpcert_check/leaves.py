"""Boxes of a cover and the inequality each of them proves (V2, V3, V5, V6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from flint import arb, arb_mat

from gpcert_check.arithmetic import ball, dot, product, quadratic
from gpcert_check.model import Latent
from gpcert_check.planes import Plane
from gpcert_check.reading import fields, integer, need, real, reals
from gpcert_check.regions import Box, Cell, Ends
from gpcert_check.sharper import envelope, extra, higher, narrowed
from gpcert_check.work import spend

MOST_NODES = 200_000  # of up to 100 features that move, of more fewer
Leaf = tuple[Ends, Ends, dict[str, Any]]  # the ends of its box, and what the file says about it
_AT_ONCE = 2_000_000  # numbers of one batch of leaves: bounds the memory, whatever the tree


def leaves(nodes: Any, region: Box) -> Iterator[Leaf]:
    """The leaves of a tree in preorder; they cover the region by construction (V6)."""
    need(isinstance(nodes, list), "a tree is a list of nodes")
    most = MOST_NODES * 100 // max(100, len(region.moving))  # ends are kept for every open box
    need(len(nodes) <= most, f"a tree has at most {most} nodes")
    stack = [([region.lower[j] for j in region.moving], [region.upper[j] for j in region.moving])]
    for node in nodes:
        need(len(stack) > 0, "V6: there are nodes after the end of the tree")
        lower, upper = stack.pop()
        need(isinstance(node, dict), "a node must be an object")
        if "split" not in node:
            yield lower, upper, node
            continue
        feature, at = fields(node, "split at")
        j, cut = integer(feature, 0, len(lower) - 1), Fraction(real(at))
        need(lower[j] < cut < upper[j], "V6: a split lies outside its box")
        right, left = list(lower), list(upper)
        right[j] = left[j] = cut
        stack += [(right, upper), (lower, left)]  # the lower half comes next
    need(not stack, "V6: the tree does not cover the region")


class Point:
    """A leaf seen from its reference: displacements v of the centres, kernel values k, and its cell."""

    def __init__(self, view: Slice, lower: Ends, upper: Ends, leaf: dict[str, Any]) -> None:
        self.leaf, self.ends, d = leaf, (lower, upper), len(lower)
        reference = reals(leaf["ref"], d)
        self.cell: Cell = view.region.cell(lower, upper, reference, view.scale)
        shift = [arb(x) / s for x, s in zip(reference, view.scale, strict=True)]
        self.v = [[a - b for a, b in zip(row, shift, strict=True)] for row in view.Z]
        self.k = [view.kernel(i, dot(v, v)) for i, v in enumerate(self.v)]
        self.r = self.b = self.bk = [arb(0)] * len(self.k)  # r = R k where the plane needs it
        # Value, gradient and Hessian of the sum of kernels; H and rest: with its higher orders.
        self.q0 = self.f0 = self.rest = arb("nan")
        self.f1, self.f2, self.H = [self.f0] * d, arb_mat(d, d), arb_mat(d, d)
        self.x = self.cell.reach([1] * d)  # at least |d|^2
        self.plane: Plane


class Slice:
    """One latent where only the moving features of a region move; `sign` -1 speaks for the other class."""

    gaussian, required, optional = True, "ref D y", "forms ball t"

    def __init__(self, latent: Latent, region: Box, sign: int) -> None:
        need(latent.profile.gaussian is self.gaussian, "this family has proofs for the Gaussian kernel only")
        spend(latent.n * latent.D // 5)  # for each claim, whatever moves
        self.latent, self.region, self.moving = latent, region, region.moving
        self.scale = [latent.scale[j] for j in self.moving]
        self.alpha, self.m0 = [sign * a for a in latent.alpha], sign * latent.m0
        self.Z = [[arb(row[j]) / latent.scale[j] for j in self.moving] for row in latent.X]
        moves = set(self.moving)
        still = [(j, ball(a), latent.scale[j]) for j, a in enumerate(region.lower) if j not in moves]
        self.away = [dot(v, v) for v in ([(row[j] - a) / s for j, a, s in still] for row in latent.X)]
        self.amplitude = [latent.s2 * latent.profile.value(square / 2) for square in self.away]

    def kernel(self, i: int, square: arb) -> arb:
        """k_i at a squared distance in the moving features."""
        return self.amplitude[i] * (-square / 2).exp()

    def prove(self, parts: Sequence[Leaf], levels: Sequence[Any], strictly: bool) -> None:
        """Every leaf shows its level."""
        n, d, hints = self.latent.n, len(self.moving), [leaf for *_, leaf in parts]
        spend(len(parts) * (n * d + n * n // 20 + d**3 // 10) + extra(n, d, hints))
        size = max(1, _AT_ONCE // (n * (d + 8)))
        for start in range(0, len(parts), size):
            for value in self._values(parts[start : start + size], levels[start : start + size]):
                need(value > 0 if strictly else value >= 0, "the inequality of a leaf fails")

    def _values(self, parts: Sequence[Leaf], levels: Sequence[Any]) -> Iterator[arb]:
        """For each leaf what has to be >= 0; products with large matrices are made for all at once."""
        todo = []
        for (lower, upper, leaf), level in zip(parts, levels, strict=True):
            if "envelope" in leaf:
                need(fields(leaf, "envelope", f"t {level.hints}")[0] is True, "envelope must be true")
                yield level.outright(narrowed(self, lower, upper, leaf), envelope(self, lower, upper), leaf)
            else:
                fields(leaf, self.required, f"{self.optional} {level.hints}")
                todo.append((Point(self, lower, upper, leaf), level))
        self.expand(todo)
        yield from (self._value(point) for point, _ in todo)

    def expand(self, todo: Sequence[tuple[Point, Any]], variances: bool = False) -> None:
        """V2, V3: the plane of every point and its expansion; `variances`: S at the references is needed."""
        bent = [point for point, level in todo if variances or level.uses_precision(point.leaf)]
        for point, r in zip(bent, product(self.latent.R, [point.k for point in bent]), strict=True):
            point.r, point.q0 = r, dot(point.k, r)
        for point, level in todo:
            x = point.x if self.gaussian else (2 - 2 * self.latent.profile.value(point.x / 2)).upper()
            latent = narrowed(self, *point.ends, point.leaf)
            point.plane = level.plane(latent, self.m0, point.leaf, point.q0, x)
            point.b = [a + point.plane.factor * x for a, x in zip(self.alpha, point.r, strict=True)]
        self._orders(todo)

    def _orders(self, todo: Sequence[tuple[Point, Any]]) -> None:
        """V2: the orders of the sums of kernels; those from two on are at least d^T (H - rest I) d/2."""
        n, d = self.latent.n, len(self.moving)
        for point, _ in todo:
            point.bk = [b * k for b, k in zip(point.b, point.k, strict=True)]
            Vt = arb_mat(point.v).transpose()
            point.f0, point.f1 = sum(point.bk, arb(0)), (Vt * arb_mat(n, 1, point.bk)).entries()
            scaled = [w * a for w, row in zip(point.bk, point.v, strict=True) for a in row]
            point.f2 = Vt * arb_mat(n, d, scaled)
        higher(self, [point for point, _ in todo])

    def _value(self, point: Point) -> arb:
        """V3, V5: a lower bound of e^{|d|^2/2} f over the leaf."""
        cell, plane, H = point.cell, point.plane, point.H
        growth = (point.x / 2).expm1() / (point.x / 2)
        for j in range(len(self.moving)):
            H[j, j] += plane.constant.min(plane.constant * growth) - plane.bend * growth - point.rest
        gain, least = cell.gain(point.leaf.get("ball"), point.f1, H)
        D, y = (reals(point.leaf[name], len(self.moving)) for name in ("D", "y"))
        return plane.still + plane.constant + point.f0 + gain + quadratic(point.f1, H, cell.box, D, y, least)
