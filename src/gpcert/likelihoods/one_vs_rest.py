"""One-vs-rest: p_c / sum_j p_j of independent two-class expectations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from gpcert.errors import InvalidInputError
from gpcert.likelihoods.base import UNIT, BinaryLikelihood, as_moments
from gpcert.validation import Float, require

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

    @property
    def name(self) -> str:
        return "one_vs_rest"

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
