"""Packages of the extras, imported when they are used; of a missing one, the sentence that installs it.

Other distributions add methods of `probability_range` and verbs of the command line by entry points: the
groups `gpcert.methods` (called with a posterior and a tolerance: a factory of bounds) and `gpcert.verbs` (a
module like those of `gpcert.cli.verbs`).
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpcert.errors import InvalidInputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Package -> the extra that brings it. (Models of GPy, GPyTorch, GPflow and scikit-learn bring theirs along.)
EXTRAS = {
    "matplotlib": "plots",
    **dict.fromkeys(("pandas", "polars", "pyarrow", "openpyxl"), "tables"),
    **dict.fromkeys(("torch", "array_api_compat"), "torch"),
    "distributed": "dask",
    "ray": "ray",
}


def extra(module: str, what: str) -> Any:
    """The module, which `what` needs; a package that is there and broken keeps its own error."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
    message = f"{what} needs {package}, got none: pip install 'gpcert[{EXTRAS[package]}]'"
    raise InvalidInputError(message)


def version_of(package: str) -> str | None:
    """The version of a distribution; None: it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    with suppress(PackageNotFoundError):
        return version(package)
    return None


def plugins(group: str) -> dict[str, EntryPoint]:
    """The "methods" or "verbs" of the distributions installed beside this one, by name."""
    from importlib.metadata import entry_points  # takes as long as all of argparse

    return {each.name: each for each in entry_points(group=f"gpcert.{group}")}


def installing(name: object) -> str:
    """The end of a sentence about an unknown method or verb: what to install, where a package has it."""
    return ": pip install gpcert-paper" if name in ("paper", "reproduce") else ""
