"""Results in files: a versioned JSON document that describes itself (docs/results.md).

Every answer is a `Row`, which holds the data of `Answer.to_dict`. Documents of strangers are read with care.
"""

from __future__ import annotations

import json
import math
import os
import platform
import reprlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.extras import version_of
from gpcert.posterior import Posterior
from gpcert.posterior_columns import KINDS, TrainingColumns, unlike_training
from gpcert.records.rows import Row
from gpcert.regions import extent, one_unit
from gpcert.results import Attack
from gpcert.results.wording import UnitTable, Words, sentences, unit_tables
from gpcert.running import THREADS
from gpcert.validation import Float, require

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


NAME = "gpcert results"
FORMAT = 2
_PARTS: dict[str, type | tuple[type, ...]] = {
    "format": str,
    "format_version": int,
    "verb": str,
    "created": str,
    "complete": bool,
    "asked": int,
    "seconds": (int, float),
    "settings": dict,
    "model": dict,
    "data": dict,
    "versions": dict,
    "answers": list,
}
_PACKAGES = ("gpcert", "numpy", "scipy", "python-flint", "safetensors")


def document(
    verb: str,
    *,
    settings: dict[str, Any],
    model: dict[str, Any],
    data: dict[str, Any],
    answers: list[Row],
    asked: int,
    interrupted: bool,
    seconds: float,
) -> dict[str, Any]:
    """The document of one run: what was asked, with which settings and versions, and every answer."""
    return {
        "format": NAME,
        "format_version": FORMAT,
        "verb": verb,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "complete": len(answers) == asked and not interrupted,
        "asked": asked,
        "seconds": seconds,
        "settings": settings,
        "model": model,
        "data": data,
        "versions": surroundings(),
        "answers": answers,
    }


def describe_model(post: Posterior, file: str, sha256: str) -> dict[str, Any]:
    """What a reader needs to know of the model, and the hash by which to recognise its file."""
    return {
        "file": file,
        "sha256": sha256,
        "digest": post.digest,
        "kernel": repr(post.kernel),
        "likelihood": repr(post.likelihood),
        "centres": post.n_centres,
        "features": list(post.feature_names or (f"x{j}" for j in range(post.n_features))),
        "classes": [] if post.classes is None else [str(label) for label in post.labels],
        "target": post.target,
        "training": dict(post.training),
        "columns": _kinds(post),
    }


def _kinds(post: Posterior) -> dict[str, list[str]] | None:
    """Which features were whole numbers, 0 or 1, never negative in training; None where nobody knows."""
    known, names = post.training_columns, post.feature_names
    if known is None or names is None:
        return None
    return {kind: [names[j] for j in np.flatnonzero(getattr(known, kind))] for kind in KINDS}


def impossible(document: dict[str, Any], rows: Sequence[Row], hints: tuple[str, str]) -> str:
    """The sentence about regions with inputs unlike any in training, and about counterexamples there; "" of
    regions without. `hints`: how limits, and columns that stand still, are asked for.
    """
    names, given = document["model"].get("features", []), document["model"].get("columns")
    regions = [each for row in rows for each in row.answer.regions]
    if not isinstance(given, dict) or not regions or any(each.n_features != len(names) for each in regions):
        return ""
    if one_unit(getattr(regions[0], "domain", None)):
        return ""
    kinds = [given.get(kind) for kind in KINDS]
    masks = [np.array([isinstance(kind, list) and name in kind for name in names]) for kind in kinds]
    known, ends = TrainingColumns(np.ones(len(names)), *masks), extent(regions)
    found = unlike_training(known.unlike(*ends, np.stack([each.centre for each in regions])), names)
    if not found:
        return ""
    points = [z for row in rows if (z := _counterexample(row.answer)) is not None]
    strange = sum(map(known.strange, points))
    met = f"; {strange:,} of {len(points):,} counterexamples hold such values" if strange else ""
    limits = f"{hints[0]} keeps to their ends, " if known.left(*ends) else ""
    return f"{found}{met}: {limits}{hints[1]} lets columns stand still"


def _counterexample(answer: Any) -> Float | None:
    if isinstance(answer, Attack):
        return answer.x if answer.success else None
    return getattr(answer, "counterexample", None)


