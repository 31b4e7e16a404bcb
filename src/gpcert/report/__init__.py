"""Results files, and the HTML page made of them: one self-contained file."""

from __future__ import annotations

from gpcert.report.page import report

__all__ = ["report"]
