"""Labels of statements: each one cited in the code or in a page is defined on exactly one page, exactly once.

A statement is defined where a line begins with its label in bold, what it says and a full stop: `**X8 (range
of the variance).**`. A label anywhere else, outside formulas, is a citation.
"""

from __future__ import annotations

import io
import re
import runpy
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
LABEL = r"(?:Theorem (?:\d|K)|Lemma K|[A-Z]\d{1,2}'?)(?!\w)"
BOLD = re.compile(rf"\*\*({LABEL})")
DEFINITION = re.compile(rf"^\*\*({LABEL}) \([^*]*\)\.\*\*", flags=re.MULTILINE)
CITATION = re.compile(rf"(?<![\w.$\\])({LABEL})")
#: "docs/maths/bounds.md, X8": the page is part of what is claimed.
PLACED = re.compile(rf"\bdocs/([\w/-]+\.md),? ({LABEL})")
#: Formulas and code: what stands in them is not a citation.
FORMULA = re.compile(
    r"^```.*?^```|^ {4}\S.*?$|\$\$.*?\$\$|\$(?:[^$\n]|\n(?!\n))+\$|`[^`\n]*`", flags=re.M | re.S
)
#: Variables and spaces that comments mention without being labels.
NAMES = {"G2", "L0", "M0", "N2", "N3", "Z0"}


def read(paths: Iterable[Path], folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in sorted(paths)}


def citations(text: str) -> set[str]:
    return set(CITATION.findall(FORMULA.sub(" ", text))) - NAMES


def spoken(source: str) -> Iterator[str]:
    """Comments and docstrings of a module; other strings are data."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        comment = token.type == tokenize.COMMENT and "noqa" not in token.string
        if comment or (token.type == tokenize.STRING and token.string.startswith('"""')):
            yield token.string


def complaints(pages: Mapping[str, str], modules: Mapping[str, str]) -> list[str]:
    """What is wrong with the labels of these pages and modules, a sentence each."""
    found: list[str] = []
    homes: dict[str, list[str]] = {}
    for name, text in pages.items():
        for label in DEFINITION.findall(text):
            homes.setdefault(label, []).append(name)
        if len(BOLD.findall(text)) != len(DEFINITION.findall(text)):
            found.append(f"{name} has a label in bold that does not begin a paragraph as a definition does")
    found += [f"{label} is defined on {' and '.join(where)}" for label, where in homes.items() if where[1:]]
    cited = {name: citations(text) for name, text in pages.items()}
    for name, source in modules.items():
        text = " ".join(spoken(source))
        cited[name] = citations(text)
        for page, label in PLACED.findall(text):
            if homes.get(label) != [page]:
                found.append(f"{name} cites {label} of {page}, which does not define it")
    for name, labels in cited.items():
        found += [f"{name} cites {label}, which is defined nowhere" for label in sorted(labels - set(homes))]
    return found


PAGES = read(ROOT.glob("docs/**/*.md"), ROOT / "docs")
FOLDERS = ("src", "experiments", "tests", "benchmarks", "scripts", "checker")
MODULES = read((p for each in FOLDERS for p in (ROOT / each).rglob("*.py") if p != Path(__file__)), ROOT)


def test_every_label_cited_is_defined_exactly_once() -> None:
    assert complaints(PAGES, MODULES) == []


def test_every_statement_is_used_by_code_or_by_another_statement() -> None:
    """What nothing rests on any more goes; `X1 to X4` names all four."""
    used = set[str]()
    for text in [*PAGES.values(), *(" ".join(spoken(source)) for source in MODULES.values())]:
        for kind, first, last in re.findall(r"\b([A-Z])(\d{1,2}) to [A-Z](\d{1,2})\b", text):
            used |= {f"{kind}{each}" for each in range(int(first), int(last) + 1)}
        used |= set(CITATION.findall(BOLD.sub(" ", text)))
    assert {label for text in PAGES.values() for label in DEFINITION.findall(text)} - used == set()


def test_the_site_lists_every_statement_once_with_a_link_to_it() -> None:
    hook = runpy.run_path(str(ROOT / "scripts" / "label_index.py"))
    rows = re.findall(r"^\| \[([^]]+)\]\(([\w.]+)#([\w-]+)\)", hook["table"](), flags=re.MULTILINE)
    pages = read(ROOT.glob("docs/maths/*.md"), ROOT / "docs" / "maths")
    assert [row[0] for row in rows] == [each for text in pages.values() for each in DEFINITION.findall(text)]
    assert len({anchor for _, _, anchor in rows}) == len(rows) > 100
    for label, page, anchor in rows:
        file = SimpleNamespace(src_uri=f"maths/{page}")
        shown = hook["on_page_markdown"](pages[page], SimpleNamespace(file=file))
        assert re.search(rf"^\*\*{label} \([^*]*\)\.\*\*{{ #{anchor} }}", shown, flags=re.MULTILINE)
    assert hook["PLACE"] in pages["index.md"]


PAGE = """**X8 (range).** The set `B9`, $Q7$ and H200 are no labels.

**Theorem 2 (anytime).** By X8.

    U7 = 1
"""
CODE = 'M0, K9 = 1, "L9"  # X8\n"""Theorem 2 (docs/a.md, X8)."""\n'


@pytest.mark.parametrize(
    ("pages", "code", "complaint"),
    [
        ({"a.md": PAGE}, CODE, None),
        ({"a.md": PAGE, "b.md": "**X8 (another).** Y."}, CODE, "X8 is defined on a.md and b.md"),
        ({"a.md": PAGE + "\n**X8 (again).** Y.\n"}, CODE, "X8 is defined on a.md and a.md"),
        ({"a.md": PAGE + "\nBy L2.\n"}, CODE, "a.md cites L2, which is defined nowhere"),
        ({"a.md": PAGE}, "x = 1  # by B8\n", "code.py cites B8, which is defined nowhere"),
        ({"a.md": PAGE}, '"""Theorem 7."""\n', "code.py cites Theorem 7, which is defined nowhere"),
        ({"a.md": PAGE}, "#: F3' of the model\n", "code.py cites F3', which is defined nowhere"),
        ({"a.md": PAGE, "b.md": ""}, "# docs/b.md, X8\n", "code.py cites X8 of b.md, which does not define"),
        ({"a.md": PAGE + "\nThen **K4**: in bold.\n**K4 (it).** Here.\n"}, CODE, "a.md has a label in bold"),
        ({"a.md": PAGE + "\n**K4.** Without what it says.\n"}, CODE, "a.md has a label in bold"),
    ],
)
def test_the_finder_of_labels(pages: dict[str, str], code: str, complaint: str | None) -> None:
    found = complaints(pages, {"code.py": code})
    assert bool(found) == (complaint is not None)
    assert not found or found[0].startswith(str(complaint))
