"""The reference: what is public is on its pages and nothing else, described whole, with examples that run.

A page says `::: gpcert.NAME`; its options say which members of a class are public, too, and with
`merge_init_into_class: false` that instances are handed out, not made.
"""

from __future__ import annotations

import doctest
import inspect
import pkgutil
import re
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

import griffe
import numpy as np
import pytest

import gpcert as gc
from helpers.documents import ROOT

DIRECTIVE = re.compile(r"^::: (?P<path>\S+)$(\n    options: \{(?P<options>.*)\}$)?", re.M)
#: What answers, models and messages hand out, without a name in `gpcert`.
BESIDES = {"Answer", "BinaryLikelihood", "Kernel", "Progress", "ProofFile", "Settings", "Listing", "Unproved"}
MODULES = {"datasets": ["Dataset", "load"], "plots": gc.plots.__all__, "testing": ["assert_certified"]}


class Entry(NamedTuple):
    """What a page says of one name."""

    name: str
    each: Any
    members: list[str]
    made: bool  #: by whoever uses it


def entries() -> dict[str, Entry]:
    found = {}
    for page in sorted((ROOT / "docs" / "api").glob("*.md")):
        for entry in DIRECTIVE.finditer(page.read_text(encoding="utf-8")):
            options = entry["options"] or ""
            members = re.search(r"\bmembers: \[(.+?)\]", options)
            made = "merge_init_into_class: false" not in options
            each = inspect.unwrap(pkgutil.resolve_name(entry["path"]))
            assert entry["path"] not in found, entry["path"]
            listed = members[1].split(", ") if members else []
            found[entry["path"]] = Entry(entry["path"].rpartition(".")[2], each, listed, made)
    return found


ENTRIES = entries()
#: Errors and warnings are a sentence each.
WHOLE = {p: e for p, e in ENTRIES.items() if not (inspect.isclass(e.each) and issubclass(e.each, Exception))}
CLASSES = {path: entry for path, entry in WHOLE.items() if inspect.isclass(entry.each)}
CALLABLES = {path: entry.each for path, entry in WHOLE.items() if entry.made} | {
    f"{path}.{name}": inspect.unwrap(getattr(entry.each, name))
    for path, entry in WHOLE.items()
    for name in entry.members
}


@cache
def sections(path: str) -> dict[str, list[Any]]:
    """The parts of a docstring, as the site reads them."""
    text = inspect.getdoc(WHOLE[path].each if path in WHOLE else CALLABLES[path])
    assert text, f"{path} has no docstring"
    return {part.kind.value: part.value for part in griffe.Docstring(text).parse("numpy", warnings=False)}


def test_the_reference_has_what_is_public_and_nothing_else() -> None:
    own = {entry.name for path, entry in ENTRIES.items() if path.split(".")[1] not in MODULES}
    assert own == set(gc.__all__) - set(MODULES) | BESIDES
    for module, names in MODULES.items():
        assert {path.split(".")[2] for path in ENTRIES if path.split(".")[1] == module} == set(names)
    for path, entry in ENTRIES.items():
        place = entry.each.__module__
        if place.endswith(f".{entry.name}"):  # by a shorter path the site would show the module
            assert path == f"{place}.{entry.name}"
        if path.split(".")[1] not in MODULES and entry.name not in BESIDES:
            assert inspect.unwrap(getattr(gc, entry.name)) is entry.each


@pytest.mark.parametrize("path", CALLABLES)
def test_every_parameter_is_described_and_no_other(path: str) -> None:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    given = inspect.signature(CALLABLES[path]).parameters.values()
    described = sections(path).get("parameters", [])
    assert [each.name for each in described] == [
        stars.get(p.kind, "") + p.name for p in given if p.name != "self"
    ]
    assert [each.name for each in described if not each.description] == []


@pytest.mark.parametrize("path", CLASSES)
def test_every_attribute_is_described_and_there(path: str) -> None:
    each, described = CLASSES[path].each, sections(path).get("attributes", [])
    names = {attribute.name for attribute in described}
    assert all(attribute.description for attribute in described)
    own = {field.name for field in fields(each)} if is_dataclass(each) else set()
    own |= set(each.__members__) if issubclass(each, Enum) else set()
    assert CLASSES[path].made or own <= names  # of what a user makes they are parameters
    own |= set(re.findall(r"self\.(\w+)\b", inspect.getsource(each)))
    assert {name for name in names if not hasattr(each, name)} <= own


@pytest.mark.parametrize("path", [path for path, each in CALLABLES.items() if not inspect.isclass(each)])
def test_what_comes_back_is_described(path: str) -> None:
    nothing = inspect.signature(CALLABLES[path]).return_annotation in (None, "None")
    returned = sections(path).get("returns", [])
    assert nothing == (not returned)
    assert all(each.annotation and each.description for each in returned)


@pytest.mark.parametrize("name", ["post", "region", "n_jobs", "device", "norm", "threshold"])
def test_what_questions_share_is_described_in_the_same_words(name: str) -> None:
    questions = [path for path in CALLABLES if CALLABLES[path].__module__.startswith("gpcert.questions")]
    described = [
        each for path in questions for each in sections(path).get("parameters", []) if each.name == name
    ]
    texts = [" ".join(each.description.split()) for each in described]
    assert len(texts) > 3
    assert [text for text in texts if not text.startswith(min(texts, key=len))] == []  # one may say more


#: Examples that need a library which is not here; tests/foreign and tests/adapters run the like.
ELSEWHERE = {"from_gpflow", "from_gpy", "from_gpytorch"}


def test_only_examples_that_need_another_library_are_left_out() -> None:
    assert {e.name for e in WHOLE.values() if "+SKIP" in (e.each.__doc__ or "")} == ELSEWHERE


@pytest.mark.parametrize("path", WHOLE)
def test_the_example_runs(path: str) -> None:
    assert "examples" in sections(path), f"{path} has no example"
    (test,) = doctest.DocTestFinder(recurse=False).find(WHOLE[path].each, path, globs={"gc": gc, "np": np})
    report: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert not result.failed, "".join(report)
