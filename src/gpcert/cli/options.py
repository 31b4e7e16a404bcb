"""The options that verbs share, declared once; no import that costs time."""

from __future__ import annotations

import argparse
import codecs
import csv
from pathlib import Path

from gpcert.formats import TABLES


def add_data(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """The model, the data, and which rows and columns of it."""
    parser.add_argument("model", metavar="MODEL", help="model file that `gpcert fit` or `gc.save` wrote")
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="?" if optional else None,
        help="CSV, .csv.gz, .xlsx, .parquet, npz with X (and y), or dataset:NAME (its test part)",
    )
    group = parser.add_argument_group("data")
    group.add_argument("--rows", type=rows, help="only these rows, from 0: 7 or 0:100 or 3,5,8:12")
    group.add_argument("--target", metavar="NAME", help="column of the true labels (the one of training)")
    group.add_argument("--id", metavar="NAME", help="column that names the rows")
    add_reading(group)
    group.add_argument(
        "--image-shape", type=shape, metavar="RxC", help="features are pixels, row by row: 28x28"
    )


def add_reading(group: argparse._ArgumentGroup) -> None:
    """How a table is read."""
    help_text = "between the cells of a CSV (a comma; with --decimal ',' a semicolon)"
    group.add_argument("--delimiter", type=character, help=help_text)
    group.add_argument("--encoding", type=encoding, default="utf-8", help="of a CSV (%(default)s)")
    group.add_argument("--decimal", choices=(".", ","), default=".", help="point or comma (%(default)s)")
    group.add_argument("--missing", choices=("skip",), help="skip: leave out rows with empty cells")


def add_region(parser: argparse.ArgumentParser, several_radii: bool = False, boxes: bool = False) -> None:
    """The region around each row, in the units of the file."""
    group = parser.add_argument_group("region (units of the file)")
    help_text = "move by up to this" + ("; may be given several times" if several_radii else "")
    group.add_argument("--radius", type=number, action="append", metavar="R", help=help_text)
    group.add_argument("--radius-column", metavar="NAME", help="a radius for each row, from this column")
    if boxes:
        group.add_argument(
            "--boxes",
            type=Path,
            metavar="FILE",
            help="CSV with columns NAME.lower and NAME.upper: one line for all rows or one per row",
        )
    add_shape(group)


def add_shape(group: argparse._ArgumentGroup) -> None:
    """What a ball has besides its radius."""
    group.add_argument(
        "--norm", type=norm, default=float("inf"), help="inf (default), 2, 1, any p >= 1, or 0"
    )
    group.add_argument("--features", type=names, metavar="A,B", help="only these features move")
    group.add_argument(
        "--domain",
        action="append",
        metavar="data|[NAME=]LOW:HIGH",
        help="where values are valid: 0:1 for all features, age=0:120 for one, either end may be empty; "
        "data: from 0 on where no training value is negative, up to 1 where all are 0 or 1",
    )
    group.add_argument(
        "--scale",
        action="append",
        metavar="std|NAME=UNIT",
        help="what radius 1 means: std, one standard deviation of each training column, or a unit by name "
        "for each column that moves; std with some by name is std for the others",
    )


def add_limits(parser: argparse.ArgumentParser, tolerance: float | None = 0.02) -> None:
    """When to stop, and on how many processes to work."""
    group = parser.add_argument_group("effort")
    if tolerance is not None:
        group.add_argument(
            "--tolerance", type=number, default=tolerance, help="width of a finished answer (%(default)s)"
        )
    group.add_argument("--max-seconds", type=number, metavar="S", help="limit for one row")
    group.add_argument("--max-nodes", type=count, metavar="N", help="limit for one row")
    add_jobs(group)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Where many rows are bounded together."""
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="where rows are bounded together (%(default)s)",
    )


def add_jobs(group: argparse._ArgumentGroup) -> None:
    """On how many processes to work."""
    group.add_argument("--jobs", type=count, metavar="N", help="processes, one thread each (all cores)")


def add_output(parser: argparse.ArgumentParser, ends: tuple[str, ...] = (".json", *TABLES)) -> None:
    """Where answers go, by extension."""
    group = parser.add_argument_group("output")
    parser.set_defaults(ends=ends)
    help_text = "save the results here: " + (
        "a table if it ends in {1}, {2} or {3}, all of them if in {0}" if len(ends) > 1 else "a {0} file"
    ).format(*ends)
    group.add_argument("-o", "--output", type=Path, metavar="FILE", help=help_text)
    help_text = "keep answers here as they come; what is there is not computed"
    group.add_argument("--store", type=Path, metavar="FILE", help=help_text)
    group.add_argument("--json", action="store_true", help="print the results as JSON in place of a table")
    group.add_argument("--quiet", action="store_true", help="no progress line")


def add_proof(parser: argparse.ArgumentParser) -> None:
    """A proof file for each answer, which `python -m gpcert_check MODEL DIR/*.json` checks."""
    help_text = "write a proof file for each answer into this folder, for gpcert_check"
    parser.add_argument("--proof", type=Path, metavar="DIR", help=help_text)


def number(text: str) -> float:
    """A finite number."""
    value = float(text)
    if value - value != 0.0:
        raise argparse.ArgumentTypeError(f"must be finite, got {text}")
    return value


def count(text: str) -> int:
    """A whole number >= 0."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"must be a whole number >= 0, got {text!r}")
    return int(text)


def norm(text: str) -> float:
    """A norm: inf or a number; which ones are valid is the region's rule."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be inf, a number >= 1, or 0, got {text!r}") from None


def names(text: str) -> tuple[str, ...]:
    """Names separated by commas; quotes protect a comma, as in CSV."""
    found = tuple(name.strip() for name in next(csv.reader([text]), []))
    if not found or not all(found):
        raise argparse.ArgumentTypeError(f"must be names separated by commas, got {text!r}")
    if len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"must be distinct, got {text!r}")
    return found


def character(text: str) -> str:
    """One character; \\t is the tabulator."""
    text = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(text) != 1 or text in '"\r\n':
        raise argparse.ArgumentTypeError(f"must be one character, got {text!r}")
    return text


def encoding(text: str) -> str:
    """The name of a text encoding that Python has."""
    try:
        "".encode(text)
        codecs.lookup(text)
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(f"must be an encoding like latin-1, got {text!r}") from None
    return text


def rows(text: str) -> tuple[int, ...]:
    """Positions: 7, 0:100 (without the end), lists of them."""
    found: list[int] = []
    for piece in text.split(","):
        first, colon, last = piece.partition(":")
        if not colon:
            found.append(count(first))
        elif count(first) < count(last) <= 10_000_000:
            found.extend(range(count(first), count(last)))
        else:
            raise argparse.ArgumentTypeError(f"must be like 7 or 0:100 or 3,5,8:12, got {text!r}")
    if len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"must be distinct, got {text!r}")
    return tuple(found)


def shape(text: str) -> tuple[int, int]:
    """Rows and columns of an image: 28x28."""
    first, _, second = text.partition("x")
    sizes = count(first), count(second)
    if 0 in sizes:
        raise argparse.ArgumentTypeError(f"must be like 28x28, got {text!r}")
    return sizes
