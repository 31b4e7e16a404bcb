"""What the training data show of each column: how it varies, and which values it never had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpcert.validation import Float, Mask, freeze, listed, require

#: The entry "centres" of a training record where the centres are all of the training data.
TRAINED = "training data"
#: What is known of a column besides its deviation, as files have it.
KINDS = "whole", "binary", "never_negative"
#: What scalers that were taken back may have rounded, relative to the largest value of a column.
_ROUNDED = 1e-9
_ENOUGH = 10  # rows; of fewer nothing is concluded but their deviation


def unlike_training(found: Sequence[tuple[int, str]], names: Sequence[str]) -> str:
    """The sentence about columns that `TrainingColumns.unlike` has found, "" without one."""
    kinds = {kind: [names[j] for j, each in found if each == kind] for _, kind in found}
    message = "; ".join(f"{kind} in training: {listed(some)}" for kind, some in kinds.items())
    return f"the regions hold values unlike any in training ({message})" if message else ""


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
            enough = len(X) >= _ENOUGH
            return cls(
                freeze(np.asarray(spread)), whole & enough, binary & enough, (least >= -slack) & enough
            )

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

    def unlike(self, lower: Float, upper: Float, moves: Mask, X: Float) -> list[tuple[int, str]]:
        """Columns in which some values between the ends (d,) of regions are unlike all in training, and what
        those were, if they move at all; but where the rows X (m, d) that are asked about are so themselves.
        """
        whole = self.whole & moves & (np.round(X) == X).all(axis=0)
        binary = self.binary & moves & ((X == 0) | (X == 1)).all(axis=0)
        below = self.never_negative & moves & (lower < 0) & (X >= 0).all(axis=0)
        cases = [binary, whole & below, whole, below]
        kinds = np.select(cases, ["0 or 1", "whole and never negative", "whole", "never negative"], "")
        return [(j, kind) for j, kind in enumerate(kinds.tolist()) if kind]

    def left(self, lower: Float, upper: Float, moves: Mask) -> bool:
        """Whether values of columns that move, between the ends (d,), lie beyond what is `possible`."""
        low, high = self.possible()
        return bool((moves & ((lower < low) | (upper > high))).any())

    def strange(self, z: Float) -> bool:
        """Whether a point (d,) has values unlike those of training: negative, no whole number, not 0 or 1."""
        fraction, below = self.whole & (z != np.round(z)), self.never_negative & (z < 0)
        return bool((fraction | below | (self.binary & (z > 1))).any())

    def possible(self) -> tuple[Float, Float]:
        """Where values (d,) make sense: from 0 to 1, from 0 on where none was less, else anywhere."""
        low = np.where(self.never_negative, 0.0, -np.inf)
        return low, np.where(self.binary, 1.0, np.inf)
