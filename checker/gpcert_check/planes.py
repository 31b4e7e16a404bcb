"""Levels of a probability as sums of kernels (V3, V4): what a leaf has to show of its latent.

P >= p holds where mu >= m_p(S). A *plane*, f = constant + still k(x, ref)/s2 + sum (alpha_i + factor r_i)
k_i(x) with r = R k(ref), lies below mu - m_p(max(S, 0)) everywhere: so f >= 0 proves P >= p.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flint import arb

from gpcert_check.arithmetic import normal
from gpcert_check.indefinite import lifted, variances
from gpcert_check.model import Latent
from gpcert_check.reading import fields, need, real


class Plane(NamedTuple):
    """`bend`: f loses bend (1 - k(x, ref)/s2) besides, where the precision is indefinite."""

    constant: arb
    still: arb
    factor: arb
    bend: arb


def flat(constant: arb) -> Plane:
    """The mean alone."""
    return Plane(constant, arb(0), arb(0), arb(0))


def falling(latent: Latent, constant: arb, steep: arb, c: arb, q0: arb, x: arb | None = None) -> Plane:
    """V3 (a), V3': below constant + mu - m0 + steep sqrt(c + max(S, 0)), steep >= 0, c > 0; |d|^2 <= x."""
    root = (c + (latent.s2 - q0 + latent.lift).nonnegative_part()).sqrt()
    weight = steep * (1 / root).lower().nonnegative_part()  # any number in [0, 1/A] will do
    lost, rate = (steep * each for each in lifted(latent, c, q0, x))
    still = weight * (latent.s2 + latent.lift) + 2 * rate * latent.s2
    return Plane(constant + weight * c - lost, still, -weight - 2 * rate, 2 * latent.lift * rate)


def rising(latent: Latent, constant: arb, tau: arb, q0: arb, at: arb, x: Any = None, room: Any = 0) -> Plane:
    """V3 (b), V4': below constant + mu - m0 - tau (S - at) where S >= 0, tau >= 0, and |d|^2 <= x; where
    S < 0, below constant + mu - m0 + tau at + room.
    """
    lost = tau * (latent.s2 + q0 - at) + (tau * variances(latent, q0, x)[2] - room).nonnegative_part()
    return Plane(constant - lost, arb(0), 2 * tau, 2 * tau * latent.negative * latent.s2)


class Probit:
    """P(1) = Phi(mu/sqrt(c + max(S, 0))), c = scale^-2."""

    proof_fields = ("t tree", "")
    floor = spare = arb(0)  # P > floor; 1 - P of a latent is P of its negative plus the spare

    def __init__(self, description: Any) -> None:
        _, scale = fields(description, "name scale")
        need(real(scale) > 0, "the scale of the probit must be positive")
        self.c = 1 / arb(real(scale)) ** 2

    def expectation(self, mean: arb, variance: arb) -> arb:
        """P(1) at a latent mean and variance."""
        return normal(mean / (self.c + variance).sqrt())

    def level(self, proof: dict[str, Any], latent: Latent) -> ProbitLevel:
        """The level that a proof uses, and the probability that it stands for."""
        return ProbitLevel(real(proof.get("t")), self.c)


class ProbitLevel:
    """mu >= t sqrt(c + max(S, 0)), hence P >= Phi(t) (V4); `hints`: the fields of a leaf that it reads."""

    joint = "t"  # what V9' is told besides

    def __init__(self, t: float, c: arb) -> None:
        self.t, self.c, self.probability, self.hints = t, c, normal(arb(t)), "tau spread"

    def uses_precision(self, leaf: dict[str, Any]) -> bool:
        """Whether the plane needs r = R k(ref)."""
        return self.t != 0

    def plane(self, latent: Latent, m0: float, leaf: dict[str, Any], q0: arb, x: arb | None) -> Plane:
        """The plane of a leaf with these hints, where |d|^2 <= x; q0 = k(ref).r."""
        t, c, constant = arb(self.t), self.c, arb(m0)
        if self.t == 0:
            return flat(constant)
        if "tau" in leaf and real(leaf["tau"]) == 0:
            return flat(constant - t * (c + variances(latent, q0, x)[self.t > 0]).sqrt())
        if self.t < 0:
            return falling(latent, constant, -t, c, q0, x)
        tau = arb(real(leaf.get("tau")))
        need(tau > 0, "V4: tau must be positive")
        above = tau * c + t * t / (4 * tau)  # at S = 0, where t sqrt(c) is needed
        return rising(latent, constant - above, tau, q0, arb(0), x, above - t * c.sqrt())

    def outright(self, latent: Latent, mean: arb, leaf: dict[str, Any]) -> arb:
        """V8: >= 0 (> 0) only if this mean has P >= (>) p with every variance in [bottom, top]."""
        return mean - arb(self.t) * (self.c + (latent.bottom if self.t < 0 else latent.top)).sqrt()
