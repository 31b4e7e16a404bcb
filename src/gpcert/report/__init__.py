"""The HTML page made of results files: one self-contained file."""

from __future__ import annotations

from gpcert.report.page import report

__all__ = ["report"]
