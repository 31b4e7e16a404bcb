"""Documents that run: their blocks, their sessions, and what they show as output."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from gpcert.cli import main

ROOT = Path(__file__).resolve().parents[2]
# A Python block, and the output shown for it if a text block follows at once; or a session on a terminal.
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?"
    r"|^```console\n(?P<session>\$ .*?)^```\n",
    flags=re.MULTILINE | re.DOTALL,
)
# Commands of a session that a test can run; the others set up an environment, which other tests do.
RUNNABLE = ("gpcert ", "head ")
TIMES = re.compile(r"(answered in|about|left) (\d+ (s|min|h) ?)+")
INTERVAL = re.compile(r"\[(-?\d+\.\d+), (-?\d+\.\d+)\]")
NUMBER = re.compile(r"\d+\.\d*|\d+")
#: What fitted numbers that are shown with all their digits differ by on another processor, relative.
_MACHINE = 1e-8


def identify(path: Path) -> str:
    return str(path.relative_to(ROOT))


#: Pages that need a library of an environment of its own: tests/foreign runs them.
ELSEWHERE = ("gpytorch.md", "gpflow.md")


def assert_shown(printed: str, shown: str) -> None:
    """The same text; machines round differently, and a faster search stops elsewhere.

    Decimals may differ by one unit of the last digit shown, or as machines do. Of intervals [a, b], which
    enclose the same true number, only that they meet is asked. Widths of columns do not matter.
    """
    for real, told in zip(INTERVAL.findall(printed), INTERVAL.findall(shown), strict=True):
        assert max(float(real[0]), float(told[0])) <= min(float(real[1]), float(told[1])), (printed, shown)
    printed, shown = (re.sub(" +", " ", INTERVAL.sub("[]", text)) for text in (printed, shown))
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    for real, told in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        digits = len(told.partition(".")[2])
        unit = 10.0**-digits if digits else 0.0
        off = max(1.001 * unit, _MACHINE * abs(float(told)) if digits else 0.0)
        assert float(real) == pytest.approx(float(told), rel=0, abs=off), (printed, shown)


def run_command(command: str) -> str:
    """Standard output of one command of a session."""
    words = shlex.split(command, comments=True)
    if words[0] != "gpcert":
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(words[1:]) == 0, command
    return printed.getvalue()


def commands(session: str) -> list[tuple[str, str]]:
    """(command, output shown) pairs; a backslash at the end of a line continues a command."""
    pieces = re.split(r"^\$ ", session.replace("\\\n", " "), flags=re.MULTILINE)[1:]
    return [(piece.partition("\n")[0], piece.partition("\n")[2]) for piece in pieces]


def run_blocks(path: Path) -> None:
    """The blocks of a document one after the other, in the current folder, which is to be empty."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.finditer(path.read_text(encoding="utf-8")):
        if block["session"]:
            for command, shown in commands(block["session"]):
                if command.startswith(RUNNABLE):
                    assert_shown(TIMES.sub("T", run_command(command)), TIMES.sub("T", shown))
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], identify(path), "exec"), namespace)
        if block["shown"]:
            assert_shown(printed.getvalue(), block["shown"])
