"""Classes of one-vs-rest compared at the same point (V9').

A claim about P_c = p_c/sum_j p_j is one about a sum of weights times the p_j. Each p_j, or 1 - p_j, is at
least its level plus a rate times its plane, less what is of second order: all planes around one reference
make one quadratic. Of two probits the order is that of mu/A alone, and needs no rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from flint import arb, arb_mat

from gpcert_check.arithmetic import dot, largest, quadratic
from gpcert_check.five_erf import BENT, STEEPEST, FiveErfLevel, slope
from gpcert_check.indefinite import variances
from gpcert_check.leaves import Leaf, Point, Slice
from gpcert_check.logit import SIGMA, SLOPE, mean_of
from gpcert_check.planes import ProbitLevel
from gpcert_check.reading import Reject, fields, listed, need, real, reals
from gpcert_check.regions import Box, Cell, Ends
from gpcert_check.sharper import extra
from gpcert_check.work import spend

__all__ = ["prove_jointly", "weights"]

_AT_ONCE = 2_000_000  # numbers of one batch
_STEEPEST = 1 / (6 * arb(3).sqrt())  # |sigma''| of the logistic is at most this
_CHANGE = arb(1) / 16 + _STEEPEST / 2  # of E sigma' along a level's curve, for each unit of the variance


class Rate(NamedTuple):
    """P >= level + slope f - (apart + spread |d|) |f| - curve f^2/2 on the cell."""

    slope: arb
    apart: arb
    spread: arb
    curve: arb


NOTHING = Rate(arb(0), arb(0), arb(0), arb(0))


class Roots(NamedTuple):
    """A = sqrt(c + max(S, 0)) at the reference; it lies in [least, most], and |A - here| <= change |d|."""

    here: arb
    least: arb
    most: arb
    change: arb


class Class:
    """p_j on a cell, or 1 - p_j by a view of sign -1: its level, its plane and their sizes.

    e^{r_j} f = value + f1.d + rho, |rho| <= d^T N d/2, |f| <= most.
    """

    def __init__(self, view: Slice, point: Point, level: Any) -> None:
        self.view, self.point, self.level, plane = view, point, level, point.plane
        pairs = zip(point.f2.tolist(), (point.f2 - point.H).tolist(), strict=True)
        self.rows = [sum(map(abs, [*row, *more]), point.rest) for row, more in pairs]
        self.growth = (point.x / 2).expm1() / (point.x / 2)
        bent = (abs(plane.constant) + plane.bend) * self.growth
        self.N = [row + bent for row in self.rows]
        self.steep = largest([dot(point.f1, point.f1)]).sqrt()
        self.along = dot(map(abs, point.f1), point.cell.far).min(self.steep * point.x.sqrt())  # >= |f1.d|
        self.value = plane.constant + plane.still + point.f0
        self.most = abs(self.value) + self.along + point.cell.reach(self.N) / 2

    def roots(self, c: arb) -> Roots:
        """V9' (a): how A moves."""
        least, most, _ = variances(self.view.latent, self.point.q0, self.point.x)
        here, least, most = (c + self._variance()).sqrt(), (c + least).sqrt(), (c + most).sqrt()
        return Roots(here, least, most, self._change() / (here + least))

    def _variance(self) -> arb:
        return (self.view.latent.s2 - self.point.q0).nonnegative_part()

    def _change(self) -> arb:
        """|S - S(ref)| is at most this times |d|."""
        latent = self.view.latent
        wide = latent.s2 + latent.lift + latent.negative * latent.s2
        lifted = (latent.s2 - self.point.q0 + latent.lift).nonnegative_part().upper()
        return 2 * (lifted * wide).sqrt() + wide * self.point.x.sqrt()

    def rate(self) -> Rate:
        """V9' (b): how P grows with the plane."""
        if isinstance(self.level, FiveErfLevel):
            return self._five_erf()
        return self._probit() if isinstance(self.level, ProbitLevel) else self._logit()

    def _five_erf(self) -> Rate:
        """V16 (c)."""
        psi, here = self.level.psi(self.point.leaf), self._variance()
        least = variances(self.view.latent, self.point.q0, self.point.x)[0]
        change = STEEPEST * psi.change(least) + BENT / 2
        return Rate(slope(psi.at(here), here), arb(0), change * self._change(), STEEPEST)

    def _probit(self) -> Rate:
        roots, t = self.roots(self.level.c), arb(self.level.t)
        density, around = _density(t) / roots.here, self.most / roots.least
        curve = _steepest(t - around, t + around) / roots.least**2
        return Rate(density, arb(0), density * roots.change / roots.least, curve)

    def _logit(self) -> Rate:
        p, x = self.level.p, self.point.x.sqrt()
        S, low, high = reals(self.point.leaf.get("rate"), 3)
        need(S >= 0 and low <= high, "V9': a rate is [S, low, high], S >= 0, low <= high")
        need(mean_of(SIGMA, arb(low), arb(S)) <= p, "V9': the lower end lies above the level's curve")
        need(mean_of(SIGMA, arb(high), arb(S)) >= p, "V9': the upper end lies below the level's curve")
        slope = mean_of(SLOPE, arb(low).union(arb(high)), arb(S))
        apart, change = abs(self._variance() - S), self._change()
        convex = high + (apart + change * x) / 2 + self.most <= 0
        return Rate(slope, _CHANGE * apart, _CHANGE * change, arb(0) if convex else _STEEPEST)


