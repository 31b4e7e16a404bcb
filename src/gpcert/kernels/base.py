"""What every kernel is: a matrix, its gradients, and a vector theta of the logs of its parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from gpcert.errors import InvalidInputError
from gpcert.kernels.distances import Anchors, Distances
from gpcert.validation import Float, as_matrix, as_vector, require, shown

if TYPE_CHECKING:
    from gpcert.kernels.compose import Product, Sum


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
