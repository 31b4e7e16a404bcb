"""Every public docstring has an example, and every example of the package runs (`import gpcert as gc`)."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import numpy as np
import pytest

import gpcert as gc

FINDER = doctest.DocTestFinder(recurse=False)


def public() -> dict[str, Any]:
    found = {name: inspect.unwrap(getattr(gc, name)) for name in gc.__all__}
    kinds = (Warning, Exception)
    return {
        name: each
        for name, each in found.items()
        if not inspect.ismodule(each) and not (inspect.isclass(each) and issubclass(each, kinds))
    }


@pytest.mark.parametrize("name", public())
def test_the_example_runs(name: str) -> None:
    (test,) = FINDER.find(public()[name], name, globs={"gc": gc, "np": np})
    assert test.examples, f"{name} has no example"
    told: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    assert not result.failed, "".join(told)
