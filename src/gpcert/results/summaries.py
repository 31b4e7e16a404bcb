"""What a question about many points answers with: accuracies over radii, influences of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpcert.validation import Float, Index

__all__ = ["Evaluation", "Explanation", "LimeComparison"]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Accuracies of a model on labelled points at every radius: certified <= true robust <= attacked.

    A point is truly robust at a radius if its true label is the most probable at it, and more probable than
    the threshold on the whole ball. Per radius (k,): `certified`, `attacked`, shares of points; `clean` is
    the share that the predictor labels correctly. Per point (m,): `labels` the model's, `correct`, `safe` the
    largest radius of the list proved safe (nan: none), `unsafe` the smallest with a proved counterexample
    (inf: none), which is its row of `counterexamples` (m, d), a point of that ball (nan: none). `verdicts`
    (m, k) holds "safe", "unsafe" or "unknown" about the model's own label; of a tie all are "unknown".
    """

    radii: Float
    clean: float
    certified: Float
    attacked: Float
    labels: Index
    correct: NDArray[np.bool_]
    safe: Float
    unsafe: Float
    verdicts: NDArray[Any]
    counterexamples: Float
    seconds: float
    target: str = ""  #: what is certified: `Posterior.target`

    @property
    def gap(self) -> Float:
        """attacked - certified (k,): the share of points about which nothing is known."""
        return np.asarray(self.attacked - self.certified)

    def table(self) -> dict[str, Float]:
        """One row per radius: radius, certified, attacked, gap."""
        return {
            "radius": self.radii,
            "certified": self.certified,
            "attacked": self.attacked,
            "gap": self.gap,
        }

    def points(self) -> dict[str, NDArray[Any]]:
        """One row per point: label, correct, safe, unsafe."""
        return {"label": self.labels, "correct": self.correct, "safe": self.safe, "unsafe": self.unsafe}

    def to_pandas(self) -> Any:
        """`table` as a data frame; needs pandas."""
        import pandas

        return pandas.DataFrame(self.table())


@dataclass(frozen=True, eq=False)
class Explanation:
    """Delta^i of every point and feature: `lower <= Delta <= upper`, `value` the middle; arrays (m, d).

    `sign` is +1 or -1 where the enclosure has that sign, else 0: not certain.
    """

    value: Float
    lower: Float
    upper: Float
    sign: Index
    radius: float
    label: int
    feature_names: tuple[str, ...] | None
    target: str = ""  #: what is certified: `Posterior.target`

    @classmethod
    def of(
        cls,
        lower: Float,
        upper: Float,
        radius: float,
        label: int,
        feature_names: tuple[str, ...] | None,
        target: str = "",
    ) -> Explanation:
        """From the enclosures."""
        sign = np.where(lower > 0, 1, np.where(upper < 0, -1, 0))
        return cls(0.5 * lower + 0.5 * upper, lower, upper, sign, radius, label, feature_names, target)

    def mean(self) -> Explanation:
        """The mean over the points, (1, d), with its enclosure."""
        m = max(len(self.lower), 1)
        lower, upper = self.lower.mean(axis=0, keepdims=True), self.upper.mean(axis=0, keepdims=True)
        slack = 2.0**-50 * m  # the sum of m numbers of size at most 2
        ends = lower - slack, upper + slack
        return Explanation.of(*ends, self.radius, self.label, self.feature_names, self.target)


@dataclass(frozen=True, eq=False)
class LimeComparison:
    """Delta with enclosures beside LIME's weights (m, d) at the same points.

    `cosine` (m,): of the angle between the two, nan where one is zero. `agreement` (m,): the share of the
    features with a certain sign to which LIME gives that sign; nan where no sign is certain.
    """

    explanation: Explanation
    weights: Float
    cosine: Float
    agreement: Float

    @classmethod
    def of(cls, explanation: Explanation, weights: Float) -> LimeComparison:
        """From both."""
        a, b = explanation.value, weights
        with np.errstate(invalid="ignore"):
            cosine = (a * b).sum(axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
            certain = explanation.sign != 0
            agree = (np.sign(b) == explanation.sign) & certain
            agreement = agree.sum(axis=1) / certain.sum(axis=1)
        return cls(explanation, weights, cosine, agreement)
