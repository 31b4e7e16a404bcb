"""Packages of the extras, imported when they are used; of a missing one, the sentence that installs it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gpcert.errors import InvalidInputError

#: Package -> the extra that brings it. (Models of GPy, GPyTorch, GPflow and scikit-learn bring theirs along.)
EXTRAS = {
    "matplotlib": "plots",
    **dict.fromkeys(("pandas", "polars", "pyarrow", "openpyxl"), "tables"),
    **dict.fromkeys(("torch", "array_api_compat"), "torch"),
    "distributed": "dask",
    "ray": "ray",
    **dict.fromkeys(("lime", "skimage", "mici", "arviz_stats"), "reproduce"),
}


def extra(module: str, what: str) -> Any:
    """The module, which `what` needs; a package that is there and broken keeps its own error."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
    told = f"{what} needs {package}, got none: pip install 'gpcert[{EXTRAS[package]}]'"
    raise InvalidInputError(told)
