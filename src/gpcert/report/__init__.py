"""The HTML page: one self-contained file from a fitted model and a data set."""

from __future__ import annotations

from gpcert.report.demo import write_demo

__all__ = ["write_demo"]
