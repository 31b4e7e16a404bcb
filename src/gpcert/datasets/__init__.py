"""The data sets of the paper, shipped inside the package: `load(name)` gives a `Dataset`."""

from __future__ import annotations

from gpcert.datasets.loading import Dataset, load

__all__ = ["Dataset", "load"]
