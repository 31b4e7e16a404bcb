"""Reports on the progress of a batch, and a bar that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Progress:
    """Where a call stands: what a function given as `progress` is called with.

    Attributes
    ----------
    index : int
        The region, or point, that was refined.
    done : int
        How many of them are answered.
    total : int
        How many there are.
    lower : float
        What the question is about is at least this for this region; the question says what.
    upper : float
        It is at most this.
    nodes : int
        Boxes bounded for it so far.
    seconds : float
        Seconds spent on it so far.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> found = gc.probability_range(clf, gc.Ball([2.5], 0.25), progress=lambda p: p.upper - p.lower < 0.5)
    >>> found.status.value in ("converged", "interrupted")
    True
    """

    index: int
    done: int
    total: int
    lower: float
    upper: float
    nodes: int
    seconds: float


#: What a user gives as `progress`: returning True stops the call, and what is known is its answer.
Listener = Callable[[Progress], object]
#: What a search calls after each step: (lower, upper, nodes, seconds), and which of the regions of its piece
#: where it has several; True: stop.
Report = Callable[..., bool]


class Stopped(Exception):
    """A piece was stopped, or a search in it kept Ctrl-C to itself, and it has no answer."""


def wants_to_stop(said: object) -> bool:
    """Whether a callback said True; anything else, also an array or a string, means to go on."""
    return isinstance(said, bool | np.bool_) and bool(said)


class Collector:
    """A listener that keeps the answers of its batch as they come: they outlive an error and a second Ctrl-C.

    What dead workers have cost is kept, too, in place of a warning.
    """

    def __init__(self, listen: Listener) -> None:
        self._listen = listen
        self.answers: dict[int, Any] = {}  #: by the number of the region
        self.complaints: list[str] = []

    def __call__(self, p: Progress) -> object:
        """Pass it on."""
        return self._listen(p)


@contextmanager
def listener(progress: Listener | bool | None, what: str) -> Iterator[Listener | None]:
    """The listener of the question `what`: the caller's function, a bar for True, or None."""
    if not isinstance(progress, bool | np.bool_):
        yield progress
        return
    if not progress:
        yield None
        return
    bar = Bar(what)
    try:
        yield bar
    finally:
        bar.close()


class Bar:
    """One line on a stream that is drawn over itself, by tqdm."""

    def __init__(self, what: str, total: int | None = None, leave: bool = True, shown: bool = True) -> None:
        self._options = {"desc": what, "leave": leave, "miniters": 0}
        self._total, self._shown = total, shown
        self._bar: Any = None

    def __call__(self, p: Progress) -> None:
        """A listener: how many regions are answered, and how wide the one is that was refined last."""
        self._total = p.total
        width = p.upper - p.lower
        self.draw(p.done, f"width {width:.3g}" if np.isfinite(width) else "")

    def draw(self, done: int, note: str = "") -> None:
        """Show that so much is done, and a note."""
        if self._shown and self._bar is None:
            from tqdm import tqdm  # dear to import

            self._bar = tqdm(total=self._total, **self._options)
        if self._bar is not None:
            self._bar.n = done
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(0)

    def close(self) -> None:
        """Leave the line as it ended, or, without `leave`, no trace of it."""
        if self._bar is not None:
            self._bar.close()
