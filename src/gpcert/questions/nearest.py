"""The nearest counterexamples that an attack finds: where proofs of a radius begin."""

from __future__ import annotations

import numpy as np

from gpcert.attacks.objectives import Careful, LatentMargin, LogOdds, Margin, Objective
from gpcert.attacks.pgd import nearest_counterexamples
from gpcert.attacks.sets import Sets
from gpcert.likelihoods import Softmax
from gpcert.posterior import Posterior
from gpcert.questions.balls import Balls
from gpcert.questions.decision import only_the_mean_matters
from gpcert.validation import Float, Index

#: Counterexamples lie this far beyond the threshold (relative in the mean, absolute in log odds): beyond
#: rounding, and too little to matter for the radius.
_CLEAR = 1e-7
#: How finely means look for a first counterexample, which probabilities then bring nearer.
_ROUGHLY = 0.02


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

    `known` (m, d): counterexamples to start from. After the deadline (`gpcert.clock.now`) it only ends.
    """
    plain, level = _objective(post, threshold)
    objective = Careful(plain, deadline)
    with np.errstate(all="ignore"):
        value = plain.values(balls.X, labels)
        radius, points = np.zeros(len(labels)), balls.X.copy()
        rows = np.flatnonzero(value >= level)  # the others are counterexamples themselves
        if known is None and isinstance(post.likelihood, Softmax) and post.n_classes > 2:
            led, known = _led_by_means(post, balls, labels, rows, deadline)
            led = led[objective.values(known[led], labels[led]) < level]
            groups = [(led, known), (np.setdiff1d(rows, led), None)]
        else:
            groups = [(rows, known)]
        for some, start in groups:
            radius[some], points[some] = _nearest(objective, level, balls, labels, some, rtol, start)
    return radius, points


def _led_by_means(
    post: Posterior, balls: Balls, labels: Index, rows: Index, deadline: float
) -> tuple[Index, Float]:
    """The rows for which the means, far cheaper than probabilities, change their order; where (m, d)."""
    points, means = balls.X.copy(), Careful(LatentMargin(post), deadline)
    radius, points[rows] = _nearest(means, 0.0, balls, labels, rows, _ROUGHLY)
    return rows[np.isfinite(radius)], points


def _nearest(
    objective: Objective,
    level: float,
    balls: Balls,
    labels: Index,
    rows: Index,
    rtol: float,
    known: Float | None = None,
) -> tuple[Float, Float]:
    """`nearest_counterexamples` of some rows (k,); `known` (m, d): of all of them."""
    if not len(rows):
        return np.empty(0), np.empty((0, balls.X.shape[1]))

    def sets(chosen: Index, radii: Float) -> Sets:
        return Sets.of([balls.ball(int(rows[i]), r) for i, r in zip(chosen, radii, strict=True)])

    largest = np.array([balls.largest(int(i)) for i in rows])
    start = None if known is None else known[rows]
    return nearest_counterexamples(objective, level, sets, labels[rows], largest, rtol, start)


def _objective(post: Posterior, threshold: float) -> tuple[Objective, float]:
    """What to make small, and the level below which it is a counterexample."""
    if post.n_classes > 2:
        return Margin(post), -_CLEAR
    if only_the_mean_matters(post, threshold):
        return LatentMargin(post), -_CLEAR * float(np.sqrt(post.kernels[0].prior_variance))
    return LogOdds(post), float(np.log(threshold) - np.log1p(-threshold)) - _CLEAR
