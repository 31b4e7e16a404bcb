"""Balances: sums and differences of extremes over several regions, from the claims proved before them."""

from __future__ import annotations

from typing import Any

from flint import arb

from gpcert_check.reading import fields, integer, need, real

MOST_TERMS = 100


class Extremes:
    """What is known of the smallest and largest P(label) over a region: two enclosures, [0, 1] at first."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], dict[str, tuple[float, float]]] = {}

    def learn(self, kind: str, claim: Any, region: int) -> None:
        """A claim bounds one extreme everywhere, or the other one at a point."""
        both = self.of(claim.label, region)
        up = claim.sense > 0
        extreme = "min" if up == (kind == "everywhere") else "max"
        low, high = both[extreme]
        both[extreme] = (max(low, claim.value), high) if up else (low, min(high, claim.value))

    def of(self, label: int, region: int) -> dict[str, tuple[float, float]]:
        """{"min": (low, high), "max": (low, high)}."""
        return self._known.setdefault((label, region), {"min": (0.0, 1.0), "max": (0.0, 1.0)})


def balance(data: Any, extremes: Extremes, most: int, named: list[str]) -> str:
    """lower <= the largest of the sums, divided by count <= upper."""
    _, label_, sums, count_, lower_, upper_ = fields(data, "kind label sums count lower upper")
    label, count = integer(label_, 0, most), integer(count_, 1, 10**9)
    lower, upper = real(lower_), real(upper_)
    need(isinstance(sums, list) and 1 <= len(sums) <= MOST_TERMS, f"a balance has 1 to {MOST_TERMS} sums")
    ends = [_sum(each, extremes, label, len(named)) for each in sums]
    low, high = ends[0]
    for a, b in ends[1:]:
        low, high = low.max(a), high.max(b)
    need(low >= lower * arb(count), "the balance may lie below its lower end")
    need(high <= upper * arb(count), "the balance may lie above its upper end")
    texts = [
        " ".join(f"{'+' if t['sign'] > 0 else '-'} {t['extreme']} over {named[t['region']]}" for t in each)
        for each in sums
    ]
    what = texts[0] if len(texts) == 1 else f"the largest of ({'; '.join(texts)})"
    return f"({what})/{count} of P(class {label}) lies between {lower!r} and {upper!r}"


def _sum(terms: Any, extremes: Extremes, label: int, regions: int) -> tuple[arb, arb]:
    need(isinstance(terms, list) and 1 <= len(terms) <= MOST_TERMS, f"a sum has 1 to {MOST_TERMS} terms")
    low = high = arb(0)
    for term in terms:
        sign, extreme, region = fields(term, "sign extreme region")
        fits = sign in (1, -1) and type(sign) is int and extreme in ("max", "min")
        need(fits, "a term is +-1 times max or min")
        a, b = extremes.of(label, integer(region, 0, regions - 1))[extreme]
        low, high = low + (a if sign > 0 else -b), high + (b if sign > 0 else -a)
    return low, high
