"""What a question about one region or point answers with; `claims` states it sentence by sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from gpcert.claims import Balance, Claim, Everywhere, Quantity, Term, Witness, around
from gpcert.classes import Label, called
from gpcert.html import Html, bar, tag
from gpcert.numbers import Lower, Upper, between, radius_at_least, radius_at_most
from gpcert.regions import Ball, Box, Region
from gpcert.results.about import About, Answer
from gpcert.results.parts import Enclosure, Extremes, ProofFile, Status, Unproved, Word, both_ends
from gpcert.schema import NotNegative, Point, Probability, optional
from gpcert.validation import Float

#: Beyond scikit-learn's TIE: a probability this far above 1/2 is always a label (docs/maths/bounds.md, D3).
_NEAR = 1e-8


@dataclass(frozen=True, eq=False, repr=False)
class ProbabilityRange(Extremes, Answer):
    """Enclosures of the smallest and the largest P(label) over a region.

    Attributes
    ----------
    min : Enclosure
        `min.lower` <= min over the region of P(label) <= `min.upper`.
    max : Enclosure
        `max.lower` <= max over the region of P(label) <= `max.upper`.
    lower : float
        `min.lower`: P(label) is at least this on the whole region.
    upper : float
        `max.upper`: P(label) is at most this on the whole region.
    argmin : array of shape (d,) or None
        A point of the region where P(label) is at most `min.upper`.
    argmax : array of shape (d,) or None
        A point of the region where P(label) is at least `max.lower`.
    status : Status
        How the search ended.
    nodes : int
        Boxes bounded.
    seconds : float
        Time spent on it.
    label : class value
        Whose probability it is, a value of the model's classes.
    method : str
        As it was given.
    region : Box or Ball
        The inputs that it is about.
    about : record
        The model, its classes, the settings and the version: see `Answer`.
    proof : ProofFile, optional
        Where the proof is, if one was written.
    unproved : Unproved, optional
        Why there is no proof that was wanted.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> r = gc.probability_range(clf, gc.Ball([2.5], 0.25))
    >>> r.lower <= r.min.upper <= r.max.upper
    True
    """

    status: Status
    nodes: int
    seconds: NotNegative
    label: Label
    method: str
    region: Region
    about: About
    proof: ProofFile | None = optional()
    unproved: Unproved | None = optional()  #: why there is no proof that was asked for

    asked = "label", "method"
    known = 0.0, 1.0

    def flaws(self) -> Iterator[str]:
        yield from Extremes.flaws(self)
        yield from Answer.flaws(self)

    def claims(self) -> tuple[Claim, ...]:
        return self.claims_about(Quantity("probability", self.label), self.region)

    def __str__(self) -> str:
        ends = f"min in {self.min}, max in {self.max}"
        return f"P({called(self.label)}) stays in {between(self.lower, self.upper)}: {ends}; {self.status}"

    def picture(self) -> Html:
        """The range, its two ends as wide as they are uncertain."""
        inner = ((ends.lower, ends.upper) for ends in (self.min, self.max))
        return bar((self.lower, self.upper), *inner)

    def found(self) -> list[tuple[str, Float]]:
        ends = ("smallest", self.argmin), ("largest", self.argmax)
        return [(name, point) for name, point in ends if point is not None]


class VerdictStatus(Word):
    """What is known about a label on a region; it equals its text.

    Attributes
    ----------
    SAFE : "safe"
        Proved: every point of the region has the label.
    UNSAFE : "unsafe"
        A point of the region that has another label is at hand.
    UNKNOWN : "unknown"
        Neither.

    Examples
    --------
    >>> gc.VerdictStatus("safe") == "safe"
    True
    """

    SAFE = "safe"  #: proved: every point of the region has the label
    UNSAFE = "unsafe"  #: a point of the region that has not, is at hand
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False, repr=False)
class Verdict(Answer):
    """Whether the label of a point is the label of a whole region.

    Attributes
    ----------
    status : VerdictStatus
        Safe, unsafe or unknown.
    safe : bool
        Whether it is proved that every point of the region has the label.
    label : class value
        The label of the point, a value of the model's classes.
    threshold : float
        The probability that the label has to exceed.
    margin : Enclosure
        Of the smallest P(label) - threshold over the region; several classes: of P(label) less the largest
        other.
    argmin : array of shape (d,) or None
        A point of the region where the margin is at most `margin.upper`.
    counterexample : array of shape (d,) or None
        Of an unsafe region: a point with another label.
    probability : float or None
        P(label) at the counterexample, by the model's own predictor.
    ended : Status
        How the search ended.
    nodes : int
        Boxes bounded.
    seconds : float
        Time spent on it.
    region : Box or Ball
        The inputs that it is about.
    about : record
        The model, its classes, the settings and the version: see `Answer`.
    proof : ProofFile, optional
        Where the proof is, if one was written.
    unproved : Unproved, optional
        Why there is no proof that was wanted.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> v = gc.certify(clf, gc.Ball([2.5], 0.25))
    >>> v.safe, v.margin.lower > 0
    (True, True)
    """

    status: VerdictStatus
    label: Label
    threshold: Probability
    margin: Enclosure
    argmin: Point | None
    counterexample: Point | None
    probability: Probability | None
    ended: Status
    nodes: int
    seconds: NotNegative
    region: Region
    about: About
    proof: ProofFile | None = optional()
    unproved: Unproved | None = optional()  #: why there is no proof that was asked for

    asked = "label", "threshold"
    boolean = "safe"

    @property
    def safe(self) -> bool:
        """Whether it is proved that every point of the region has the label."""
        return self.status is VerdictStatus.SAFE

    def flaws(self) -> Iterator[str]:
        yield from super().flaws()
        low, high, status = self.margin.lower, self.margin.upper, self.status
        wrong = {VerdictStatus.SAFE: low < 0.0, VerdictStatus.UNSAFE: high > 0.0}
        if wrong.get(status, low > _NEAR) or not -1.0 <= low <= high <= 1.0:
            rule = f"margin must have the sign of its verdict {status}, in [-1, 1]"
            yield f"{rule}, got {both_ends(self.margin)}"
        if (status is VerdictStatus.UNSAFE) != (self.counterexample is not None):
            yield f"counterexample must be given with verdict unsafe and no other, got {status}"

    def claims(self) -> tuple[Claim, ...]:
        margin = Quantity("margin", self.label, self.threshold)
        claims: list[Claim] = [Everywhere(margin, self.region, lower=self.margin.lower)]
        if self.argmin is not None:
            claims.append(Witness(margin, self.region, self.argmin, upper=self.margin.upper))
        if self.status is VerdictStatus.SAFE:
            claims.append(Everywhere(margin, self.region, lower=0.0, strict=True))
        if self.counterexample is not None:
            claims.append(Witness(margin, self.region, self.counterexample, upper=0.0, strict=True))
        return tuple(claims)

    def __str__(self) -> str:
        return f"{self.status}: the margin of P({called(self.label)}) is in {self.margin}; {self.ended}"

    def picture(self) -> Html:
        """Where the smallest P(label) lies, as far as the margin says so."""
        low, high = (float(end) + self.threshold for end in (self.margin.lower, self.margin.upper))
        colour = {"safe": "#2a7f3f", "unsafe": "#b22222"}.get(self.status, "#777")
        status = tag("b", str(self.status), style=f"color:{colour}")
        return tag("span", status, Html(" "), bar((low, high)), style="white-space:nowrap")

    def found(self) -> list[tuple[str, Float]]:
        return _counterexample(self.counterexample)


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedRadius(Answer):
    """How far a label holds: every ball of radius up to `safe` is proved safe, the one of `unsafe` is not.

    Attributes
    ----------
    safe : float
        The largest radius proved safe; 0: nothing is proved.
    unsafe : float
        A radius with a counterexample; inf: none was found up to the largest radius.
    counterexample : array of shape (d,) or None
        A point of that ball with another label.
    probability : float or None
        P(label) there, by the model's own predictor.
    label : class value
        The label of the point, a value of the model's classes.
    threshold : float
        The probability that the label has to exceed.
    max_radius : float
        The largest radius of interest.
    rtol : float
        How near the two radii had to be.
    status : Status
        "converged": the two are as near as wanted, or the label holds on the whole domain; "radius limit": it
        holds up to `max_radius`, beyond which nothing was tried.
    tests : int
        How many radii were tried by proof.
    nodes : int
        Boxes bounded.
    seconds : float
        Time spent on it.
    ball : Ball
        Around the point, of radius 0: the family that the radii belong to.
    about : record
        The model, its classes, the settings and the version: see `Answer`.
    proof : ProofFile, optional
        Where the proof is, if one was written.
    unproved : Unproved, optional
        Why there is no proof that was wanted.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> r = gc.certified_radius(clf, [2.5], max_radius=2.0)
    >>> r.safe < r.unsafe
    True
    """

    safe: NotNegative
    unsafe: NotNegative
    counterexample: Point | None
    probability: Probability | None
    label: Label
    threshold: Probability
    max_radius: NotNegative
    rtol: NotNegative
    status: Status
    tests: int
    nodes: int
    seconds: NotNegative
    ball: Ball  #: around the point, of radius 0: the family that the radii belong to
    about: About
    proof: ProofFile | None = optional()
    unproved: Unproved | None = optional()  #: why there is no proof that was asked for

    asked = "label", "threshold", "max_radius", "rtol"
    subject = "ball"

    def flaws(self) -> Iterator[str]:
        yield from super().flaws()
        if not (self.safe < self.unsafe or self.safe == self.unsafe in (0.0, math.inf)):
            yield f"safe must be < unsafe, got {self.safe} and {self.unsafe}"
        if math.isfinite(self.unsafe) != (self.counterexample is not None):
            yield f"counterexample must be given with a radius unsafe and no other, got {self.unsafe}"
        moving, domain = self.ball.moving(), self.ball.domain
        bounded = not moving.any() or (domain is not None and np.isfinite(np.array(domain)[:, moving]).all())
        if self.safe == math.inf and not bounded:
            yield "safe must be finite without a bounded domain, got inf"

    def claims(self) -> tuple[Claim, ...]:
        """What is stated, sentence by sentence; balls are nested, so the largest safe one implies all."""
        margin = Quantity("margin", self.label, self.threshold)
        claims: list[Claim] = []
        if self.safe > 0:
            claims.append(Everywhere(margin, around(self.ball, self.safe), lower=0.0, strict=True))
        if self.counterexample is not None:
            beyond = around(self.ball, self.unsafe)
            claims.append(Witness(margin, beyond, self.counterexample, upper=0.0, strict=True))
        return tuple(claims)

    def __post_init__(self) -> None:
        object.__setattr__(self, "safe", Lower(self.safe))
        object.__setattr__(self, "unsafe", Upper(self.unsafe))

    def __str__(self) -> str:
        proved = "nothing" if self.safe == 0 else f"radius {_radius(self.safe, radius_at_least)}"
        known = "none" if math.isinf(self.unsafe) else f"one at radius {_radius(self.unsafe, radius_at_most)}"
        return f"proved safe: {proved}; counterexample: {known}; {self.status}"

    def found(self) -> list[tuple[str, Float]]:
        return _counterexample(self.counterexample)


@dataclass(frozen=True, eq=False, repr=False)
class Robustness(Answer):
    """`lower` <= delta <= `upper`: how much P(label) may change over a region.

    delta = max - min over the region, or, for a point x, the smallest delta with |P(z) - P(x)| <= delta for
    all z of the region.

    Attributes
    ----------
    lower : float
        A lower bound of delta.
    upper : float
        An upper bound of delta.
    range : ProbabilityRange
        What it was computed from.
    x : array of shape (d,) or None
        The point, if one was given.
    label : class value
        Whose probability it is, a value of the model's classes.
    region : Box or Ball
        The inputs that it is about.
    about : record
        The model, its classes, the settings and the version: see `Answer`.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> r = gc.robustness(clf, gc.Ball([2.5], 0.25))
    >>> 0 <= r.lower <= r.upper <= 1
    True
    """

    lower: Probability
    upper: Probability
    range: ProbabilityRange
    x: Point | None
    about: About

    asked = "label", "x"

    @property
    def label(self) -> Label:
        """Whose probability it is."""
        return self.range.label

    @property
    def region(self) -> Region:
        """The set over which it may change."""
        return self.range.region

    def flaws(self) -> Iterator[str]:
        if not self.lower <= self.upper:
            yield f"lower must be <= upper, got {self.lower} and {self.upper}"
        if self.about != self.range.about:
            yield "about must be that of the range, got another"

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", Lower(self.lower))
        object.__setattr__(self, "upper", Upper(self.upper))

    def __str__(self) -> str:
        moves = between(self.lower, self.upper)
        return f"P({called(self.label)}) changes by delta in {moves}; {self.range.status}"


def _counterexample(point: Float | None) -> list[tuple[str, Float]]:
    return [] if point is None else [("counterexample", point)]


def _radius(radius: float, rounded: Callable[[float], str]) -> str:
    return "inf" if math.isinf(radius) else rounded(radius)


@dataclass(frozen=True, eq=False, repr=False)
class LatentRange(Answer):
    """Enclosures of the extremes of the latent mean and of the latent variance over a region.

    Attributes
    ----------
    mean : Extremes
        Of the latent mean.
    variance : Extremes
        Of the latent variance, >= 0.
    status : Status
        How the search ended; "converged": all four enclosures are at most `tolerance` wide.
    nodes : int
        Boxes bounded.
    seconds : float
        Time spent on it.
    label : class value or None
        Whose latent it is; of two classes the second, for which the latent speaks; None of a regression.
    region : Box or Ball
        The inputs that it is about.
    about : record
        The model, its classes, the settings and the version: see `Answer`.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> gc.latent_range(clf, gc.Ball([2.5], 0.25)).variance.lower >= 0
    True
    """

    mean: Extremes
    variance: Extremes
    status: Status
    nodes: int
    seconds: NotNegative
    label: Label | None
    region: Region
    about: About

    asked = ("label",)

    def flaws(self) -> Iterator[str]:
        yield from super().flaws()
        if self.variance.lower < 0:
            yield f"variance.min.lower must be >= 0, got {self.variance.lower}"

    def claims(self) -> tuple[Claim, ...]:
        mean, variance = Quantity("mean", self.label), Quantity("variance", self.label)
        of_mean = self.mean.claims_about(mean, self.region)
        return of_mean + self.variance.claims_about(variance, self.region)

    def __str__(self) -> str:
        mean, variance = (between(each.lower, each.upper) for each in (self.mean, self.variance))
        of = "" if self.label is None else f" of {called(self.label)}"
        return f"the latent mean{of} stays in {mean}, its variance in {variance}; {self.status}"


@dataclass(frozen=True, eq=False, repr=False)
class Attack(Answer):
    """The best point an attack found: evidence, never a guarantee.

    That x lies in the region is all that is claimed; probability and success are by the model's predictor, in
    floating point.

    Attributes
    ----------
    x : array of shape (d,)
        A point of the region.
    probability : float
        P(label) there.
    success : bool
        Whether the model predicts another label there.
    label : class value
        Whose probability it is, a value of the model's classes.
    method : str
        As it was given.
    starts : int
        Starts of the search.
    rng : int
        What the random starts came from: `gc.attack(..., rng=a.rng)` finds the same.
    start : array of shape (d,)
        Where the attack began.
    region : Box or Ball
        The inputs that it is about.
    about : record
        The model, its classes, the settings and the version: see `Answer`.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> a = gc.attack(clf, gc.Ball([1.75], 0.5))
    >>> a.region.contains(a.x)
    True
    """

    x: Point
    probability: Probability
    success: bool
    label: Label
    method: str
    starts: int
    rng: int
    start: Point
    region: Region
    about: About

    asked = "label", "method", "starts", "rng", "start"
    boolean = "success"

    def claims(self) -> tuple[Claim, ...]:
        return (Witness(Quantity("probability", self.label), self.region, self.x),)

    def __str__(self) -> str:
        changed = "another label" if self.success else "the same label"
        return f"P({called(self.label)}) is about {self.probability:.3f} at the point found: {changed}"

    def found(self) -> list[tuple[str, Float]]:
        return [("found", self.x)]
