"""What answers are made of: how a search ended, enclosures, extremes of a function, proof files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum

from gpcert.claims import Claim, Everywhere, Quantity, Witness
from gpcert.numbers import Lower, Upper, between
from gpcert.regions import Region
from gpcert.schema import Point, Record
from gpcert.validation import meant, require, shown


class Word(StrEnum):
    """A text that is one of a few: compared with a text that is none of them, a mistake, it says so."""

    def __eq__(self, other: object) -> bool:
        same = str.__eq__(self, other)
        if same is False and not isinstance(other, Enum):
            known = [member.value for member in type(self)]
            rule = f"status must be compared with {', '.join(map(repr, known))}"
            require(other in known, f"{rule}, got {shown(other)}{meant(other, known)}")
        return same

    def __ne__(self, other: object) -> bool:
        same = self.__eq__(other)
        return same if same is NotImplemented else not same

    __hash__ = str.__hash__


class Status(Word):
    """How a search ended. The bounds are valid under every status; only their width differs.

    Attributes
    ----------
    CONVERGED : "converged"
        As narrow as wanted, or decided.
    TIME : "time limit"
        `max_seconds` were over.
    NODES : "node limit"
        `max_nodes` boxes were bounded.
    RADIUS : "radius limit"
        Safe up to `max_radius`.
    MEMORY : "memory limit"
        There was no room for more boxes.
    NUMERICAL : "numerical limit"
        Rounding stood in the way of narrower bounds.
    INTERRUPTED : "interrupted"
        Ctrl-C, or a function given as `progress` returned True.

    Examples
    --------
    >>> gc.Status("converged") == "converged"
    True
    """

    CONVERGED = "converged"
    TIME = "time limit"
    NODES = "node limit"
    RADIUS = "radius limit"
    MEMORY = "memory limit"
    NUMERICAL = "numerical limit"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Enclosure:
    """A real number known to lie in [lower, upper]; printed with its ends rounded outward.

    Parameters
    ----------
    lower : float
        The number is at least this.
    upper : float
        The number is at most this.

    Attributes
    ----------
    width : float
        upper - lower.

    Examples
    --------
    >>> e = gc.Enclosure(0.12345, 0.98765)
    >>> f"{e}, {e:.2f}, at least {e.lower:.4f}"
    '[0.123, 0.988], [0.12, 0.99], at least 0.1234'
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", Lower(self.lower))
        object.__setattr__(self, "upper", Upper(self.upper))

    def __str__(self) -> str:
        return between(self.lower, self.upper)

    def __format__(self, spec: str) -> str:
        return f"[{self.lower:{spec}}, {self.upper:{spec}}]" if spec else str(self)

    @property
    def width(self) -> float:
        """The length of the enclosure."""
        return self.upper - self.lower

    def flaws(self) -> Iterator[str]:
        if not self.lower <= self.upper:
            yield f"lower must be <= upper, got {self.lower} and {self.upper}"


@dataclass(frozen=True, eq=False, repr=False)
class Extremes:
    """Enclosures of the smallest and the largest value of a function over a region.

    Attributes
    ----------
    min : Enclosure
        Of the smallest value.
    max : Enclosure
        Of the largest value.
    argmin : array of shape (d,) or None
        A point of the region where the function is at most `min.upper`.
    argmax : array of shape (d,) or None
        A point of the region where it is at least `max.lower`.
    lower : float
        `min.lower`: the function is at least this on the whole region.
    upper : float
        `max.upper`: the function is at most this on the whole region.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> mean = gc.latent_range(clf, gc.Ball([2.5], 0.25)).mean
    >>> mean.min.lower <= mean.max.upper
    True
    """

    min: Enclosure
    max: Enclosure
    argmin: Point | None
    argmax: Point | None

    known = -math.inf, math.inf  #: any value lies between these two
    __repr__ = Record.__repr__

    @property
    def lower(self) -> float:
        """The function is at least this on the whole region."""
        return self.min.lower

    @property
    def upper(self) -> float:
        """The function is at most this on the whole region."""
        return self.max.upper

    def flaws(self) -> Iterator[str]:
        least, most = self.known
        for name, ends in (("min", self.min), ("max", self.max)):
            if not least <= ends.lower <= ends.upper <= most:
                yield f"{name} must be lower and upper end in [{least:g}, {most:g}], got {both_ends(ends)}"
        if self.min.lower > self.max.upper:
            yield f"min must not lie above max, got {both_ends(self.min)} and {both_ends(self.max)}"

    def claims_about(self, quantity: Quantity, region: Region) -> tuple[Claim, ...]:
        """The outer ends hold everywhere, the inner ones are attained."""
        claims: list[Claim] = [Everywhere(quantity, region, self.min.lower, self.max.upper)]
        if self.argmin is not None:
            claims.append(Witness(quantity, region, self.argmin, upper=self.min.upper))
        if self.argmax is not None:
            claims.append(Witness(quantity, region, self.argmax, lower=self.max.lower))
        return tuple(claims)


def both_ends(ends: Enclosure) -> str:
    """Every digit of both, for messages."""
    return f"[{ends.lower}, {ends.upper}]"


class Unproved(StrEnum):
    """Why an answer has no proof file that was wanted; the answer itself is as good as any.

    Attributes
    ----------
    INTERRUPTED : "interrupted"
        Before anything was known, or while the proof was made.
    TIME : "time limit"
        Of the question before anything was known, or of the export.
    NODES : "node limit"
        Of the question, before anything was known.
    UNWRITTEN : "not written"
        A full disk, a folder that is gone, or no memory for the proof.
    NOTHING : "nothing to prove"
        That does not hold anyway.
    WEAK : "not provable"
        The simple form of files proves nothing of what the answer says.

    Examples
    --------
    >>> from gpcert.results import Unproved
    >>> Unproved("not written") == "not written"
    True
    """

    INTERRUPTED = "interrupted"  #: before anything was known, or while the proof was made
    TIME = "time limit"  #: of the question before anything was known, or of the export
    NODES = "node limit"  #: of the question, before anything was known
    UNWRITTEN = "not written"  #: a full disk, a folder that is gone, or no memory for the proof
    NOTHING = "nothing to prove"  #: that does not hold anyway
    WEAK = "not provable"  #: the simple form of files proves nothing of what the answer says


@dataclass(frozen=True)
class ProofFile:
    """A proof file for `gpcert_check`, and what it proves.

    Attributes
    ----------
    path : str
        Where it was written.
    digest : str
        Its SHA-256.
    model : str
        The SHA-256 of the model file it is for.
    exact : bool
        It proves the answer's own numbers; else weaker ones.
    lower : float or None
        What it proves of the lower end of a range, of the margin of a verdict, or of the safe radius; None:
        there is no such end.
    upper : float or None
        The same of the upper end, or the unsafe radius.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> file = pathlib.Path(tempfile.mkdtemp(), "proof.json")
    >>> gc.certify(clf, gc.Ball([2.5], 0.25), proof=file).proof.lower > 0
    True
    """

    path: str
    digest: str
    model: str
    exact: bool
    lower: float | None
    upper: float | None
