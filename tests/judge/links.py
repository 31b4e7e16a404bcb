"""Expectations of two-class likelihoods in balls."""

from __future__ import annotations

from flint import arb

from gpcert.likelihoods import BinaryLikelihood, FiveErf, Floored, Logit, Probit
from gpcert.likelihoods.five_erf import COEFFICIENTS, LAMBDAS
from judge.logistic import logistic_normal

UNKNOWN = (0.5, 0.5)  #: midpoint and radius of a probability of which nothing is known


def unit(p: arb) -> arb:
    """A probability, whose ball need not leave [0, 1]."""
    if not p.is_finite():
        return arb(*UNKNOWN)
    low, high = p.lower().max(arb(0)), p.upper().min(arb(1))
    return p if low <= p and p <= high else low.union(high)


def expectation(likelihood: BinaryLikelihood, mean: arb, variance: arb, label: int) -> arb:
    """P(label), label 0 or 1, for a latent N(mean, variance); relatively accurate where it is small."""
    if isinstance(likelihood, Floored):
        floor = arb(likelihood.floor)
        return floor + (1 - 2 * floor) * expectation(likelihood.link, mean, variance, label)
    if isinstance(likelihood, FiveErf):
        p = sum(
            (arb(c) * _phi(mean / (variance + 1 / (2 * arb(l) ** 2)).sqrt()))
            for c, l in zip(COEFFICIENTS.tolist(), LAMBDAS.tolist(), strict=True)
        )
        return p if label == 1 else 1 - p
    toward = mean if label == 1 else -mean
    if isinstance(likelihood, Probit):
        return _phi(toward / (variance + 1 / arb(likelihood.scale) ** 2).sqrt())
    if isinstance(likelihood, Logit):
        return unit(logistic_normal(toward, variance))
    return arb(*UNKNOWN)


def _phi(z: arb) -> arb:
    return (-z / arb(2).sqrt()).erfc() / 2
