"""The documents: every Python block runs, shown output is what is printed, links and paths are in order."""

from __future__ import annotations

import argparse
import re
import runpy
import subprocess
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from gpcert.cli.main import make_parser
from helpers.documents import BLOCK, COMMAND, PAGES, ROOT, assert_current, assert_same, identify

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")])
#: What stands between a user and an answer: neither proofs nor the inside.
USER_PAGES = [
    path
    for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    if path.parent.name != "maths" and path.stem != "architecture"
]
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home|tmp|opt|Users|mnt)/")
ADDRESS = re.compile(r"https?://([\w.-]+)")


WITH_CODE = [
    pytest.param(path, marks=pytest.mark.full) if path.parent.name == "tutorials" else path
    for path in DOCUMENTS
    if BLOCK.search(path.read_text(encoding="utf-8")) and path.stem not in PAGES["ELSEWHERE"]
]


STALE = """
```python
print("one", 2.5)
```

```text
one 2.4
```

```python
x = 1
```

```console
$ pip install something
$ gpcert fit dataset:synthetic2d --max-evals 0 \\
    -o m.safetensors  # continued
nothing
$ head -1 missing
```
"""


def test_stale_outputs_are_found_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(STALE.replace("$ head -1 missing\n", ""), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["pages.py", str(page)])
    PAGES["main"]()
    PAGES["main"]()
    assert capsys.readouterr().out == f"{page}: written\n"  # once
    text = page.read_text(encoding="utf-8")
    assert "one 2.5\n" in text
    assert "x = 1\n```\n\n```console\n$ pip install something\n$ gpcert fit dataset:synthetic2d" in text
    assert re.search(r"continued\n(.*\n)*saved: m.safetensors", text)
    assert "nothing" not in text
    assert_current(page)
    with pytest.raises(AssertionError):
        assert_same("in [0.10, 0.30], answered in 3 s", "in [0.10, 0.31], answered in 3 s")
    assert_same("100 of 100 answered in 3 s", "100 of 100 answered in 2 min 1 s")
    page.write_text(STALE, encoding="utf-8")
    with pytest.raises(subprocess.CalledProcessError):  # a command that fails
        PAGES["document"](page)


@pytest.mark.parametrize("path", WITH_CODE, ids=identify)
def test_blocks_run_and_print_what_is_shown(path: Path) -> None:
    with warnings.catch_warnings():
        if path.name == "gpy.md":
            warnings.simplefilter("default")  # GPy's own warnings are not ours
        assert_current(path)


def test_the_readme_and_the_start_page_hold_code_and_sessions_with_output() -> None:
    for path in (ROOT / "README.md", ROOT / "docs" / "start.md"):
        blocks = list(BLOCK.finditer(path.read_text(encoding="utf-8")))
        assert any(block["shown"] for block in blocks)
        commands = [each for block in blocks for each in COMMAND.finditer(block["session"] or "")]
        assert any(each["shown"] for each in commands)
        assert 4 <= len(commands) < 10  # from `pip install` to a certificate of one's own table


@pytest.mark.parametrize("path", DOCUMENTS, ids=identify)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]+)?\)", path.read_text(encoding="utf-8")):
        if not ADDRESS.match(target):
            notebook = re.sub(
                r"^((?:\.\./)?)notebooks/([\w-]+)\.md$", r"\1../examples/\2.ipynb", target
            )  # a page of the site
            assert (path.parent / notebook).exists(), target


def anchors(path: Path) -> set[str]:
    """What `#name` can point to: headings as mkdocs names them, and explicit ids."""
    text = path.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*?)(?:\s*\{#[\w-]+\})?$", text, flags=re.MULTILINE)
    named = re.findall(r"\{#([\w-]+)\}|id=\"([\w-]+)\"", text)
    slugs = {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", h).strip().lower()) for h in headings}
    return slugs | {a or b for a, b in named}


def test_statements_cited_in_the_code_exist() -> None:
    for source in sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "experiments").rglob("*.py")]):
        for name, anchor in re.findall(
            r"\b(docs/[\w/-]+\.md)(?:#([\w-]+))?", source.read_text(encoding="utf-8")
        ):
            assert (ROOT / name).exists(), f"{identify(source)} cites {name}"
            assert not anchor or anchor in anchors(ROOT / name), f"{identify(source)} cites {name}#{anchor}"


def test_files_named_in_the_documents_exist() -> None:
    """In full, or from some folder on: `bounds/one/level.py`, `level.py`."""
    files = [f"/{path.relative_to(ROOT)}" for path in ROOT.glob("[!.]*/**/*") if path.is_file()]
    assert files
    for path in DOCUMENTS:
        if path.name != "CHANGELOG.md":  # what it names may have gone
            for name in re.findall(r"`([\w./-]+\.py)`", path.read_text(encoding="utf-8")):
                assert any(file.endswith(f"/{name}") for file in files), f"{identify(path)} names {name}"


