"""What is found at points: by an attack."""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.claims import Claim, Quantity, Witness
from gpcert.classes import Label, called
from gpcert.regions import Region
from gpcert.results.about import About, Answer
from gpcert.schema import Point, Share
from gpcert.validation import Float


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
    probability: Share
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
        """What is stated, sentence by sentence."""
        return (Witness(Quantity("probability", self.label), self.region, self.x),)

    def told(self) -> str:
        """See `Answer`."""
        changed = "another label" if self.success else "the same label"
        return f"P({called(self.label)}) is about {self.probability:.3f} at the point found: {changed}"

    def found(self) -> list[tuple[str, Float]]:
        """See `Answer`."""
        return [("found", self.x)]
