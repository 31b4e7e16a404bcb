"""From options to regions: a ball around each row, or boxes from a file."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpcert.cli.io.cells import read_cells
from gpcert.cli.io.sources import SHIPPED, feature_names, reading_of
from gpcert.cli.io.tables import ColumnChoice, DataTable, Reading
from gpcert.errors import InvalidInputError
from gpcert.posterior import Posterior
from gpcert.questions.checks import training_columns
from gpcert.records.batch import shape_told
from gpcert.regions import Ball, Box, Region
from gpcert.tables import position
from gpcert.validation import Float, listed, require

_LEFT = "--scale must have a unit for every column that moves, or std for the others"
_OF_BALLS = ("radius", "radius_column", "norm", "features", "domain", "scale")


class BallOptions(NamedTuple):
    """What a ball has besides its centre and radius: the arguments of `gc.Ball`."""

    norm: float
    features: tuple[int, ...] | None
    domain: tuple[Float, Float] | None
    scale: Float | None

    def ball(self, x: Float, radius: float) -> Ball:
        """The ball around x (d,)."""
        return Ball(x, radius, *self)


def read_shape(parsed: argparse.Namespace, post: Posterior, table: DataTable | None) -> BallOptions:
    """Norm, moving features, domain and units from the options; a shipped data set brings its domain."""
    names = feature_names(post)
    moving = None
    if parsed.features is not None:
        moving = tuple(position("--features", f, names, len(names)) for f in parsed.features)
    given = parsed.domain
    if given is None and table is not None and table.domain is not None:
        given = ["{}:{}".format(*table.domain)]
    return BallOptions(
        parsed.norm, moving, _domain(given, names, post), _scale(parsed.scale, names, post, moving)
    )


def read_radii(parsed: argparse.Namespace, table: DataTable) -> list[list[float]]:
    """The radii of each row: the same, one or several, or one from a column."""
    if parsed.radius_column is None:
        require(parsed.radius is not None, "--radius or --radius-column must be given, got neither")
        same = parsed.radius
        require(len(set(same)) == len(same), f"--radius must be given with distinct values, got {same}")
        return [same] * len(table.X)
    require(parsed.radius is None, "--radius and --radius-column exclude each other, got both")
    name = parsed.radius_column
    require(
        not parsed.data.startswith(SHIPPED) and not parsed.data.endswith(".npz"),
        f"--radius-column must name a column of a file with named columns, got {name!r} for {table.source}",
    )
    reading = replace(reading_of(parsed), missing=None)
    column = read_cells(Path(parsed.data), ColumnChoice(features=(name,)), reading, table.rows)
    require(
        column.sha256 == table.sha256, f"{table.source} must stay as it is while it is read, got a change"
    )
    radii = [float(radius) for radius in column.X[:, 0]]
    for i, radius in enumerate(radii):
        if not radius >= 0:
            raise InvalidInputError(f"{column.place(i, name)} must be >= 0, got {radius}")
    return [[radius] for radius in radii]


def read_regions(
    parsed: argparse.Namespace, post: Posterior, table: DataTable | None
) -> tuple[list[tuple[int, Region]], dict[str, Any]]:
    """Balls around the rows, or boxes, each with the row's position; and what settings say of them."""
    names = feature_names(post)
    if parsed.boxes is None:
        require(table is not None, "DATA or --boxes must be given, got neither")
        assert table is not None
        shape = read_shape(parsed, post, table)
        return balls(table, read_radii(parsed, table), shape), shape_told(shape, names)
    balls_too = [name for name in _OF_BALLS if getattr(parsed, name) not in (None, math.inf)]
    option = "".join(f"--{name.replace('_', '-')}" for name in balls_too[:1])
    require(not balls_too, f"--boxes and {option} exclude each other, got both")
    reading = replace(reading_of(parsed), missing=None)
    return boxes(parsed.boxes, reading, names, table), {"boxes": str(parsed.boxes)}


def balls(table: DataTable, radii: list[list[float]], shape: BallOptions) -> list[tuple[int, Region]]:
    """A ball for each radius of each row, with the row's position in the table."""
    return [(i, ball_around(table, i, r, shape)) for i, several in enumerate(radii) for r in several]


