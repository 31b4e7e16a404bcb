"""The rigorous counterpart of each two-class likelihood."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from gpcert.bounds.levels.curves import LevelCurves, LogitCurves, ProbitCurves
from gpcert.bounds.levels.five_erf import FiveErfCurves
from gpcert.bounds.levels.floored import FlooredCurves
from gpcert.bounds.levels.steps import StepCurves, step_curves
from gpcert.likelihoods import BinaryLikelihood, FiveErf, Floored, Link, Logit, Probit

__all__ = ["curves_of"]

_steps: WeakKeyDictionary[Link, StepCurves] = WeakKeyDictionary()


def curves_of(likelihood: BinaryLikelihood) -> LevelCurves:
    """Values and level curves of a likelihood, certified."""
    if isinstance(likelihood, Probit):
        return ProbitCurves(likelihood.scale)
    if isinstance(likelihood, FiveErf):
        return FiveErfCurves()
    if isinstance(likelihood, Floored):
        return FlooredCurves(curves_of(likelihood.link), likelihood.floor)
    if isinstance(likelihood, Link):
        if likelihood not in _steps:
            _steps[likelihood] = step_curves(likelihood)
        return _steps[likelihood]
    assert isinstance(likelihood, Logit)
    return LogitCurves(likelihood)
