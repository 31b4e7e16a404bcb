"""What is known of the latent function over a region."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpcert.claims import Claim, Quantity
from gpcert.classes import Label, called
from gpcert.numbers import between
from gpcert.regions import Region
from gpcert.results.about import About, Answer
from gpcert.results.parts import Extremes, Status
from gpcert.schema import NotNegative


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
        """See `Record`."""
        yield from super().flaws()
        if self.variance.lower < 0:
            yield f"variance.min.lower must be >= 0, got {self.variance.lower}"

    def claims(self) -> tuple[Claim, ...]:
        """What is stated, sentence by sentence."""
        mean, variance = Quantity("mean", self.label), Quantity("variance", self.label)
        of_mean = self.mean.claims_about(mean, self.region)
        return of_mean + self.variance.claims_about(variance, self.region)

    def told(self) -> str:
        """See `Answer`."""
        mean, variance = (between(each.lower, each.upper) for each in (self.mean, self.variance))
        of = "" if self.label is None else f" of {called(self.label)}"
        return f"the latent mean{of} stays in {mean}, its variance in {variance}; {self.status}"
