"""The record of a search that a proof is made from, and what an export of it may cost; no answer is lost."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from flint import ctx

from gpcert.clock import OutOfTime, now, until
from gpcert.regions import Region
from gpcert.results import (
    CertifiedRadius,
    Evaluation,
    ProbabilityRange,
    ProofFile,
    Status,
    Unproved,
    Verdict,
)
from gpcert.search import OpenBox, Recorder, Why
from gpcert.validation import Float

#: Splitting is given up where a box lacks more than this share of what one twice as wide lacked.
_LESS = 0.75


@dataclass(eq=False)
class Node:
    """A box; `bound`: the best that was proved of it as a whole."""

    lower: Float
    upper: Float
    reference: Float
    bound: float = -math.inf
    halved: bool = False
    short: float = -math.inf  #: what a leaf lacked on the last box around it that `stuck` looked at
    generation: int = 0  #: halvings since the box that the search had
    parts: list[Node] = field(default_factory=list)

    def stuck(self, lack: float) -> bool:
        """Whether halves of every side did not help enough; what is lacking (< 0) is remembered."""
        if self.generation % max(len(self.lower), 1):
            return False
        before, self.short = self.short, lack
        return lack < _LESS * before

    @property
    def halves(self) -> list[Node]:
        """Two halves whose union it is; none where the search did not split it so, or was cut short."""
        return self.parts if self.bound > -math.inf and len(self.parts) == 2 and self.halved else []


class Tree(Recorder):
    """Listens; `roots`: the whole region, for each side."""

    def __init__(self) -> None:
        self.roots: dict[int, Node] = {}
        self._nodes: dict[tuple[int, int], Node] = {}

    def opened(self, side: int, box: OpenBox, parent: int | None) -> None:
        node = Node(box.lower, box.upper, box.reference)
        self._nodes[side, box.number] = node
        if parent is None:
            self.roots[side] = node
        else:
            self._nodes[side, parent].parts.append(node)

    def split(self, side: int, box: OpenBox, bound: float, elsewhere: float) -> None:
        node = self._nodes[side, box.number]
        node.bound, node.halved = bound, elsewhere == math.inf  # other parts than halves leave a rest

    def settled(self, side: int, box: OpenBox, bound: float, why: Why) -> None:
        self._nodes[side, box.number].bound = bound

    def attained(self, side: int, point: Float, upper: float) -> None:
        """The answer has the points."""


class Goal(NamedTuple):
    """P(label) >= value on the region, or <= where `upper`; `flat`: of what decides the label, sharp there;
    `start`: a box of the search, or a point to begin with; `only`: less is of no use; `patient`: boxes are
    split as long as time and many splits last, whether or not that seems to help.
    """

    label: int
    region: Region
    upper: bool
    value: float
    start: Node | Float | None
    flat: bool
    only: bool = False
    patient: bool = False


class Subject(ABC):
    """Proves claims about one posterior.

    `facts`: of its latents, for the file. A checker does not distinguish probabilities up to `least` from 0.
    `sharp`: whether bounds of P(label) are sharp at 1/2.
    """

    facts: list[Any]
    least: float = 0.0
    sharp: bool = False

    @abstractmethod
    def prove(self, goal: Goal) -> tuple[float, Any]:
        """The bound that is proved, and how."""

    def seen_at(self, label: int, sense: str, value: float, point: Float) -> float:
        """What a checker sees of P(label) <= (>=) a number at a point (D,): it, a little less, or nothing."""
        return value

    def loses_at(self, label: int, value: float, point: Float) -> bool:
        """Whether files may say that the margin of the label is at most (less than) a number at a point."""
        return value < 1.0


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
