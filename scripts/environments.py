"""Run tasks of `environments.toml`, each in its environments: `python scripts/environments.py TASK ...`."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = tuple(ROOT / folder / "pyproject.toml" for folder in ("", "experiments", "checker"))
NO_TASKS = ("venv", "install", "lowest")
#: One BLAS thread: repeats are identical bit for bit, and two test processes do not fight for two cores.
QUIET = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
QUIET |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "NO_MKDOCS_2_WARNING": "1"}  # mkdocs-material advertises


def main(wanted: list[str]) -> None:
    """Every command of every task, until one fails."""
    rows = tomllib.loads((ROOT / "environments.toml").read_text(encoding="utf-8"))
    tasks = sorted({key for row in rows.values() for key in row if key not in NO_TASKS})
    for task in wanted:
        if task not in tasks:
            sys.exit(f"a task must be one of {', '.join(tasks)}, got {task}")
        for name, row in rows.items():
            if task in row:
                programs = made(name, row)
                for command in row[task]:
                    print(f"{name}: {command}", flush=True)
                    run(command, {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}, shell=True)


def made(name: str, row: dict[str, Any]) -> Path:
    """Where the programs of an environment are, which is up to date with its row and the projects."""
    venv = ROOT / row.get("venv", f".venv-{name}")
    programs, stamp = venv / ("Scripts" if os.name == "nt" else "bin"), venv / f".made-{name}"
    texts = [project.read_text(encoding="utf-8") for project in PROJECTS]
    state = hashlib.sha256(repr((row["install"], row.get("lowest"), texts)).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != state:
        print(f"{name}: {venv.name}", flush=True)
        run([sys.executable, "-m", "venv", venv])
        (venv / "lowest.txt").write_text(
            "\n".join(lowest(texts)) if row.get("lowest") else "", encoding="utf-8"
        )
        for arguments in row["install"]:
            pip = [programs / "python", "-m", "pip", "install", "--quiet", "-c", venv / "lowest.txt"]
            run([*pip, *shlex.split(arguments)])
        stamp.write_text(state, encoding="utf-8")
    return programs


def lowest(texts: list[str]) -> list[str]:
    """The lowest versions that the projects admit, for pip: `numpy>=1.26` -> `numpy==1.26.*`."""
    projects = [tomllib.loads(text)["project"] for text in texts]
    groups = [group for p in projects for group in (p["dependencies"], *p["optional-dependencies"].values())]
    bounds = [re.fullmatch(r"([\w.-]+)(?:\[.*\])?>=([\d.]+).*", each) for group in groups for each in group]
    return [f"{bound[1]}=={bound[2]}.*" for bound in bounds if bound]


def run(command: Any, more: dict[str, str] | None = None, shell: bool = False) -> None:
    """A command in the repository's root; the first that fails ends all."""
    done = subprocess.run(command, shell=shell, cwd=ROOT, env=os.environ | QUIET | (more or {}))
    if done.returncode:
        sys.exit(f"{command} ended with status {done.returncode}")


if __name__ == "__main__":
    main(sys.argv[1:])