class Total:
    """A sum of planes: constant e^r + value + g.d + d^T H d/2 lies below e^r times it on the cell, r and d in
    the units `scale`.
    """

    def __init__(self, cell: Cell, scale: Sequence[float], constant: arb) -> None:
        self.cell, self.scale, self.constant, self.value = cell, scale, constant, arb(0)
        self.g, self.H = [arb(0)] * len(scale), arb_mat(len(scale), len(scale))

    def add(self, one: Class, weight: arb, paid: arb, rate: Rate) -> None:
        """weight f, less `paid` times what the rate loses; both >= 0."""
        point, plane, f1 = one.point, one.point.plane, one.point.f1
        ratio = [arb(s) / t for s, t in zip(self.scale, one.view.scale, strict=True)]  # d_j = ratio d
        tilt = [1 / a**2 - 1 for a in ratio]  # u = r - r_j = sum tilt d_j^2/2
        far = point.cell.reach(map(abs, tilt)) / 2  # >= |u|
        grow = far.expm1() / far if far > 0 else arb(1)  # >= |e^u - 1|/|u|
        paid = paid * far.exp()
        still, v, x = plane.still + point.f0, one.value, point.x.sqrt()
        wide = (grow - 1) * abs(still) + grow * (one.along + point.cell.reach(one.rows) / 2)
        bent = point.rest + plane.bend * far.exp() * one.growth
        known = bool(one.steep > 0)  # |d| |f1.d| <= (steep |d|^2 + (f1.d)^2/steep)/2, else steep |d|^2
        square = rate.curve + (rate.spread / one.steep if known else 0)
        plain = rate.spread * one.steep * (1 if known else 2)
        rough = rate.spread * x + rate.curve * (abs(v) + one.along + point.cell.reach(one.N) / 4)
        self.constant += weight * plane.constant
        self.value += weight * still
        self.value -= paid * (rate.apart * one.most + rate.spread * x * abs(v) + rate.curve * v * v / 2)
        for j, a in enumerate(ratio):
            self.g[j] += a * f1[j] * (weight - paid * rate.curve * v)
            self.H[j, j] += a**2 * weight * (still * tilt[j] - abs(tilt[j]) * wide - bent)
            self.H[j, j] -= a**2 * paid * (plain + rough * one.N[j])
            for k, b in enumerate(ratio):
                self.H[j, k] += a * b * (weight * point.H[j, k] - paid * square * f1[j] * f1[k])

    def least(self, hints: Any) -> arb:
        """V5: >= 0 (> 0) only if the sum is, on the whole cell."""
        D, y, ball = fields(hints, "D y", "ball")
        d, x = len(self.g), self.cell.reach([1] * len(self.g))
        H, g, constant = arb_mat(self.H.tolist()), list(self.g), self.constant
        slope = constant.min(constant * (x / 2).expm1() / (x / 2))
        for j in range(d):
            H[j, j] += slope
        gain, least = self.cell.gain(ball, g, H)
        return self.value + constant + gain + quadratic(g, H, self.cell.box, reals(D, d), reals(y, d), least)


