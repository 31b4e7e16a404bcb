"""The one family of exceptions gpcert raises on purpose.

Every message is one sentence: the parameter, the rule, the value received.
"""

from __future__ import annotations

import warnings


class GpcertError(Exception):
    """Base of everything gpcert raises on purpose."""


class InvalidInputError(GpcertError, ValueError):
    """An argument breaks its rule; the message names parameter, rule and value received."""


class ModelFileError(GpcertError, ValueError):
    """A posterior file is damaged, truncated, foreign, or written by a newer version."""


class NotFittedError(GpcertError, ValueError, AttributeError):
    """An estimator was asked to predict before `fit`."""


class UnitsWarning(UserWarning):
    """One radius for columns that are measured in very different units."""


class ImpossibleInputsWarning(UserWarning):
    """A region holds inputs unlike any in training: half a child, a weight below 0, a sex between two."""


class ContradictionWarning(RuntimeWarning):
    """A bound lay above a value that was found: a fault of gpcert, so the bound is given up."""


def contradicted(what: str = "a certified bound contradicts a value that was found") -> None:
    """Say so; the caller answers as if nothing had been bounded."""
    told = f"{what}: nothing is claimed; please report the question"
    warnings.warn(told, ContradictionWarning, stacklevel=3)


class StoreError(GpcertError, ValueError):
    """A store of answers cannot be used: damaged, foreign, newer, read-only, full, or busy for too long."""
