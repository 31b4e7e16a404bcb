"""What a store knows of an answer without reading it: its headline, how hard was searched, whom it serves."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np

from gpcert.errors import StoreError
from gpcert.results import (
    Answer,
    Attack,
    CertifiedRadius,
    Evaluation,
    Explanation,
    LatentRange,
    ProbabilityRange,
    Status,
    Verdict,
    VerdictStatus,
)
from gpcert.settings import Settings

#: Endings that no larger limit would have changed.
_OWN = (Status.CONVERGED, Status.NUMERICAL)


@dataclass(frozen=True)
class Headline:
    """`status` in a word, the two numbers an answer is about, and how much it leaves open: 0 is nothing."""

    status: str
    lower: float
    upper: float
    width: float


@singledispatch
def headline(answer: Answer) -> Headline:
    """Of an answer of any kind."""
    raise StoreError(f"a store must hold answers of the kinds it keeps, got a {type(answer).__name__}")


@headline.register
def _(answer: ProbabilityRange) -> Headline:
    return Headline(str(answer.status), answer.lower, answer.upper, answer.min.width + answer.max.width)


@headline.register
def _(answer: LatentRange) -> Headline:
    ends = [e for each in (answer.mean, answer.variance) for e in (each.min, each.max)]
    return Headline(str(answer.status), answer.mean.lower, answer.mean.upper, sum(e.width for e in ends))


@headline.register
def _(answer: Verdict) -> Headline:
    margin = answer.margin
    open_ = margin.width if answer.status is VerdictStatus.UNKNOWN else 0.0
    return Headline(str(answer.status), margin.lower, margin.upper, open_)


@headline.register
def _(answer: CertifiedRadius) -> Headline:
    gap = min(answer.unsafe, answer.max_radius) - answer.safe
    return Headline(str(answer.status), answer.safe, answer.unsafe, max(gap, 0.0) if gap == gap else 0.0)


@headline.register
def _(answer: Explanation) -> Headline:
    lower, upper = float(answer.lower.min(initial=0.0)), float(answer.upper.max(initial=0.0))
    return Headline("explained", lower, upper, float(np.sum(answer.upper - answer.lower)))


@headline.register
def _(answer: Evaluation) -> Headline:
    unknown = int((answer.verdicts == "unknown").sum())
    ends = float(answer.safe.min()), float(answer.unsafe.max())  # no safe radius: nan, in a store nothing
    return Headline("open" if unknown else "decided", *ends, float(unknown))


@headline.register
def _(answer: Attack) -> Headline:
    found = "found" if answer.success else "not found"
    return Headline(found, answer.probability, answer.probability, answer.probability)


def interrupted(answer: Answer) -> bool:
    """Whether somebody ended the search: true all the same, but not what was asked for, and not kept."""
    return Status.INTERRUPTED in (getattr(answer, "status", None), getattr(answer, "ended", None))


def effort(answer: Answer) -> Settings:
    """The sharpest settings for which this is as good an answer as a new search would give.

    Limits that were not met count as none; what is decided is decided for every tolerance.
    """
    asked = answer.settings
    unlimited = replace(asked, max_seconds=math.inf, max_nodes=math.inf)
    if isinstance(answer, Verdict):
        if answer.status is not VerdictStatus.UNKNOWN:
            return replace(unlimited, tolerance=0.0)
        return replace(unlimited if answer.ended in _OWN else asked, tolerance=0.0)  # it ends nothing there
    if isinstance(answer, CertifiedRadius) and answer.status is Status.CONVERGED:
        return replace(unlimited, tolerance=0.0)
    if isinstance(answer, Evaluation):
        return asked if (answer.verdicts == "unknown").any() else replace(unlimited, tolerance=0.0)
    if isinstance(answer, Explanation):
        return unlimited if narrow(answer) else asked
    if isinstance(answer, CertifiedRadius):  # the radii tried before the last may have met a limit
        return asked
    return unlimited if getattr(answer, "status", None) in _OWN else asked


def narrow(answer: Answer) -> bool:
    """Whether it is as near as its settings ask, however its search ended."""
    if getattr(answer, "status", None) is Status.CONVERGED:
        return True
    if isinstance(answer, CertifiedRadius):
        gap, counted = answer.unsafe - answer.safe, answer.ball.norm == 0
        return math.isfinite(answer.unsafe) and gap <= (1.0 if counted else answer.rtol * answer.unsafe)
    if isinstance(answer, ProbabilityRange):
        return max(answer.min.width, answer.max.width) <= answer.tolerance
    if isinstance(answer, LatentRange):
        ends = [e for each in (answer.mean, answer.variance) for e in (each.min, each.max)]
        return max(e.width for e in ends) <= answer.tolerance
    if isinstance(answer, Explanation):  # a sum of four enclosures, each as narrow as asked
        return bool(np.max(answer.upper - answer.lower, initial=0.0) <= 4.0 * answer.tolerance)
    return False


def sharp_enough(known: Settings, asked: Settings) -> bool:
    """Whether an answer found with the first settings serves whoever asks with the second."""
    return (
        known.tolerance <= asked.tolerance
        and known.max_seconds >= asked.max_seconds
        and known.max_nodes >= asked.max_nodes
    )
