"""What all questions about many regions share: the task, its pieces, their answers and proofs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpcert.bounds.factory import BoundFactory
from gpcert.posterior import Posterior
from gpcert.proofs.record import Tree, exported, unasked
from gpcert.questions.checks import interrupted
from gpcert.regions import Region
from gpcert.results import About, ProofFile, Status, Unproved
from gpcert.running import Lot, Pieces, Report, Running, ask_all
from gpcert.settings import Settings
from gpcert.validation import Index, Mask

if TYPE_CHECKING:
    from gpcert.proofs.prover import Prover
    from gpcert.questions.rooted import Roots


@dataclass(frozen=True, eq=False)
class Task:
    """What the regions of one call share; each question adds what else it was asked with."""

    post: Posterior
    settings: Settings
    about: About
    prover: Prover | None

    @cached_property
    def factory(self) -> BoundFactory:
        """The bounds, with slices and Gram matrices shared."""
        return BoundFactory(self.post)

    def recorder(self) -> Tree | None:
        """For a search that is to be proved."""
        return None if self.prover is None else Tree()

    def export(
        self,
        prove: Callable[[Prover], ProofFile | Unproved],
        ended: Status,
        seconds: float,
        stop: Callable[[], bool],
    ) -> dict[str, Any]:
        """Entries of an answer: its proof file, or why there is none; nothing where none is asked for."""
        if self.prover is None:
            return {}
        return exported(partial(prove, self.prover), ended, seconds, self.settings.max_seconds, stop)


class Piece:
    """One of the regions with its label; `tie`: nothing decides it; `known`: what the root found of it."""

    __slots__ = ("_at", "_regions", "known", "label", "tie")

    def __init__(
        self, regions: Sequence[Region], at: int, label: int, tie: bool = False, known: Any = None
    ) -> None:
        self._regions, self._at, self.label, self.tie, self.known = regions, at, label, tie, known

    @property
    def region(self) -> Region:
        """Made where it is needed."""
        return self._regions[self._at]

    def __reduce__(self) -> tuple[Any, ...]:
        return Piece, ([self.region], 0, self.label, self.tie, self.known)  # of all of them one travels


def pieces_of(regions: Sequence[Region], labels: Index, ties: Mask | None = None) -> Pieces:
    """One for each region."""
    return Pieces(
        len(regions), lambda i: Piece(regions, i, int(labels[i]), ties is not None and bool(ties[i]))
    )


def answered(
    ask: Callable[[Any, Any, Report], Any],
    task: Task,
    pieces: Pieces,
    running: Running,
    what: str,
    blank: Callable[[Any, Any], Any],
    stopped: Callable[[Any], bool] = interrupted,
    together: Callable[[Pieces], Iterator[Lot]] | None = None,
) -> list[Any]:
    """An answer for each region: that of `ask` or of a lot, or the blank one where a call was stopped before.

    Pieces of several regions are blocks of their numbers, and their answers lists.
    """
    nothing, everything = partial(blank, task), pieces.copy()
    found = ask_all(ask, task, pieces, running, what=what, stopped=stopped, blank=nothing, together=together)

    def left_out(i: int) -> Any:
        answer = nothing(everything[i]) if everything.step == 1 else nothing(np.array([i]))[0]
        return unasked(answer, task.prover)

    return [found[i] if i in found else left_out(i) for i in range(everything.count)]


class AtRoot(NamedTuple):
    """What is known at the root of some regions (m,), and which of them that settles.

    `hint`: for the search of one that is not; `answer`, `report`: of one that is, by its place among these
    and its number.
    """

    roots: Roots
    settled: Mask
    hint: Callable[[int], Any]
    answer: Callable[[int, int], Any]
    report: Callable[[int], tuple[float, ...]]


def settled_together(
    at_root: Callable[[slice], Iterator[AtRoot]], device: str, pieces: Pieces
) -> Iterator[Lot]:
    """The answers that the roots settle, lot by lot; the other pieces learn what is known there."""
    from gpcert.questions.rooted import lots

    for lot in lots(pieces.count, pieces, device):
        for found in at_root(slice(lot.start, lot.stop)):
            numbers = lot.start + found.roots.numbers
            asked = pieces.waiting[numbers]
            for at in np.flatnonzero(asked & ~found.settled).tolist():
                pieces[int(numbers[at])].known = found.hint(at)
            yield _lot(found, numbers, np.flatnonzero(asked & found.settled))


def _lot(found: AtRoot, numbers: Index, places: Index) -> Lot:
    return Lot(
        numbers[places],
        lambda k: found.answer(int(places[k]), int(numbers[places[k]])),
        lambda k: found.report(int(places[k])),
    )
