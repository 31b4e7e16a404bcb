"""The rigorous counterpart of each two-class likelihood."""

from __future__ import annotations

from gpcert.bounds.five_erf_link import FiveErfLink
from gpcert.bounds.floored_link import FlooredLink
from gpcert.bounds.levels import Link, LogitLink, ProbitLink
from gpcert.likelihoods import BinaryLikelihood, FiveErf, Floored, Logit, Probit

__all__ = ["link_of"]


def link_of(likelihood: BinaryLikelihood) -> Link:
    """Values and level curves of a likelihood, certified."""
    if isinstance(likelihood, Probit):
        return ProbitLink(likelihood.scale)
    if isinstance(likelihood, FiveErf):
        return FiveErfLink()
    if isinstance(likelihood, Floored):
        return FlooredLink(link_of(likelihood.link), likelihood.floor)
    assert isinstance(likelihood, Logit)
    return LogitLink(likelihood)
