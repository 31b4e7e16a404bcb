"""Order three as a form: on the whole box, then apart in shells (docs/maths-batches.md, J11 and J24).

What a form loses grows with the third power of the distance |L d| from the reference. On the whole box a
quadratic can say that only by the farthest point, though the worst ones are near. So what is left is bounded
in shells: near points lose little, and far ones may count on being far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpcert.engine.backend import Array
from gpcert.engine.rounding import sqrt_up
from gpcert.engine.sums import Sums
from gpcert.rounding import UNIT

#: Where shells end, as shares of the farthest |L d|, and how often one that is left is cut; any are sound.
_EDGES, _CUTS = (0.33, 0.5), 1
#: J24: m of shells that do not begin at the reference, in units of what their quadratic loses; any is sound.
_FAR = 2.0
#: J11: theta on the whole box and in shells, in units of the form's mean over the ends of the box; any is
#: sound. The first makes quadratics that closed diagonals (J6) prove, the second loses less.
_THETA = 2.0, 4.0
_UP = 1.0 + 64 * UNIT


def bounded(sums: Sums, tries: int, centres: int) -> Array:
    """A lower bound of e^r f on the box (N,), with order three as a form of so many centres."""
    form, xp = _Form.of(sums, centres), sums.at.facts.backend.xp
    found = form.within(form.span, tries)
    left = xp.nonzero(~(found >= 0))[0]
    if len(left):
        found[left] = xp.maximum(found[left], _in_shells(form.take(left), tries))
    return found


def _in_shells(form: _Form, tries: int) -> Array:
    """J24: the least of the shells (N,), all of them rows of one batch; -inf where one leaves a sign open."""
    backend, shares = form.sums.at.facts.backend, (0.0, *_EDGES, 1.0)
    ends = [form.span * share**2 for share in shares]
    count, shells = len(form.span), len(shares) - 1
    rows = backend.concat([backend.arange(count)] * shells)
    values = _apart(form, tries, rows, backend.concat(ends[:-1]), backend.concat(ends[1:]), _CUTS)
    return backend.xp.min(backend.xp.reshape(values, (shells, count)), axis=0)


def _apart(form: _Form, tries: int, rows: Array, near: Array, far: Array, cuts: int) -> Array:
    """For each of many shells (M,), between squares of |L d|; one that is left is cut in two so often."""
    backend, xp = form.sums.at.facts.backend, form.sums.at.facts.backend.xp
    values = form.take(rows).within(far, tries, near)
    values = xp.where(values >= 0, values, xp.full_like(values, -math.inf))
    left = xp.nonzero(~(values >= 0))[0]
    if cuts and len(left):
        middle = 0.5 * (near[left] + far[left])
        inner, outer = backend.concat([near[left], middle]), backend.concat([middle, far[left]])
        halves = _apart(form, tries, backend.concat([rows[left]] * 2), inner, outer, cuts - 1)
        values[left] = xp.minimum(halves[: len(left)], halves[len(left) :])
    return values


@dataclass(frozen=True, eq=False)
class _Form:
    """The quadratic of J5 without what lies beyond order two, and J11's form for order three."""

    sums: Sums
    hessian: Array
    N: Array  #: L N L (N, d, d)
    lack: Array
    unit: Array  #: of theta (N,)
    known: Array  #: the squared norm of orders up to three (N,)
    rho: Array

    @classmethod
    def of(cls, sums: Sums, centres: int) -> _Form:
        seen = sums.seen
        xp, H, metric = seen.at.facts.backend.xp, seen.hessian(), seen.at.facts.metrics[0]
        N, lack, cube, rho = seen.cubic(centres)
        count, d, _ = N.shape
        ends = seen.boxes.reach**2 * metric
        mean = xp.sum(xp.reshape(N, (count, d * d))[:, :: d + 1] * ends, axis=1) / xp.sum(ends, axis=1)
        unit = xp.sqrt(xp.clip(mean, 1e-30, None))
        L = xp.sqrt(metric)
        return cls(sums, H, N * (L[:, None] * L[None, :]), lack, unit, seen.known(H) + cube, rho)

    @property
    def span(self) -> Array:
        """sup |L d|^2 (N,), up."""
        return self.sums.seen.boxes.span

    def take(self, rows: Array) -> _Form:
        """Those of some rows."""
        columns = self.hessian, self.N, self.lack, self.unit, self.known, self.rho
        return _Form(self.sums.take(rows), *(column[rows] for column in columns))

    def within(self, square: Array, tries: int, beyond: Array = None) -> Array:
        """A lower bound of e^r f (N,) where |L d|^2 <= `square` (N,) and, if given, >= `beyond` (N,)."""
        sums, seen, box = self.sums, self.sums.seen, self.sums.boxes
        backend, xp, metric = seen.at.facts.backend, seen.at.facts.backend.xp, seen.at.facts.metrics[0]
        count, d, _ = self.hessian.shape
        b, theta = sqrt_up(backend, square), _THETA[beyond is not None] * self.unit
        taken = xp.reshape(self.N * (b / theta * _UP)[:, None, None], (count, d * d))
        taken[:, :: d + 1] += ((theta + self.lack / theta) * b * _UP)[:, None] * metric
        norm = xp.sqrt(xp.sum(self.hessian**2, axis=(1, 2))) + xp.sqrt(xp.sum(taken * taken, axis=1))
        rest = seen.remainder(self.known, 4, square) + self.rho * b * _UP
        base, excess = sums.value + sums.plane.still + sums.plane.constant, sums.excess
        if beyond is not None:
            m = xp.where(beyond > 0, _FAR * (rest + 0.5 * b * theta), rest * 0.0)
            rest, won = rest + m * _UP, m * beyond
            excess, base = excess + 16 * UNIT * (xp.abs(base) + won), base + won
        diagonal = (sums.slope - 2.0 * sums.apart)[:, None] - 2.0 * rest[:, None] * metric
        size = xp.sum(xp.abs(diagonal) * box.reach * box.reach, axis=1) + norm * box.squares
        H = self.hessian - xp.reshape(taken, (count, d, d))
        return box.quadratic(sums.gradient, H, diagonal, base, excess, size, tries, True)
