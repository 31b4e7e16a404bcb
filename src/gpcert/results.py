"""What a question answers with: enclosures that are valid however the search ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpcert.validation import Float, Index

__all__ = [
    "Attack",
    "CertifiedRadius",
    "Enclosure",
    "Evaluation",
    "Explanation",
    "Extremes",
    "LatentRange",
    "LimeComparison",
    "ProbabilityRange",
    "Robustness",
    "Status",
    "Verdict",
    "VerdictStatus",
]


class Status(StrEnum):
    """How a search ended. The bounds are valid under every status; only their width differs."""

    CONVERGED = "converged"
    TIME = "time limit"
    NODES = "node limit"
    MEMORY = "memory limit"
    NUMERICAL = "numerical limit"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Enclosure:
    """A real number known to lie in [lower, upper]."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """The length of the enclosure."""
        return self.upper - self.lower


@dataclass(frozen=True)
class ProbabilityRange:
    """Enclosures of the smallest and the largest P(label) over a region.

    `min.lower <= min over the region of P(label) <= min.upper`, likewise `max`; `argmin` and `argmax` are
    points of the region (d,) where P(label) is at most `min.upper` and at least `max.lower`.
    """

    min: Enclosure
    max: Enclosure
    argmin: Float | None
    argmax: Float | None
    status: Status
    nodes: int
    seconds: float
    label: int
    tolerance: float
    method: str
    target: str  #: what is certified: `Posterior.target`

    @property
    def lower(self) -> float:
        """P(label) is at least this on the whole region."""
        return self.min.lower

    @property
    def upper(self) -> float:
        """P(label) is at most this on the whole region."""
        return self.max.upper


@dataclass(frozen=True)
class Extremes:
    """Enclosures of the smallest and the largest value of a function over a region.

    `argmin` and `argmax` are points of the region (d,) where it is at most `min.upper`, at least `max.lower`.
    """

    min: Enclosure
    max: Enclosure
    argmin: Float | None
    argmax: Float | None

    @property
    def lower(self) -> float:
        """The function is at least this on the whole region."""
        return self.min.lower

    @property
    def upper(self) -> float:
        """The function is at most this on the whole region."""
        return self.max.upper


@dataclass(frozen=True)
class LatentRange:
    """Enclosures of the extremes of the latent mean and of the latent variance over a region.

    "converged": all four enclosures are at most `tolerance` wide.
    """

    mean: Extremes
    variance: Extremes
    status: Status
    nodes: int
    seconds: float
    label: int | None
    tolerance: float


@dataclass(frozen=True)
class Attack:
    """The best point an attack found: evidence, never a guarantee.

    `x` (d,) is a point of the region, `probability` the model's P(label) there, `success` whether the model
    predicts another label there.
    """

    x: Float
    probability: float
    success: bool
    label: int
    method: str
    target: str = ""  #: what `probability` is: `Posterior.target`


class VerdictStatus(StrEnum):
    """What is known about a label on a region."""

    SAFE = "safe"  #: proved: every point of the region has the label
    UNSAFE = "unsafe"  #: a point of the region that has not, is at hand
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Verdict:
    """Whether the label of a point is the label of a whole region.

    `margin` encloses the smallest P(label) - threshold over the region (several classes: P(label) less the
    largest other); `counterexample` (d,), of an unsafe region, has P(label) = `probability` by the model's
    own predictor. `ended` says how the search ended.
    """

    status: VerdictStatus
    label: int
    threshold: float
    margin: Enclosure
    counterexample: Float | None
    probability: float | None
    ended: Status
    nodes: int
    seconds: float
    target: str = ""  #: what is certified: `Posterior.target`


@dataclass(frozen=True)
class CertifiedRadius:
    """How far a label holds: every ball of radius up to `safe` is proved safe, the one of `unsafe` is not.

    `unsafe`: a radius with a `counterexample` (d,), whose P(label) by the model's own predictor is
    `probability`; inf if none was found up to the largest radius. `safe` = 0 says that nothing is proved.
    `status` is "converged" if the two are as near as asked, or the largest radius is safe. `tests`: how many
    radii were tried by proof.
    """

    safe: float
    unsafe: float
    counterexample: Float | None
    probability: float | None
    label: int
    status: Status
    tests: int
    nodes: int
    seconds: float
    target: str = ""  #: what is certified: `Posterior.target`


@dataclass(frozen=True)
class Robustness:
    """`lower` <= delta <= `upper`: how much P(label) may change over a region.

    delta = max - min over the region, or, for a point x, the smallest delta with |P(z) - P(x)| <= delta for
    all z of the region. `range` is what it was computed from.
    """

    lower: float
    upper: float
    range: ProbabilityRange


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Accuracies of a model on labelled points at every radius: certified <= true robust <= attacked.

    Per radius (k,): `certified`, `attacked`, shares of points; `clean` is the share at radius 0. Per point
    (m,): `labels` the model's, `correct`, `safe` the largest radius of the list proved safe (nan: none),
    `unsafe` the smallest with a counterexample (inf: none). `verdicts` (m, k) holds "safe", "unsafe" or
    "unknown" about the model's own label.
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
