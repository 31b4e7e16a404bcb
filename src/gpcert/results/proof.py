"""Where the proof of an answer lies, and what it proves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Unproved(StrEnum):
    """Why an answer that was asked with `proof` has no file; the answer itself is as good as any."""

    INTERRUPTED = "interrupted"  #: before anything was known, or while the proof was made
    TIME = "time limit"  #: of the question before anything was known, or of the export
    NODES = "node limit"  #: of the question, before anything was known
    UNWRITTEN = "not written"  #: a full disk, a folder that is gone, or no memory for the proof
    NOTHING = "nothing to prove"  #: that does not hold anyway
    WEAK = "not provable"  #: the simple form of files proves nothing of what the answer says


@dataclass(frozen=True)
class ProofFile:
    """A proof file with its SHA-256, for a model file with the SHA-256 `model`.

    `exact`: it proves the answer's own numbers; else weaker ones. `lower`, `upper`: what it proves of the
    ends of a range, of the margin of a verdict, or of a radius, safe and unsafe; None: there are no two ends.
    """

    path: str
    digest: str
    model: str
    exact: bool
    lower: float | None
    upper: float | None
