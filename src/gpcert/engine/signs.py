"""Clear labels: the sign of the mean where no rounding of a predictor makes it another (J9)."""

from __future__ import annotations

import numpy as np

from gpcert.bounds.levels.curves import LevelCurves
from gpcert.clock import check
from gpcert.engine.facts import Facts
from gpcert.engine.values import amplitudes, points
from gpcert.validation import Float

#: J9: a standardised mean of this size is a probability that differs from 1/2.
_CLEAR = 1e-6
#: J9: a predictor's error of a covariance, per feature and per centre, in units of the variance.
_PREDICTED = 2.0**-44


def signs(facts: Facts, curves: LevelCurves, x: Float) -> Float:
    """J9: the sign of the mean at points x (N, D), all of whose features move, where it is so clear that no
    rounding of a predictor makes it another, nor P = 1/2; 0 elsewhere.
    """
    backend, model = facts.backend, facts.model
    step, found = backend.rows(8.0 * len(model.weights)), np.zeros(len(x))
    terms = len(model.weights) + x.shape[1] + 16
    sums = terms * _PREDICTED * model.variance * float(np.abs(model.weights).sum())
    with np.errstate(all="ignore"):
        for start in range(0, len(x), step):
            check()
            part = slice(start, start + step)
            at = points(facts, backend.array(x[part]), amplitudes(facts, x[part, :0]))
            low, high = at.mean()
            widest = curves.noise + at.amplitudes.largest_variance
            room = sums + _CLEAR * widest**0.5
            backend.store((low > room) * 1.0 - (high < -room) * 1.0, found[part])
    return found
