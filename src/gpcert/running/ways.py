"""How a batch runs, and what answers its pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from gpcert.running.keeper import Keeper
from gpcert.running.progress import Listener, Report
from gpcert.validation import Index

#: Answers one piece: (task, piece, report) -> answer. `task` is what all pieces share.
Ask = Callable[[Any, Any, Report], Any]


@dataclass(frozen=True, eq=False)
class Lot:
    """Pieces that were answered together: their numbers, ascending, and of each, by its place among these,
    the answer, made where it is looked at, and what is reported of it.
    """

    numbers: Index
    answer: Callable[[int], Any]
    known: Callable[[int], Sequence[float]]

    @classmethod
    def of(cls, answers: Mapping[int, Any], known: Sequence[Sequence[float]]) -> Lot:
        """Of answers that are there already."""
        rows = sorted(zip(answers, answers.values(), known, strict=True), key=itemgetter(0))
        numbers, made, told = zip(*rows, strict=True)
        return cls(np.array(numbers, dtype=np.intp), made.__getitem__, told.__getitem__)


def made(answer: Any, number: int) -> Any:
    """The answer to a piece, which may still be one of a lot."""
    if isinstance(answer, Lot):
        return answer.answer(int(np.searchsorted(answer.numbers, number)))
    return answer


#: Answers as many pieces, each of one region, as it can, lot by lot.
Together = Callable[[Mapping[int, Any]], Iterator[Lot]]


@dataclass(frozen=True)
class Running:
    """How a batch runs: who is told, on how many workers, who keeps answers.

    `keeper`: made for each batch, of a function that gives the answer which says nothing of a piece.
    """

    progress: Listener | bool | None = None
    n_jobs: int | None = None
    keeper: Callable[[Any], Keeper] = lambda blank: Keeper()
