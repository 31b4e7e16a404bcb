"""Regions: exact sets of real inputs whose ends are rational numbers, and cells of them around a reference.

A ball of norm inf is a box. The other norms are a box, the smallest around them, and one more inequality:
`balls`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from flint import arb

from gpcert_check.arithmetic import ball, dot, largest
from gpcert_check.reading import fields, integer, listed, need, real, reals

Ends = list[Fraction]


class Cell:
    """A box in displacements d = (x - reference)/lengthscale of the moving features."""

    def __init__(self, lower: Ends, upper: Ends, reference: Sequence[float], scale: Sequence[float]) -> None:
        about = zip(lower, upper, reference, scale, strict=True)
        self.box = [((ball(a) - x) / s, (ball(b) - x) / s) for a, b, x, s in about]
        self.far = [largest((abs(low), abs(high))) for low, high in self.box]  # at least |d_j|

    def reach(self, weights: Iterable[Any]) -> arb:
        """At least the sum of weights_j d_j^2, weights >= 0, everywhere in the cell."""
        return largest([dot(weights, [w * w for w in self.far])])

    def gain(self, hint: Any, g: list[arb], H: Any) -> tuple[arb, Any]:
        """What the region adds to a programme (V7): a box nothing."""
        need(hint is None, "multipliers of a ball, but the region is a box")
        return arb(0), None


class Box:
    """All z with lower <= z <= upper; `moving`: the features whose interval is longer than a point."""

    def __init__(self, lower: Ends, upper: Ends) -> None:
        need(all(a <= b for a, b in zip(lower, upper, strict=True)), "the region is empty")
        self.lower, self.upper = lower, upper
        self.moving = [j for j, (a, b) in enumerate(zip(lower, upper, strict=True)) if a < b]

    def contains(self, point: Sequence[float]) -> bool:
        """Whether the point lies in the region, exactly."""
        return all(a <= Fraction(x) <= b for a, x, b in zip(self.lower, point, self.upper, strict=True))

    def cell(self, lower: Ends, upper: Ends, reference: Sequence[float], scale: Sequence[float]) -> Cell:
        """The part of the region in a box (ends of the moving features), around a reference."""
        return Cell(lower, upper, reference, scale)


def read_box(data: Any, D: int) -> Box:
    """{"kind": "box", "lower": [...], "upper": [...]}."""
    _, lower, upper = fields(data, "kind lower upper")
    return Box([*map(Fraction, reals(lower, D))], [*map(Fraction, reals(upper, D))])


def read_hull(data: Any, D: int) -> tuple[Box, str, list[float], float, list[float]]:
    """The smallest box around a ball, exactly; and its norm, x, radius and scale."""
    _, x, radius, norm, features, domain, scale = fields(data, "kind x radius norm features domain scale")
    centre, r = reals(x, D), real(radius)
    units = [1.0] * D if scale is None else reals(scale, D)
    need(r >= 0 and all(s > 0 for s in units), "a ball needs a radius >= 0 and scales > 0")
    need(norm in ("inf", "2", "1", "0"), "the norm must be inf, 2, 1 or 0")
    need(norm != "0" or r == int(r), "the radius must be an integer with norm 0")
    low, high = map(_ends, ("-inf", "inf"), (None, None) if domain is None else listed(domain, 2), (D, D))
    lower, upper = [*map(Fraction, centre)], [*map(Fraction, centre)]
    for a, z, b in zip(low, lower, high, strict=True):
        need((a is None or a <= z) and (b is None or z <= b), "x must lie in the domain")
    for j in _features(features, D) if norm != "0" or r >= 1 else []:
        step = None if norm == "0" else Fraction(r) * Fraction(units[j])  # as far as the domain goes
        below = [a for a in (low[j], None if step is None else lower[j] - step) if a is not None]
        above = [a for a in (high[j], None if step is None else upper[j] + step) if a is not None]
        need(len(below) > 0 and len(above) > 0, "norm 0 needs a finite domain")
        lower[j], upper[j] = max(below), min(above)
    return Box(lower, upper), norm, centre, r, units


def _features(features: Any, D: int) -> list[int]:
    need(features is None or isinstance(features, list), "features must be a list")
    found = [*range(D)] if features is None else [integer(j, 0, D - 1) for j in features]
    need(found == sorted(set(found)), "features must increase")
    return found


def _ends(infinite: str, side: Any, D: int) -> list[Fraction | None]:
    """One side of a domain; None where it has no end."""
    ends = [infinite] * D if side is None else listed(side, D)
    return [None if end == infinite else Fraction(real(end)) for end in ends]
