"""What the training data show of each column: how it varies, and which values it never had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpcert.validation import Float, Mask, freeze, listed, require

#: The entry "centres" of a training record where the centres are all of the training data.
TRAINED = "training data"
#: What scalers that were taken back may have rounded, relative to the largest value of a column.
_ROUNDED = 1e-9


class TrainingColumns(NamedTuple):
    """For each column (d,): its standard deviation; whether all values were whole numbers, 0 or 1, >= 0."""

    spread: Float
    whole: Mask
    binary: Mask
    never_negative: Mask

    @classmethod
    def of(cls, X: Float) -> TrainingColumns:
        """Of the training data (n, d)."""
        with np.errstate(all="ignore"):
            spread, least, most = X.std(axis=0), X.min(axis=0), X.max(axis=0)
            slack = _ROUNDED * np.maximum(1.0, np.maximum(-least, most))
            whole = (np.abs(X - np.round(X)) <= slack).all(axis=0)
            binary = whole & (np.round(least) == 0) & (np.round(most) == 1)
            return cls(freeze(np.asarray(spread)), whole, binary, least >= -slack)

    def ordered(self, at: Sequence[int]) -> TrainingColumns:
        """The same with column `at[j]` in the j-th place."""
        some = list(at)
        masks = self.whole[some], self.binary[some], self.never_negative[some]
        return TrainingColumns(self.spread[some], *masks)

    def units(self, moving: Sequence[int] | None, names: Sequence[str] | None, what: str) -> Float:
        """Standard deviations (d,) as units; a constant column may not move, and counts as 1."""
        flat = np.flatnonzero(~(self.spread > 0)).tolist()
        stuck = [j if names is None else names[j] for j in flat if moving is None or j in moving]
        require(not stuck, f"{what} needs columns that vary in training, got {listed(stuck)}, constant")
        return np.where(self.spread > 0, self.spread, 1.0)

    def possible(self) -> tuple[Float, Float]:
        """Where values (d,) make sense: from 0 to 1, from 0 on where none was less, else anywhere."""
        low = np.where(self.never_negative, 0.0, -np.inf)
        return low, np.where(self.binary, 1.0, np.inf)