def test_targets_named_in_the_documents_exist() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for path in DOCUMENTS:
        if path.name != "CHANGELOG.md":
            text = path.read_text(encoding="utf-8")
            sessions = "".join(re.findall(r"^```console\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))
            named = re.findall(r"`make ([a-z-]+)`", text) + re.findall(
                r"^(?:\$ )?make ([a-z-]+)", sessions, re.M
            )
            assert set(named) <= set(targets), f"{identify(path)} names {named}"


#: Of pip, shtab, the checker and the paper's experiments.
FOREIGN = {"--no-deps", "--shell", "--expect-model", "--quick"}


def options(parser: argparse.ArgumentParser) -> set[str]:
    """Of all verbs, and of verbs of verbs."""
    found = set[str]()
    for action in parser._actions:
        found |= set(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            found = found.union(*(options(verb) for verb in action.choices.values()))
    return found


def test_options_named_in_the_documents_exist() -> None:
    known = options(make_parser()) | FOREIGN
    for path in USER_PAGES:
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) <= known, identify(path)


def prose(path: Path) -> list[str]:
    """Lines outside of code, tables and displayed formulas."""
    set_off = re.compile(r"^ *```.*?^ *```$|^\$\$.*?\$\$", flags=re.MULTILINE | re.DOTALL)
    text = set_off.sub("", path.read_text(encoding="utf-8"))
    return [line for line in text.split("\n") if not line.startswith(("|", "!["))]


@pytest.mark.parametrize("path", [p for p in DOCUMENTS if p.name != "CHANGELOG.md"], ids=identify)
def test_lines_of_prose_are_at_most_120_characters(path: Path) -> None:
    assert [line for line in prose(path) if len(line) > 120] == []


def test_what_a_user_may_read_is_at_most_20_000_words() -> None:
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in USER_PAGES) <= 20_000


def test_the_words_of_the_glossary_are_in_order() -> None:
    _, _, words = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").partition("## Words")
    terms = [term.lower() for term in re.findall(r"^\| ([^|]*?) \|", words, flags=re.MULTILINE)[1:]]
    assert len(terms) > 30
    assert terms == sorted(set(terms))


@pytest.mark.parametrize("word", ["Excel", "categorical", "missing values", "Windows", "regression"])
def test_the_page_of_limits_answers_what_people_search_for(word: str) -> None:
    assert word.lower() in (ROOT / "docs" / "limits.md").read_text(encoding="utf-8").lower()


def test_only_the_mathematics_stays_out_of_the_search() -> None:
    for path in ROOT.glob("docs/**/*.md"):
        out = path.read_text(encoding="utf-8").startswith("---\nsearch:\n  exclude: true\n---\n")
        assert out == (path.parent.name == "maths"), identify(path)


def test_the_picture_of_the_readme_is_what_its_script_draws(tmp_path: Path) -> None:
    script = ROOT / "docs" / "images" / "draw.py"
    drawn = runpy.run_path(str(script))["main"](tmp_path)
    stored = script.parent / drawn.name
    assert f"(docs/images/{drawn.name})" in (ROOT / "README.md").read_text(encoding="utf-8")
    # Fonts and rounding differ by machine: nearly all pixels, not each bit.
    assert np.mean(np.abs(imread(stored) - imread(drawn)) > 0.1) < 0.05
    assert stored.stat().st_size < 50_000


def test_no_file_holds_a_machine_path_or_names_a_registry() -> None:
    texts = [
        *DOCUMENTS,
        ROOT / "Makefile",
        ROOT / "pyproject.toml",
        ROOT / "mkdocs.yml",
        ROOT / ".ci" / "run",
    ]
    for folder in ("src", "experiments", "scripts", "benchmarks", "docs"):
        texts += [p for p in (ROOT / folder).rglob("*") if p.suffix in {".py", ".md"}]
    for path in texts:
        text = path.read_text(encoding="utf-8")
        assert not MACHINE_PATH.search(text), identify(path)
        assert not re.search(r"index-url|pypi\.org|find-links", text), identify(path)


def test_the_architecture_names_every_package_once_and_nothing_that_is_not_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("## The packages")[2].partition("##")[0]
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", table, flags=re.MULTILINE)
    named = re.findall(r"`(\w+)`", " ".join(f"{names} {owns.partition('(with')[2]}" for names, owns in rows))
    package = ROOT / "src" / "gpcert"
    modules = {
        path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert sorted(named) == sorted(modules - {"__init__", "__main__"})
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = [re.findall(r"\w+", layer) for layer in settings["contracts"][0]["layers"]]
    height = {name: at for at, layer in enumerate(layers) for name in layer}
    assert [height[name] for name in named] == sorted(height[name] for name in named)
    parts = re.findall(r"`(bounds/[\w/]+)`", text) + [
        f"bounds/{name}"
        for name in re.findall(r"^\| `(\w+)` \|", text.partition("## Inside bounds")[2], flags=re.MULTILINE)
    ]
    assert parts
    for part in parts:
        assert (package / part).is_dir(), part
    code = " ".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
    for name in re.findall(r"`(?:gc\.)?([A-Z]\w+|\w+_\w+)`", text):
        assert re.search(rf"\b{name}\b", code), name