def ball_around(table: DataTable, i: int, radius: float, shape: BallOptions) -> Ball:
    """The ball around the i-th row."""
    try:
        return shape.ball(table.X[i], radius)
    except InvalidInputError as error:
        raise InvalidInputError(f"{table.source}, row {table.rows[i]}: {error}") from None


def boxes(
    path: Path, reading: Reading, names: tuple[str, ...], table: DataTable | None
) -> list[tuple[int, Region]]:
    """Boxes from columns NAME.lower and NAME.upper; a feature without them stays at the row's value.

    One line serves all rows. Without rows every feature needs its two columns.
    """
    file = read_cells(path, ColumnChoice(), reading)
    ends: dict[tuple[str, str], int] = {}
    for j, column in enumerate(file.names):
        name, _, end = column.rpartition(".")
        known = name in names and end in ("lower", "upper")
        require(known, f"{path} must have columns FEATURE.lower and FEATURE.upper, got {column!r}")
        ends[name, end] = j
    bounded = [name for name in names if (name, "lower") in ends or (name, "upper") in ends]
    for name in bounded if table is not None else names:
        for end in ("lower", "upper"):
            require((name, end) in ends, f"{path} must have a column '{name}.{end}', got none")
    n = len(file.X) if table is None else len(table.X)
    require(
        len(file.X) in (1, n),
        f"{path} must have 1 row or {n}, one for each row asked about, got {len(file.X)}",
    )
    made: list[tuple[int, Region]] = []
    for i in range(n):
        k = i if len(file.X) == n else 0
        lower, upper = (np.zeros(len(names)) if table is None else table.X[i].copy() for _ in range(2))
        for name in bounded:
            j = names.index(name)
            lower[j], upper[j] = file.X[k, ends[name, "lower"]], file.X[k, ends[name, "upper"]]
            place = file.place(k, f"{name}.lower")
            require(lower[j] <= upper[j], f"{place} must be <= {upper[j]}, the upper end, got {lower[j]}")
        made.append((i, Box(lower, upper)))
    return made


def _domain(given: list[str] | None, names: tuple[str, ...], post: Posterior) -> tuple[Float, Float] | None:
    """Limits (d,): one by one, the others by the training data if those are asked for."""
    if given is None:
        return None
    low, high = np.full(len(names), -np.inf), np.full(len(names), np.inf)
    if "data" in given:
        low, high = training_columns(post, "--domain data").possible()
    for text in given:
        if text == "data":
            continue
        name, equals, span = text.rpartition("=")
        where = slice(None) if not equals else position("--domain", name, names, len(names))
        ends = span.split(":")
        try:
            require(len(ends) == 2, "")
            pair = float(ends[0] or "-inf"), float(ends[1] or "inf")
        except ValueError:
            raise InvalidInputError(f"--domain must be data or like 0:1 or NAME=0:1, got {text!r}") from None
        low[where], high[where] = pair
    return low, high


def _scale(
    given: list[str] | None, names: tuple[str, ...], post: Posterior, moving: tuple[int, ...] | None
) -> Float | None:
    """Units (d,): one by one, the others standard deviations if those are asked for."""
    if given is None:
        return None
    scale, own = np.ones(len(names)), set()
    for text in given:
        if text == "std":
            continue
        name, _, unit = text.rpartition("=")
        j = position("--scale", name, names, len(names))
        try:
            scale[j] = float(unit)
            require(bool(scale[j] > 0) and math.isfinite(scale[j]), "")
        except ValueError:
            raise InvalidInputError(
                f"--scale must be std or NAME=UNIT with a unit > 0, got {text!r}"
            ) from None
        own.add(j)
    others = [j for j in (range(len(names)) if moving is None else moving) if j not in own]
    if "std" in given:
        what = "--scale std"
        spread = training_columns(post, what).units(others, names, what)
        scale = np.where(np.isin(np.arange(len(names)), list(own)), scale, spread)
    require("std" in given or not others, f"{_LEFT}, got none for {listed([names[j] for j in others])}")
    return scale
