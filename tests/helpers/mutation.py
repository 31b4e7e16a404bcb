"""Mutation of terms: which scaled constants of the package no worst case notices.

A row is (statement, file, text, worst case). The text occurs once in the file and says what is changed:
"{0.5|0.45} * x" has 0.45 for 0.5, "{|0.9 * }x" a factor more. The worst case, a function without arguments,
passes with the package as it is and has to fail with the change. Nothing is written: an import hook changes
the source of that one module, in a process of its own.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import gpcert

Row = tuple[str, str, str, str]
_CHANGE = re.compile(r"\{([^{}|]*)\|([^{}|]*)\}")
SOURCE = Path(gpcert.__file__).parent
_OWN = ("gpcert", "helpers", "judge")


def misplaced(rows: Sequence[Row]) -> list[str]:
    """The rows whose text does not occur once in their file, which is quickly seen."""
    files = {file: path.read_text() if (path := SOURCE / file).exists() else "" for _, file, _, _ in rows}
    return [
        f"{file}: {text}" for _, file, text, _ in rows if files[file].count(_CHANGE.sub(r"\1", text)) != 1
    ]


def unnoticed(module: str, rows: Sequence[Row]) -> str:
    """The rows whose worst case, a function of the test module, passes all the same, or ends otherwise."""
    program = "from helpers.mutation import serve; serve()"
    sent = json.dumps([module, sys.path, rows])
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=sent, capture_output=True, text=True, env=where, check=True)
    return done.stdout


def serve() -> None:
    """Reads rows from standard input, and writes what is wrong about them to standard output."""
    module, sys.path[:], rows = json.load(sys.stdin)
    found = [f"{row[0]}: {row[2]}: {wrong}" for row in rows if (wrong := _outcome(module, row))]
    sys.stdout.write("\n".join(found))


def _outcome(module: str, row: Row) -> str:
    """'' where the worst case fails as it should."""
    _, file, text, case = row
    old, new = _CHANGE.sub(r"\1", text), _CHANGE.sub(r"\2", text)
    for name in [name for name in sys.modules if name.split(".")[0] in _OWN or name == module]:
        if name != __name__:
            del sys.modules[name]
    kept, path = SourceFileLoader.get_code, SOURCE / file

    def changed(self: SourceFileLoader, name: str) -> CodeType | None:
        if Path(self.path) != path:
            return kept(self, name)
        source = path.read_text()
        if old == new or source.count(old) != 1:
            raise ValueError(f"{source.count(old)} times in {file}")
        return compile(source.replace(old, new), str(path), "exec")

    SourceFileLoader.get_code = changed  # type: ignore[assignment]
    try:
        getattr(importlib.import_module(module), case)()
    except AssertionError:
        return ""
    except Exception as error:  # a mutation that does not run shows nothing
        return f"{type(error).__name__}: {error}"
    finally:
        SourceFileLoader.get_code = kept  # type: ignore[method-assign]
    return f"not noticed by {case}"
