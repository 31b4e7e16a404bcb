"""Reading a kernel back from its JSON-able description; every oddity is one InvalidInputError."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.kernels.base import Kernel
from gpcert.kernels.compose import Composite, Product, Sum
from gpcert.kernels.stationary import Stationary
from gpcert.validation import require

_COMPOSITE: dict[str, type[Composite]] = {kind.type_name: kind for kind in (Sum, Product)}
_DEEPEST = 50


def kernel_from_dict(description: object, depth: int = 0) -> Kernel:
    """The kernel that `Kernel.to_dict` described, bit for bit."""
    require(depth < _DEEPEST, f"kernel must be nested less than {_DEEPEST} deep, got more")
    if not isinstance(description, dict):
        raise InvalidInputError(f"kernel must be a mapping, got {type(description).__name__}")
    kind = description.get("type")
    for stationary in Stationary.__subclasses__():  # also those of a caller, once their module is imported
        if kind == stationary.type_name:
            return _stationary(stationary, description)
    if isinstance(kind, str) and kind in _COMPOSITE:
        composite = _COMPOSITE[kind]
        _check_keys(description, {"type", composite.part_name})
        parts = description[composite.part_name]
        if not isinstance(parts, list):
            raise InvalidInputError(f"{composite.part_name} must be a list, got {type(parts).__name__}")
        return composite(tuple(kernel_from_dict(part, depth + 1) for part in parts))
    raise InvalidInputError(f"kernel type must be known, got {str(kind)[:40]!r}")


def _stationary(kind: type[Stationary], description: dict[Any, Any]) -> Stationary:
    names = [field.name for field in fields(kind)]
    _check_keys(description, {"type", *names})
    lengthscale = description["lengthscale"]
    scales = (
        np.array([exact_float("lengthscale", item) for item in lengthscale])
        if isinstance(lengthscale, list)
        else exact_float("lengthscale", lengthscale)
    )
    return kind(scales, *(exact_float(name, description[name]) for name in names[1:]))


def exact_float(name: str, value: object) -> float:
    """The float a hexadecimal string stands for, bit for bit."""
    try:
        if isinstance(value, str):
            return float.fromhex(value)
    except (ValueError, OverflowError):
        pass
    raise InvalidInputError(f"{name} must be a hexadecimal float string, got {str(value)[:40]!r}")


def _check_keys(description: dict[Any, Any], expected: set[str]) -> None:
    if set(description) != expected:
        raise InvalidInputError(
            f"kernel must have the entries {sorted(expected)}, got {sorted(map(str, description))[:10]}"
        )
