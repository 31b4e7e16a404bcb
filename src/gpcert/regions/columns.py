"""Many regions as columns, without objects: balls that differ in centre and radius alone, and the boxes of
doubles around and inside any regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpcert.regions.lengths import add
from gpcert.regions.sets import Ball, Region
from gpcert.tables import order
from gpcert.validation import Float, freeze


@dataclass(frozen=True, eq=False)
class Alike:
    """Balls of one kind, all of it checked: around x (m, d), with radius (m,), otherwise like `kind`."""

    kind: Ball
    x: Float
    radius: Float

    def __len__(self) -> int:
        return len(self.radius)

    def ball(self, i: int) -> Ball:
        """One of them."""
        return self.kind.moved(self.x[i], float(self.radius[i]))

    def take(self, at: slice) -> Alike:
        """Some of them."""
        return Alike(self.kind, self.x[at], self.radius[at])

    def ordered(self, names: Sequence[str] | None) -> Alike:
        """The same sets with their features in the order of these names, which they do not keep."""
        given = self.kind.names
        if given is None:
            return self
        x = (
            self.x
            if names is None or list(names) == list(given)
            else self.x[:, order("region", given, names)]
        )
        return Alike(self.kind.ordered(names), freeze(x), self.radius)


class Columns(NamedTuple):
    """Ends (m, d) of the smallest boxes of doubles around the regions, and of the largest ones inside."""

    lower: Float
    upper: Float
    inner_lower: Float
    inner_upper: Float


def half_axes(balls: Sequence[Any]) -> Float:
    """radius scale (m, d) of balls, to the nearest double."""
    ones = np.ones(len(balls[0].x))
    return np.stack([ball.radius * (ones if ball.scale is None else ball.scale) for ball in balls])


def columns_of(regions: Sequence[Region]) -> Columns:
    """The columns of boxes and of balls with norm=inf; of other balls, those of their boxes."""
    if all(isinstance(region, Ball) and region.scale is None for region in regions):
        return _of_balls([region for region in regions if isinstance(region, Ball)])
    outer, inner = [region.box() for region in regions], [region.inner_box() for region in regions]
    return Columns(
        *(
            np.stack([getattr(box, end) for box in boxes])
            for boxes in (outer, inner)
            for end in ("lower", "upper")
        )
    )


def _of_balls(balls: Sequence[Ball]) -> Columns:
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


def hulls(x: Any, reach: Any, domain: tuple[Any, Any] | None = None, xp: Any = np) -> Columns:
    """x -+ reach, rounded outward and inward exactly, cut to the domain: of any namespace's arrays."""
    ends = [add(x, side * reach, down=down, xp=xp) for down in (True, False) for side in (-1.0, 1.0)]
    ends = [ends[0], ends[3], ends[2], ends[1]]
    if domain is not None:
        ends = [xp.minimum(e, domain[1]) if i % 2 else xp.maximum(e, domain[0]) for i, e in enumerate(ends)]
    return Columns(*ends)
