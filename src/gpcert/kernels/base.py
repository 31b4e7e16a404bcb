"""What every kernel is: a matrix, its gradients, and a vector theta of the logs of its parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpcert.errors import InvalidInputError
from gpcert.validation import Float, as_matrix, as_vector, require, shown

if TYPE_CHECKING:
    from gpcert.kernels.compose import Product, Sum

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


class Gram(ABC):
    """The matrix K = k(X, X) at one theta, and contractions of dK/dtheta that never form dK/dtheta."""

    matrix: Float

    @abstractmethod
    def contract(self, G: Float) -> Float:
        """sum_ij G_ij dK_ij/dtheta_p as a vector (p,), for any matrix G (n, n)."""


class Kernel(ABC):
    """A positive-definite covariance function k(x, x') with constant k(x, x). Immutable.

    `k(X, Z)` is a matrix, `k + l` a `Sum`, `k * l` a `Product`; two kernels with the same parameters are
    equal.

    Attributes
    ----------
    parameter_names : tuple of str (p)
        lengthscale or lengthscale[0], ...; variance; alpha; of sums and products as in terms[0].variance.
    theta : array of shape (p,)
        Logs of all parameters, in this order.
    n_features : int or None
        The number of features that the lengthscales fix.
    prior_variance : float
        k(x, x).

    Examples
    --------
    >>> k = gc.RBF(2.0) + gc.Matern32(1.0)
    >>> k.parameter_names
    ('terms[0].lengthscale', 'terms[0].variance', 'terms[1].lengthscale', 'terms[1].variance')
    """

    def __call__(self, X: ArrayLike, Z: ArrayLike | Anchors | None = None) -> Float:
        """The matrix of covariances.

        Parameters
        ----------
        X : array of shape (n, d)
            Points.
        Z : array of shape (m, d), optional
            Points; None: X, and the matrix is exactly symmetric.

        Returns
        -------
        array of shape (n, m)
            k(X_i, Z_j).
        """
        return self.matrix(self._distances(X, Z))

    def gram(self, X: ArrayLike) -> Gram:
        """The Gram matrix of X (n, d), ready for gradients in theta."""
        return self.gram_builder(X)(self)

    def gram_builder(self, X: ArrayLike) -> Callable[[Kernel], Gram]:
        """A function kernel -> `kernel.gram(X)` that computes unscaled distances of X (n, d) only once."""
        distances = Distances(self._points("X", X), keep=True)
        return lambda kernel: kernel.gram_of(distances)

    @abstractmethod
    def matrix(self, distances: Distances) -> Float:
        """The kernel matrix (n, m) from prepared distances."""

    @abstractmethod
    def gram_of(self, distances: Distances) -> Gram:
        """The Gram matrix from prepared symmetric distances."""

    @abstractmethod
    def input_gradient(self, X: ArrayLike, Z: ArrayLike | Anchors, B: Float) -> Float:
        """sum_j B_ij dk(X_i, Z_j)/dX_i, (m, d), for X (m, d), Z (n, d), B (m, n).

        A pair with X_i = Z_j contributes 0 (Matern 1/2 has a cone there, the others are flat).
        """

    def weighted(self, X: Float, Z: Anchors, w: Float) -> tuple[Float, Float]:
        """sum_j w_j k(X_i, Z_j) (m,) and its gradient in X_i (m, d), for w (n,)."""
        return self(X, Z) @ w, self.input_gradient(X, Z, np.broadcast_to(w, (len(X), len(w))))

    @property
    @abstractmethod
    def prior_variance(self) -> float:
        """k(x, x), the same at every x."""

    @property
    @abstractmethod
    def exact_variance(self) -> Fraction:
        """k(x, x) as the rational number that the stored parameters make it."""

    @property
    @abstractmethod
    def n_features(self) -> int | None:
        """The number of features the lengthscales fix; None if all lengthscales are scalars."""

    @property
    @abstractmethod
    def theta(self) -> Float:
        """Logs of all parameters (p,), in the order of `parameter_names`."""

    @property
    @abstractmethod
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the entries of theta (p,)."""

    @abstractmethod
    def with_theta(self, theta: ArrayLike) -> Kernel:
        """The kernel of the same structure with other parameters.

        Parameters
        ----------
        theta : array of shape (p,)
            Logs of all parameters, in the order of `parameter_names`.

        Returns
        -------
        Kernel
            With parameters exp(theta).
        """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """JSON-able description, floats as hexadecimal strings; `kernel_from_dict` reads it back."""

    def __add__(self, other: Kernel) -> Sum:
        from gpcert.kernels.compose import Sum

        return Sum((self, _operand(other)))

    __radd__ = __add__  # for what is no kernel: its sentence

    def __mul__(self, other: Kernel) -> Product:
        from gpcert.kernels.compose import Product

        return Product((self, _operand(other)))

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Kernel) else NotImplemented

    def __hash__(self) -> int:
        return hash(repr(self))

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        return self

    def _points(self, name: str, X: ArrayLike) -> Float:
        return as_matrix(name, X, columns=self.n_features)

    def _distances(self, X: ArrayLike, Z: ArrayLike | Anchors | None) -> Distances:
        X = self._points("X", X)
        if Z is None:
            return Distances(X)
        to = Z if isinstance(Z, Anchors) else Anchors(self._points("Z", Z))
        features = to.points.shape[1]
        require(features == X.shape[1], f"Z must have {X.shape[1]} features, as X, got {features}")
        return Distances(X, to)

    def _parameters(self, theta: ArrayLike) -> Float:
        vector = as_vector("theta", theta, size=len(self.parameter_names))
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.exp(vector))


def _operand(value: object) -> Kernel:
    if not isinstance(value, Kernel):
        raise InvalidInputError(
            f"a kernel must be combined with kernels of gpcert, got {shown(value)}: variance= is a factor"
        )
    return value
