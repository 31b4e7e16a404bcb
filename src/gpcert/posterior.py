"""The posterior of a Gaussian-process model: the one hand-off from models to bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpcert.classes import Label
from gpcert.errors import InvalidInputError
from gpcert.html import facts, rounded
from gpcert.kernels import Anchors, Kernel
from gpcert.likelihoods import BinaryLikelihood, Likelihood, OneVsRest
from gpcert.posterior_columns import TRAINED, TrainingColumns
from gpcert.posterior_validation import (
    checked_classes,
    checked_factors,
    checked_kernel,
    checked_likelihood,
    checked_mean,
    checked_precision,
    checked_training,
    checked_weights,
    described,
)
from gpcert.schema import digest
from gpcert.tables import matrix, named_matrix
from gpcert.validation import Float, as_names, freeze, require

_QUIETLY = np.errstate(all="ignore")  # numbers beyond the doubles: a limit that is right, or NaN
_CHUNK = 2**21  # entries of one kernel block during evaluation: 16 MB


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Posterior:
    """Centres, weights and precision of a trained model with its kernel and likelihood. Immutable.

    All that certification needs. Two classes (one latent), with k(x) = k(centres, x): latent mean m(x) = mean
    + k(x)^T weights, latent variance S(x) = max(0, k(x, x) - k(x)^T precision k(x)). Several classes: m_c(x)
    = mean_c + k_c(x)^T weights_c, and the latent covariance S_ce(x) = [c = e] k_c(x, x) - k_c(x)^T
    precision_ce k_e(x).

    The parameters are attributes, too, as read-only float64 arrays.

    Parameters
    ----------
    centres : array of shape (n, d)
        Training points, or inducing points.
    weights : array of shape (n,) or (n, C)
        Of the latent mean; (n, C): one column for each latent.
    precision : array of shape (n, n), (C, n, n) or (C, C, n, n)
        Of the latent variance; (C, n, n): latents that are independent.
    kernel : Kernel or sequence of C
        One for all latents, or one for each.
    likelihood : str, likelihood or None
        "probit", "logit", "softmax" or an object; None: regression, of which only the latent function is
        certified.
    mean : float or array of shape (C,)
        The constant prior mean, one or one for each latent.
    classes : array of shape (C,), optional
        Labels; None: 0, 1, ... Of two, a positive latent speaks for the second.
    feature_names : sequence of str (d), optional
        What the columns of tables are compared with.
    factors : mapping of arrays, optional
        Kept and stored with the model: "site_precision", W (n,) or (C, n) with precision = (K + W^-1)^-1.
    training : mapping, optional
        How the model was trained, as JSON data; {"centres": "training data"} where the centres are all of
        the training data, so that units and limits may follow from it.

    Attributes
    ----------
    n_centres : int
        n.
    n_features : int
        d.
    n_latents : int
        The number of latent functions: 1, or C.
    n_classes : int
        The number of columns of `probability`; 0 for regression.
    target : str
        What the certified probability is: the exact expectation, or what an adapter has recorded.
    digest : str
        SHA-256 of the model.

    Examples
    --------
    >>> post = gc.Posterior([[0.0], [1.0]], [-1.0, 1.0], [[0.5, 0.0], [0.0, 0.5]], kernel=gc.RBF())
    >>> post.probability([[0.5]])
    array([[0.5, 0.5]])
    """

    centres: Float
    weights: Float
    precision: Float
    kernel: Kernel | tuple[Kernel, ...]
    likelihood: Likelihood | None
    mean: float | Float
    classes: NDArray[Any] | None
    feature_names: tuple[str, ...] | None
    factors: Mapping[str, Float]
    training: Mapping[str, Any]

    def __init__(
        self,
        centres: ArrayLike,
        weights: ArrayLike,
        precision: ArrayLike,
        *,
        kernel: Kernel | Sequence[Kernel],
        likelihood: str | Likelihood | None = "probit",
        mean: ArrayLike = 0.0,
        classes: ArrayLike | None = None,
        feature_names: Iterable[str] | None = None,
        factors: Mapping[str, ArrayLike] | None = None,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        points, names = named_matrix("centres", centres, feature_names)
        require(min(points.shape) >= 1, f"centres must hold points with features, got shape {points.shape}")
        n, d = points.shape
        alpha = checked_weights(weights, n)
        C = None if alpha.ndim == 1 else alpha.shape[1]
        R = checked_precision(precision, n, C)
        link = checked_likelihood(likelihood, C, correlated=R.ndim == 4)
        stored = {
            "centres": freeze(points),
            "weights": freeze(alpha),
            "precision": freeze(np.ascontiguousarray(R)),  # block by block: a product reads few pages
            "kernel": checked_kernel(kernel, C, d),
            "likelihood": link,
            "mean": checked_mean(mean, C),
            "classes": checked_classes(classes, 0 if link is None else C or 2),
            "feature_names": as_names("feature_names", names, d),
            "factors": checked_factors(factors, (n,) if C is None else (C, n)),
            "training": checked_training(training),
        }
        for name, value in stored.items():
            object.__setattr__(self, name, value)

    @property
    def n_centres(self) -> int:
        """n, the number of centres."""
        return len(self.centres)

    @property
    def n_features(self) -> int:
        """d, the number of features."""
        return int(self.centres.shape[1])

    @property
    def n_latents(self) -> int:
        """The number of latent functions: 1 for weights (n,), else C."""
        return 1 if self.weights.ndim == 1 else int(self.weights.shape[1])

    @property
    def n_classes(self) -> int:
        """The number of columns of `probability`; 0 for regression."""
        return 0 if self.classes is None else len(self.classes)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The values of `classes`; of a regression the numbers of its latents."""
        return tuple(range(self.n_latents) if self.classes is None else self.classes.tolist())

    @property
    def target(self) -> str:
        """What the certified probability is: the exact expectation, or what an adapter has recorded."""
        return str(self.training.get("target", "exact expectation of the likelihood"))

    def description(self) -> dict[str, Any]:
        """All but the arrays and the record of training, JSON-able and exact."""
        return described(self.kernel, self.likelihood, self.mean, self.classes, self.feature_names)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the stored model; one with a link of Python functions is like no other."""
        try:
            described: Any = self.description()
        except InvalidInputError:
            described = uuid4().hex
        return digest(described, self.centres, self.weights, self.precision)

    @cached_property
    def training_columns(self) -> TrainingColumns | None:
        """What the training data show of each column; None where centres are other points."""
        return TrainingColumns.of(self.centres) if self.training.get("centres") == TRAINED else None

    @cached_property
    def anchors(self) -> Anchors:
        """The centres, ready for covariances with many points."""
        return Anchors(self.centres)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """One kernel per latent."""
        return self.kernel if isinstance(self.kernel, tuple) else (self.kernel,) * self.n_latents

    @_QUIETLY
    def latent(self, X: ArrayLike) -> tuple[Float, Float]:
        """Latent mean and variance.

        Parameters
        ----------
        X : array of shape (m, d) or table
            The points.

        Returns
        -------
        mean : array of shape (m,) or (m, C)
            One column for each latent.
        variance : array of shape (m,) or (m, C, C)
            The covariance of C latents.
        """
        mean, var = zip(*map(partial(latent_moments, self), self._chunks(X)), strict=True)
        return np.concatenate(mean), np.concatenate(var)

    @_QUIETLY
    def latent_gradient(self, X: ArrayLike) -> tuple[Float, Float]:
        """Gradients of `latent` in x; a variance that is rounded up to 0 has gradient 0.

        Parameters
        ----------
        X : array of shape (m, d) or table
            The points.

        Returns
        -------
        mean : array of shape (m, d) or (m, C, d)
            Of the mean.
        variance : array of shape (m, d) or (m, C, C, d)
            Of the variance, or covariance.
        """
        mean, var = zip(*map(partial(latent_gradients, self), self._chunks(X)), strict=True)
        return np.concatenate(mean), np.concatenate(var)

    @_QUIETLY
    def probability(self, X: ArrayLike) -> Float:
        """Class probabilities.

        Parameters
        ----------
        X : array of shape (m, d) or table
            The points.

        Returns
        -------
        array of shape (m, C)
            Columns in the order of `classes`.
        """
        likelihood = self._required_likelihood("probability")
        mean, var = self.latent(X)
        if isinstance(likelihood, BinaryLikelihood):
            p = likelihood.expectation(mean, var)
            return np.stack([1.0 - p, p], axis=1)
        return likelihood.expectation(mean, self._spread(var))

    @_QUIETLY
    def probability_gradient(self, X: ArrayLike) -> Float:
        """Gradients of `probability` in x.

        Parameters
        ----------
        X : array of shape (m, d) or table
            The points.

        Returns
        -------
        array of shape (m, C, d)
            One row for each class.
        """
        likelihood = self._required_likelihood("probability_gradient")
        mean, var = self.latent(X)
        dmean, dvar = self.latent_gradient(X)
        if isinstance(likelihood, BinaryLikelihood):
            by_mean, by_var = likelihood.expectation_gradient(mean, var)
            slope = by_mean[:, None] * dmean + by_var[:, None] * dvar
            return np.stack([-slope, slope], axis=1)
        by_mean, by_var = likelihood.expectation_gradient(mean, self._spread(var))
        latents = "e" if by_var.ndim == 3 else "ef"
        gradient = np.einsum("mce,med->mcd", by_mean, dmean)
        spread = self._spread(dvar)
        return np.asarray(gradient + np.einsum(f"mc{latents},m{latents}d->mcd", by_var, spread))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of the largest probability.

        Parameters
        ----------
        X : array of shape (m, d) or table
            The points.

        Returns
        -------
        array of shape (m,)
            Values of `classes`.
        """
        columns = self.probability(X).argmax(axis=1)
        assert self.classes is not None  # probability has refused regression
        return np.asarray(self.classes[columns])

    def one_vs_rest(self) -> tuple[Posterior, ...]:
        """The two-class posteriors of a one-vs-rest model, one per class, which is its classes[1]."""
        whole = self.likelihood
        if not isinstance(whole, OneVsRest):
            raise InvalidInputError(f"likelihood must be one-vs-rest to be taken apart, got {whole!r}")
        means, link, parts = np.broadcast_to(self.mean, (self.n_latents,)), whole.link, []
        for c, kernel in enumerate(self.kernels):
            own = self.weights[:, c], self.precision[c]
            parts.append(Posterior(self.centres, *own, kernel=kernel, likelihood=link, mean=float(means[c])))
        return tuple(parts)

    def one_latent(self, label: int) -> Posterior:
        """The posterior of one latent of several, without a likelihood."""
        precision = self.precision[label]
        own = self.weights[:, label], precision[label] if precision.ndim == 3 else precision
        mean = float(np.broadcast_to(self.mean, (self.n_latents,))[label])
        return Posterior(self.centres, *own, kernel=self.kernels[label], likelihood=None, mean=mean)

    def _required_likelihood(self, question: str) -> Likelihood:
        if self.likelihood is None:
            raise InvalidInputError(f"{question} needs a likelihood, got a regression (likelihood=None)")
        return self.likelihood

    def _chunks(self, X: ArrayLike) -> Iterator[Float]:
        """X in pieces of rows whose kernel blocks stay small; at least one piece, possibly empty."""
        points = matrix("X", X, self.feature_names, self.n_features)
        step = max(1, _CHUNK // (self.n_centres * self.n_latents))
        return (points[start : start + step] for start in range(0, max(1, len(points)), step))

    def _spread(self, covariance: Float) -> Float:
        """The variances alone (m, C, ...) of independent latents, else the covariance (m, C, C, ...)."""
        if self.precision.ndim == 4:
            return covariance
        return np.asarray(np.einsum("mcc...->mc...", covariance))

    def __repr__(self) -> str:
        kernel = repr(self.kernel) if len(repr(self.kernel)) <= 80 else repr(self.kernel)[:77] + "..."
        sizes = f"n_centres={self.n_centres}, n_features={self.n_features}, n_classes={self.n_classes}"
        return f"Posterior({sizes}, kernel={kernel}, likelihood={self.likelihood!r})"

    def _repr_html_(self) -> str:
        classes = "none" if self.classes is None else ", ".join(map(str, self.classes[:12]))
        sizes = f"{self.n_centres} centres, {self.n_features} features"
        rows = ("sizes", sizes), ("classes", classes), ("kernel", rounded(repr(self.kernel)))
        return facts("Posterior", (*rows, ("likelihood", repr(self.likelihood)), ("certified", self.target)))

    def __copy__(self) -> Posterior:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Posterior:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values |= {"factors": dict(self.factors), "training": dict(self.training)}
        # Through the constructor, so that what arrives is validated and read-only again.
        return partial(Posterior, **values), ()


def latent_moments(post: Posterior, X: Float) -> tuple[Float, Float]:
    """Mean (m,) or (m, C) and variance (m,) or covariance (m, C, C) at points X (m, d)."""
    if post.weights.ndim == 1:
        k = post.kernels[0](X, post.anchors)
        explained = np.einsum("mi,mi->m", k @ post.precision, k)
        return post.mean + k @ post.weights, np.maximum(0.0, post.kernels[0].prior_variance - explained)
    k = _kernel_blocks(post, X)
    mean = post.mean + np.einsum("cmi,ic->mc", k, post.weights)
    covariance = np.zeros((len(X), post.n_latents, post.n_latents))
    for c, e, R in _precision_blocks(post):
        covariance[:, c, e] = -np.einsum("mi,mi->m", k[c] @ R, k[e])
        covariance[:, e, c] = covariance[:, c, e]
    for c, kernel in enumerate(post.kernels):
        covariance[:, c, c] = np.maximum(0.0, kernel.prior_variance + covariance[:, c, c])
    return mean, covariance


def latent_gradients(post: Posterior, X: Float) -> tuple[Float, Float]:
    """Their derivatives in x, one axis (d,) more."""
    Z = post.anchors
    if post.weights.ndim == 1:
        kernel = post.kernels[0]
        k = kernel(X, Z)
        B = k @ post.precision
        flat = kernel.prior_variance - np.einsum("mi,mi->m", B, k) <= 0.0
        B *= -2.0
        B[flat] = 0.0
        weights = np.broadcast_to(post.weights, k.shape)
        return kernel.input_gradient(X, Z, weights), kernel.input_gradient(X, Z, B)
    k = _kernel_blocks(post, X)
    shape = (len(X), post.n_latents, post.n_latents, post.n_features)
    dmean, dcovariance = np.zeros(shape[:2] + shape[3:]), np.zeros(shape)
    for c, kernel in enumerate(post.kernels):
        weights = np.broadcast_to(post.weights[:, c], k[c].shape)
        dmean[:, c] = kernel.input_gradient(X, Z, weights)
    for c, e, R in _precision_blocks(post):
        left = post.kernels[c].input_gradient(X, Z, -(k[e] @ R.T))
        right = left if c == e else post.kernels[e].input_gradient(X, Z, -(k[c] @ R))
        dcovariance[:, c, e] = dcovariance[:, e, c] = left + right
        if c == e:
            flat = post.kernels[c].prior_variance - np.einsum("mi,mi->m", k[c] @ R, k[c]) <= 0.0
            dcovariance[flat, c, c] = 0.0
    return dmean, dcovariance


def _kernel_blocks(post: Posterior, X: Float) -> Float:
    """k_c(X, centres) for every latent (C, m, n); a shared kernel is evaluated once."""
    if not isinstance(post.kernel, tuple):
        k = post.kernel(X, post.anchors)
        return np.broadcast_to(k, (post.n_latents, *k.shape))
    return np.stack([kernel(X, post.anchors) for kernel in post.kernel])


def _precision_blocks(post: Posterior) -> Iterator[tuple[int, int, Float]]:
    """(c, e, precision_ce (n, n)) for c <= e, of independent latents c = e only."""
    for c in range(post.n_latents):
        if post.precision.ndim == 3:
            yield c, c, post.precision[c]
        else:
            yield from ((c, e, post.precision[c, e]) for e in range(c, post.n_latents))
