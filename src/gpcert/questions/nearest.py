"""The nearest counterexamples that an attack finds: where proofs of a radius begin."""

from __future__ import annotations

import numpy as np

from gpcert.attacks import Careful, LatentMargin, LogOdds, Margin, Objective, Sets, nearest_counterexamples
from gpcert.posterior import Posterior
from gpcert.questions.balls import Balls
from gpcert.questions.decision import only_the_mean_matters
from gpcert.validation import Float, Index

__all__ = ["nearest"]

#: Counterexamples lie this far beyond the threshold (relative in the mean, absolute in log odds): beyond
#: rounding, and too little to matter for the radius.
_CLEAR = 1e-7


def nearest(
    post: Posterior,
    balls: Balls,
    labels: Index,
    threshold: float,
    rtol: float,
    known: Float | None = None,
    deadline: float = np.inf,
) -> tuple[Float, Float]:
    """Radii (m,) of the nearest counterexamples an attack finds, inf for none, and the points (m, d).

    `known` (m, d): counterexamples to start from. After the deadline (`time.perf_counter`) it only ends.
    """
    plain, level = _objective(post, threshold)
    objective = Careful(plain, deadline)
    with np.errstate(all="ignore"):
        value = plain.values(balls.X, labels)
        radius, points = np.zeros(len(labels)), balls.X.copy()
        rows = np.flatnonzero(value >= level)  # the others are counterexamples themselves
        if len(rows):

            def sets(chosen: Index, radii: Float) -> Sets:
                return Sets.of([balls.ball(int(rows[i]), r) for i, r in zip(chosen, radii, strict=True)])

            largest = np.array([balls.largest(int(i)) for i in rows])
            start = None if known is None else known[rows]
            radius[rows], points[rows] = nearest_counterexamples(
                objective, level, sets, labels[rows], largest, rtol, start
            )
    return radius, points


def _objective(post: Posterior, threshold: float) -> tuple[Objective, float]:
    """What to make small, and the level below which it is a counterexample."""
    if post.n_classes > 2:
        return Margin(post), -_CLEAR
    if only_the_mean_matters(post, threshold):
        return LatentMargin(post), -_CLEAR * float(np.sqrt(post.kernels[0].prior_variance))
    return LogOdds(post), float(np.log(threshold) - np.log1p(-threshold)) - _CLEAR
