"""Many regions: named by their rows, as columns without objects, and the boxes around and inside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsIndex, overload

import numpy as np

from gpcert.regions.lengths import add
from gpcert.regions.sets import Ball, Norm, Region
from gpcert.tables import order
from gpcert.validation import Float, Mask, freeze


@dataclass(frozen=True, eq=False)
class BallBatch:
    """Balls of one kind, all of it checked: around x (m, d), with radius (m,), otherwise like `kind`."""

    kind: Ball
    x: Float
    radius: Float

    def __len__(self) -> int:
        return len(self.radius)

    def ball(self, i: int) -> Ball:
        """One of them."""
        return self.kind.moved(self.x[i], float(self.radius[i]))

    def take(self, at: slice) -> BallBatch:
        """Some of them."""
        return BallBatch(self.kind, self.x[at], self.radius[at])

    def ordered(self, names: Sequence[str] | None) -> BallBatch:
        """The same sets with their features in the order of these names, which they do not keep."""
        given = self.kind.names
        if given is None:
            return self
        x = (
            self.x
            if names is None or list(names) == list(given)
            else self.x[:, order("region", given, names)]
        )
        return BallBatch(self.kind.ordered(names), freeze(x), self.radius)


_CHUNK = 4096  # rows of a piece


class Hulls(NamedTuple):
    """Ends (m, d) of the smallest boxes of doubles around the regions, and of the largest ones inside."""

    lower: Float
    upper: Float
    inner_lower: Float
    inner_upper: Float


def half_axes(balls: Sequence[Any]) -> Float:
    """radius scale (m, d) of balls, to the nearest double."""
    ones = np.ones(len(balls[0].x))
    return np.stack([ball.radius * (ones if ball.scale is None else ball.scale) for ball in balls])


def extent(balls: Sequence[Region] | BallBatch) -> tuple[Float, Float, Mask]:
    """The least and the largest value (d,) of each feature in any of the regions, to the nearest doubles, and
    whether it moves (d,) in one of them.
    """
    if isinstance(balls, BallBatch):
        parts = (slice(start, start + _CHUNK) for start in range(0, len(balls), _CHUNK))
        pieces = [_around(balls.kind, balls.x[part], balls.radius[part]) for part in parts]
    else:
        pieces = [
            _around(each, each.x[None], np.array([each.radius]))
            if isinstance(each, Ball)
            else (each.lower, each.upper, each.lower < each.upper)
            for each in balls
        ]
    lower, upper, moves = zip(*pieces, strict=True)
    return np.min(lower, axis=0), np.max(upper, axis=0), np.any(moves, axis=0)


def _around(kind: Ball, x: Float, radius: Float) -> tuple[Float, Float, Mask]:
    low, high = kind.domain or (np.full(kind.n_features, -np.inf), np.full(kind.n_features, np.inf))
    scale = np.ones(kind.n_features) if kind.scale is None else kind.scale
    with np.errstate(over="ignore"):
        far = np.where(radius > 0, np.inf, 0.0) if kind.norm == 0 else radius
        reach = np.where(kind.moving(), far[:, None] * scale, 0.0)
        lower, upper = np.maximum(x - reach, low), np.minimum(x + reach, high)
        return lower.min(axis=0), upper.max(axis=0), np.asarray((lower < upper).any(axis=0))


def one_unit(domain: Any) -> bool:
    """Whether one domain (low, high) for all columns says that they have one unit: pixels."""
    return domain is not None and all(np.isfinite(end).all() and np.min(end) == np.max(end) for end in domain)


def hulls_of(regions: Sequence[Region]) -> Hulls:
    """The columns of boxes and of balls with norm=inf; of other balls, those of their boxes."""
    if all(isinstance(region, Ball) and region.scale is None for region in regions):
        return _of_balls([region for region in regions if isinstance(region, Ball)])
    outer, inner = [region.box() for region in regions], [region.inner_box() for region in regions]
    return Hulls(
        *(
            np.stack([getattr(box, end) for box in boxes])
            for boxes in (outer, inner)
            for end in ("lower", "upper")
        )
    )


def _of_balls(balls: Sequence[Ball]) -> Hulls:
    x = np.stack([ball.x for ball in balls])
    reach = np.array([ball.radius for ball in balls])[:, None]
    if any(ball.features is not None for ball in balls):
        reach = np.where(np.stack([ball.moving() for ball in balls]), reach, 0.0)
    domains = [ball.domain for ball in balls]
    if not any(domain is not None for domain in domains):
        return hulls(x, reach)
    free = np.full(x.shape[1], np.inf)
    low = np.stack([-free if domain is None else domain[0] for domain in domains])
    high = np.stack([free if domain is None else domain[1] for domain in domains])
    return hulls(x, reach, (low, high))


def hulls(x: Any, reach: Any, domain: tuple[Any, Any] | None = None, xp: Any = np) -> Hulls:
    """x -+ reach, rounded outward and inward exactly, cut to the domain: of any namespace's arrays."""
    ends = [add(x, side * reach, down=down, xp=xp) for down in (True, False) for side in (-1.0, 1.0)]
    ends = [ends[0], ends[3], ends[2], ends[1]]
    if domain is not None:
        ends = [xp.minimum(e, domain[1]) if i % 2 else xp.maximum(e, domain[0]) for i, e in enumerate(ends)]
    return Hulls(*ends)


