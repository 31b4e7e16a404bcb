"""The HTML page made of results files: one self-contained file."""

from __future__ import annotations

from gpcert.pages.page import report, report_on

__all__ = ["report", "report_on"]
