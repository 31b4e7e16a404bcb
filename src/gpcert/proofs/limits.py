"""What an export may cost, and what an answer says where there is no file; no answer is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gpcert.clock import OutOfTime, until
from gpcert.results import ProofFile, Unproved

__all__ = ["exported"]

#: An export may take this many times what the answer took, and in any case this many seconds, or this many
#: times the limit that the answer was asked with, if that is less.
_TIMES, _SECONDS, _LIMITS = 3.0, 10.0, 10.0
#: Seconds between two looks whether somebody wants it to end.
_LOOK = 0.1


def exported(
    prove: Callable[[], ProofFile | None], seconds: float, most: float, stop: Callable[[], bool]
) -> dict[str, Any]:
    """Entries of an answer: its proof file, or why there is none.

    `seconds`: what the answer took; `most`: the limit that it was asked with; `stop`: tells where the
    question stands, and whether to stop.
    """
    start = time.perf_counter()
    looked, wanted = start, False

    def asked() -> bool:
        nonlocal looked, wanted
        if time.perf_counter() < looked + _LOOK:
            return False
        looked = time.perf_counter()
        wanted = stop()
        return wanted

    try:
        with until(start + max(_TIMES * seconds, min(_SECONDS, _LIMITS * most)), asked):
            file = prove()
    except KeyboardInterrupt:
        return {"unproved": Unproved.INTERRUPTED}
    except OutOfTime:
        return {"unproved": Unproved.TIME}
    except (OSError, MemoryError):
        return {"unproved": Unproved.UNWRITTEN}
    if file is None:
        return {"unproved": Unproved.INTERRUPTED if wanted else Unproved.NOTHING}
    return {"proof": file}
