"""E softmax of a few Gaussian latents by a trapezoid sum with a proved error, and near it (V15)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil, isfinite, prod, sqrt
from typing import NamedTuple

from flint import arb

from gpcert_check.arithmetic import cholesky, largest, normal
from gpcert_check.reading import Reject, need

__all__ = ["Near", "Normal", "Spend", "around", "probabilities"]

Spend = Callable[[int], None]  # hears how many terms are about to be summed, and may refuse

_MOST_TERMS = 1_000_000  # of one sum: some seconds
_STRIP = 1.3  # half the phase by which an axis turns e^f, at most: below pi/2
_SHIFTS = 40  # how often a guess is tried again with ten times the shift
_WIDEST = 1e4  # standard deviations of latents
_EXPONENTS = (8, 14, 22, 32)  # errors of about e^-x; each is tried where the last one decides nothing


class Normal(NamedTuple):
    """f = mean + L z, z standard normal: doubles, L (C rows of C - 1)."""

    mean: list[float]
    L: list[list[float]]

    def variogram(self, a: int, b: int) -> arb:
        """Var(f_a - f_b)."""
        return sum(((arb(x) - y) ** 2 for x, y in zip(self.L[a], self.L[b], strict=True)), arb(0))


def around(mean: Sequence[arb], V: Sequence[Sequence[arb]]) -> Normal:
    """Nearly the latents with this mean and covariance; whatever is found is a normal law."""
    last = len(mean) - 1
    own = range(last)
    D = [[float((V[a][b] - V[a][last] - V[last][b] + V[last][last]).mid()) for b in own] for a in own]
    shift, middle = 1e-15 * sum(D[a][a] for a in own) + 1e-100, [float(m.mid()) for m in mean]
    for _ in range(_SHIFTS):
        L = cholesky([[*row[:a], row[a] + shift] for a, row in enumerate(D)])
        if L is not None:
            rows = [*(row + [0.0] * (last - len(row)) for row in L), [0.0] * last]
            finite = all(map(isfinite, [*middle, *(x for row in rows for x in row)]))
            need(finite, "V15: a law is not finite")
            return Normal(middle, rows)
        shift *= 10
    raise Reject("V15: the covariance at a reference has no factor")


class Near:
    """Latents near a normal law (V15): differences f_a - f_b have a mean up to `apart` from the law's and a
    variance in `ends`, both by pairs a < b.
    """

    def __init__(
        self,
        law: Normal,
        apart: dict[tuple[int, int], arb],
        ends: dict[tuple[int, int], tuple[arb, arb]],
        spend: Spend,
    ) -> None:
        self.law, self._spend, self._sums = law, spend, dict[int, list[arb] | None]()
        below = largest(law.variogram(*pair) - least for pair, (least, _) in ends.items())
        above = largest(most - law.variogram(*pair) for pair, (_, most) in ends.items())
        self.lost = largest(apart.values()) / 2 + (below + above) / 4

    def ahead(self, c: int, j: int) -> bool:
        """Whether P_c > P_j for certain."""
        for p in self.sums():
            gap = p[c] - p[j] - self.lost
            if gap > 0 or gap < 0:
                return bool(gap > 0)
        return False

    def sums(self) -> Iterator[list[arb]]:
        """E softmax of the law, known better and better, as far as sums have few enough terms."""
        for exponent in _EXPONENTS:
            if exponent not in self._sums:
                self._sums[exponent] = probabilities(self.law, exponent, self._spend)
            p = self._sums[exponent]
            if p is None:
                return
            yield p


def probabilities(law: Normal, exponent: int, spend: Spend) -> list[arb] | None:
    """E softmax; None: too many terms."""
    axes = [_Axis([row[i] for row in law.L], exponent) for i in range(len(law.L[0]))]
    terms = prod(2 * axis.count + 1 for axis in axes)
    if terms > _MOST_TERMS:
        return None
    spend(terms)
    totals, top = [arb(0)] * len(law.mean), max(law.mean)
    _add(totals, [(arb(m) - top).exp() for m in law.mean], arb(1), [axis.terms() for axis in axes])
    mass = prod((1 + axis.error for axis in axes), start=arb(1))
    error = largest([mass * sum((axis.error + axis.tail for axis in axes), arb(0))])
    return [total + error.union(-error) for total in totals]


class _Axis:
    """One coordinate: a step, how many nodes there are on either side, and what the sum is off by."""

    def __init__(self, column: list[float], exponent: int) -> None:
        spread = arb(max(column)) - min(column)
        need(spread < _WIDEST, "V15: latents vary too widely to be summed")
        strip = min(2 * _STRIP / max(float(spread.mid()), 1e-9), sqrt(2 * exponent))
        step = 6.283 * strip / (exponent + strip * strip / 2)  # balances all errors; any step is sound
        self.column, self.count = column, ceil(sqrt(2 * exponent) / step)
        a, self.h = arb(strip), arb(step)
        angle = a * spread / 2
        need(angle < arb.pi() / 2, "V15: a strip is too wide")
        self.error = 2 * (a * a / 2).exp() / ((2 * arb.pi() * a / self.h).expm1() * angle.cos())
        self.tail = 2 * normal(-self.count * self.h)

    def terms(self) -> list[tuple[arb, list[arb]]]:
        """Weights, and what every e^f is multiplied by."""
        nodes = [self.h * i for i in range(-self.count, self.count + 1)]
        scale = self.h / (2 * arb.pi()).sqrt()
        return [(scale * (-z * z / 2).exp(), [(x * z).exp() for x in self.column]) for z in nodes]


def _add(totals: list[arb], e: list[arb], weight: arb, axes: Sequence[list[tuple[arb, list[arb]]]]) -> None:
    """The sum over all nodes of the remaining axes."""
    if not axes:
        share = weight / sum(e, arb(0))
        for c, x in enumerate(e):
            totals[c] += share * x
        return
    for w, factors in axes[0]:
        _add(totals, [x * y for x, y in zip(e, factors, strict=True)], weight * w, axes[1:])
