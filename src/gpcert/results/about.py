"""What every answer records and offers: the model, the settings, the version; its text, its claims."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from gpcert.claims import Claim
from gpcert.classes import Label, listed
from gpcert.errors import InvalidInputError
from gpcert.html import Html, join, tag
from gpcert.pictures import changes
from gpcert.regions import Region
from gpcert.schema import Record, digest, encoded, optional
from gpcert.settings import Settings
from gpcert.validation import Float, shown
from gpcert.version import __version__


class Key(NamedTuple):
    """Digests that together identify a question: two answers with one key answer the same."""

    model: str
    region: str
    question: str
    settings: str


@dataclass(frozen=True)
class About:
    """`target`: what is certified, in words; `model`: `Posterior.digest`; `classes`: their values, in the
    order of the model; `version`: of this package; `features`: their names, where the model has any.
    """

    target: str
    model: str
    classes: tuple[Label, ...]
    settings: Settings
    version: str = __version__
    features: tuple[str, ...] | None = optional()


class Answer(Record, ABC):
    """What every answer offers; printed it is a sentence, in a notebook also a picture.

    Attributes
    ----------
    model : str
        The digest of the model: `Posterior.digest`.
    target : str
        What is certified: `Posterior.target`.
    settings : Settings
        What the question was asked with.
    tolerance : float
        The width at which an enclosure counts as converged.
    version : str
        Of the gpcert that answered.
    about : record
        All of these, and the classes of the model.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> answer = gc.certify(clf, gc.Ball([2.5], 0.25))
    >>> answer.model == clf.posterior_.digest, answer.tolerance
    (True, 0.02)
    """

    about: About
    asked: ClassVar[tuple[str, ...]]  #: its attributes that are parameters of the question
    subject: ClassVar[str] = "region"  #: the attribute with the region, or the regions, it is about
    boolean: ClassVar[str] = ""  #: the attribute that is true or false, where there is one

    def __bool__(self) -> bool:
        kind, hint = type(self).__name__, f": ask for .{self.boolean}" if self.boolean else ""
        raise InvalidInputError(f"an answer is neither true nor false, got {kind}{hint}")

    @abstractmethod
    def __str__(self) -> str:
        """What is known in one sentence, its bounds rounded outward."""

    def picture(self) -> Html:
        """What shows it, for a notebook."""
        return Html("")

    def summary(self) -> str:
        """What is known, then the sentence of the claim, as in a batch of answers and on its page.

        Returns
        -------
        str
            Two lines, or more.
        """
        from gpcert.results.wording import (
            Words,
            lines,
            sentences,  # sentences are about all kinds of answers
            unit_tables,
        )

        words = Words(features=self.about.features or ())
        tables = unit_tables(self.regions[:1], words, getattr(self, "radii", None))
        return "\n".join([str(self), *sentences([self], words), *lines(tables)])

    def found(self) -> list[tuple[str, Float]]:
        """Points (d,) of the region that were found, by what they are called."""
        return []

    def pictures(self) -> Html:
        """`picture`, and the points as images where the region is one of images."""
        region = getattr(self, self.subject)
        seen = changes(region.centre, region.names, self.found()) if hasattr(region, "centre") else Html("")
        return join([self.picture(), seen])

    def _repr_html_(self) -> str:
        return tag("div", self.pictures(), tag("div", str(self)))

    @abstractmethod
    def claims(self) -> tuple[Claim, ...]:
        """What is stated, as data: sentences that are true or false (docs/certificates.md).

        Returns
        -------
        tuple of Claim
            One for each sentence.
        """

    @property
    def regions(self) -> tuple[Region, ...]:
        """The region, or the regions, it is about."""
        found = getattr(self, self.subject)
        return found if isinstance(found, tuple) else (found,)

    @property
    def column(self) -> int:
        """Where the model has the class `label`: the column of `Posterior.probability`."""
        column: int = self.about.classes.index(getattr(self, "label"))  # noqa: B009
        return column

    def flaws(self) -> Iterator[str]:
        yield from self._strange([getattr(self, "label", None)])

    def _strange(self, labels: Iterable[Label | None]) -> Iterator[str]:
        """A sentence for each label that is no class: 1 is none of True, False."""
        classes = self.about.classes
        for label in labels:
            if label is not None and (type(label), label) not in [(type(c), c) for c in classes]:
                yield f"label must be one of {listed(classes)}, got {shown(label)[:60]}"

    @property
    def target(self) -> str:
        """What is certified: `Posterior.target`."""
        return self.about.target

    @property
    def model(self) -> str:
        """The digest of the model: `Posterior.digest`."""
        return self.about.model

    @property
    def settings(self) -> Settings:
        """What the question was asked with."""
        return self.about.settings

    @property
    def tolerance(self) -> float:
        """The width at which an enclosure counts as converged."""
        return self.settings.tolerance

    @property
    def version(self) -> str:
        """The package that answered."""
        return self.about.version

    @property
    def key(self) -> Key:
        """What identifies the question: digests of model, region, question with its parameters, settings."""
        question = [type(self).__name__, {name: encoded(getattr(self, name)) for name in self.asked}]
        region = digest(encoded(getattr(self, self.subject)))
        return Key(self.model, region, digest(question), self.settings.digest)
