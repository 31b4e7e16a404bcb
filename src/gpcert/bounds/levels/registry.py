"""The rigorous counterpart of each two-class likelihood."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from gpcert.bounds.levels.curves import Link, LogitLink, ProbitLink
from gpcert.bounds.levels.five_erf import FiveErfLink
from gpcert.bounds.levels.floored import FlooredLink
from gpcert.bounds.levels.steps import StepLink, step_link
from gpcert.likelihoods import BinaryLikelihood, FiveErf, Floored, Logit, Probit
from gpcert.likelihoods import Link as EnclosedLink

__all__ = ["link_of"]

_steps: WeakKeyDictionary[EnclosedLink, StepLink] = WeakKeyDictionary()


def link_of(likelihood: BinaryLikelihood) -> Link:
    """Values and level curves of a likelihood, certified."""
    if isinstance(likelihood, Probit):
        return ProbitLink(likelihood.scale)
    if isinstance(likelihood, FiveErf):
        return FiveErfLink()
    if isinstance(likelihood, Floored):
        return FlooredLink(link_of(likelihood.link), likelihood.floor)
    if isinstance(likelihood, EnclosedLink):
        if likelihood not in _steps:
            _steps[likelihood] = step_link(likelihood)
        return _steps[likelihood]
    assert isinstance(likelihood, Logit)
    return LogitLink(likelihood)
