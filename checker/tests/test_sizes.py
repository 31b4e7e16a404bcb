"""How much there is to read: lines of code, without blank ones, comments and docstrings."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "gpcert_check"
#: The files as strangers wrote them, for all families.
READERS = ("reading", "model_file")
#: What is said, and the command: nothing that is proved depends on them.
TOLD = ("words", "command")
#: A Gaussian process with two classes, probit, over boxes and balls of norm inf.
CORE = ("__init__", "__main__", "arithmetic", "model", "regions", "planes", "leaves", "two_classes", "claims")
#: Each a family, or a strength, of its own.
FURTHER = (
    "sharper",
    "balls",
    "logit",
    "five_erf",
    "floored",
    "links",
    "indefinite",
    "several",
    "joint",
    "softmax",
    "anchors",
    "shares",
    "profiles",
    "radial",
    "families",
    "few",
    "explain",
    "work",
)


def lines(name: str) -> int:
    text = (PACKAGE / f"{name}.py").read_text()
    told: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            told |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    rows = enumerate(text.splitlines(), 1)
    return sum(bool(row.strip()) and row.strip()[0] != "#" and i not in told for i, row in rows)


def test_the_core_is_small_and_so_is_every_family() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} == {*READERS, *CORE, *TOLD, *FURTHER}
    assert sum(map(lines, CORE)) <= 500
    assert sum(map(lines, READERS)) <= 150
    assert sum(map(lines, TOLD)) <= 200
    assert max(map(lines, FURTHER)) <= 400
