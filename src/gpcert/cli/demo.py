"""`gpcert demo`: train on the shipped data, certify ranges, and write an HTML page."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpcert.report import write_demo

__all__ = ["configure", "run"]

DESCRIPTION = "Train on the shipped data, certify ranges, and write one HTML page with the answers."
EXAMPLES = """
  gpcert demo --output out/demo
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--output", type=Path, default=Path("out/demo"), help="folder of the page (%(default)s)"
    )


def run(parsed: argparse.Namespace) -> int:
    """Write the page and say where it is."""
    path = write_demo(parsed.output, say=print)
    print(f"page written: {path.resolve()}")
    return 0
