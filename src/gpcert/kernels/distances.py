"""Half squared scaled distances z_ij = (1/2) sum_k ((x_ik - z_jk) / l_k)^2, in row blocks.

Accuracy. Pairs computed by differences have a relative error of at most about (d/2 + 3) machine epsilons,
whatever the offset or the spread of the data. |a|^2 + |b|^2 - 2 a.b on centred data (one matrix product,
tens of times faster for many features) loses digits where the distance is small against the norms, so a
pair is taken from it only if z >= TRUST (|a|^2 + |b|^2)/2, which keeps its relative error below about
(d + 4)/TRUST epsilons; every other pair is computed again by differences. Coinciding points have z = 0
exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gpcert.validation import Float

Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

TRUST = 1e-2
NEAR = 1e-8
FEW_FEATURES = 4  # up to here differences are as fast as the matrix product
BLOCK_SIZE = 2**18  # entries per block: temporaries stay small against the (n, m) matrices
_CLIP = 1e150  # squares of scaled coordinates stay finite at lengthscales of 1e-300


class Anchors:
    """Points Z (m, d) that distances are taken to again and again: centred and scaled once."""

    def __init__(self, points: Float) -> None:
        self.points = points
        self._kept: tuple[bytes, tuple[Float, Float]] | None = None

    @cached_property
    def _mean(self) -> Float:
        return np.asarray(self.points.mean(axis=0))

    def scale(self, points: Float, lengthscale: float | Float) -> Float:
        """Points (n, d) relative to the mean of Z, divided by the lengthscale."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (points - self._mean) / lengthscale
            return np.asarray(np.clip(scaled, -_CLIP, _CLIP))

    def scaled(self, lengthscale: float | Float) -> tuple[Float, Float]:
        """b (m, d), and |b|^2/2 (m,); those of the last lengthscale are kept."""
        key, kept = np.asarray(lengthscale).tobytes(), self._kept
        if kept is None or kept[0] != key:
            b = self.scale(self.points, lengthscale)
            self._kept = kept = key, (b, _half_norms(b))
        return kept[1]


def _half_norms(points: Float) -> Float:
    return np.asarray(0.5 * np.einsum("ik,ik->i", points, points))


