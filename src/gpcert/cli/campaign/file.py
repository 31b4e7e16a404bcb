"""The file of a campaign: TOML, every entry checked before any work; what is wrong is one sentence."""

from __future__ import annotations

import math
import reprlib
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

from gpcert.cli.options import rows
from gpcert.errors import InvalidInputError
from gpcert.extras import plugins
from gpcert.settings import DEVICES
from gpcert.validation import require

_MOST = 1 << 24  # bytes; a larger file is not one of ours

#: What can be asked, and the entries that only some of them have.
ASKED = {
    "range": ("label", "method", "radii", "device"),
    "certify": ("threshold", "radii", "device"),
    "radius": ("threshold", "max_radius", "rtol"),
    "explain": ("label", "radii"),
    "evaluate": ("threshold", "radii", "device"),
}
_COMMON = (
    *("ask", "models", "norms", "features", "domain", "scale"),
    *("tolerance", "max_seconds", "max_nodes", "proof"),
)


@dataclass(frozen=True)
class Campaign:
    """`digest`: of the file's bytes; paths are those of the file, seen from its folder."""

    digest: str
    folder: Path
    store: Path
    budget: float
    priority: str
    jobs: int | None
    models: dict[str, str]
    data: dict[str, Any]
    questions: list[dict[str, Any]]

    def place(self, name: str) -> str:
        """A file named in the campaign's file."""
        return name if name.startswith("dataset:") else str(self.folder / name)

    @property
    def thresholds(self) -> list[float]:
        """Those that questions are asked with, 1/2 first: a page is about one of them."""
        found = {threshold_of(question) for question in self.questions} - {None}
        return sorted((t for t in found if t is not None), key=lambda t: (t != 0.5, t)) or [0.5]


def threshold_of(question: dict[str, Any]) -> float | None:
    """Above which the label's probability has to stay; None of a question without verdicts."""
    return float(question.get("threshold", 0.5)) if "threshold" in ASKED[question["ask"]] else None


def read_campaign(path: Path) -> Campaign:
    """The campaign in a file."""
    try:
        content = path.read_bytes()
        require(len(content) <= _MOST, f"{path} must be a campaign file, got {len(content)} bytes")
        entries = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(f"{path} must be a TOML file, got {error}") from None
    try:
        return _campaign(entries, sha256(content).hexdigest(), path.parent)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from None


def _campaign(entries: dict[str, Any], digest: str, folder: Path) -> Campaign:
    _known("the file", entries, _TOP)
    for name in ("store", "models", "data", "questions"):
        require(name in entries, f"{name} must be given, got nothing")
    _each("", entries, _TOP)
    _known("data", entries["data"], _DATA)
    _each("data.", entries["data"], _DATA)
    require("file" in entries["data"], "data.file must be given, got nothing")
    require(bool(entries["models"]), "models must name at least one model, got none")
    for name, file in entries["models"].items():
        require(isinstance(file, str), f"models.{name} must be the path of a model file, got {_shown(file)}")
    for i, question in enumerate(entries["questions"]):
        _question(f"questions[{i}]", question, entries["models"])
    return Campaign(
        digest,
        folder,
        folder / entries["store"],
        float(entries.get("budget_seconds", math.inf)),
        entries.get("priority", "order"),
        entries.get("jobs"),
        entries["models"],
        entries["data"],
        entries["questions"],
    )


def _question(place: str, entries: Any, models: dict[str, Any]) -> None:
    require(isinstance(entries, dict), f"{place} must be a table, got {_shown(entries)}")
    ask = entries.get("ask")
    known = isinstance(ask, str) and ask in ASKED
    require(known, f"{place}.ask must be one of {', '.join(ASKED)}, got {_shown(ask)}")
    own = ASKED[str(ask)]
    _known(place, entries, {name: _QUESTION[name] for name in (*_COMMON, *own)})
    _each(f"{place}.", entries, _QUESTION)
    require("radii" not in own or "radii" in entries, f"{place}.radii must be given for {ask}, got nothing")
    for name in entries.get("models", ()):
        require(name in models, f"{place}.models must be names from models, got {name!r}")
    norms = entries.get("norms", ["inf"])
    require(ask != "explain" or norms == ["inf"], f'{place}.norms must be ["inf"] for explain, got {norms}')