_SHOWN = 5  # regions in a repr


class Regions(Sequence[Region]):
    """Regions in order; `ids`: what their rows are called, None: by position; `single`: one, not several.

    Balls of one kind stay a `batch` of columns: one is made where it is looked at, and then kept.
    """

    def __init__(
        self,
        regions: Iterable[Region] | BallBatch = (),
        ids: Sequence[Any] | None = None,
        single: bool = False,
    ) -> None:
        self.batch = regions if isinstance(regions, BallBatch) else None
        made = {} if isinstance(regions, BallBatch) else dict(enumerate(regions))
        self._made: dict[int, Region] = made
        self._count = len(regions) if isinstance(regions, BallBatch) else len(made)
        self.ids = None if ids is None else tuple(ids)
        self.single = single

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: SupportsIndex) -> Region: ...
    @overload
    def __getitem__(self, at: slice) -> Regions: ...
    def __getitem__(self, at: SupportsIndex | slice) -> Region | Regions:
        if isinstance(at, slice):
            ids = None if self.ids is None else self.ids[at]
            if self.batch is not None:
                return Regions(self.batch.take(at), ids)
            return Regions([self[i] for i in range(len(self))[at]], ids)
        i = range(len(self))[at]  # which knows what a position may be
        if i not in self._made:
            assert self.batch is not None
            self._made[i] = self.batch.ball(i)
        return self._made[i]

    def __add__(self, other: Iterable[Region]) -> Regions:
        ids = getattr(other, "ids", None)
        return Regions([*self, *other], None if self.ids is None or ids is None else (*self.ids, *ids))

    def __repr__(self) -> str:
        ids = range(len(self)) if self.ids is None else self.ids
        shown = [" ".join(f"{ids[i]}: {self[i]!r}".split())[:110] for i in range(min(_SHOWN, len(self)))]
        more = [f"... {len(self) - len(shown)} more"] if len(self) > len(shown) else []
        return "\n".join([f"Regions ({len(self)})", *shown, *more])

    def ordered(self, names: Sequence[str] | None) -> Regions:
        """The same sets with their features in the order of these names."""
        if self.batch is not None:
            same = self.batch.ordered(names)
            return self if same is self.batch else Regions(same, self.ids)
        return Regions([each.ordered(names) for each in self], self.ids)

    @property
    def points(self) -> Float:
        """The centres (m, d)."""
        return np.stack([each.centre for each in self]) if self.batch is None else self.batch.x


def ball_batch(
    x: Float,
    radius: Float,
    norm: Norm,
    features: Sequence[int | str] | None,
    domain: Any,
    scale: Any,
    names: Sequence[str] | None = None,
) -> BallBatch:
    """Balls of one kind around the rows of x (m, d), with radius (m,); else the sentence of the first row
    that has none.
    """
    first = Ball(x[0], float(radius[0]), norm, features, domain, scale, names)
    right = radius >= 0 if first.norm else (radius >= 0) & (radius == np.floor(radius))
    if not (right.all() and _inside(first, x)):
        for each, r in zip(x, radius, strict=True):
            Ball(each, float(r), norm, features, domain, scale, names)
    return BallBatch(first, freeze(x), freeze(radius))


def _inside(first: Ball, x: Float) -> bool:
    """Whether the domain holds every row."""
    if first.domain is None:
        return True
    low, high = first.domain
    if low.max() <= x.min() and x.max() <= high.min():  # one domain for all features: one look
        return True
    return bool(((low <= x.min(axis=0)) & (x.max(axis=0) <= high)).all())