@dataclass(frozen=True, eq=False)
class Scaled:
    """Points centred at the mean of Z and divided by the lengthscale: a (n, d), b (m, d)."""

    distances: Distances
    lengthscale: float | Float

    @cached_property
    def a(self) -> Float:
        """Scaled rows of X (n, d)."""
        return self.b if self.distances.symmetric else self._anchors.scale(self.distances.X, self.lengthscale)

    @property
    def b(self) -> Float:
        """Scaled rows of Z (m, d)."""
        return self._anchors.scaled(self.lengthscale)[0]

    @property
    def _anchors(self) -> Anchors:
        return self.distances.anchors

    @cached_property
    def half_norms(self) -> tuple[Float, Float]:
        """|a|^2/2 (n,) and |b|^2/2 (m,)."""
        return _half_norms(self.a), self._anchors.scaled(self.lengthscale)[1]

    def block(self, rows: slice, columns: slice) -> Float:
        """z of the given rows and columns."""
        X, Z = self.distances.X[rows], self.distances.Z[columns]
        if X.shape[1] <= FEW_FEATURES:
            return _by_differences(X, Z, self.lengthscale)
        total = self.half_norms[0][rows, None] + self.half_norms[1][columns]
        with np.errstate(over="ignore", invalid="ignore"):
            z = self.a[rows] @ self.b[columns].T
            np.subtract(total, z, out=z)
            total *= TRUST
            doubtful = ~(z >= total)
        # A gathered pair costs several times what it costs in a full sweep of the block.
        if np.count_nonzero(doubtful) > z.size // 8:
            return _by_differences(X, Z, self.lengthscale)
        for i, j, difference in self.differences(rows, columns, doubtful):
            z[i, j] = 0.5 * np.einsum("pk,pk->p", difference, difference)
        return np.asarray(z)

    def near(self, rows: slice, z: Float) -> Mask:
        """Where 0 < z is so small against the norms that a weight of size z^-1/2 times the rounding of a
        matrix product of a and b would show; z is the block of these rows.
        """
        total = self.half_norms[0][rows, None] + self.half_norms[1]
        return np.asarray((z > 0.0) & (z < NEAR * total))

    def differences(self, rows: slice, columns: slice, mask: Mask) -> Iterator[tuple[Index, Index, Float]]:
        """(i, j, (X_i - Z_j)/l) for the pairs of the block in the mask, in pieces smaller than a block."""
        X, Z = self.distances.X[rows], self.distances.Z[columns]
        i, j = np.nonzero(mask)
        step = max(1, BLOCK_SIZE // X.shape[1])
        for start in range(0, len(i), step):
            p, q = i[start : start + step], j[start : start + step]
            with np.errstate(over="ignore"):
                yield p, q, (X[p] - Z[q]) / self.lengthscale


class Distances:
    """Distances between the rows of X (n, d) and of Z (m, d); Z None: of X with itself, exactly symmetric.

    `keep=True` stores the unscaled (n, m) matrix at its first use, so that a sequence of scalar
    lengthscales costs one division each.
    """

    def __init__(self, X: Float, Z: Float | Anchors | None = None, *, keep: bool = False) -> None:
        self.X = X
        self.symmetric = Z is None
        self.anchors = Z if isinstance(Z, Anchors) else Anchors(X if Z is None else Z)
        self.Z = self.anchors.points
        self.keep = keep

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return len(self.X), len(self.Z)

    def assemble(self, lengthscale: float | Float, function: Callable[[Float], Float]) -> Float:
        """The (n, m) matrix function(z), elementwise; exactly symmetric when Z is None."""
        block = self._source(lengthscale)
        matrix = np.empty(self.shape)
        for rows in self._row_slices():
            if not self.symmetric:
                matrix[rows] = function(block(rows, slice(None)))
                continue
            # The upper triangle is computed and mirrored: symmetric whatever the order of summation.
            values = function(block(rows, slice(rows.start, None)))
            size = values.shape[0]
            lower = np.tril_indices(size, -1)
            values[lower] = values[:, :size].T[lower]
            matrix[rows, rows.start :] = values
            matrix[rows.start :, rows] = values.T
        return matrix

    def row_blocks(self, lengthscale: float | Float) -> Iterator[tuple[slice, Float]]:
        """Pairs (rows, z of these rows against all of Z) covering all rows; z is finite, so that slopes of 0
        times z are 0, and may be overwritten.
        """
        block = self._source(lengthscale)
        for rows in self._row_slices():
            z = block(rows, slice(None))
            yield rows, np.minimum(z, _CLIP**2, out=z)

    def _source(self, lengthscale: float | Float) -> Callable[[slice, slice], Float]:
        if self.keep and isinstance(lengthscale, float):
            unit = self._unit

            # Twice by l instead of once by l^2, which may overflow or vanish.
            def rescaled(rows: slice, columns: slice) -> Float:
                with np.errstate(over="ignore"):
                    return np.asarray(unit[rows, columns] / lengthscale / lengthscale)

            return rescaled
        return Scaled(self, lengthscale).block

    @cached_property
    def _unit(self) -> Float:
        return Distances(self.X, None if self.symmetric else self.Z).assemble(1.0, lambda z: z)

    def _row_slices(self) -> Iterator[slice]:
        n, m = self.shape
        step = max(1, BLOCK_SIZE // max(1, m))
        return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _by_differences(X: Float, Z: Float, lengthscale: float | Float) -> Float:
    z = np.zeros((len(X), len(Z)))
    scales = np.broadcast_to(lengthscale, X.shape[1:])
    with np.errstate(over="ignore"):
        for k, scale in enumerate(scales):
            difference = np.subtract.outer(X[:, k], Z[:, k])
            difference /= scale
            difference *= difference
            z += difference
        z *= 0.5
    return z