def _known(place: str, entries: Any, known: dict[str, Any]) -> None:
    require(isinstance(entries, dict), f"{place} must be a table, got {_shown(entries)}")
    for name in entries:
        require(name in known, f"{place} must have no entries but {', '.join(known)}, got {name!r}")


def _each(place: str, entries: dict[str, Any], rules: dict[str, tuple[Callable[[Any], bool], str]]) -> None:
    for name, value in entries.items():
        holds, rule = rules[name]
        require(holds(value), f"{place}{name} must be {rule}, got {_shown(value)}")


def _number(value: Any, least: float = 0.0, strict: bool = False) -> bool:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return real and math.isfinite(value) and (value > least if strict else value >= least)


def _whole(value: Any) -> bool:
    return type(value) is int and value >= 0


def _list(value: Any, of: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and bool(value) and all(map(of, value))


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _norm(value: Any) -> bool:
    return value == "inf" or (_number(value) and (value == 0 or value >= 1))


def _rows(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(rows(value))
    except Exception:
        return False


def _radii(value: Any) -> bool:
    return _list(value, _number) and all(a < b for a, b in pairwise(value))


def _shown(value: Any) -> str:
    return reprlib.repr(value)


_Rules = dict[str, tuple[Callable[[Any], bool], str]]
_TOP: _Rules = {
    "store": (_text, "the path of a store"),
    "budget_seconds": (lambda v: _number(v, strict=True), "a number of seconds > 0"),
    "priority": (lambda v: v in ("order", "boundary", "widest"), "order, boundary or widest"),
    "jobs": (lambda v: _whole(v) and v > 0, "a whole number > 0"),
    "models": (lambda v: isinstance(v, dict), "a table of model files"),
    "data": (lambda v: isinstance(v, dict), "a table"),
    "questions": (lambda v: _list(v, lambda q: isinstance(q, dict)), "a list of tables, [[questions]]"),
}
_DATA: _Rules = {
    "file": (_text, "the path of a CSV or npz file, or dataset:NAME"),
    "rows": (_rows, "like 7 or 0:100 or 3,5,8:12"),
    "target": (_text, "the name of a column"),
    "id": (_text, "the name of a column"),
    "delimiter": (lambda v: _text(v) and len(v) == 1, "one character"),
}
_QUESTION: _Rules = {
    "ask": (_text, "a question"),
    "models": (lambda v: _list(v, _text), "a list of names"),
    "radii": (_radii, "a list of increasing numbers >= 0"),
    "norms": (lambda v: _list(v, _norm), 'a list of norms: "inf", numbers >= 1, or 0'),
    "features": (
        lambda v: _list(v, lambda names: _list(names, _text)),
        "a list of lists of names: which features move",
    ),
    "domain": (lambda v: _text(v) or _list(v, _text), "data, like 0:1 or NAME=0:1, or a list of such texts"),
    "scale": (lambda v: _text(v) or _list(v, _text), "std or NAME=UNIT, or a list of such texts"),
    "label": (_text, "the name of a class"),
    "method": (
        lambda v: v == "auto" or v in plugins("methods"),
        "auto, or paper with gpcert-paper installed",
    ),
    "threshold": (lambda v: _number(v, strict=True) and v < 1, "a number between 0 and 1"),
    "tolerance": (lambda v: _number(v, strict=True), "a number > 0"),
    "max_seconds": (_number, "a number of seconds >= 0"),
    "max_nodes": (_whole, "a whole number >= 0"),
    "max_radius": (lambda v: _number(v, strict=True), "a number > 0"),
    "rtol": (lambda v: _number(v, strict=True), "a number > 0"),
    "device": (lambda v: v in DEVICES, f"one of {', '.join(DEVICES)}"),
    "proof": (_text, "the path of a folder"),
}
