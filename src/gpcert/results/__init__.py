"""What a question answers with: enclosures that are valid however the search ended."""

from gpcert.results.about import About, Answer
from gpcert.results.answers import (
    Attack,
    CertifiedRadius,
    Enclosure,
    Extremes,
    LatentRange,
    ProbabilityRange,
    Robustness,
    Status,
    Verdict,
    VerdictStatus,
)
from gpcert.results.summaries import Evaluation, Explanation, LimeComparison

__all__ = [
    "About",
    "Answer",
    "Attack",
    "CertifiedRadius",
    "Enclosure",
    "Evaluation",
    "Explanation",
    "Extremes",
    "LatentRange",
    "LimeComparison",
    "ProbabilityRange",
    "Robustness",
    "Status",
    "Verdict",
    "VerdictStatus",
]
