"""`gpcert demo`: the other verbs, one after the other, on handwritten digits that are shipped."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

__all__ = ["configure", "run"]

DESCRIPTION = """
Train on 1,000 threes and eights, certify test images of which every pixel may move, and write
one HTML report. Each step is a gpcert command, which is printed before it runs.
"""
EXAMPLES = """
  gpcert demo --output out/demo
"""
_ROWS = "0:60"
_STEPS = (
    "fit dataset:mnist38 --lengthscale 5 --test dataset:mnist38 -o {folder}/model.safetensors",
    "range {folder}/model.safetensors dataset:mnist38 --rows {rows} --radius 0.1 -o {folder}/range.json",
    "report {folder}/range.json --title {title} -o {folder}/index.html",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--output", type=Path, default=Path("out/demo"), help="folder of the files (%(default)s)"
    )
    parser.add_argument("--rows", default=_ROWS, help="test images (%(default)s)")


def run(parsed: argparse.Namespace) -> int:
    """Run the steps; the folder is made if it is missing."""
    from gpcert.cli.main import main

    parsed.output.mkdir(parents=True, exist_ok=True)
    for step in _STEPS:
        words = [
            word.format(folder=parsed.output, rows=parsed.rows, title="Handwritten threes and eights")
            for word in step.split()
        ]
        print(f"$ gpcert {shlex.join(words)}", flush=True)
        status = main(words)
        if status:
            return status
    return 0
