"""Balls around the rows of a table: `gc.balls`, and what `certified_radius` and `evaluate` ask about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from gpcert.adapters.models import posterior_of
from gpcert.errors import InvalidInputError
from gpcert.posterior import Posterior
from gpcert.posterior_columns import TrainingColumns
from gpcert.questions.checks import (
    check_number,
    limits_and_units,
    training_columns,
    warn_of_impossible,
    warn_of_units,
)
from gpcert.regions import Ball, BallBatch, Norm, Regions, ball_batch
from gpcert.rounding import UNIT, norm_up
from gpcert.tables import arranged, column, column_names, framed, order, positions, read, row_names, same_rows
from gpcert.validation import Float, Index, as_matrix, as_vector, composed, freeze, no_truth, require

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
        return self.kind.norm

    def ball(self, row: int, radius: float) -> Ball:
        """The ball of this radius around one point."""
        return self.kind.moved(self.X[row], float(radius))

    def regions(self, rows: Index, radii: Float, ids: Sequence[Any] | None = None) -> Regions:
        """The balls of radii (k,) around some of the points (k,), as columns."""
        whole = np.floor(radii) if self.norm == 0 else radii
        return Regions(BallBatch(self.kind, freeze(self.X[rows]), freeze(whole)), ids)

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
    kind = ball_batch(X, np.zeros(len(X)), norm, *shape).kind
    limits = np.full(len(X), np.inf if max_radius is None else float(max_radius))
    if max_radius is None:
        limits[:] = [_far(post, kind.moved(x, 0.0)) for x in X]
    warn_of_impossible(post, BallBatch(kind, X, limits))
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


def balls(
    X: Any,
    radius: Any,
    norm: Norm = np.inf,
    features: Sequence[int | str] | None = None,
    domain: Any = None,
    scale: Any = None,
    of: Any = None,
    *,
    id: str | None = None,
) -> Regions:
    """One ball for each row of a table or an array; names of columns and rows are kept.

    Parameters
    ----------
    X : array of shape (m, d) or table
        The centres.
    radius : float, array of shape (m,) or str
        One for all, one for each row, or the column of X that has it, which is then no feature.
    norm : float or "inf"
        inf, any p >= 1, or 0 (the radius is how many features may move).
    features : sequence, optional
        Features that move: positions, a mask or names; None: all.
    domain : pair (low, high), mapping or "data", optional
        Where inputs are valid: numbers, arrays (d,) or by name, None for an open end; balls are cut there;
        "data": from 0 on where no training value was negative, up to 1 where all were 0 or 1; None:
        everywhere.
    scale : float, array of shape (d,), mapping or "std", optional
        Units of the radius: one number, one for each feature, or by name; "std": standard deviations of the
        training data; None: 1.
    of : model or table, optional
        The model whose training data "std" and "data" mean, or that data.
    id : str, optional
        The column that names the rows, which is then no feature; None: a table's index, or their positions.

    Returns
    -------
    sequence of Ball
        A batch that every question takes.

    Examples
    --------
    >>> regions = gc.balls({"age": [40.0, 50.0], "bmi": [22.0, 30.0]}, 0.5, features=["bmi"])
    >>> len(regions), regions[1].x.tolist(), regions[1].features
    (2, [50.0, 30.0], (1,))
    """
    radius, id = composed(radius), composed(id)
    same_rows("radius", radius, X)
    frame = framed("X", X)
    radii = column("radius", frame, radius) if isinstance(radius, str) else no_truth("radius", radius)
    ids = row_names(X) if id is None else tuple(column("id", frame, id))
    aside = [name for name in (id, radius) if isinstance(name, str)]
    table = read("X", _without(frame, aside) if aside else X)
    values, names = table.values, table.names
    require(values.ndim == 2, f"X must be two-dimensional (points, features), got shape {values.shape}")
    m, d = values.shape
    require(d > 0, "X must have at least one feature, got none")
    each = as_vector("radius", np.broadcast_to(radii, (m,)) if np.ndim(radii) == 0 else radii, m)
    moving = positions(features, names, d)
    known = partial(_columns, of, names, d)
    shape = moving, *limits_and_units(known, domain, scale, names, d, moving)
    return Regions(ball_batch(values, each, norm, *shape, names=names) if m else (), ids)


def _columns(of: Any, names: Sequence[str] | None, d: int, what: str) -> TrainingColumns:
    """Of a model's training data, or of a table, in the order of these names."""
    if of is None:
        raise InvalidInputError(f"{what} needs of=, the model whose training data it means, got none")
    if framed("of", of) is None and not (hasattr(of, "__array__") or isinstance(of, list)):
        post = posterior_of(of)
        found, given = training_columns(post, what), post.feature_names
    else:
        frame = framed("of", of)
        named = frame is not None and names is not None
        table = read("of", {name: column("of", frame, name) for name in names or ()} if named else of)
        require(table.values.ndim == 2 and len(table.values) > 0, "of must be a model or a table with rows")
        found, given = TrainingColumns.of(table.values), table.names
    size = len(found.spread)
    require(size == d, f"of must have {d} features, as X has, got {size}")
    return found if names is None or given is None else found.ordered(order("X", given, names, "the model's"))


def _without(frame: Any, aside: list[str]) -> dict[Any, Any]:
    return {name: frame[name] for name in column_names(frame) or () if name not in aside}
