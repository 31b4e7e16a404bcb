"""What a question about one region or point answers with; `claims` states it sentence by sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from gpcert.claims import Balance, Claim, Everywhere, Quantity, Term, Witness, around
from gpcert.regions import Ball, Box, Region
from gpcert.results.about import About, Answer
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

    def claims_about(self, quantity: Quantity, region: Region) -> tuple[Claim, ...]:
        """The outer ends hold everywhere, the inner ones are attained."""
        claims: list[Claim] = [Everywhere(quantity, region, self.min.lower, self.max.upper)]
        if self.argmin is not None:
            claims.append(Witness(quantity, region, self.argmin, upper=self.min.upper))
        if self.argmax is not None:
            claims.append(Witness(quantity, region, self.argmax, lower=self.max.lower))
        return tuple(claims)


@dataclass(frozen=True)
class ProbabilityRange(Extremes, Answer):
    """Enclosures of the smallest and the largest P(label) over a region.

    `min.lower <= min over the region of P(label) <= min.upper`, likewise `max`; `argmin` and `argmax` are
    points of the region (d,) where P(label) is at most `min.upper` and at least `max.lower`.
    """

    status: Status
    nodes: int
    seconds: float
    label: int
    method: str
    region: Region
    about: About

    @property
    def tolerance(self) -> float:
        """The width at which an enclosure counts as converged."""
        return self.settings.tolerance

    def claims(self) -> tuple[Claim, ...]:
        """What is stated, sentence by sentence."""
        return self.claims_about(Quantity("probability", self.label), self.region)


@dataclass(frozen=True)
class LatentRange(Answer):
    """Enclosures of the extremes of the latent mean and of the latent variance over a region.

    "converged": all four enclosures are at most `tolerance` wide.
    """

    mean: Extremes
    variance: Extremes
    status: Status
    nodes: int
    seconds: float
    label: int | None
    region: Region
    about: About

    @property
    def tolerance(self) -> float:
        """The width at which an enclosure counts as converged."""
        return self.settings.tolerance

    def claims(self) -> tuple[Claim, ...]:
        """What is stated, sentence by sentence."""
        mean, variance = Quantity("mean", self.label), Quantity("variance", self.label)
        of_mean = self.mean.claims_about(mean, self.region)
        return of_mean + self.variance.claims_about(variance, self.region)


@dataclass(frozen=True)
class Attack(Answer):
    """The best point an attack found: evidence, never a guarantee.

    `x` (d,) is a point of the region, `probability` the model's P(label) there, `success` whether the model
    predicts another label there; both by its predictor, in floating point. That x lies in the region is all
    that is claimed. `start` (d,) is where the attack began.
    """

    x: Float
    probability: float
    success: bool
    label: int
    method: str
    starts: int
    seed: int
    start: Float
    region: Region
    about: About

    def claims(self) -> tuple[Claim, ...]:
        """What is stated, sentence by sentence."""
        return (Witness(Quantity("probability", self.label), self.region, self.x),)


class VerdictStatus(StrEnum):
    """What is known about a label on a region."""

    SAFE = "safe"  #: proved: every point of the region has the label
    UNSAFE = "unsafe"  #: a point of the region that has not, is at hand
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Verdict(Answer):
    """Whether the label of a point is the label of a whole region.

    `margin` encloses the smallest P(label) - threshold over the region (several classes: P(label) less the
    largest other), `argmin` (d,) is a point where it is at most `margin.upper`; `counterexample` (d,), of an
    unsafe region, has P(label) = `probability` by the model's own predictor. `ended` says how the search
    ended.
    """

    status: VerdictStatus
    label: int
    threshold: float
    margin: Enclosure
    argmin: Float | None
    counterexample: Float | None
    probability: float | None
    ended: Status
    nodes: int
    seconds: float
    region: Region
    about: About

    def claims(self) -> tuple[Claim, ...]:
        """What is stated, sentence by sentence."""
        margin = Quantity("margin", self.label, self.threshold)
        claims: list[Claim] = [Everywhere(margin, self.region, lower=self.margin.lower)]
        if self.argmin is not None:
            claims.append(Witness(margin, self.region, self.argmin, upper=self.margin.upper))
        if self.status is VerdictStatus.SAFE:
            claims.append(Everywhere(margin, self.region, lower=0.0, strict=True))
        if self.counterexample is not None:
            claims.append(Witness(margin, self.region, self.counterexample, upper=0.0, strict=True))
        return tuple(claims)


@dataclass(frozen=True)
class CertifiedRadius(Answer):
    """How far a label holds: every ball of radius up to `safe` is proved safe, the one of `unsafe` is not.

    `unsafe`: a radius with a `counterexample` (d,), whose P(label) by the model's own predictor is
    `probability`; inf if none was found up to the largest radius. `safe` = 0 says that nothing is proved.
    `status` is "converged" if the two are as near as asked, or the largest radius is safe. `tests`: how many
    radii were tried by proof. `max_radius`, `rtol`: how far and how finely was asked.
    """

    safe: float
    unsafe: float
    counterexample: Float | None
    probability: float | None
    label: int
    threshold: float
    max_radius: float
    rtol: float
    status: Status
    tests: int
    nodes: int
    seconds: float
    ball: Ball  #: around the point, of radius 0: the family that the radii belong to
    about: About

    def claims(self) -> tuple[Claim, ...]:
        """What is stated, sentence by sentence; balls are nested, so the largest safe one stands for all."""
        margin = Quantity("margin", self.label, self.threshold)
        claims: list[Claim] = []
        if self.safe > 0:
            claims.append(Everywhere(margin, around(self.ball, self.safe), lower=0.0, strict=True))
        if self.counterexample is not None:
            beyond = around(self.ball, self.unsafe)
            claims.append(Witness(margin, beyond, self.counterexample, upper=0.0, strict=True))
        return tuple(claims)


@dataclass(frozen=True)
class Robustness(Answer):
    """`lower` <= delta <= `upper`: how much P(label) may change over a region.

    delta = max - min over the region, or, for a point x, the smallest delta with |P(z) - P(x)| <= delta for
    all z of the region. `range` is what it was computed from.
    """

    lower: float
    upper: float
    range: ProbabilityRange
    x: Float | None
    about: About

    def claims(self) -> tuple[Claim, ...]:
        """What is stated, sentence by sentence, the range included."""
        region = self.range.region
        top, bottom = Term(1, "max", region), Term(-1, "min", region)
        sums: tuple[tuple[Term, ...], ...] = ((top, bottom),)
        if self.x is not None:
            here = Box(self.x, self.x)
            sums = ((top, Term(-1, "min", here)), (Term(1, "max", here), bottom))
        quantity = Quantity("probability", self.range.label)
        least = self.lower if self.lower > 0 else -math.inf  # that delta >= 0 says nothing
        return (*self.range.claims(), Balance(quantity, sums, least, self.upper))
