"""Many regions with the names of the rows they belong to, and balls around the rows of a table: `balls`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex, overload

import numpy as np

from gpcert.regions.sets import Ball, Region
from gpcert.tables import column, column_names, ends, positions, read, units
from gpcert.validation import Float, as_vector, require

__all__ = ["Regions", "balls", "checked_spread"]


class Regions(list[Region]):
    """Regions in order; `ids`: what their rows are called, None: by position; `single`: one, not several."""

    def __init__(
        self, regions: Iterable[Region] = (), ids: Sequence[Any] | None = None, single: bool = False
    ) -> None:
        super().__init__(regions)
        self.ids = None if ids is None else tuple(ids)
        self.single = single

    @overload
    def __getitem__(self, at: SupportsIndex) -> Region: ...
    @overload
    def __getitem__(self, at: slice) -> Regions: ...
    def __getitem__(self, at: SupportsIndex | slice) -> Region | Regions:
        if not isinstance(at, slice):
            return super().__getitem__(at)
        return Regions(super().__getitem__(at), None if self.ids is None else self.ids[at])


def balls(
    X: Any,
    radius: Any,
    norm: float = np.inf,
    features: Sequence[int | str] | None = None,
    domain: Any = None,
    scale: Any = None,
    *,
    id: str | None = None,
) -> Regions:
    """One ball per row of X (m, d), a table or an array; names of columns and rows are kept.

    `radius`: a number, one per row, or the name of a column of X, which is then no feature. `scale="std"`:
    the standard deviations of the table's own columns. `id`: a column that names the rows, and is no
    feature; else a table's index does. The rest as for `Ball`.

    >>> regions = gc.balls({"age": [40.0, 50.0], "bmi": [22.0, 30.0]}, 0.5, features=["bmi"])
    >>> len(regions), regions[1].x.tolist(), regions[1].features
    (2, [50.0, 30.0], (1,))
    """
    ids = getattr(X, "index", None) if id is None else column("id", X, id)
    radii = column("radius", X, radius) if isinstance(radius, str) else radius
    aside = [name for name in (id, radius) if isinstance(name, str)]
    table = read("X", _without(X, aside) if aside else X)
    values, names = table.values, table.names
    require(values.ndim == 2, f"X must be two-dimensional (points, features), got shape {values.shape}")
    m, d = values.shape
    require(d > 0, "X must have at least one feature, got none")
    each = as_vector("radius", np.broadcast_to(radii, (m,)) if np.ndim(radii) == 0 else radii, m)
    moving = positions(features, names, d)
    spread = checked_spread(values.std(axis=0), moving, names) if isinstance(scale, str) else None
    shape = moving, ends(domain, names, d), units(scale, names, d, spread)
    made = [Ball(x, float(r), norm, *shape, names=names) for x, r in zip(values, each, strict=True)]
    return Regions(made, None if ids is None or isinstance(X, Sequence) else list(ids))


def _without(X: Any, aside: list[str]) -> Any:
    return {name: X[name] for name in column_names(X) or () if name not in aside}


def checked_spread(
    spread: Float, moving: Sequence[int] | None, names: Sequence[str] | None, what: str = "scale='std'"
) -> Float:
    """Standard deviations (d,) as units; a constant column may not move, and counts as 1."""
    flat = np.flatnonzero(~(spread > 0)).tolist()
    stuck = [repr(j if names is None else names[j]) for j in flat if moving is None or j in moving]
    require(not stuck, f"{what} needs columns that vary, got {''.join(stuck[:1])}, a constant")
    return np.where(spread > 0, spread, 1.0)
