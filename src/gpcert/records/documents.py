"""JSON documents with a list of answers, one per line; those of strangers are read with care."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.validation import require

ANSWERS = "gpcert answers"  #: the format of answers that are kept without their rows
_MOST = 1 << 30  # bytes; a larger file is not one of ours
_DEEP = 64  # lists and objects inside each other


def dumps(document: dict[str, Any]) -> str:
    """The text of a document whose last entry is its answers: one per line, so that a person can look."""
    *head, (_, answers) = document.items()
    lines = [f"{json.dumps(key)}: {_dumps(value)}" for key, value in head]
    rows = ",\n  ".join(map(_dumps, answers))
    return "{" + ",\n ".join([*lines, f'"answers": [\n  {rows}]']) + "}\n"


def parsed(path: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """The document in a file, whose "format" is one of the names; else one error that names the file."""
    require(not path.exists() or path.is_file(), f"{path} must be a results file, got something else")
    size = path.stat().st_size
    require(size <= _MOST, f"{path} must be a results file of at most {_MOST} bytes, got {size}")
    found = _parsed(path)
    alone = isinstance(found, dict) and found.get("format") == ANSWERS
    require(
        isinstance(found, dict) and found.get("format") in names,
        f"{path} must be a results file of gpcert, got "
        + (
            "answers of a store, of which gc.report(gc.load_answers(...)) makes a page"
            if alone
            else "other JSON"
        ),
    )
    for name, value in found.items():
        require(_is_plain(value), f"{path}: {name[:40]!r} must hold finite numbers, at most {_DEEP} deep")
    document: dict[str, Any] = found
    return document


def _parsed(path: Path) -> Any:
    def refuse(token: str) -> NoReturn:
        raise InvalidInputError(f"{path} must hold finite numbers (JSON), got {token}")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidInputError(f"{path} must have distinct names in an object, got {twice[:40]!r} twice")
        return made

    try:
        return json.loads(path.read_bytes(), parse_constant=refuse, object_pairs_hook=once)
    except InvalidInputError:
        raise
    except (ValueError, RecursionError):
        raise InvalidInputError(
            f"{path} must be a results file of gpcert (JSON), got something else"
        ) from None


def _is_plain(value: Any, deep: int = _DEEP) -> bool:
    """Whether all numbers are finite (1e999 is none), and nothing is nested deeper than a reader can go."""
    if isinstance(value, list | dict):
        inner = value.values() if isinstance(value, dict) else value
        return deep > 0 and all(_is_plain(each, deep - 1) for each in inner)
    return not isinstance(value, float) or math.isfinite(value)


def _dumps(value: Any) -> str:
    return json.dumps(value, default=_plain, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    raise TypeError(f"{type(value).__name__} has no place in a results file")
