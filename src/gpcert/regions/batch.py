"""Many regions with the names of the rows they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex, overload

import numpy as np

from gpcert.regions.columns import Alike
from gpcert.regions.sets import Ball, Norm, Region
from gpcert.validation import Float, freeze

_SHOWN = 5  # regions in a repr


class Regions(Sequence[Region]):
    """Regions in order; `ids`: what their rows are called, None: by position; `single`: one, not several.

    Balls that are `alike` stay columns: one is made where it is looked at, and then kept.
    """

    def __init__(
        self, regions: Iterable[Region] | Alike = (), ids: Sequence[Any] | None = None, single: bool = False
    ) -> None:
        self.alike = regions if isinstance(regions, Alike) else None
        made = {} if isinstance(regions, Alike) else dict(enumerate(regions))
        self._made: dict[int, Region] = made
        self._count = len(regions) if isinstance(regions, Alike) else len(made)
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
            if self.alike is not None:
                return Regions(self.alike.take(at), ids)
            return Regions([self[i] for i in range(len(self))[at]], ids)
        i = range(len(self))[at]  # which knows what a position may be
        if i not in self._made:
            assert self.alike is not None
            self._made[i] = self.alike.ball(i)
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
        if self.alike is not None:
            same = self.alike.ordered(names)
            return self if same is self.alike else Regions(same, self.ids)
        return Regions([each.ordered(names) for each in self], self.ids)

    @property
    def points(self) -> Float:
        """The centres (m, d)."""
        return np.stack([each.centre for each in self]) if self.alike is None else self.alike.x


def alike(
    x: Float,
    radius: Float,
    norm: Norm,
    features: Sequence[int | str] | None,
    domain: Any,
    scale: Any,
    names: Sequence[str] | None = None,
) -> Alike:
    """Balls of one kind around the rows of x (m, d), with radius (m,); else the sentence of the first row
    that has none.
    """
    first = Ball(x[0], float(radius[0]), norm, features, domain, scale, names)
    right = radius >= 0 if first.norm else (radius >= 0) & (radius == np.floor(radius))
    if not (right.all() and _inside(first, x)):
        for each, r in zip(x, radius, strict=True):
            Ball(each, float(r), norm, features, domain, scale, names)
    return Alike(first, freeze(x), freeze(radius))


def _inside(first: Ball, x: Float) -> bool:
    """Whether the domain holds every row."""
    if first.domain is None:
        return True
    low, high = first.domain
    if low.max() <= x.min() and x.max() <= high.min():  # one domain for all features: one look
        return True
    return bool(((low <= x.min(axis=0)) & (x.max(axis=0) <= high)).all())
