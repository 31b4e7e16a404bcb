"""Order three as a form: on the whole box, then apart in shells (docs/maths/batches.md, J11 and J24).

What a form loses grows with the third power of the distance |L d| from the reference. On the whole box a
quadratic can say that only by the farthest point, though the worst ones are near. So what is left is bounded
in shells: near points lose little, and far ones may count on being far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

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
    """J24: the least of the shells (N,); -inf where one of them leaves a sign open."""
    return _least(form, tries, [form.span * share**2 for share in (0.0, *_EDGES, 1.0)], _CUTS)


def _least(form: _Form, tries: int, edges: list[Array], cuts: int) -> Array:
    """The same for the shells between squares of |L d|, (N,) each; a shell that is left is cut so often.

    A device bounds all of them at once, because a small step costs it as much as a large one. Else a row is
    done with at the first shell that leaves it.
    """
    backend, xp, span = form.sums.at.facts.backend, form.sums.at.facts.backend.xp, form.span
    shells = list(pairwise(edges))
    found, left = xp.full_like(span, math.inf), backend.arange(len(span))
    for some in [shells] if backend.forms else [[shell] for shell in shells]:
        near, far = (backend.concat([shell[end][left] for shell in some]) for end in (0, 1))
        part = form.take(backend.concat([left] * len(some)))
        values = part.within(far, tries, near)
        again = xp.nonzero(~(values >= 0))[0]
        if cuts and len(again):
            halves = [each[again] for each in (near, 0.5 * (near + far), far)]
            values[again] = _least(part.take(again), tries, halves, cuts - 1)
        values = xp.where(values >= 0, values, xp.full_like(values, -math.inf))
        least = xp.min(xp.reshape(values, (len(some), len(left))), axis=0)
        found[left] = xp.minimum(found[left], least)
        left = left[least >= 0]
        if not len(left):
            break
    done = xp.full_like(span, -math.inf)
    done[left] = found[left]
    return done


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
        return box.quadratic(sums.gradient, H, diagonal, base, excess, size, tries, 1).value
