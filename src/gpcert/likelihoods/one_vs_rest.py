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

__all__ = ["OneVsRest"]


@dataclass(frozen=True)
class OneVsRest:
    """P_c = p_c / sum_j p_j with p_c = E sigma(f_c), f_c ~ N(mean_c, var_c) independent.

    Computed from log p_c, so that the ratio is right even where every p_c underflows.
    """

    link: BinaryLikelihood

    def __post_init__(self) -> None:
        require(
            isinstance(self.link, BinaryLikelihood),
            f"link must be a two-class likelihood such as Probit(), got {self.link!r}",
        )

    @property
    def name(self) -> str:
        """The name in files: "one_vs_rest"."""
        return "one_vs_rest"

    def expectation(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """Normalised probabilities (n, C) at mean (n, C) and var (n, C)."""
        return np.asarray(softmax(self.link.log_expectation(*_columns(mean, var)), axis=1))

    def expectation_error(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """A proved bound (n, C) on |expectation - exact|: docs/likelihoods.md#one-vs-rest."""
        m, v = _columns(mean, var)
        p = self.expectation(m, v)
        each = self.link.log_expectation_error(m, v)
        # The log-odds of class c against the rest move by at most its own error plus the largest other one.
        second, largest = np.sort(each, axis=1)[:, -2:].T
        worst = np.argmax(each, axis=1)[:, None] == np.arange(p.shape[1])
        shift = each + np.where(worst, second[:, None], largest[:, None])
        moved = np.minimum(shift, 1.0)
        bound = p * (1 - p) * moved * np.exp(moved) + UNIT * (p.shape[1] + 16)
        return np.where(shift < 1, np.minimum(bound, 1.0), 1.0)

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
