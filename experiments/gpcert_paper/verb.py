"""`gpcert reproduce`: the experiments of the AISTATS 2020 paper, with figures, numbers and a comparison."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpcert.cli.show import warn
from gpcert_paper.reproduce import EXPERIMENTS, reproduce
from gpcert_paper.reproduce.job import remembering_interrupts

DESCRIPTION = f"""
Run an experiment of the AISTATS 2020 paper: figures (PNG and SVG), a CSV of every number, and a page that
compares with the paper. A run that was interrupted goes on where it stopped.

experiments: all, {", ".join(EXPERIMENTS)}
"""
EXAMPLES = """
  gpcert reproduce safety-synthetic --out out/reproduce
  gpcert reproduce all --quick
"""

_WIDTH = 28
_AGAIN = "the same command goes on where this one stopped"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", metavar="NAME", help="an experiment, or all")
    parser.add_argument(
        "--out", type=Path, help="folder of the results (out/reproduce; with --quick out/quick)"
    )
    parser.add_argument("--quick", action="store_true", help="small versions: minutes instead of hours")


def run(parsed: argparse.Namespace) -> int:
    """Run, and say where the page is."""
    bar = _bar if sys.stderr.isatty() else _silence
    out = parsed.out or Path("out/quick" if parsed.quick else "out/reproduce")
    try:
        with remembering_interrupts():
            path = reproduce(parsed.name, out, parsed.quick, bar, print)
    except KeyboardInterrupt:
        warn(f"interrupted; {_AGAIN}")
        raise
    except OSError as error:  # found out at the first row, not before: a disk that filled up
        warn(f"{error.filename}: {error.strerror}; {_AGAIN}" if error.filename else f"{error}; {_AGAIN}")
        return 1
    print(f"page written: {path.resolve()}")
    return 0


def _bar(done: int, total: int, what: str) -> None:
    """One line that is drawn over itself."""
    filled = _WIDTH * done // max(total, 1)
    text = f"\r{'#' * filled}{'.' * (_WIDTH - filled)} {done}/{total} {what:<44.44}"
    print(text, end="\n" if done == total else "", file=sys.stderr, flush=True)


def _silence(done: int, total: int, what: str) -> None:
    """Not a terminal: no bar."""
