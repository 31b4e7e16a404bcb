"""What a question answers with: enclosures that are valid however the search ended."""

from gpcert.results.about import About, Answer, Key
from gpcert.results.answers import (
    Attack,
    CertifiedRadius,
    LatentRange,
    ProbabilityRange,
    Robustness,
    Verdict,
    VerdictStatus,
)
from gpcert.results.parts import Enclosure, Extremes, ProofFile, Status, Unproved
from gpcert.results.summaries import Evaluation, Explanation
from gpcert.schema import read

__all__ = [
    "About",
    "Answer",
    "Attack",
    "CertifiedRadius",
    "Enclosure",
    "Evaluation",
    "Explanation",
    "Extremes",
    "Key",
    "LatentRange",
    "ProbabilityRange",
    "ProofFile",
    "Robustness",
    "Status",
    "Unproved",
    "Verdict",
    "VerdictStatus",
    "answer_from_dict",
]

_OfOne = ProbabilityRange | LatentRange | Verdict | CertifiedRadius | Robustness | Attack


def answer_from_dict(data: object) -> Answer:
    """The answer, of any kind, that `to_dict` wrote; anything else is an error of one sentence."""
    found: Answer = read(_OfOne | Explanation | Evaluation, data)
    return found
