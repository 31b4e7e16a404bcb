"""What somebody may listen to while a search runs: which boxes are opened, split and settled, and why.

The leaves of what was told (boxes settled, and those still open) cover the region at any moment, each with
its certified bound: the search's lower end is the smallest of them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol

from gpcert.validation import Float


class OpenBox(NamedTuple):
    """A box with its certified lower bound; the smallest bound is refined first.

    A tuple that compares by two numbers: heap operations then run without a single byte code of Python in
    between, so that Ctrl-C cannot leave a heap half ordered.
    """

    bound: float
    number: int
    lower: Float
    upper: Float
    reference: Float


class Why(StrEnum):
    """Why a box is not looked at any more."""

    ENOUGH = "its bound suffices"
    ROUNDING = "only rounding stands between its bound and the target"
    RESOLVED = "its bound is as near to the best value as that is known"
    INDIVISIBLE = "no coordinate of it can be halved"
    MEMORY = "too many boxes are open"
    UNREACHABLE = "nothing above what is known beforehand can be asked for"
    POINT = "nothing moves"


class Recorder(Protocol):
    """Listens to the searches of one question; `side` tells which of them speaks."""

    def opened(self, side: int, box: OpenBox, parent: int | None) -> None:
        """A box joins the open ones: the whole (no parent), or a part of one that was bounded."""

    def split(self, side: int, box: OpenBox, bound: float, elsewhere: float) -> None:
        """The box gives way to the parts opened before; on the rest of it the values are >= `elsewhere`."""

    def settled(self, side: int, box: OpenBox, bound: float, why: Why) -> None:
        """On the box the values are at least `bound`, and that is the last word."""

    def attained(self, side: int, point: Float, upper: float) -> None:
        """The point (d,) of the region has a value of at most `upper`, the smallest so far."""
