"""Pieces of work by number, made where somebody looks at them: of a large batch most are answered unseen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from gpcert.validation import Index, Mask


class Numbered(Mapping[int, Any]):
    """The pieces 0, 1, ..., of which some may be gone; `make` makes one, and what was made is kept.

    >>> from gpcert.running import Numbered
    >>> pieces = Numbered(3, lambda i: [i])
    >>> pieces.pop(1), list(pieces)
    ([1], [0, 2])
    """

    def __init__(self, count: int, make: Callable[[int], Any]) -> None:
        self._make, self._made = make, dict[int, Any]()
        self.left = np.ones(count, dtype=bool)

    def copy(self) -> Numbered:
        """The same pieces, to be made anew."""
        other = Numbered(0, self._make)
        other.left = self.left.copy()
        return other

    def __len__(self) -> int:
        return int(np.count_nonzero(self.left))

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self.left).tolist())

    def __contains__(self, i: object) -> bool:
        return isinstance(i, int) and 0 <= i < len(self.left) and bool(self.left[i])

    def __getitem__(self, i: int) -> Any:
        if i not in self:
            raise KeyError(i)
        if i not in self._made:
            self._made[i] = self._make(i)
        return self._made[i]

    def pop(self, i: int) -> Any:
        """A piece, which is then gone."""
        piece = self[i]
        self.left[i] = False
        del self._made[i]
        return piece


#: What a batch is given.
Pieces = dict[int, Any] | Numbered


def among(pieces: Mapping[int, Any], numbers: Index) -> Mask:
    """Which (m,) of the numbers are those of pieces."""
    if isinstance(pieces, Numbered):
        return pieces.left[numbers]
    return np.fromiter((i in pieces for i in numbers.tolist()), dtype=bool, count=len(numbers))


def drop(pieces: Pieces, numbers: Index) -> None:
    """Pieces that are answered, and were perhaps never made."""
    if isinstance(pieces, Numbered):
        pieces.left[numbers] = False
        return
    for i in numbers.tolist():
        del pieces[i]


def regions(pieces: Pieces, size: Callable[[Any], int] | None) -> int:
    """How many regions the pieces are about, each about `size` of them, None: about one."""
    return len(pieces) if size is None else sum(map(size, pieces.values()))
