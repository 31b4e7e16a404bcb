"""Balls of all radii around points: what `certified_radius` and `evaluate` ask about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpcert.posterior import Posterior
from gpcert.questions.checks import check_number, warn_of_units
from gpcert.regions import Ball, checked_spread
from gpcert.rounding import UNIT, norm_up
from gpcert.tables import arranged, ends, positions, read, units
from gpcert.validation import Float, as_matrix, require

__all__ = ["Balls", "checked_balls"]


@dataclass(frozen=True, eq=False)
class Balls:
    """Balls around the rows of X (m, d), up to `max_radius`."""

    X: Float
    norm: float
    max_radius: float
    features: Sequence[int] | None
    domain: tuple[ArrayLike, ArrayLike] | None
    scale: ArrayLike | None
    single: bool = False  #: one point (d,) was given
    ids: tuple[Any, ...] | None = None  #: what the rows are called

    def ball(self, row: int, radius: float) -> Ball:
        """The ball of this radius around one point."""
        return Ball(self.X[row], radius, self.norm, self.features, self.domain, self.scale)

    def row(self, row: int) -> Balls:
        """The balls around one point."""
        return replace(self, X=self.X[row : row + 1])

    def largest(self, row: int) -> float:
        """The largest radius worth asking about, B8: the ball holds the whole domain, or is `max_radius`."""
        ball = self.ball(row, 0.0)
        if ball.domain is None:
            return self.whole(self.max_radius)
        moving = ball.moving()
        scale = np.ones_like(ball.x) if ball.scale is None else ball.scale
        with np.errstate(all="ignore"):
            reach = np.maximum(ball.x - ball.domain[0], ball.domain[1] - ball.x)[moving]
            if self.norm == 0:
                return self.whole(min(self.max_radius, float(np.count_nonzero(reach))))
            steps = np.where(reach > 0, np.nextafter(_above(reach) / scale[moving], np.inf), 0.0)  # never 0
            top = float(steps.max(initial=0.0))
            if not 0.0 < top < np.inf:
                return min(self.max_radius, top)
            size = top * (float(norm_up(steps / top, self.norm)) * (1.0 + 8 * UNIT))
        return min(self.max_radius, float(_above(np.array(size))))

    def radius_of(self, row: int, point: Float) -> float:
        """The smallest radius, up to a rounding, whose ball around the row contains the point (d,)."""
        return self.ball(row, 0.0).radius_of(point)

    def below(self, radius: float, share: float) -> float:
        """A radius less by the share; norm 0: one feature fewer. inf stays."""
        if not math.isfinite(radius):
            return math.inf
        return radius - 1.0 if self.norm == 0 else (1.0 - share) * radius

    def whole(self, radius: float) -> float:
        """The radius; norm 0: rounded down."""
        return float(np.floor(radius)) if self.norm == 0 else radius

    @property
    def budget(self) -> int:
        """Nodes for one radius: many where boxes are cheap and splitting helps, few where it does not."""
        d = self.X.shape[1] if self.features is None else max(len(self.features), 1)
        return int(np.clip(20_000 / d**2, 1, 2000))


def checked_balls(
    post: Posterior,
    x: Any,
    norm: float,
    max_radius: float,
    features: Any,
    domain: Any,
    scale: Any,
    what: str = "x",
) -> Balls:
    """The balls; names are the model's, "std" means the deviations of its training data."""
    table, d = read(what, x), post.n_features
    single, names = table.values.ndim == 1, post.feature_names or table.names
    X = as_matrix(what, np.atleast_2d(arranged(what, table, post.feature_names)), d)
    require(len(X) > 0, f"{what} must hold at least one point, got none")
    check_number("max_radius", max_radius, least=0.0, strict=False)
    moving = positions(features, names, d)
    spread = checked_spread(post.spread, moving, names) if isinstance(scale, str) else None
    shape = moving, ends(domain, names, d), units(scale, names, d, spread)
    balls = Balls(X, norm, float(max_radius), *shape, single, table.ids)
    if scale is None:
        warn_of_units(post, moving)
    for row in range(len(X)):
        require(
            math.isfinite(balls.largest(row)),
            f"max_radius must be finite where no finite radius covers the domain, got {max_radius}",
        )
        balls.ball(row, balls.largest(row))  # checks the rest
    return balls


def _above(size: Float) -> Float:
    """The next doubles, of sizes > 0: at least what was rounded."""
    return np.where(size > 0, np.nextafter(size, np.inf), size)
