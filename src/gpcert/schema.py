"""Records as data: one form for regions, settings and answers, exact, versioned, and read with care."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from gpcert.validation import Float

__all__ = ["digest"]


def digest(description: Any, *arrays: Float) -> str:
    """SHA-256 of a JSON-able description and of the doubles of arrays (their shapes included), in hex."""
    told = json.dumps([description, [array.shape for array in arrays]], sort_keys=True, allow_nan=False)
    hashed = sha256(told.encode())
    for array in arrays:
        hashed.update(array.astype("<f8", order="C", copy=False).data)
    return hashed.hexdigest()
