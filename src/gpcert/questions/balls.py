"""Balls of all radii around points: what `certified_radius` and `evaluate` ask about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from gpcert.posterior import Posterior
from gpcert.questions.checks import (
    check_number,
    limits_and_units,
    training_columns,
    warn_of_impossible,
    warn_of_units,
)
from gpcert.regions import Alike, Ball, Norm, Regions, alike
from gpcert.rounding import UNIT, norm_up
from gpcert.tables import arranged, positions, read
from gpcert.validation import Float, Index, as_matrix, freeze, require

#: No default radius moves a feature farther.
_MOST = 1e300


@dataclass(frozen=True, eq=False)
class Balls:
    """Balls like `kind` around the rows of X (m, d), each up to a radius of its own, `limits` (m,); X is
    read-only, and every row has such a ball.
    """

    kind: Ball
    X: Float
    limits: Float
    single: bool = False  #: one point (d,) was given
    ids: tuple[Any, ...] | None = None  #: what the rows are called

    @property
    def norm(self) -> float:
        """That of all balls."""
        return self.kind.norm

    def ball(self, row: int, radius: float) -> Ball:
        """The ball of this radius around one point."""
        return self.kind.moved(self.X[row], float(radius))

    def regions(self, rows: Index, radii: Float, ids: Sequence[Any] | None = None) -> Regions:
        """The balls of radii (k,) around some of the points (k,), as columns."""
        whole = np.floor(radii) if self.norm == 0 else radii
        return Regions(Alike(self.kind, freeze(self.X[rows]), freeze(whole)), ids)

    def rows(self, index: Index) -> Balls:
        """The balls around some of the points."""
        return replace(self, X=freeze(self.X[index]), limits=self.limits[index])

    def limit(self, row: int) -> float:
        """The largest radius that was asked for."""
        return self.whole(float(self.limits[row]))

    def largest(self, row: int) -> float:
        """The largest radius worth asking about: the limit, or one whose ball holds the whole domain."""
        return min(self.limit(row), self.covering(row))

    def covering(self, row: int) -> float:
        """B8: a radius whose ball holds the whole domain; inf where there is none."""
        return float(self.coverings[row])

    @cached_property
    def coverings(self) -> Float:
        """The same of every row (m,)."""
        ball = self.kind
        moving = ball.moving()
        if ball.domain is None:
            return np.full(len(self.X), np.inf if moving.any() else 0.0)
        scale = np.ones_like(ball.x) if ball.scale is None else ball.scale
        with np.errstate(all="ignore"):
            reach = np.maximum(self.X - ball.domain[0], ball.domain[1] - self.X)[:, moving]
            if self.norm == 0:
                return np.asarray((reach != 0).sum(axis=1), dtype=np.float64)
            steps = np.where(reach > 0, np.nextafter(_above(reach) / scale[moving], np.inf), 0.0)  # never 0
            top = steps.max(axis=1, initial=0.0)
            size = top * (norm_up(steps / top[:, None], self.norm) * (1.0 + 8 * UNIT))
        return np.where((top > 0.0) & (top < np.inf), _above(size), top)

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
        d = max(int(np.count_nonzero(self.kind.moving())), 1)
        return int(np.clip(20_000 / d**2, 1, 2000))


def checked_shape(
    post: Posterior, names: Sequence[str] | None, features: Any, domain: Any, scale: Any, level: int = 6
) -> tuple[tuple[int, ...] | None, Any, Float | None]:
    """Features that move, domain and scale of balls; `level`: to the caller of a question."""
    d = post.n_features
    moving, known = positions(features, names, d), partial(training_columns, post)
    within, unit = limits_and_units(known, domain, scale, names, d, moving)
    if scale is None:
        warn_of_units(post, moving, within, level)
    return moving, within, unit


def checked_balls(
    post: Posterior,
    x: Any,
    norm: Norm,
    max_radius: float | None,
    features: Any,
    domain: Any,
    scale: Any,
    what: str = "x",
) -> Balls:
    """The balls; names are the model's, "std" and "data" are about its training data. `max_radius` None:
    as far as the model reaches.
    """
    table, d = read(what, x), post.n_features
    single, names = table.values.ndim == 1, post.feature_names or table.names
    X = np.array(as_matrix(what, np.atleast_2d(arranged(what, table, post.feature_names)), d))
    require(len(X) > 0, f"{what} must hold at least one point, got none")
    if max_radius is not None:
        check_number("max_radius", max_radius, least=0.0, strict=False)
    shape = checked_shape(post, names, features, domain, scale)
    kind = alike(X, np.zeros(len(X)), norm, *shape).kind
    limits = np.full(len(X), np.inf if max_radius is None else float(max_radius))
    if max_radius is None:
        limits[:] = [_far(post, kind.moved(x, 0.0)) for x in X]
    warn_of_impossible(post, Alike(kind, X, limits))
    balls = Balls(kind, X, limits, single, table.ids)
    require(
        bool(np.isfinite(np.minimum(limits, balls.coverings)).all()),
        f"max_radius must be finite where no finite radius covers the domain, got {max_radius}",
    )
    return balls


def _far(post: Posterior, ball: Ball) -> float:
    """Twice as far as the farthest centre, beyond which a model has little to say; 1 where that is no way,
    inf where nothing moves.

    Any radius is sound.
    """
    if not ball.moving().any():
        return np.inf
    scale = np.ones_like(ball.x) if ball.scale is None else ball.scale
    with np.errstate(all="ignore"):
        away = (np.abs(post.centres - ball.x).max(axis=0) / scale)[ball.moving()]
        radius = 2.0 * float(norm_up(away, max(ball.norm, 1.0))) if away.any() else 1.0
        most = _MOST / max(1.0, float(scale.max()))
        return radius if radius < most else most  # NaN is beyond, too


def _above(size: Float) -> Float:
    """The next doubles, of sizes > 0: at least what was rounded."""
    return np.where(size > 0, np.nextafter(size, np.inf), size)
