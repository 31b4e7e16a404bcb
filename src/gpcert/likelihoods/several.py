"""Likelihoods of several classes: softmax, and one-vs-rest of independent two-class expectations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from gpcert.errors import InvalidInputError
from gpcert.likelihoods.base import UNIT, BinaryLikelihood, as_moments
from gpcert.likelihoods.binary import Logit
from gpcert.likelihoods.integrals.correlated import TARGET, CorrelatedRule, correlated_rules
from gpcert.likelihoods.integrals.gumbel import GumbelIntegral, gumbel_derivatives, gumbel_integral
from gpcert.likelihoods.integrals.nodes import Average, derivatives, lattice_average, tensor_average
from gpcert.validation import Float, as_floats, require

_UNKNOWN = 1e300  # stands for an infinite error of log p_c, without inf - inf


@dataclass(frozen=True)
class OneVsRest:
    """P_c = p_c / sum_j p_j with p_c = E sigma(f_c), one independent latent for each class.

    Computed from log p_c, so that the ratio is right even where every p_c underflows.

    Parameters
    ----------
    link : BinaryLikelihood
        That of each class against the others.

    Examples
    --------
    >>> gc.OneVsRest(gc.Probit())
    OneVsRest(link=Probit(scale=1.0))
    """

    link: BinaryLikelihood

    def __post_init__(self) -> None:
        require(
            isinstance(self.link, BinaryLikelihood),
            f"link must be a two-class likelihood such as Probit(), got {self.link!r}",
        )

    name = "one_vs_rest"

    def expectation(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """P_c.

        Parameters
        ----------
        mean : array of shape (m, C)
            Means of the latents.
        var : array of shape (m, C)
            Their variances.

        Returns
        -------
        array of shape (m, C)
            Each row sums to 1.
        """
        return _softmax(self.link.log_expectation(*_columns(mean, var)))

    def expectation_error(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """A proved bound on |expectation - exact| (docs/maths/likelihoods.md#one-vs-rest).

        Parameters
        ----------
        mean : array of shape (m, C)
            Means of the latents.
        var : array of shape (m, C)
            Their variances.

        Returns
        -------
        array of shape (m, C)
            At least 0.
        """
        m, v = _columns(mean, var)
        log_p = self.link.log_expectation(m, v)
        slack = np.minimum(self.link.log_expectation_error(m, v), _UNKNOWN)
        # P_c is extreme where log p_c is at one end of its interval and all others are at the other end.
        own = 2 * np.eye(m.shape[1]) - 1
        moved = [
            np.diagonal(_softmax(log_p[:, None] + t * own * slack[:, None]), axis1=1, axis2=2)
            for t in (-1, 1)
        ]
        return np.asarray(moved[1] - moved[0] + UNIT * (m.shape[1] + 16))

    def expectation_gradient(self, mean: ArrayLike, var: ArrayLike) -> tuple[Float, Float]:
        """(d P_c / d mean_j, d P_c / d var_j), each (n, C, C) with index order (point, c, j)."""
        m, v = _columns(mean, var)
        p = self.expectation(m, v)
        slope, curve = self.link.log_expectation_gradient(m, v)
        jacobian = p[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :])
        return jacobian * slope[:, None, :], jacobian * curve[:, None, :]

    def to_dict(self) -> dict[str, Any]:
        """{"name": "one_vs_rest", "link": description of the link}."""
        return {"name": self.name, "link": self.link.to_dict()}


def _columns(mean: ArrayLike, var: ArrayLike) -> tuple[Float, Float]:
    m, v = as_moments(mean, var)
    if m.ndim != 2 or m.shape[1] < 2:
        raise InvalidInputError(
            f"mean must have shape (points, classes) with at least 2 classes, got {m.shape}"
        )
    return m, v


def _softmax(log_p: Float) -> Float:
    return np.asarray(softmax(log_p, axis=-1))


_GRADIENT = 2e-4  # distance of the rule for gradients, which are estimates


@dataclass(frozen=True)
class Softmax:
    """p_c = exp(f_c) / sum_j exp(f_j), in expectation over Gaussian latents.

    Which rule is used: C = 2: the logistic integral of the difference; independent latents: one-dimensional
    Gumbel integrals; C = 3: a tensor trapezoid rule; C >= 4: Gumbel integrals averaged over nodes for what is
    correlated, to about 1e-5 (`expectation_error`); where some difference of latents is all but certain, a
    lattice average, of which only 0 <= p <= 1 is proved.

    Examples
    --------
    >>> gc.Softmax()
    Softmax()
    """

    name = "softmax"

    def expectation(self, mean: ArrayLike, cov: ArrayLike) -> Float:
        """E p_c.

        Parameters
        ----------
        mean : array of shape (m, C)
            Means of the latents.
        cov : array of shape (m, C, C) or (m, C)
            Their covariances; (m, C): variances of independent ones.

        Returns
        -------
        array of shape (m, C)
            Each row sums to 1.
        """
        return self.expectation_and_error(mean, cov)[0]

    def expectation_error(self, mean: ArrayLike, cov: ArrayLike) -> Float:
        """A proved bound on |expectation - exact| (docs/maths/likelihoods.md#softmax).

        Parameters
        ----------
        mean : array of shape (m, C)
            Means of the latents.
        cov : array of shape (m, C, C) or (m, C)
            Their covariances; (m, C): variances of independent ones.

        Returns
        -------
        array of shape (m, C)
            At least 0.
        """
        return self.expectation_and_error(mean, cov)[1]

    def expectation_and_error(
        self, mean: ArrayLike, cov: ArrayLike, target: float = TARGET
    ) -> tuple[Float, Float]:
        """Both at the price of one; four and more correlated latents: to half of `target`."""
        return self._evaluate(*_latents(mean, cov), target)

    def expectation_gradient(self, mean: ArrayLike, cov: ArrayLike) -> tuple[Float, Float]:
        """(d E p_c / d mean_j (n, C, C), d E p_c / d cov): an estimate.

        The second is (n, C, C) [point, c, j] for variances, and (n, C, C, C) [point, c, j, k] for a full
        covariance, symmetric in j, k, so that dP = sum_jk of it times dcov_jk.
        """
        m, S = _latents(mean, cov)
        n, classes = m.shape
        if classes == 2:
            return _two_class_gradient(m, S)
        first, hessian = np.empty((n, classes, classes)), np.empty((n, classes, classes, classes))
        rules = _rules(S, _GRADIENT)
        for i in range(n):
            rule = rules[i]
            if S.ndim == 2:
                _, first[i], hessian[i], _ = gumbel_derivatives(m[i], S[i])
            elif rule is not None:
                _, first[i], hessian[i], _ = rule.derivatives(m[i])
            else:
                first[i], hessian[i] = derivatives(_average(m[i], S[i]))
        if S.ndim == 2:
            return first, 0.5 * np.diagonal(hessian, axis1=2, axis2=3)
        return first, 0.5 * hessian

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name}

    def _evaluate(self, m: Float, S: Float, target: float) -> tuple[Float, Float]:
        """Probabilities and error bounds, (n, C) each."""
        n, classes = m.shape
        if classes == 2:
            difference, var = _difference(m, S)
            both = np.stack([-difference, difference], axis=1)
            p, error = (rule(both, var[:, None]) for rule in (Logit().expectation, Logit().expectation_error))
        else:
            p, error = np.empty((n, classes)), np.empty((n, classes))
            rules = _rules(S, target)
            for i in range(n):
                p[i], error[i] = _integral(m[i], S[i], rules[i])
        return p, np.minimum(error + _input_rounding(m, S)[:, None], np.maximum(p, 1 - p))


def _input_rounding(m: Float, S: Float) -> Float:
    """What rounding of means and (co)variances changes, (n,): docs/maths/likelihoods.md#softmax."""
    classes = m.shape[1]
    largest = np.abs(S).max(axis=tuple(range(1, S.ndim)))
    if S.ndim == 2:
        return np.asarray(UNIT * classes * (100 + 20 * np.sqrt(largest) + largest))
    lowest = np.linalg.eigvalsh(S)[:, 0]
    defect = classes * np.maximum(-lowest, 0.0)
    return np.asarray(UNIT * classes * (100 + 20 * np.sqrt(largest) + 100 * classes * largest) + defect)


def _rules(S: Float, target: float) -> list[CorrelatedRule | None]:
    """For every covariance (n, C, C) of four and more latents its rule; else None."""
    return correlated_rules(S, target) if S.ndim == 3 and S.shape[1] > 3 else [None] * len(S)


def _integral(mean: Float, S: Float, rule: CorrelatedRule | None) -> GumbelIntegral:
    if S.ndim == 1:
        return gumbel_integral(mean, S)
    return _averaged(_average(mean, S)) if rule is None else rule.integral(mean)


def _average(mean: Float, cov: Float) -> Average:
    return tensor_average(mean, cov) if mean.size == 3 else lattice_average(mean, cov)


def _averaged(average: Average) -> GumbelIntegral:
    p = np.minimum(average.weights @ average.p, 1.0)
    return GumbelIntegral(p, np.full(p.shape, average.error))


def _difference(m: Float, S: Float) -> tuple[Float, Float]:
    """Mean (n,) and variance (n,) of f_1 - f_0."""
    var = S.sum(axis=1) if S.ndim == 2 else S[:, 0, 0] + S[:, 1, 1] - 2 * S[:, 0, 1]
    return m[:, 1] - m[:, 0], np.maximum(var, 0.0)


def _two_class_gradient(m: Float, S: Float) -> tuple[Float, Float]:
    slope, curve = Logit().expectation_gradient(*_difference(m, S))
    sign = np.array([-1.0, 1.0])
    first = slope[:, None, None] * np.multiply.outer(sign, sign)
    if S.ndim == 2:
        return first, curve[:, None, None] * np.multiply.outer(sign, np.ones(2))
    return first, curve[:, None, None, None] * np.multiply.outer(sign, np.multiply.outer(sign, sign))


def _latents(mean: ArrayLike, cov: ArrayLike) -> tuple[Float, Float]:
    m, S = as_floats("mean", mean), as_floats("cov", cov)
    if m.ndim != 2 or m.shape[1] < 2:
        raise InvalidInputError(
            f"mean must have shape (points, classes) with at least 2 classes, got {m.shape}"
        )
    n, classes = m.shape
    if S.shape not in ((n, classes), (n, classes, classes)):
        raise InvalidInputError(
            f"cov must have shape {(n, classes)} or {(n, classes, classes)} to go with mean, got {S.shape}"
        )
    diagonal = S if S.ndim == 2 else np.diagonal(S, axis1=1, axis2=2)
    if not (diagonal >= 0).all():
        raise InvalidInputError(f"cov must have a diagonal >= 0, got {diagonal[~(diagonal >= 0)].flat[0]}")
    if S.ndim == 3:
        _check_covariance(S)
    return m, S


def _check_covariance(S: Float) -> None:
    scale = np.abs(S).max(axis=(1, 2), initial=0.0)
    asymmetry = np.abs(S - S.swapaxes(1, 2)).max(axis=(1, 2), initial=0.0)
    if not (asymmetry <= 1e-10 * scale).all():
        raise InvalidInputError(f"cov must be symmetric, got an asymmetry of {asymmetry.max()}")
    lowest = np.linalg.eigvalsh(S)[:, 0] if len(S) else np.zeros(0)
    if not (lowest >= -1e-8 * scale).all():
        raise InvalidInputError(f"cov must be positive semi-definite, got an eigenvalue of {lowest.min()}")
