"""Which features push a probability up or down? `explain`: the paper's Delta^i_gamma with enclosures.

For feature i, with max and min over the one-sided intervals [x, x + gamma e_i] and [x - gamma e_i, x],
    Delta = (max over the right - max over the left) + (min over the right - min over the left).
All 2d intervals of a point are bounded at once (docs/maths.md, N1 to N3); where that is not narrow enough,
or the model is of another kind, `probability_range` answers interval by interval. Delta takes both ends of
every range with both signs, so an interval must be neither too short nor too long: x + gamma is a real
number, in general no double.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import ArrayLike

from gpcert.bounds import SideRanges, line_ranges
from gpcert.kernels import RBF
from gpcert.likelihoods import Logit, Probit
from gpcert.posterior import Posterior
from gpcert.questions.checks import about, check_label, check_model, check_number, checked_limits, frozen
from gpcert.questions.ranges import probability_range
from gpcert.regions import Ball
from gpcert.results import Explanation, Status
from gpcert.search import Limits, Progress
from gpcert.validation import Float, Index, as_floats, as_matrix, require

__all__ = ["explain"]


def explain(
    post: Posterior,
    X: ArrayLike,
    radius: float,
    label: int = 1,
    *,
    features: Sequence[int] | None = None,
    domain: tuple[ArrayLike, ArrayLike] | None = None,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Progress | None = None,
) -> Explanation:
    """Delta^i_gamma of P(label) at X (m, d), or one point (d,), for gamma = radius and every feature i.

    Each value comes with an enclosure, and with a sign that is 0 where it is not certain. `features`: only
    these (the others are 0). `domain`: intervals end there. `tolerance`: how narrow each enclosure of a
    minimum or maximum has to be; `max_seconds`, `max_nodes` limit each interval that is searched on its own.
    `progress(done, points, 0, 0.0)` after each point; True stops, and what is left is unknown ([-2, 2]).
    """
    check_model(post)
    check_label(post, label)
    check_number("radius", radius, least=0.0, strict=False)
    limits = checked_limits(tolerance, max_seconds, max_nodes, None)
    require(progress is None or callable(progress), f"progress must be a function, got {progress!r}")
    points = as_matrix("X", np.atleast_2d(as_floats("X", X)), post.n_features)
    moving = frozen(features)
    balls = tuple(Ball(x, radius, features=moving, domain=domain) for x in points)
    lower, upper = np.full(points.shape, -2.0), np.full(points.shape, 2.0)
    try:
        for i, ball in enumerate(balls):
            chosen = np.flatnonzero(ball.moving())
            found = np.zeros((2, post.n_features))
            found[:, chosen] = _deltas(post, ball, chosen, int(label), limits)
            lower[i], upper[i] = found  # only now: an interrupt leaves [-2, 2]
            if progress is not None:
                stop = progress(float(i + 1), float(len(points)), 0, 0.0)
                if isinstance(stop, bool | np.bool_) and stop:
                    break
    except KeyboardInterrupt:
        pass  # what is known is returned
    return Explanation.of(lower, upper, balls, int(label), post.feature_names, about(post, limits))


def _deltas(post: Posterior, ball: Ball, features: Index, label: int, limits: Limits) -> tuple[Float, Float]:
    """Enclosures (f,) of Delta along the features of the ball."""
    flip = post.n_classes == 2 and label == 0  # lines know P(1): P(0) has the opposite Delta
    left, right = _sides(post, ball, features, 1 if flip else label, limits)
    lower = (right.max_lower - left.max_upper) + (right.min_lower - left.min_upper)
    upper = (right.max_upper - left.max_lower) + (right.min_upper - left.min_lower)
    lower = np.maximum(np.nextafter(lower - 1e-15, -np.inf), -2.0)
    upper = np.minimum(np.nextafter(upper + 1e-15, np.inf), 2.0)
    return (-upper, -lower) if flip else (lower, upper)


def _sides(
    post: Posterior, ball: Ball, features: Index, label: int, limits: Limits
) -> tuple[SideRanges, SideRanges]:
    """Ranges of P(label) on both sides of x along every feature; two classes: label 1."""
    x, j = ball.x, features
    low, high = ball.domain or (np.full_like(x, -np.inf), np.full_like(x, np.inf))
    sides = [SideRanges(*(np.zeros(len(j)) + end for end in (0.0, 1.0, 0.0, 1.0))) for _ in range(2)]
    if isinstance(post.likelihood, Probit | Logit) and isinstance(post.kernel, RBF):
        with np.errstate(over="ignore"):
            lengths = (np.minimum(ball.radius, room[j]) for room in (x - low, high - x))
        # Copies: what is unknown of both sides may be one array, and each side is written to below.
        sides = [SideRanges(*map(np.array, side)) for side in line_ranges(post, x, j, *lengths)]
    for ranges, ends in zip(sides, ((low, x), (x, high)), strict=True):
        wide = np.maximum(ranges.min_upper - ranges.min_lower, ranges.max_upper - ranges.max_lower)
        for i in np.flatnonzero(~(wide <= limits.tolerance)):
            side = Ball(x, ball.radius, features=[int(j[i])], domain=ends)
            r = probability_range(post, side, label, **asdict(limits))
            if r.status is Status.INTERRUPTED:  # the search has kept Ctrl-C to itself
                raise KeyboardInterrupt
            found = r.min.lower, r.min.upper, r.max.lower, r.max.upper
            for array, value in zip(ranges, found, strict=True):
                array[i] = value
    return sides[0], sides[1]
