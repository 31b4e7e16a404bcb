"""How a batch runs, and what answers its pieces."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpcert.running.keeper import Keeper
from gpcert.running.progress import Listener, Report

__all__ = ["Ask", "Running", "Together"]

#: Answers one piece: (task, piece, report) -> answer. `task` is what all pieces share.
Ask = Callable[[Any, Any, Report], Any]
#: Answers as many pieces as it can, lot by lot: the answers, and a report on the last of them.
Together = Callable[[Mapping[int, Any]], Iterator[tuple[Mapping[int, Any], Sequence[float]]]]


@dataclass(frozen=True)
class Running:
    """How a batch runs: who is told, on how many workers, who hears of workers that died, who keeps answers.

    `keeper`: made for each batch, of a function that gives the answer which says nothing of a piece.
    """

    progress: Listener | bool | None = None
    n_jobs: int | None = None
    complain: Callable[[str], None] = lambda told: warnings.warn(told, RuntimeWarning, stacklevel=5)
    keeper: Callable[[Any], Keeper] = lambda blank: Keeper()
