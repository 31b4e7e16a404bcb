"""What an export may cost, and what an answer says where there is no file; no answer is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from flint import ctx

from gpcert.clock import OutOfTime, now, until
from gpcert.results import (
    CertifiedRadius,
    Evaluation,
    ProbabilityRange,
    ProofFile,
    Status,
    Unproved,
    Verdict,
)

_Answer = TypeVar("_Answer", ProbabilityRange, Verdict, CertifiedRadius, Evaluation)

#: An export may take this many times what the answer took, and in any case this many seconds, or this many
#: times the limit that the answer was asked with, if that is less, but not less than so many seconds.
_TIMES, _SECONDS, _LIMITS, _LEAST = 3.0, 10.0, 10.0, 5.0
#: Seconds for what an interrupted search has proved: somebody waits.
_AFTER = 3.0
#: Seconds between two looks whether somebody wants it to end.
_LOOK = 0.1

#: Bits of the balls of an export: fewer than a checker has, which has to see what was seen here.
_BITS = 53

#: Why a search knows nothing.
_ENDINGS = {
    Status.INTERRUPTED: Unproved.INTERRUPTED,
    Status.TIME: Unproved.TIME,
    Status.NODES: Unproved.NODES,
}


def exported(
    prove: Callable[[], ProofFile | Unproved],
    ended: Status,
    seconds: float,
    most: float,
    stop: Callable[[], bool],
) -> dict[str, Any]:
    """Entries of an answer: its proof file, or why there is none.

    `ended`: how the search did; `seconds`: what the answer took; `most`: the limit that it was asked with;
    `stop`: tells where the question stands, and whether to stop, unless that was said already.
    """
    start = now()
    looked, cut = start, ended is Status.INTERRUPTED

    def asked() -> bool:
        nonlocal looked
        if cut or now() < looked + _LOOK:
            return False
        looked = now()
        return stop()

    allowed = max(_LEAST, _TIMES * seconds, min(_SECONDS, _LIMITS * most))
    try:
        with _precision(), until(start + (_AFTER if cut else allowed), asked):
            found = prove()
    except KeyboardInterrupt:
        return {"unproved": Unproved.INTERRUPTED}
    except OutOfTime:
        return {"unproved": Unproved.INTERRUPTED if cut else Unproved.TIME}
    except (OSError, MemoryError):
        return {"unproved": Unproved.UNWRITTEN}
    if isinstance(found, ProofFile):
        return {"proof": found}
    return {"unproved": _ENDINGS.get(ended, found) if found is Unproved.NOTHING else found}


@contextmanager
def _precision() -> Iterator[None]:
    """That of an export for a while: the context's is a user's own."""
    saved, ctx.prec = ctx.prec, _BITS
    try:
        yield
    finally:
        ctx.prec = saved


def unasked(answer: _Answer, prover: object | None) -> _Answer:
    """The answer to what a stopped call did not come to; `prover`: who would have proved it."""
    return answer if prover is None else replace(answer, unproved=Unproved.INTERRUPTED)
