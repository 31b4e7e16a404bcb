"""What training needs of memory, and what there is: too many points are refused at once."""

from __future__ import annotations

import os
from contextlib import suppress
from math import isqrt
from pathlib import Path

from gpcert.validation import require

_DOUBLE = 8  # bytes


def matrices(classes: int, together: bool) -> int:
    """How many (n, n) arrays there are at once, at least: tests/inference/test_memory.py measures them.

    One latent: distances, the kernel matrix, a factor, its inverse and what becomes of it. One-vs-rest keeps
    a precision of each class, softmax (C, C) blocks of them.
    """
    return 4 * classes**2 if together else max(7, 5 * classes * (classes > 2))


def check_memory(n: int, classes: int, together: bool) -> None:
    """Refuse what cannot fit."""
    each = matrices(classes, together) * _DOUBLE
    there = available()
    if there is None or each * n**2 <= there:
        return
    most = isqrt(there // each)
    told = f"got {n}, which need {each * n**2 / 1e9:.1f} GB"
    require(
        False, f"X must have at most {most} points to be trained on in {there / 1e9:.1f} GB of memory, {told}"
    )


def available() -> int | None:
    """Bytes that could be had now, of this machine and of the container; None: nobody says."""
    found = []
    with suppress(OSError, ValueError):
        (line,) = (line for line in Path("/proc/meminfo").read_text().splitlines() if "MemAvailable:" in line)
        found.append(1024 * int(line.split()[1]))
    if not found:
        with suppress(OSError, ValueError, AttributeError):  # AttributeError: not on Windows
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # "max" is no number
            found.append(int(Path("/sys/fs/cgroup", limit).read_text()))
    return min(found, default=None)
