"""The boxes of many regions as columns: the doubles of `box` and `inner_box`, without objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpcert.regions.sets import Ball, Region, add
from gpcert.validation import Float

__all__ = ["Columns", "columns_of"]


class Columns(NamedTuple):
    """Ends (m, d) of the smallest boxes of doubles around the regions, and of the largest ones inside."""

    lower: Float
    upper: Float
    inner_lower: Float
    inner_upper: Float


def columns_of(regions: Sequence[Region]) -> Columns:
    """The columns of boxes and of balls with norm=inf."""
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
    """x -+ radius, rounded outward and inward exactly, on the features that move, cut to the domains."""
    x = np.stack([ball.x for ball in balls])
    reach = np.array([ball.radius for ball in balls])[:, None]
    if any(ball.features is not None for ball in balls):
        reach = np.where(np.stack([ball.moving() for ball in balls]), reach, 0.0)
    reach = np.broadcast_to(reach, x.shape)
    ends = [
        add(x, -reach, down=True),
        add(x, reach, down=False),
        add(x, -reach, down=False),
        add(x, reach, down=True),
    ]
    domains = [ball.domain for ball in balls]
    if any(domain is not None for domain in domains):
        free = np.full(x.shape[1], np.inf)
        low = np.stack([-free if domain is None else domain[0] for domain in domains])
        high = np.stack([free if domain is None else domain[1] for domain in domains])
        ends = [np.maximum(end, low) if i % 2 == 0 else np.minimum(end, high) for i, end in enumerate(ends)]
    return Columns(*ends)
