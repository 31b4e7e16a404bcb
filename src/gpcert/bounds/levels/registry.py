"""The rigorous counterpart of each two-class likelihood: the registry of links that can be certified."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from gpcert.bounds.levels.curves import LevelCurves, ProbitCurves
from gpcert.bounds.levels.five_erf import FiveErfCurves
from gpcert.bounds.levels.floored import FlooredCurves
from gpcert.bounds.levels.logistic import LogitCurves
from gpcert.bounds.levels.steps import StepCurves, step_curves
from gpcert.errors import InvalidInputError
from gpcert.likelihoods import FiveErf, Floored, Link, Logit, Probit

_steps: WeakKeyDictionary[Link, StepCurves] = WeakKeyDictionary()


def _steps_of(link: Link) -> StepCurves:
    if link not in _steps:
        _steps[link] = step_curves(link)
    return _steps[link]


_CURVES: dict[type, Callable[[Any], LevelCurves]] = {
    Probit: lambda probit: ProbitCurves(probit.scale),
    Logit: LogitCurves,
    FiveErf: lambda _: FiveErfCurves(),
    Floored: lambda floored: FlooredCurves(curves_of(floored.link), floored.floor),
    Link: _steps_of,
}


def is_smooth(curves: LevelCurves) -> bool:
    """Whether levels are known as sharply as doubles are, not by steps."""
    inner = curves.inner if isinstance(curves, FlooredCurves) else curves
    return not isinstance(inner, StepCurves)


def curves_of(likelihood: object) -> LevelCurves:
    """Values and level curves of a two-class likelihood, certified; another one is an error."""
    for kind, curves in _CURVES.items():
        if isinstance(likelihood, kind):
            return curves(likelihood)
    name = getattr(likelihood, "name", type(likelihood).__name__)
    rule = "post must have the probit, logit or softmax likelihood, a Link, or one-vs-rest"
    raise InvalidInputError(f"{rule}, got {name!r}")
