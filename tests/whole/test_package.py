"""The package as others get it: a wheel that works outside the checkout, light to import."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

import gpcert
from helpers.documents import BLOCK, COMMAND, assert_same

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed, without this checkout on Python's path."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST"))
    }
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment_python(folder: Path) -> Path:
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def build(project: Path, folder: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=project)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def outside(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment with the wheel, taking the dependencies from this one: no network."""
    folder = tmp_path_factory.mktemp("outside")
    venv.create(folder / "env", with_pip=False)
    python = environment_python(folder / "env")
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install"),
        *("--no-deps", "--no-index", "--quiet", wheel),
        cwd=folder,
    )
    site = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip()
    )
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


def test_wheel_holds_code_data_types_and_licences(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("__init__.py", "py.typed", "datasets/data/README.md", "datasets/data/mnist.npz"):
        assert f"gpcert/{name}" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if not re.match(r"gpcert(-[\w.]+\.dist-info)?/", name)]
    assert wheel.stat().st_size < 2_000_000


WORK = """
import gpcert as gc, json, sys
data = gc.datasets.load("synthetic2d")
clf = gc.GPClassifier(kernel=gc.RBF(1.0, 10.0), max_evals=5).fit(data.X_train[:200], data.y_train[:200])
gc.save(clf.posterior_, "model.safetensors")
p = gc.load("model.safetensors").probability(data.X_test)
right = float((clf.classes_[p.argmax(axis=1)] == data.y_test).mean())
r = gc.probability_range(clf.posterior_, gc.Ball(data.X_test[0], 0.1), label=1)
told = {"file": gc.__file__, "version": gc.__version__, "right": right, "range": [r.lower, p[0, 1], r.upper]}
print(json.dumps(told))
"""


def test_installed_wheel_trains_and_certifies_outside_the_checkout(outside: Path, tmp_path: Path) -> None:
    told = json.loads(run(outside, "-c", WORK, cwd=tmp_path))
    assert not Path(told["file"]).is_relative_to(ROOT / "src")
    assert told["version"] == gpcert.__version__
    assert told["right"] > 0.95
    assert told["range"] == sorted(told["range"])
    assert told["range"][2] - told["range"][0] < 0.5


@pytest.mark.full
def test_wheel_brings_all_it_needs_into_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """As a user gets it: pip alone decides what else to install, and that is enough to train."""
    venv.create(tmp_path / "env", with_pip=True)
    python = environment_python(tmp_path / "env")
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    assert json.loads(run(python, "-c", WORK, cwd=tmp_path))["right"] > 0.95
    installed = {
        p["name"] for p in json.loads(run(python, "-m", "pip", "list", "--format=json", cwd=tmp_path))
    }
    assert not installed & {"scikit-learn", "matplotlib", "pandas"}
    published_method_comes_with_its_own_wheel(python, tmp_path)
    for document in (ROOT / "README.md", ROOT / "docs" / "start.md"):
        run_literally(document, wheel, python, tmp_path / document.stem)


PUBLISHED = """
import gpcert as gc
post, region = gc.load("model.safetensors"), gc.Ball([0.0, 0.0], 0.1)
try:
    print(gc.probability_range(post, region, method="paper").method)
except gc.GpcertError as error:
    print(error)
"""


