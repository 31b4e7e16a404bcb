"""Where the proof of an answer lies, and what it proves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
