"""What a question about one region or point answers with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpcert.validation import Float

__all__ = [
    "Attack",
    "CertifiedRadius",
    "Enclosure",
    "Extremes",
    "LatentRange",
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
