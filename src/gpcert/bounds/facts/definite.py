"""A symmetric matrix as the difference of two that are certainly positive semidefinite (F1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpcert.rounding import TINY, UNIT, gamma, is_certainly_psd, symmetric
from gpcert.validation import Float

#: A matrix that needs a larger shift than this many times the check's own is split.
_LARGEST_SHIFT = 64.0


class Parts(NamedTuple):
    """matrix = positive - negative - diag(defect) for some |defect| <= `defect` (F1); None: no negative part.

    Without a negative part the defect is exact (to one rounding) and >= 0.
    """

    positive: Float
    negative: Float | None
    defect: Float

    @property
    def magnitude(self) -> Float:
        """Their sum; the shifted parts dominate it up to one rounding, which row sums absorb."""
        return self.positive if self.negative is None else self.positive + self.negative


def definite_parts(matrix: Float, gram: Callable[[], Float], most: float = _LARGEST_SHIFT) -> Parts:
    """F1 for a symmetric matrix (n, n): one part if it is (nearly) positive semidefinite, else two.

    The negative part is cut off in the coordinates in which `gram()`, the kernel matrix, is the identity:
    there the matrix of a variational posterior has norm about 1, and so have its parts.
    """
    shifted = _shift(matrix, most)
    if shifted is not None:
        return Parts(shifted, None, np.diagonal(shifted) - np.diagonal(matrix))
    try:
        negative = _negative(matrix, gram())
    except np.linalg.LinAlgError:  # of entries beyond the doubles
        negative = np.full_like(matrix, np.nan)
    return verified_parts(matrix + negative, negative, UNIT * np.abs(matrix + negative).sum(axis=1) * 1.01)


def verified_parts(positive: Float, negative: Float, error: Float | float = 0.0) -> Parts:
    """F1 for positive - negative, both nearly positive semidefinite and known to the row sums `error`."""
    first, second = _shift(positive), _shift(negative)
    if first is None or second is None:
        n = len(positive)
        return Parts(np.full((n, n), np.nan), None, np.full(n, np.inf))
    one = np.diagonal(first) - np.diagonal(positive)
    two = np.diagonal(second) - np.diagonal(negative)
    # Each of the two may be rounded where the shift exceeds the entry; their difference does not show it.
    defect = (np.abs(one - two) + 2 * UNIT * (one + two) + error) * (1.0 + 8 * UNIT) + TINY
    return Parts(first, second, defect)


def _shift(matrix: Float, most: float = np.inf) -> Float | None:
    """matrix + c I, verified positive semidefinite, for the smallest c of a growing sequence up to `most`
    times the first.
    """
    n = len(matrix)
    diagonal = np.diagonal(matrix)
    # The check itself needs about 2 gamma(n) tr(A); start there, so that a PSD matrix passes at once.
    first = shift = 4.0 * gamma(n + 3) * float(np.abs(diagonal).sum()) + TINY
    while np.isfinite(shift) and shift <= most * first + 2.0**-900:  # a zero matrix needs some TINYs
        shifted = matrix.copy()
        shifted[np.diag_indices(n)] = diagonal + shift
        if is_certainly_psd(shifted):
            return shifted
        shift *= 4.0
    return None


def _negative(matrix: Float, gram: Float) -> Float:
    """About the negative part of `matrix` in the coordinates whitened by gram + I / |matrix|.

    The second term is what training adds to the kernel matrix, or less: with it the whitened matrix has
    norm about 1 in the directions, too, that the kernel hardly sees.
    """
    values, vectors = np.linalg.eigh(gram)
    size = float(np.linalg.norm(matrix, 2))
    root = np.sqrt(np.maximum(values, 0.0) + max(1.0 / max(size, TINY), len(gram) * UNIT * float(values[-1])))
    half, inverse = vectors * root, vectors / root
    white, axes = np.linalg.eigh(symmetric(half.T @ matrix @ half))
    below = white < 0
    columns = inverse @ axes[:, below]
    return symmetric((columns * -white[below]) @ columns.T)
