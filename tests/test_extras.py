"""Optional packages, and what other distributions add: found when used, and what installs a missing one."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gpcert as gc
from gpcert.cli.main import main
from gpcert.extras import EXTRAS, extra

ROOT = Path(__file__).parents[1]
NAMES = {"sklearn": "scikit-learn", "array_api_compat": "array-api-compat"}


@pytest.mark.parametrize("package", EXTRAS)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    wanted = re.escape(f"This needs {package}, got none: pip install 'gpcert[{EXTRAS[package]}]'")
    with pytest.raises(gc.InvalidInputError, match=f"^{wanted}$"):
        extra(package, "This")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    brings = project["optional-dependencies"][EXTRAS[package]]
    assert any(re.split(r"[<>=]", each)[0] == NAMES.get(package, package) for each in brings)


def test_what_a_package_misses_itself_is_not_said_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ray.py").write_text("import a_part_that_is_lost\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    with pytest.raises(ModuleNotFoundError, match="a_part_that_is_lost"):
        extra("ray", "This")


def _imported(tree: ast.AST) -> Iterator[str]:
    """What is imported when the code runs: not for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        yield from _imported(node)


def test_nothing_else_imports_them() -> None:
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "experiments").rglob("*.py")]
    found = {
        path.name
        for path in files
        for name in _imported(ast.parse(path.read_text(encoding="utf-8")))
        if name.partition(".")[0] in EXTRAS
    }
    # The first is imported once matplotlib is known to be there, the second where the model is torch's.
    assert found == {"shown.py", "gpytorch.py"}


@pytest.mark.parametrize("package", ["pandas", "polars", "matplotlib"])
def test_tables_and_plots_say_what_they_miss(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clf = gc.GPClassifier(max_evals=0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    found = gc.evaluate(clf, [[0.5], [2.5]], [0, 1], 0.1), gc.explain(clf, [[0.5]], 0.1)
    monkeypatch.setitem(sys.modules, package, None)
    asked = {
        "pandas": [each.to_pandas for each in (*found, gc.certify(clf, gc.balls([[0.5]], 0.1)))],
        "polars": [each.to_polars for each in (*found, gc.certify(clf, gc.balls([[0.5]], 0.1)))],
        "matplotlib": [lambda: gc.plots.accuracy_curve(found[0])],
    }
    for ask in asked[package]:
        with pytest.raises(gc.GpcertError, match=f"^[^ ]+( plot)? needs {package}, got none: pip install"):
            ask()


def test_the_published_method_and_its_verb_are_a_distribution_of_their_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clf, ball = gc.GPClassifier(max_evals=0).fit([[0.0], [1.0]], [0, 1]), gc.Ball([0.5], 0.1)
    assert gc.probability_range(clf, ball, method="paper").method == "paper"
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    assert not any("gpcert_paper" in text for text in sources)
    monkeypatch.setattr(sys, "path", [])  # what is not on it is not installed
    with pytest.raises(ValueError, match=r"^method must be 'auto', got 'paper': pip install gpcert-paper$"):
        gc.probability_range(clf, ball, method="paper")
    with pytest.raises(ValueError, match=r"^method must be 'auto', got 'papr'$"):
        gc.probability_range(clf, ball, method="papr")
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "all"])
    assert ended.value.code == 2
    assert "invalid choice: 'reproduce'" in (told := capsys.readouterr().err)
    assert told.endswith(": pip install gpcert-paper; see gpcert --help\n")


def test_an_explanation_is_a_tidy_table() -> None:
    clf = gc.GPClassifier(max_evals=0).fit({"a": [0, 1, 2, 3], "b": [3, 1, 2, 0]}, [0, 0, 1, 1])
    e = gc.explain(clf, {"a": [0.5, 2.5], "b": [1.0, 2.0]}, 0.25)
    for frame in (e.to_pandas(), e.to_polars()):
        assert list(frame.columns) == ["row", "feature", "value", "lower", "upper", "sign"]
        assert list(frame["row"]) == [0, 0, 1, 1]
        assert list(frame["feature"]) == ["a", "b", "a", "b"]
        for name in ("value", "lower", "upper", "sign"):
            np.testing.assert_array_equal(frame[name], getattr(e, name).ravel())
    assert gc.evaluate(clf, {"a": [0.5], "b": [1.0]}, [0], 0.25).to_polars()["radius"].to_list() == [0.25]
