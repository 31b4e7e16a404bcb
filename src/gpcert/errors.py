"""The one family of exceptions gpcert raises on purpose.

Every message is one sentence: the parameter, the rule, the value received.
"""

from __future__ import annotations

__all__ = [
    "GpcertError",
    "InvalidInputError",
    "ModelFileError",
    "NotFittedError",
    "StoreError",
    "UnitsWarning",
]


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


class StoreError(GpcertError, ValueError):
    """A store of answers cannot be used: damaged, foreign, newer, read-only, full, or busy for too long."""
