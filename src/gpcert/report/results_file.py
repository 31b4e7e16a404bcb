"""Results in files: a versioned JSON document that describes itself (docs/results.md).

Numbers are written so that reading gives the same doubles. There is no infinity in JSON: null stands for it.
"""

from __future__ import annotations

import json
import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.parallel import THREADS
from gpcert.posterior import Posterior
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
    """A document that a gpcert command wrote; anything else is one error that names the file."""
    require(not path.exists() or path.is_file(), f"{path} must be a results file, got something else")
    content = path.read_bytes() if path.stat().st_size <= _MOST else b""
    try:
        results: dict[str, Any] = json.loads(content)
    except (ValueError, RecursionError):
        raise InvalidInputError(
            f"{path} must be a results file of gpcert (JSON), got something else"
        ) from None
    require(
        isinstance(results, dict) and results.get("format") == NAME,
        f"{path} must be a results file of gpcert, got other JSON",
    )
    found = results.get("format_version")
    require(
        type(found) is int and 1 <= found <= FORMAT,
        f"{path} must have results format 1 to {FORMAT}, got {str(found)[:40]}",
    )
    for name, kind in _PARTS.items():
        require(isinstance(results.get(name), kind), f"{path}: {name!r} is missing or of the wrong kind")
    for name in ("features", "classes"):
        told = results["model"].get(name, [])
        texts = isinstance(told, list) and all(isinstance(each, str) for each in told)
        require(texts, f"{path}: model.{name} must be a list of names, got {str(told)[:40]}")
    for i, answer in enumerate(results["answers"]):
        valid = isinstance(answer, dict) and isinstance(answer.get("row"), int)
        require(valid, f"{path}: answer {i} must be an object with a row")
    return results


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in a results file")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
