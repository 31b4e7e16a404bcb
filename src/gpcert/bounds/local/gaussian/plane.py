"""The supporting plane of a level for the Gaussian kernel (docs/maths/bounds.md, G1, G2, G4, G6 to G8)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.geometry.remnant import remnant
from gpcert.bounds.levels.curves import Level, Line
from gpcert.bounds.local.forms import FunctionalBound, Pieces, Remainder
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.local.gaussian.sums import Covariances, KernelSum
from gpcert.bounds.local.planes import Bend, most_of, support
from gpcert.rounding import UNDERFLOW, UNIT, exp_up, sqrt_up, symmetric
from gpcert.validation import Float

Sum = TypeVar("Sum", bound=KernelSum)

#: How often at most, and to which share of its length a set has to shrink.
_ROUNDS, _SHORTER = 5, 0.97


def rounds(
    sum_: Sum, bounded: Callable[[Sum], FunctionalBound | None], last: bool = True
) -> Iterator[tuple[FunctionalBound, Sum]]:
    """Lower bounds, and each time the sum on what is left: the bounds are of smaller and smaller sets, and on
    the rest of the first the functional is not negative. Each round costs one programme.

    `last`: no better price is to come; otherwise it has to seem that the next round succeeds.
    """
    for _ in range(_ROUNDS):
        bound, whole = bounded(sum_), sum_
        if bound is None:
            return
        part = remnant(whole.around.domain, bound.value, bound.slopes)
        if part is not None:
            sum_ = whole.on(part)
        yield bound, sum_
        if part is None:
            return
        share = sum_.around.s / whole.around.s
        if not share < _SHORTER or not (last or _gained(whole, bound, share) > -bound.value):
            return


def _gained(sum_: KernelSum, bound: FunctionalBound, share: float) -> float:
    """About what the norm of all higher orders loses where the bound is attained on the shorter set."""
    return (1.0 - share) * sum_.tail(3) * float(sum_.around.elliptic @ bound.point**2)


#: Below, squares of A might underflow.
_SHORTEST = 1e-100
#: |g_2|^2 <= this s2 h^2 |d|^2 for what a kernel has beyond its first order, |d| <= h.
SECOND = 0.75


@dataclass(frozen=True, eq=False, kw_only=True)
class Plane(KernelSum):
    """The sum of kernels below mu - m_p(S), or below a line, and what is known of the space between them."""

    r: Float  #: R k at the reference (n,)
    bend: Bend

    def bent(self, flat: FunctionalBound) -> FunctionalBound | None:
        """G6 to G8: the same functional by a plane of second order; None: the set is too large, or the space
        between cannot make up for what `flat`, the bound of the plane itself, lacks.
        """
        extra = self._between(flat)
        if extra is None:
            return None
        parts, remainder = extra

        def pieces() -> Pieces:
            flat = self.pieces(True)
            return flat._replace(parts=[*flat.parts, *parts], remainders=[*flat.remainders, remainder])

        return self.least(pieces)

    def _between(self, flat: FunctionalBound) -> tuple[list[Float], Remainder] | None:
        """(scale / 2) {(1 - theta) Q(d) - (1 / theta - 1) w(d)} as parts and a remainder."""
        bend, c, model = self.bend, self.around, self.around.slice.model
        if not (bend.steep > 0 and bend.shortest > _SHORTEST):
            return None
        prior, A2 = c.slice.prior[0], bend.shortest * bend.shortest * (1.0 - 4 * UNIT)
        most, scale = self._sizes
        y, worst = flat.point, c.s * c.s * SECOND * most
        length = float(y @ y)

        def theta_for(Q: float) -> float | None:
            """The best theta where Q(y) = Q |y|^2; None: even so `flat` stays below 0 there."""
            theta = math.sqrt(worst / Q) if worst < Q else 1.0
            enough = flat.value + 0.5 * scale * (1.0 - theta) ** 2 * Q * length >= 0
            return theta if 0.0 < theta < 1.0 and enough else None

        if not length > 0 or theta_for(most) is None:  # Q is at most that: no product is needed
            return None
        along, q1 = c.k * (c.v @ y), (self.r * c.k) @ c.v
        J = float(along @ (model.precision @ along)) / length
        theta = theta_for(prior - J - float(q1 @ y) ** 2 / (A2 * length) if bend.falls else J)
        if theta is None:
            return None
        forms = [self._explained]
        step = c.most * np.minimum(c.domain.absolute(c.v), c.norm)  # at least k_i sum_j |v_ij d_j|
        long, wrong = model.weighted(step), model.weighted(step * c.unit)
        error = 2.02 * long * wrong + UNDERFLOW
        if bend.falls:
            forms = [prior * np.eye(len(y)), -forms[0], -np.outer(q1, q1) / A2]
            reach = float(c.domain.absolute(q1[None])[0])
            mixed = long * model.weighted(c.most * c.unit) + wrong * model.weighted(c.most)
            mixed = 1.01 * mixed + UNDERFLOW
            error += (2.0 * reach * mixed + mixed * mixed) / A2
        kept = scale * max(1.0 - theta - 4 * UNIT, 0.0)
        lost = scale * (1.0 / theta - 1.0 + 8 * UNIT / theta) * worst * (1.0 + 16 * UNIT)
        remainder = Remainder(None, np.full(len(y), lost), 0.5 * scale * error * (1.0 + 16 * UNIT))
        return [kept * form for form in forms], remainder

    @cached_property
    def _explained(self) -> Float:
        """J (d, d)."""
        if isinstance(self.whole, Plane):
            return self.whole._explained
        kv = self.around.k[:, None] * self.around.v
        return symmetric(kv.T @ (self.around.slice.model.precision @ kv))

    @property
    def _sizes(self) -> tuple[float, float]:
        """At least E, and at most the factor of the braces (any smaller one is sound)."""
        bend, c = self.bend, self.around
        most = most_of(c.slice.model, c.slice.prior)
        if bend.longest == math.inf:
            return most, bend.steep * (1.0 - 8 * UNIT)
        B = bend.longest + sqrt_up(-2.0 * most * math.expm1(-c.radius) * (1.0 + 16 * UNIT))
        return most, bend.steep / (B * (1.0 + 8 * UNIT)) * (1.0 - 8 * UNIT)


def plane_at(
    slice_: Slice, domain: Domain, reference: Float, level: Level | Line, largest: float
) -> Plane | None:
    """The plane of a level at `reference` (d,), raw units; S <= `largest` on the slice. None: none known.

    Where the sum is >= 0, mu >= m_p(max(S, 0)); of a line, as `support` has it.
    """
    model, alpha = slice_.model, slice_.weights
    S = slice_.latent(reference)[1]
    found = support(model, level, slice_.mean, slice_.prior, S, largest)
    if found is None:
        return None
    v, k, relative, r = slice_.visit(reference)
    around = Covariances(slice_, domain, v, k, relative)
    lost = found.lost
    if found.factor > 0:  # R is positive semidefinite up to its defect
        lost += 0.5 * found.factor * model.excess_variance(around.rough)
    excess = found.rounding(model, alpha, r, around.rough, (k + slice_.tiny) * around.unit)
    excess = (excess + lost * exp_up(around.radius)) * (1.0 + 16 * UNIT)
    return Plane(around, found.weights(alpha, r), found.constant, found.still, excess, r=r, bend=found.bend)
