"""`gpcert demo`: the other verbs, one after the other, on handwritten digits that are shipped."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

DESCRIPTION = """
Train on 1,000 threes and eights, certify test images of which every pixel may move, and write
one HTML report. Each step is a gpcert command, which is printed before it runs.
"""
EXAMPLES = """
  gpcert demo --output out/demo
"""
_TITLE = "Threes and eights: how far can the pixels move?"
_ROWS = "0:50"
_STEPS = (
    "fit dataset:mnist38 --lengthscale 5 --test dataset:mnist38 -o {folder}/model.safetensors",
    "certify {folder}/model.safetensors {data} --radius 0.05 --radius 0.1 -o {folder}/certify.json",
    "attack {folder}/model.safetensors {data} --radius 0.1 -o {folder}/attack.json",
    "radius {folder}/model.safetensors {data} --max-radius 0.5 --rtol 0.01 -o {folder}/radius.json",
    "range {folder}/model.safetensors {data} --radius 0.1 -o {folder}/range.json",
    "explain {folder}/model.safetensors {data} --radius 0.2 -o {folder}/explain.json",
    "report {folder}/certify.json {folder}/attack.json {folder}/radius.json {folder}/range.json "
    "{folder}/explain.json "
    "--title {title} -o {folder}/index.html",
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
    data = ["dataset:mnist38", "--rows", parsed.rows]
    for step in _STEPS:
        words = [
            part
            for word in step.split()
            for part in (data if word == "{data}" else [word.format(folder=parsed.output, title=_TITLE)])
        ]
        print(f"$ gpcert {shlex.join(words)}", flush=True)
        status = main(words)
        if status:
            return status
    print(f"open in a browser: {(parsed.output / 'index.html').resolve()}")
    return 0
