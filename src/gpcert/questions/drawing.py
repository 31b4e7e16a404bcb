"""Balls around the rows of a table: `gc.balls`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gpcert.adapters.models import posterior_of
from gpcert.errors import InvalidInputError
from gpcert.posterior_columns import TrainingColumns
from gpcert.questions.checks import limits_and_units, training_columns
from gpcert.regions import Norm, Regions, alike
from gpcert.tables import column, column_names, framed, order, positions, read, row_names, same_rows
from gpcert.validation import as_vector, composed, no_truth, require


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
    return Regions(alike(values, each, norm, *shape, names=names) if m else (), ids)


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
