"""`gpcert demo`: train on the shipped data, certify ranges, and write an HTML page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_parser"]


def add_parser(verbs: Verbs) -> None:
    """Declare the verb and its options."""
    parser = verbs.add_parser(
        "demo", help="train on the shipped data, certify, write an HTML page", description=__doc__
    )
    parser.add_argument(
        "--output", type=Path, default=Path("out/demo"), help="folder of the page (%(default)s)"
    )
    parser.set_defaults(run=_run)


def _run(parsed: argparse.Namespace) -> None:
    # Imported here: `gpcert --help` needs neither scipy nor matplotlib.
    from gpcert.report import write_demo

    path = write_demo(parsed.output, say=print)
    print(f"page written: {path.resolve()}")
