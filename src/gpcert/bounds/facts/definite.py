"""What is verified of symmetric matrices: as the difference of two that are certainly positive semidefinite
(F1), against the inverse of the Gram matrix (F3, F5) and against a diagonal (F4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from gpcert.rounding import TINY, UNIT, gamma, is_certainly_psd, symmetric
from gpcert.validation import Float


def block_contraction(R: Float, K: Float, entry: float, variance: float, small: bool = False) -> float:
    """F3, M2: c with sum_ce z_c^T R_ce z_e <= c sum_c |g_c|^2, R (Cn, Cn) symmetric; inf: none verified.

    K: the Gram matrix divided by s2 (n, n), each entry to `entry`. `small`: c may be far below 1, as for the
    negative part of a precision. R need not be semidefinite. L L^T >= K: the jitter exceeds the error of K
    and the backward error of the factorisation; so z_c = s L y_c with |y_c| <= |g_c|.
    """
    size, n = len(R), len(K)
    jitter = 2.0 * n * entry + 8.0 * gamma(n + 3) * n
    lower, info = lapack.dpotrf(np.asfortranarray(K + jitter * np.eye(n)), lower=1, clean=1)
    if info != 0:
        return np.inf
    T, rows = _congruent(R, lower)
    slack = 8.0 * gamma(2 * n + 8) * rows
    for bound in _guesses(T, slack, variance, small):
        test = -T
        test[np.diag_indices(size)] += bound - slack - gamma(4) * bound
        if bound > slack and is_certainly_psd(test):
            return float((bound + slack) * variance * (1.0 + 4 * UNIT))
    return np.inf


def _congruent(R: Float, lower: Float) -> tuple[Float, float]:
    """(I x L)^T R (I x L) and the largest row sum of the same product of absolute values."""
    size, n = len(R), len(lower)
    T = np.empty((size, size))
    absolute = np.abs(lower)
    ones = absolute.sum(axis=1)
    sums = np.zeros(size // n)
    for c in range(size // n):
        for e in range(c, size // n):
            rows, columns = slice(c * n, (c + 1) * n), slice(e * n, (e + 1) * n)
            product = blas.dtrmm(1.0, lower, np.asfortranarray(R[rows, columns]), trans_a=1, lower=1)
            product = blas.dtrmm(1.0, lower, product, side=1, lower=1)
            product = symmetric(product) if c == e else product
            T[rows, columns], T[columns, rows] = product, product.T
            block = np.abs(R[rows, columns])
            sums[c] += float((absolute.T @ (block @ ones)).max())
            sums[e] += float((absolute.T @ (block.T @ ones)).max()) if e != c else 0.0
    return T, float(sums.max())


def _guesses(product: Float, error: float, variance: float, small: bool) -> Iterator[float]:
    """Bounds of the largest eigenvalue to be verified: about 1 / s2 for Laplace and EP, else by its value."""
    if not small:
        if 1.0 / variance > 2.0 * error:
            yield 1.0 / variance - 2.0 * error  # c is then 1, less a slack
        least = max(1e-12, 1.5 * error * variance)  # less cannot verify
        for slack in (least, 8.0 * least, 1e3 * least):
            yield (1.0 + slack) / variance
    largest = float(np.linalg.eigvalsh(product)[-1]) if np.isfinite(product).all() else np.inf
    for slack in (1e-6, 1e-3, 1.0):
        yield (max(largest, 0.0) + error) * (1.0 + slack) + TINY


def inverse_contraction(
    precision: Float, K: Float, entry: float, variance: float, sites: Float | None
) -> float:
    """F5: c with precision <= c K^-1 for a precision close to (K + N)^-1, N a diagonal >= 0.

    The eigenvalues of precision (K + N) are real (it is similar to a symmetric matrix) and at most 1 + the
    largest row sum of |precision (K + N) - I|; and K <= K + N. Arguments as for `block_contraction`.
    """
    n = len(K)
    scaled = variance * K
    noise = _noise(precision, scaled) if sites is None else 1.0 / sites
    if not (np.isfinite(noise).all() and (noise >= 0).all()):
        return np.inf
    scaled[np.diag_indices(n)] += noise
    residual = precision @ scaled
    residual[np.diag_indices(n)] -= 1.0
    absolute = np.abs(precision)
    sizes = absolute @ (np.abs(scaled).sum(axis=1)) + 1.0
    error = (gamma(n + 8) * sizes + 1.01 * entry * variance * n * absolute.sum(axis=1)) * (1.0 + gamma(2 * n))
    rows = np.abs(residual).sum(axis=1) * (1.0 + gamma(n)) + error
    return float(1.0 + np.max(rows, initial=0.0) * (1.0 + 8 * UNIT) + 4 * UNIT)


def _noise(precision: Float, K: Float) -> Float:
    """The diagonal N if the precision is the inverse of K + N; any N >= 0 is sound."""
    try:
        inverse = np.linalg.inv(precision)
    except np.linalg.LinAlgError:
        return np.full(len(K), np.nan)
    return np.asarray(np.maximum(np.diagonal(inverse) - np.diagonal(K), 0.0))


def verified_diagonal(shifted: Float, shape: Float) -> list[Float]:
    """[t * shape] with the smallest t >= 1 of a few that verifies, or []."""
    if not (np.isfinite(shape).all() and (shape > 0).all()):
        return []
    root = 1.0 / np.sqrt(shape)
    scaled = shifted * np.outer(root, root)
    y = np.ones(len(shape))
    top = 1.0
    for _ in range(30):
        y = scaled @ y
        top = float(np.linalg.norm(y))
        if not 0 < top < np.inf:
            return []
        y /= top
    for slack in (1e-9, 1e-3, 0.02, 0.1, 0.3, 1.0):
        diagonal = max(top, 1e-3) * (1.0 + slack) * shape
        test = -shifted
        # Rounding of the difference: one ulp of the larger of the two.
        test[np.diag_indices(len(shape))] += diagonal - 4 * UNIT * (diagonal + np.diagonal(shifted))
        if is_certainly_psd(test):
            return [diagonal]
    return []


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