def surroundings() -> dict[str, str]:
    """Packages, interpreter, machine, and the number of threads."""
    entries = {"Python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    entries |= {name: version_of(name) or "not installed" for name in _PACKAGES}
    return entries | {name: os.environ.get(name, "not set") for name in THREADS}


def words_of(document: dict[str, Any]) -> Words:
    """The names that sentences about its answers use."""
    model, unit = document["model"], document["settings"].get("unit")
    noun, rows = nouns(document["data"].get("image_shape"))
    known = unit if isinstance(unit, str) else None
    partly = len(document["answers"]) < document["asked"]
    return Words(model.get("classes", []), model.get("features", []), noun, known, rows, partly=partly)


def nouns(image_shape: Any) -> tuple[str, str]:
    """What features and rows are called: of images, pixels and images."""
    return ("features", "rows") if image_shape is None else ("pixels", "images")


def summary(document: dict[str, Any], rows: Sequence[Row]) -> list[str]:
    """What the rows of a document prove, one sentence for each kind of answer and radius.

    Where a run was stopped shares are of what was answered, and say so.
    """
    known = [None not in (row.label, row.predicted) for row in rows]
    right = [row.label == row.predicted if known[i] else None for i, row in enumerate(rows)]
    radii, about = [row.radius for row in rows], [row.row for row in rows]
    words, missing = words_of(document), document["asked"] - len(rows)
    predicted = [row.predicted for row in rows]
    found = sentences([row.answer for row in rows], words, right, radii, about, predicted)
    text = f"{missing:,} of {document['asked']:,} questions have no answer: they are in none of these shares."
    return [*found, text] if found and missing > 0 else found


def units(document: dict[str, Any], rows: Sequence[Row]) -> list[UnitTable]:
    """The tables of units that the sentences point to."""
    return unit_tables(
        [each for row in rows for each in row.answer.regions[:1]],
        words_of(document),
        {row.radius for row in rows if row.radius is not None},
    )


def read_results(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """The document that a command wrote, and its answers; else an error that names the file and the rule."""
    document = parsed(path, (NAME,))
    return document, read_rows(path, document)


def read_rows(path: Path, document: dict[str, Any]) -> list[Row]:
    """The answers in a document that a command wrote, of this format."""
    found = document.get("format_version")
    require(
        found == FORMAT and type(found) is int,
        f"{path} must have results format {FORMAT}, got {reprlib.repr(found)}",
    )
    for name, kind in _PARTS.items():
        value = document.get(name)
        good = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        require(good, f"{path}: {name!r} is missing or of the wrong kind")
    for i, entries in enumerate(document["answers"]):
        row = entries.get("row") if isinstance(entries, dict) else None
        require(type(row) is int and row >= 0, f"{path}: answer {i} must be an object with a row >= 0")
    _check_counts(path, document)
    _check_names(path, document)
    sizes = [len(document["model"].get(name, [])) for name in ("features", "classes")]
    rows, known = [], document["model"].get("digest")
    for i, entries in enumerate(document["answers"]):
        try:
            rows.append(Row.read(entries, *sizes))
            model = rows[-1].answer.model
            require(model in ("", known), f"answer.model must be the digest of the model, got {model[:80]!r}")
        except InvalidInputError as error:
            raise InvalidInputError(f"{path}: answer {i} (row {entries['row']}): {error}") from None
    return rows


def _check_counts(path: Path, results: dict[str, Any]) -> None:
    asked, answered, seconds = results["asked"], len(results["answers"]), results["seconds"]
    require(
        asked >= answered, f"{path}: asked must be at least {answered}, the number of answers, got {asked}"
    )
    require(
        asked == answered or not results["complete"],
        f"{path}: complete must be false where {answered} of {asked} are answered, got true",
    )
    require(seconds >= 0, f"{path}: seconds must be >= 0, got {seconds}")


def _check_names(path: Path, results: dict[str, Any]) -> None:
    for name in ("features", "classes"):
        found = results["model"].get(name, [])
        texts = isinstance(found, list) and all(isinstance(each, str) for each in found)
        texts = texts and len(set(found)) == len(found)
        require(texts, f"{path}: model.{name} must be a list of distinct names, got {reprlib.repr(found)}")
    norm = results["settings"].get("norm", "inf")
    known = norm == "inf" or (isinstance(norm, int | float) and (norm == 0 or norm >= 1))
    require(known, f"{path}: settings.norm must be 0, >= 1 or inf, got {reprlib.repr(norm)}")
    shape, d = results["data"].get("image_shape"), len(results["model"].get("features", []))
    whole = isinstance(shape, list) and len(shape) == 2 and all(type(s) is int and s > 0 for s in shape)
    require(
        shape is None or (whole and shape[0] * shape[1] == d),
        f"{path}: data.image_shape must be two whole numbers with product {d}, got {reprlib.repr(shape)}",
    )
