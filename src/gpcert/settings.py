"""What a question is asked with, its subject excepted: plain data, recorded in every answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpcert.schema import NotNegative, Record

#: Names of `device`; "auto": a GPU where there is one that pays.
DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class Settings(Record):
    """What a question was asked with, its subject excepted: recorded in every answer.

    Attributes
    ----------
    tolerance : float
        The width at which an enclosure counts as converged.
    max_seconds : float
        Time limit; inf: none.
    max_nodes : float
        Limit on boxes; inf: none.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> gc.certify(clf, gc.Ball([2.5], 0.25), max_seconds=60).settings.max_seconds
    60.0
    """

    tolerance: NotNegative = math.inf
    max_seconds: NotNegative = math.inf
    max_nodes: NotNegative = math.inf