def published_method_comes_with_its_own_wheel(python: Path, folder: Path) -> None:
    assert (
        run(python, "-c", PUBLISHED, cwd=folder)
        == "method must be 'auto', got 'paper': pip install gpcert-paper\n"
    )
    command = python.parent / "gpcert"
    assert "reproduce" not in run(command, "--help", cwd=folder)
    paper = build(ROOT / "experiments", folder / "paper")
    run(python, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", paper, cwd=folder)
    assert run(python, "-c", PUBLISHED, cwd=folder) == "paper\n"
    assert "--quick" in run(command, "reproduce", "--help", cwd=folder)


#: Blocks of a document one after the other, Python in one namespace, commands in a shell; what each printed.
STEPS = """
import contextlib, io, json, subprocess
printed, names = [], {"__name__": "__main__"}
for kind, text in json.load(open("steps.json", encoding="utf-8")):
    told = io.StringIO()
    if kind == "python":
        with contextlib.redirect_stdout(told):
            exec(text, names)
        printed.append(told.getvalue())
    else:
        printed.append(subprocess.run(text, shell=True, check=True, stdout=subprocess.PIPE, text=True).stdout)
json.dump(printed, open("printed.json", "w", encoding="utf-8"))
"""


def run_literally(document: Path, wheel: Path, python: Path, folder: Path) -> None:
    """Every command and block of a document as it stands; the wheel is installed, not the checkout."""
    folder.mkdir()
    steps: list[tuple[str, str, str | None]] = []
    for block in BLOCK.finditer(document.read_text(encoding="utf-8")):
        if block["session"]:
            told = [(each["command"], each["shown"]) for each in COMMAND.finditer(block["session"])]
            steps += [("shell", command.replace("'.[", f"'{wheel}["), shown) for command, shown in told]
        else:
            steps.append(("python", block["code"], block["shown"]))
    install = [command for kind, command, _ in steps if kind == "shell" and command.startswith("pip ")]
    assert len(install) == 1
    (folder / "steps.json").write_text(json.dumps([step[:2] for step in steps]), encoding="utf-8")
    (folder / "steps.py").write_text(STEPS, encoding="utf-8")
    activated = f'PATH="{python.parent}:$PATH" python steps.py'
    run("sh", "-c", activated, cwd=folder)
    printed = json.loads((folder / "printed.json").read_text(encoding="utf-8"))
    for (_, text, shown), told in zip(steps, printed, strict=True):
        if shown and not text.startswith("pip "):
            assert_same(told, shown)


def test_installed_command(outside: Path, tmp_path: Path) -> None:
    command = outside.parent / "gpcert"
    assert run(command, "--version", cwd=tmp_path) == f"gpcert {gpcert.__version__}\n"
    assert "demo" in run(command, "--help", cwd=tmp_path)
    assert run(outside, "-m", "gpcert", "--version", cwd=tmp_path) == f"gpcert {gpcert.__version__}\n"


def test_installed_command_goes_from_a_table_to_a_report(outside: Path, tmp_path: Path) -> None:
    """With what the wheel holds alone: no extra, and the page's style and script from inside the package."""
    command = outside.parent / "gpcert"
    rows = [f"{i},{(7 * i) % 5},{'high' if i > 10 else 'low'}" for i in range(20)]
    (tmp_path / "table.csv").write_text("\n".join(["size,age,kind", *rows]) + "\n", encoding="utf-8")
    fit = ("fit", "table.csv", "--target", "kind", "--max-evals", "3")
    run(command, *fit, "-o", "m.safetensors", cwd=tmp_path)
    told = run(
        *(
            command,
            "certify",
            "m.safetensors",
            "table.csv",
            "--rows",
            "0:2",
            "--radius",
            "0.1",
            "-o",
            "c.json",
        ),
        cwd=tmp_path,
    )
    assert "2 safe, 0 unsafe, 0 unknown" in told
    run(command, "report", "c.json", "-o", "report.html", cwd=tmp_path)
    assert "prefers-color-scheme: dark" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_version_is_the_same_everywhere() -> None:
    assert gpcert.__version__ == version("gpcert")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {gpcert.__version__}\n" in citation


def modules_after(statement: str, cwd: Path) -> set[str]:
    """The modules that are loaded once a fresh interpreter has run the statement."""
    return set(run(sys.executable, "-c", f"{statement}\nimport sys; print(*sys.modules)", cwd=cwd).split())


def test_import_loads_nothing_but_the_package(tmp_path: Path) -> None:
    assert not modules_after("import gpcert", tmp_path) & {"numpy", "scipy", "flint", "safetensors"}


FIRST_QUESTION = """
import gpcert as gc
clf = gc.GPClassifier(max_evals=0).fit([[0, 0], [1, 0], [2, 1], [3, 1]], [0, 0, 1, 1])
gc.probability_range(clf, gc.Box([1, 0], [2, 1]))
"""


def test_the_first_question_of_a_process_loads_what_it_needs(tmp_path: Path) -> None:
    """Nothing of several classes, proofs, batches, attacks, stores, pages, and of other libraries' models."""
    own = {name for name in modules_after(FIRST_QUESTION, tmp_path) if name.startswith("gpcert")}
    assert len(own) <= 150
    unused = "bounds.several.", "proofs.prover", "engine.", "attacks.", "store", "records", "pages"
    assert not [name for name in own if name.startswith(tuple(f"gpcert.{each}" for each in unused))]


def test_training_loads_no_optional_or_slow_package(tmp_path: Path) -> None:
    everything = "import gpcert; [getattr(gpcert, name) for name in gpcert.__all__]"
    loaded = modules_after(everything, tmp_path)
    assert "gpcert.estimator" in loaded
    assert not loaded & {"sklearn", "matplotlib", "pandas", "scipy.stats", "GPy", "torch"}


def test_public_names_are_those_that_type_checkers_see() -> None:
    tree = ast.parse(Path(gpcert.__file__).read_text(encoding="utf-8"))
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.name for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == set(gpcert.__all__)
    assert len(gpcert.__all__) == len(typed)
    for name in gpcert.__all__:
        assert getattr(gpcert, name) is not None
        assert name in dir(gpcert)


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'gpcert' has no attribute 'nothing'"):
        _ = gpcert.nothing
