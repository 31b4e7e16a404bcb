"""Results in files: a versioned JSON document that describes itself (docs/results.md).

Numbers are written so that reading gives the same doubles. There is no infinity in JSON: null stands for it.
"""

from __future__ import annotations

import json
import math
import os
import platform
import reprlib
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.posterior import Posterior
from gpcert.report.fields import is_text
from gpcert.running import THREADS
from gpcert.validation import require

__all__ = [
    "FORMAT",
    "NAME",
    "describe_model",
    "document",
    "dumps",
    "read_results",
    "surroundings",
]

NAME = "gpcert results"
FORMAT = 1
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
_MOST = 1 << 30  # bytes; a larger file is not one of ours
_DEEP = 64  # lists and objects inside each other


def document(
    verb: str,
    *,
    settings: dict[str, Any],
    model: dict[str, Any],
    data: dict[str, Any],
    answers: list[dict[str, Any]],
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
        "kernel": repr(post.kernel),
        "likelihood": repr(post.likelihood),
        "centres": post.n_centres,
        "features": list(post.feature_names or (f"x{j}" for j in range(post.n_features))),
        "classes": [] if post.classes is None else [str(label) for label in post.classes.tolist()],
        "target": post.target,
        "training": dict(post.training),
    }


def surroundings() -> dict[str, str]:
    """Packages, interpreter, machine, and the number of threads."""
    told = {"Python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    told |= {name: _version(name) for name in _PACKAGES}
    return told | {name: os.environ.get(name, "not set") for name in THREADS}


def dumps(results: dict[str, Any]) -> str:
    """The text of a document: one answer per line, so that a person can look into it."""
    *head, (_, answers) = results.items()
    lines = [
        f"{json.dumps(key)}: {json.dumps(value, default=_plain, allow_nan=False)}" for key, value in head
    ]
    rows = ",\n  ".join(json.dumps(answer, default=_plain, allow_nan=False) for answer in answers)
    return "{" + ",\n ".join([*lines, f'"answers": [\n  {rows}]']) + "}\n"


def read_results(path: Path) -> dict[str, Any]:
    """A document that a gpcert command wrote; anything else is one error that names the file and the rule."""
    require(not path.exists() or path.is_file(), f"{path} must be a results file, got something else")
    size = path.stat().st_size
    require(size <= _MOST, f"{path} must be a results file of at most {_MOST} bytes, got {size}")
    results: dict[str, Any] = _parse(path)
    require(
        isinstance(results, dict) and results.get("format") == NAME,
        f"{path} must be a results file of gpcert, got other JSON",
    )
    found = results.get("format_version")
    require(
        type(found) is int and 1 <= found <= FORMAT,
        f"{path} must have results format 1 to {FORMAT}, got {reprlib.repr(found)}",
    )
    for name, kind in _PARTS.items():
        good = isinstance(results.get(name), kind) and (kind is bool or not isinstance(results[name], bool))
        require(good, f"{path}: {name!r} is missing or of the wrong kind")
        require(_is_plain(results[name]), f"{path}: {name!r} must hold finite numbers, at most {_DEEP} deep")
    for i, answer in enumerate(results["answers"]):
        row = answer.get("row") if isinstance(answer, dict) else None
        require(type(row) is int and row >= 0, f"{path}: answer {i} must be an object with a row >= 0")
    _check_counts(path, results)
    _check_names(path, results)
    return results


def _parse(path: Path) -> Any:
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


def _is_plain(value: Any) -> bool:
    """Whether all numbers are finite (1e999 is none), and nothing is nested deeper than a reader can go."""
    level = [value]
    for _ in range(_DEEP):
        if not all(math.isfinite(v) for v in level if type(v) is float):
            return False
        level = [
            inner
            for v in level
            if isinstance(v, list | dict)
            for inner in (v.values() if isinstance(v, dict) else v)
        ]
        if not level:
            return True
    return False


def _check_counts(path: Path, results: dict[str, Any]) -> None:
    asked, told, seconds = results["asked"], len(results["answers"]), results["seconds"]
    require(asked >= told, f"{path}: asked must be at least {told}, the number of answers, got {asked}")
    require(
        asked == told or not results["complete"],
        f"{path}: complete must be false where {told} of {asked} are answered, got true",
    )
    require(seconds >= 0, f"{path}: seconds must be >= 0, got {seconds}")


def _check_names(path: Path, results: dict[str, Any]) -> None:
    for name in ("features", "classes"):
        told = results["model"].get(name, [])
        texts = isinstance(told, list) and all(map(is_text, told)) and len(set(told)) == len(told)
        require(texts, f"{path}: model.{name} must be a list of distinct names, got {reprlib.repr(told)}")
    shape, d = results["data"].get("image_shape"), len(results["model"].get("features", []))
    whole = isinstance(shape, list) and len(shape) == 2 and all(type(s) is int and s > 0 for s in shape)
    require(
        shape is None or (whole and shape[0] * shape[1] == d),
        f"{path}: data.image_shape must be two whole numbers with product {d}, got {reprlib.repr(shape)}",
    )


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in a results file")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