class Comparison:
    """One inequality about several classes on one leaf; `rival`: of a margin, whom the label is ahead of."""

    def __init__(self, lower: Ends, upper: Ends, claim: Any, rival: int | None, data: Any) -> None:
        self.lower, self.upper, self.claim, self.rival = lower, upper, claim, rival
        self.reference, self.parts, self.programmes = fields(data, "ref classes programmes")
        self.weights = weights(claim, rival, len(self.parts) if isinstance(self.parts, list) else 0)
        need(all(w > 0 or w < 0 or w == 0 for w in self.weights), "V9': a weight has no sign")
        self.classes: dict[int, Class] = {}

    def level(self, c: int, several: Any) -> tuple[int, dict[str, Any], Any] | None:
        """Which side of p_c counts, the hints, and the level; None: nothing is said, so it is at least 0."""
        part = listed(self.parts, several.classes, "classes")[c]
        if part is None or self.weights[c] == 0:
            return None
        need(isinstance(part, dict), "a class's part of a leaf must be an object")
        level = several.link.level(part, several.latents[c])
        fields(part, "", f"forms {level.joint} {level.hints}")
        return 1 if self.weights[c] > 0 else -1, part, level

    def proved(self, region: Box) -> bool:
        """Whether what is claimed holds on the leaf."""
        order = isinstance(self.programmes, list)
        hints = listed(self.programmes, 2, "programmes") if order else [self.programmes]
        least = [total.least(each) for total, each in zip(self.totals(region, order), hints, strict=True)]
        return all(bool(a > 0 if order or self.claim.strictly else a >= 0) for a in least)

    def totals(self, region: Box, order: bool) -> list[Total]:
        """What has to be >= 0 on the leaf; of an order the two ends, to be > 0."""
        label = self.claim.label
        need(len(self.classes) > 0, "V9': a comparison needs classes")
        scale = self.classes[label if label in self.classes else min(self.classes)].view.scale
        cell = region.cell(self.lower, self.upper, reals(self.reference, len(self.lower)), scale)
        if order:
            return self._ordered(cell, scale)
        total = Total(cell, scale, sum((w for w in self.weights if w < 0), arb(0)))
        for c, one in self.classes.items():
            amount, rate = abs(self.weights[c]), one.rate()
            total.constant += amount * one.level.probability
            total.add(one, amount * rate.slope, amount, rate)
        return [total]

    def _ordered(self, cell: Cell, scale: Sequence[float]) -> list[Total]:
        """V9' (c): the label is ahead of the rival, by planes of the same t."""
        own, other = (self.classes.get(-1 if c is None else c) for c in (self.claim.label, self.rival))
        if own is None or other is None:
            raise Reject("V9': an order is between the label and a rival")
        need(isinstance(own.level, ProbitLevel), "V9': orders are of probits")
        need(own.level.t == -other.level.t, "V9': an order needs one t")
        need(-1 < self.claim.value <= 0, "V9': an order proves margins from -1 to 0")
        first, second = own.roots(own.level.c), other.roots(other.level.c)
        found = []
        for end in (first.least / second.most, first.most / second.least):
            found.append(Total(cell, scale, arb(0)))
            found[-1].add(own, arb(1), arb(0), NOTHING)
            found[-1].add(other, end, arb(0), NOTHING)
        return found


def weights(claim: Any, rival: int | None, classes: int) -> list[arb]:
    """The claim at a point is that the sum of these times the p_j is >= 0."""
    v = arb(claim.value)
    found = [1 - v if c == claim.label else -1 - v if c == rival else -v for c in range(classes)]
    return found if claim.sense > 0 else [-w for w in found]


def prove_jointly(several: Any, region: Box, claim: Any, boxes: Sequence[Leaf]) -> None:
    """Every leaf {"joint": [comparison, ...], "value"?} shows the claim, or one that implies it."""
    todo = [each for leaf in boxes for each in _comparisons(several, claim, *leaf)]
    n, d = several.latents[0].n, len(region.moving)
    parts = [part for each in todo for part in listed(each.parts, several.classes, "classes")]
    hints = [part for part in parts if isinstance(part, dict)]
    spend(len(todo) * (several.classes * (n * d + n * n // 20) + d**3 // 5) + extra(n, d, hints))
    size = max(1, _AT_ONCE // (several.classes * n * (d + 8)))
    for start in range(0, len(todo), size):
        batch = todo[start : start + size]
        for c, latent in enumerate(several.latents):
            for sign in (1, -1):
                _look(several, Slice(latent, region, sign), c, sign, batch)
        for each in batch:
            need(each.proved(region), "V9': the comparison of classes on a leaf fails")
            each.classes.clear()


def _comparisons(several: Any, claim: Any, lower: Ends, upper: Ends, leaf: Any) -> Iterator[Comparison]:
    given, value = fields(leaf, "joint", "value")
    own = claim if value is None else claim._replace(value=real(value))
    need(claim.sense * (own.value - claim.value) >= 0, "V9': a leaf proves less than is claimed")
    margin = claim.quantity == "margin"
    need(not margin or claim.sense > 0, "a margin is bounded below everywhere, above at points")
    rivals = [c for c in range(several.classes) if c != claim.label] if margin else [None]
    for rival, data in zip(rivals, listed(given, len(rivals), "joint"), strict=True):
        yield Comparison(lower, upper, own, rival, data)


def _look(several: Any, view: Slice, c: int, sign: int, batch: Sequence[Comparison]) -> None:
    """The planes of one class, all at once."""
    found = []
    for each in batch:
        side = each.level(c, several)
        if side is not None and side[0] == sign:
            hints = {**side[1], "ref": each.reference}
            found.append((each, Point(view, each.lower, each.upper, hints), side[2]))
    view.expand([(point, level) for _, point, level in found], True)
    for each, point, level in found:
        each.classes[c] = Class(view, point, level)


def _density(z: arb) -> arb:
    return (-z * z / 2).exp() / (2 * arb.pi()).sqrt()


def _steepest(low: arb, high: arb) -> arb:
    """At least z density(z) everywhere in [low, high]: largest at 1; at least 0."""
    if high <= 0:
        return arb(0)
    if high <= 1:
        return high * _density(high)
    return low * _density(low) if low >= 1 else _density(arb(1))
