"""What the independent checker says of proof files; it lives in checker/ and shares no line with gpcert."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKER = Path(__file__).resolve().parents[2] / "checker"


def rejected(model: Path, files: list[Path]) -> list[str]:
    """The files that are not accepted, each with the checker's sentence; it runs without gpcert."""
    if not files:
        return []
    outside = {"PYTHONPATH": str(CHECKER), "PATH": os.environ.get("PATH", "")}
    command = [sys.executable, "-m", "gpcert_check", str(model), *map(str, files)]
    run = subprocess.run(command, capture_output=True, text=True, env=outside, cwd=model.parent)
    lines = run.stdout.splitlines()
    proved = {line.split(": PROVED")[0] for line in lines if ": PROVED" in line}
    said = {str(file): [line for line in lines if line.startswith(str(file))] for file in files}
    wrong = [
        f"{file.name}: {said[str(file)] or run.stderr[-300:]}" for file in files if str(file) not in proved
    ]
    return wrong if wrong or run.returncode == 0 else [f"exit status {run.returncode}: {run.stderr[-300:]}"]
