"""The command line: parses, calls one public function, prints."""

from __future__ import annotations

from gpcert.cli.main import main

__all__ = ["main"]
