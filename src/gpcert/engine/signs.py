"""Clear labels: the sign of the mean where no rounding of a predictor makes it another (J9)."""

from __future__ import annotations

import math

import numpy as np

from gpcert.bounds.levels.curves import LevelCurves
from gpcert.clock import check
from gpcert.engine.facts import Facts
from gpcert.engine.values import Amplitudes, amplitudes, points
from gpcert.validation import Float

#: J9: a standardised mean of this size is a probability that differs from 1/2.
_CLEAR = 1e-6
#: J9: a predictor's error of a covariance, per feature and per centre, in units of the variance.
_PREDICTED = 2.0**-44


def signs(facts: Facts, curves: LevelCurves, x: Float) -> Float:
    """J9: the sign of the mean at points x (N, D), all of whose features move, where it is so clear that no
    rounding of a predictor makes it another, nor P = 1/2; 0 elsewhere.
    """
    backend, room = facts.backend, _room(facts, curves)
    step, found = backend.rows(8.0 * len(facts.model.weights)), np.zeros(len(x))
    with np.errstate(all="ignore"):
        for start in range(0, len(x), step):
            check()
            part = slice(start, start + step)
            low, high = points(facts, backend.array(x[part]), amplitudes(facts, x[part, :0])).mean()
            backend.store((low > room) * 1.0 - (high < -room) * 1.0, found[part])
    return found


def surely_lost(facts: Facts, curves: LevelCurves) -> float:
    """J9: where P of a class is at most this, no rounding of a predictor gives that class the label, nor a
    tie; the link is symmetric.
    """
    return 0.5 - 1.01 * curves.slope * _room(facts, curves)


def _room(facts: Facts, curves: LevelCurves) -> float:
    """How far from 0 a clear mean is, on every slice."""
    model, features = facts.model, len(facts.features) + len(facts.rest)
    terms = len(model.weights) + features + 16
    sums = terms * _PREDICTED * model.variance * float(np.abs(model.weights).sum())
    everywhere = Amplitudes(facts, float(model.variance), 0.0).largest_variance
    return sums + _CLEAR * math.sqrt(curves.noise + float(everywhere))
