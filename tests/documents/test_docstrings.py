"""Every public docstring names its parameters and has an example, and every example runs (`gc` is gpcert)."""

from __future__ import annotations

import doctest
import inspect
import re
from enum import Enum
from typing import Any

import numpy as np
import pytest

import gpcert as gc
from gpcert.results import Answer

FINDER = doctest.DocTestFinder(recurse=False)


def public() -> dict[str, Any]:
    found = {name: inspect.unwrap(getattr(gc, name)) for name in gc.__all__}
    kinds = (Warning, Exception)
    return {
        name: each
        for name, each in found.items()
        if not inspect.ismodule(each) and not (inspect.isclass(each) and issubclass(each, kinds))
    }


def asked(each: Any) -> list[str]:
    """The parameters that a user gives; answers are made by questions, members of enumerations by nobody."""
    if inspect.isclass(each) and (issubclass(each, Answer | Enum) or each is gc.LimeComparison):
        return []
    return [name for name in inspect.signature(each).parameters if name not in ("self", "args", "kwargs")]


@pytest.mark.parametrize("name", public())
def test_every_parameter_is_told_of(name: str) -> None:
    text = (public()[name].__doc__ or "").partition(">>>")[0]
    assert [each for each in asked(public()[name]) if not re.search(rf"\b{each}\b", text)] == []


#: Examples that need a library which is not here; tests/foreign and tests/adapters run the like.
ELSEWHERE = {"from_gpflow", "from_gpy", "from_gpytorch", "compare_with_lime", "LimeComparison"}


def test_only_examples_that_need_another_library_are_left_out() -> None:
    assert {name for name, each in public().items() if "+SKIP" in (each.__doc__ or "")} == ELSEWHERE


@pytest.mark.parametrize("name", public())
def test_the_example_runs(name: str) -> None:
    (test,) = FINDER.find(public()[name], name, globs={"gc": gc, "np": np})
    assert test.examples, f"{name} has no example"
    told: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    assert not result.failed, "".join(told)
