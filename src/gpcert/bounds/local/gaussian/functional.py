"""A certified lower bound of a * mu - tau * S + kappa over a box (docs/maths/bounds.md, Theorem 1).

With d the scaled displacement from the reference, r = |d|^2 / 2 and f = a mu - tau S + kappa,
    e^{2r} f >= base + g.d + d^T H d / 2 - excess        on the box,
where base is f at the reference, g the gradient there, and H the exact Hessian less quadratic majorants of
all higher orders. A box quadratic programme with a certified dual value finishes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpcert.bounds.local.forms import Loss, Remainder, balance, largest_root, subtract
from gpcert.bounds.local.gaussian.majorants import Majorants
from gpcert.bounds.local.protocol import FunctionalBound
from gpcert.rounding import TINY, UNDERFLOW, UNIT, exp_up, expm1_up, gamma

#: Any theta is sound. The estimated roots overshoot: no one direction is worst for both factors of a product;
#: these shares were best on whole images, where nothing else helps.
_CUBIC, _PRODUCT = 0.6, 0.8


@dataclass(frozen=True, eq=False)
class RbfLocal:
    """A `LocalModel` of the Gaussian kernel."""

    majorants: Majorants

    @property
    def S(self) -> float:
        return self.majorants.expansion.S

    def only(self, tau: float) -> RbfLocal:
        """Nothing is saved."""
        return self

    def lower_bound(
        self,
        a: float,
        tau: float,
        kappa: float,
        enough: float = np.inf,
        accuracy: float = 1e-6,
        less: Loss | None = None,
    ) -> FunctionalBound:
        """Theorem 1 for a in {0, 1}, any tau and kappa (the prior mean belongs into kappa); `less` is
        subtracted from the functional.
        """
        m, e = self.majorants, self.majorants.expansion
        radius, reach = e.radius, e.domain.reach
        grow = exp_up(2.0 * radius)
        if not math.isfinite(grow):
            return FunctionalBound(-np.inf, -np.inf, np.zeros_like(reach), 0.0, reach**2)
        model = e.slice.model
        base = a * e.M.value + kappa - tau * (model.prior - e.q.value)
        g = a * e.M.gradient + 2.0 * tau * e.q.gradient
        parts = [a * e.M.hessian, 2.0 * tau * e.q.hessian, 2.0 * tau * e.J]
        prior = kappa - tau * model.prior
        diagonals = [np.full_like(g, _slope(a * e.M.value, prior, radius))]
        excess = a * e.error_M * grow + abs(tau) * e.error_q + abs(tau) * model.excess_variance(e.grown)
        sizes = abs(a * e.M.value) + abs(kappa) + 2.0 * abs(tau) * (abs(model.prior) + abs(e.q.value))
        excess += gamma(40) * sizes * grow
        excess += (1.0 + abs(tau)) * UNDERFLOW
        remainders = list(_remainders(m, a, tau, radius))
        if less is not None:  # e^{2r} less <= grow less
            g = g - grow * less.gradient
            remainders.append(Remainder(2.0 * grow * less.matrix, None, constant=grow * less.constant))
        bound = subtract(e.domain, base, g, parts, diagonals, remainders, excess, (enough, accuracy))
        value = bound.value
        # 1 <= e^{2r} <= grow: a negative bound holds for f as it is, a positive one divided by grow.
        latent = value if value <= 0 else value / grow * (1.0 - 4 * UNIT)
        return FunctionalBound(value, latent, bound.point, bound.rounding, bound.loss)


def _remainders(m: Majorants, a: float, tau: float, radius: float) -> Iterator[Remainder]:
    """The majorants of Theorem 1 as (matrix, diagonal, constant): each is subtracted as d^T (.) d / 2 +
    constant.
    """
    e = m.expansion
    size = abs(tau)
    span = max(e.span, TINY)
    order = 3 if m.cubic is None else 4
    if m.cubic is not None:
        # |cubic| <= |L d|^2 sqrt(N(d)) <= span (theta |L d|^2 + N(d) / theta) / 2
        cubic = m.cubic_form(a, tau)
        theta = _CUBIC * balance(largest_root(cubic, e.domain), span)
        yield Remainder(
            (span / theta) * cubic.matrix, span * theta * e.metric, 0.5 * (span / theta) * cubic.excess
        )
    for tail in m.tails(a, tau, order):
        yield Remainder(None, 2.0 * tail.value * tail.form, 0.0)
    if size > 0:
        # 2 |tau| |V kappa_1| |V kappa_rest| <= |tau| (theta J(d) + rest(d) / theta)
        rest, root = (m.second, m.root_second) if m.cubic is None else (m.third, m.root_third)
        theta = _PRODUCT * balance(root, m.root_first)
        yield Remainder(2.0 * size * theta * e.J_size, None, size * theta * e.error_q)
        yield Remainder((2.0 * size / theta) * rest.matrix, None, (size / theta) * rest.excess)
    if tau < 0 or (tau > 0 and not e.slice.model.definite):  # what bounds the sum of both parts bounds one
        yield Remainder(2.0 * size * m.second.matrix, None, size * m.second.excess)
    if a:
        yield from _growth_of_M(m, radius)


def _growth_of_M(m: Majorants, radius: float) -> Iterator[Remainder]:
    """(e^r - 1)(M_1 + M_2 + M_{>=3}), with e^r - 1 <= growth and e^r - 1 <= r growth / radius."""
    e = m.expansion
    growth = expm1_up(radius)
    falling = float(e.domain.support(-e.M.gradient[None])[0]) + 2.0 * e.error_M
    slope = growth / radius if radius > 0 else 1.0
    yield Remainder(None, np.full_like(e.metric, max(falling, 0.0) * slope * (1.0 + 1e-12)), 0.0)
    yield Remainder(growth * e.M2_negative, None, growth * e.error_M)
    for tail in m.tails(1.0, 0.0, 3):
        yield Remainder(None, 2.0 * growth * tail.value * tail.form, 0.0)


def _slope(A: float, B: float, radius: float) -> float:
    """X6: a slope c with A e^r + B e^{2r} >= A + B + c r on [0, radius]."""
    if radius <= 0:
        return min(A, 0.0) + 2.0 * min(B, 0.0)
    first = math.expm1(radius) / radius
    second = math.expm1(2.0 * radius) / radius
    tangent, chord = A + 2.0 * B, A * first + B * second
    slack = 64 * UNIT * (abs(A) * first + abs(B) * second)
    if (
        A + 4.0 * B >= 0 and A + 4.0 * B * math.exp(radius) >= 0
    ):  # convex, to rounding, which the slack covers
        return tangent - slack
    if A > 0:  # concave, or convex and then concave: the secant from 0 is smallest at an end
        return min(tangent, chord) - slack
    if B <= 0:  # concave
        return chord - slack
    return A * first + 2.0 * B - slack  # concave, then convex: chord of the first term, tangent of the second
