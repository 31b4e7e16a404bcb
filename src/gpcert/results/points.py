"""What is found at points: by an attack."""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.claims import Claim, Quantity, Witness
from gpcert.regions import Region
from gpcert.results.about import About, Answer
from gpcert.schema import Point, Share
from gpcert.validation import Float


@dataclass(frozen=True, eq=False, repr=False)
class Attack(Answer):
    """The best point an attack found: evidence, never a guarantee.

    `x` (d,) is a point of the region, `probability` the model's P(label) there, `success` whether the model
    predicts another label there; both by its predictor, in floating point. That x lies in the region is all
    that is claimed. `start` (d,) is where the attack began.

    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> a = gc.attack(clf, gc.Ball([1.75], 0.5))
    >>> a.region.contains(a.x)
    True
    """

    x: Point
    probability: Share
    success: bool
    label: int
    method: str
    starts: int
    seed: int
    start: Point
    region: Region
    about: About

    asked = "label", "method", "starts", "seed", "start"
    boolean = "success"

    def claims(self) -> tuple[Claim, ...]:
        """What is stated, sentence by sentence."""
        return (Witness(Quantity("probability", self.label), self.region, self.x),)

    def told(self) -> str:
        """See `Answer`."""
        changed = "another label" if self.success else "the same label"
        return f"P(classes[{self.label}]) is about {self.probability:.3f} at the point found: {changed}"

    def found(self) -> list[tuple[str, Float]]:
        """See `Answer`."""
        return [("found", self.x)]
