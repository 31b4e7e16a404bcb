"""The sets of displacements of a batch: one box per row, or the part of a ball in it, and the least values of
separable forms and of quadratics there (docs/maths/batches.md, J5 to J7, J13).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gpcert.engine.backend import Array
from gpcert.engine.balls import Cap, cap, farthest, quadratic_multiplier, separable
from gpcert.engine.facts import Facts
from gpcert.engine.quadratic import Choices, Minima, minima
from gpcert.engine.rows import Rows
from gpcert.rounding import UNIT, gamma

#: Widths at the edge of underflow are enlarged to this, on one side, which suffices.
_NARROWEST = 1e-60


@dataclass(frozen=True, eq=False)
class Boxes:
    """Displacements of one box per row from its reference: low <= high (N, d), rounded outward, which hold 0
    but for remnants; `ball`: the row is the part of a ball in it.
    """

    facts: Facts
    low: Array
    high: Array
    ball: Cap | None = None

    def take(self, rows: Array) -> Boxes:
        """Those of some rows."""
        ball = None if self.ball is None else self.ball.take(rows)
        return Boxes(self.facts, self.low[rows], self.high[rows], ball)

    @cached_property
    def reach(self) -> Array:
        """The largest |d_j| (N, d)."""
        return self.facts.backend.xp.maximum(
            self.facts.backend.xp.abs(self.low), self.facts.backend.xp.abs(self.high)
        )

    @cached_property
    def squares(self) -> Array:
        """sup |d|^2 (N,), up."""
        box = self.facts.backend.xp.sum(self.reach * self.reach, axis=1) * self._more
        ones = self.facts.metrics[0] * 0.0 + 1.0
        return box if self.ball is None else farthest(self.facts.backend, self.ball, ones, box)

    @cached_property
    def span(self) -> Array:
        """sup |L d|^2 (N,), up."""
        metric = self.facts.metrics[0]
        box = (self.reach * self.reach) @ metric * self._more
        return box if self.ball is None else farthest(self.facts.backend, self.ball, metric, box)

    def most(self, g: Array) -> Array:
        """At least sup g.d on the rows, and 0 (N,), for g (N, d)."""
        xp = self.facts.backend.xp
        found = xp.sum(xp.maximum(g * self.low, g * self.high), axis=1)
        if self.ball is not None:
            o, w = self.ball
            round_ = xp.sqrt(xp.sum(g * g / w, axis=1)) + xp.sum(g * o, axis=1)
            terms = xp.sum(xp.abs(g) * (xp.abs(o) + self.reach), axis=1)
            round_ = round_ + gamma(g.shape[1] + 32) * terms
            found = xp.where(round_ < found, round_, found)
        size = xp.sum(xp.abs(g) * self.reach, axis=1)
        return xp.clip(found + 4.0 * gamma(2 * g.shape[1] + 32) * size, 0.0, None)

    def separable(self, g: Array, lam: Array) -> tuple[Array, Array]:
        """J5, J13: at most sum_j g_j d_j - lam_j d_j^2 (N,), lam (N, d) >= 0, and the size of its terms, of
        which gamma(2 d + 80) is still to be taken from it.
        """
        xp, low, high = self.facts.backend.xp, self.low, self.high
        if self.ball is not None:
            return separable(self.facts.backend, self.ball, g, lam, low, high)
        ends = xp.minimum((g - lam * low) * low, (g - lam * high) * high)
        size = xp.sum((xp.abs(g) + lam * self.reach) * self.reach, axis=1)
        return xp.sum(ends, axis=1), size

    def quadratic(
        self,
        g: Array,
        H: Array,
        diagonal: Array,
        base: Array,
        excess: Array,
        size: Array,
        tries: int,
        best: int = 0,
    ) -> Minima:
        """J6, J13: of base + g.d + d^T (H + diag(diagonal)) d / 2 - excess on the rows; H (N, d, d) is
        changed, and wrong by gamma(64) of forms of the size. `best`: as for `minima`.
        """
        backend, xp, d = self.facts.backend, self.facts.backend.xp, self.low.shape[1]
        own = xp.reshape(H, (len(H), d * d))[:, :: d + 1]
        own += diagonal
        if self.ball is not None:
            few = Choices(backend, *(backend.single(each) for each in (g, H, self.low, self.high)))
            m = backend.double(quadratic_multiplier(few, self.ball, backend))
            pull = m[:, None] * self.ball.w
            own += pull
            spent, total = self.ball.spent(xp, m)
            terms = (xp.abs(g) + pull * (xp.abs(self.ball.o) + self.reach)) * self.reach
            size = size + total + xp.sum(terms, axis=1)
            g, base = g - pull * self.ball.o, base + spent
        lack = excess + gamma(64) * size * 1.01
        need = lack - base + 32 * UNIT * (xp.abs(base) + lack)
        found = minima(backend, g, H, self.low, self.high, need, tries, best)
        error = lack + 32 * UNIT * (xp.abs(base) + xp.abs(found.value) + lack)
        return found._replace(value=found.value + base - error)

    @property
    def _more(self) -> float:
        return 1.0 + 4.0 * gamma(2 * self.low.shape[1] + 16)


def boxes(facts: Facts, rows: Rows, reference: Array) -> Boxes:
    """As `scaled_box`, seen from raw doubles (N, d)."""
    xp, length = facts.backend.xp, facts.lengths
    low = (rows.lower - reference) / length * (1.0 + 4 * UNIT)
    high = (rows.upper - reference) / length * (1.0 + 4 * UNIT)
    ball = None if rows.axes is None else cap(xp, rows.centre, rows.axes, reference, length)
    return Boxes(facts, low, xp.clip(high, _NARROWEST, None), ball)
