"""Many regions with the names of the rows they belong to, and balls around the rows of a table: `balls`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex, overload

import numpy as np

from gpcert.regions.columns import Alike
from gpcert.regions.sets import Ball, Norm, Region
from gpcert.tables import column, column_names, ends, framed, positions, read, row_names, same_rows, units
from gpcert.validation import Float, as_vector, freeze, no_truth, require

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


def balls(
    X: Any,
    radius: Any,
    norm: Norm = np.inf,
    features: Sequence[int | str] | None = None,
    domain: Any = None,
    scale: Any = None,
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
    domain : pair (low, high) or mapping, optional
        Where inputs are valid: numbers, arrays (d,) or by name, None for an open end; balls are cut there.
    scale : float, array of shape (d,), mapping or "std", optional
        Units of the radius: one number, one for each feature, or by name; "std": standard deviations of the
        table's columns; None: 1.
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
    spread = checked_spread(values.std(axis=0), moving, names) if isinstance(scale, str) else None
    shape = moving, ends(domain, names, d), units(scale, names, d, spread)
    return Regions(alike(values, each, norm, *shape, names=names) if m else (), ids)


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


def _without(frame: Any, aside: list[str]) -> dict[Any, Any]:
    return {name: frame[name] for name in column_names(frame) or () if name not in aside}


def checked_spread(
    spread: Float, moving: Sequence[int] | None, names: Sequence[str] | None, what: str = "scale='std'"
) -> Float:
    """Standard deviations (d,) as units; a constant column may not move, and counts as 1."""
    flat = np.flatnonzero(~(spread > 0)).tolist()
    stuck = [repr(j if names is None else names[j]) for j in flat if moving is None or j in moving]
    require(not stuck, f"{what} needs columns that vary, got {''.join(stuck[:1])}, a constant")
    return np.where(spread > 0, spread, 1.0)
