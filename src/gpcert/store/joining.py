"""What a store knows of an answer, and what two answers to one question say together.

Both are true, so all that either of them says holds.

Ranges, latent ranges, influences: end by end the narrower, each attained end with its point. Verdicts: safe
and unsafe before unknown. Radii: the larger safe, the smaller refuted one. Evaluations: what is decided in
either. Attacks: the lower probability. Settings and status are those of one of the two searches, and true of
the whole: "converged" where it is as narrow as these settings ask. A proof stays where it proves these very
numbers.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import singledispatch
from itertools import chain
from typing import Any

import numpy as np

from gpcert.errors import StoreError
from gpcert.results import (
    Answer,
    Attack,
    CertifiedRadius,
    Enclosure,
    Evaluation,
    Explanation,
    Extremes,
    LatentRange,
    ProbabilityRange,
    Status,
    Verdict,
    VerdictStatus,
)
from gpcert.schema import encoded
from gpcert.settings import Settings

#: Of a radius and of a verdict, what no other ending is preferred to, the first most of all.
_FINAL = (Status.CONVERGED, Status.RADIUS)
_PROOF = ("proof", "unproved")


def joined(old: Answer, new: Answer) -> Answer | None:
    """Both in one; `old` itself where the other adds nothing; None: they contradict each other."""
    parts = together(old, new)
    first: Any
    first, second = (new, old) if _leads(new, old, parts) else (old, new)
    found = replace(first, **parts)
    nested = chain.from_iterable(part.flaws() for part in parts.values() if hasattr(part, "flaws"))
    if any(chain(found.flaws(), nested)) or _opposed(old, new):
        return None
    if narrow(found) and hasattr(first, "status"):
        found = replace(found, status=Status.CONVERGED)
    proved = [each for each in (first, second) if getattr(each, "proof", None) and _says(each, parts)]
    if _says(first, parts | _status(found)) and (not proved or proved[0] is first):
        only: Answer = first
        return only
    proof = {name: getattr(proved[0], name) if proved else None for name in _PROOF if hasattr(first, name)}
    version = min(old.version, new.version, key=_order)
    whole: Answer = replace(found, about=replace(first.about, version=version), **proof)
    return whole


@singledispatch
def together(old: Answer, new: Any) -> dict[str, Any]:
    """What either says, as fields of an answer."""
    raise TypeError(f"no store keeps a {type(old).__name__}")


@together.register
def _(old: ProbabilityRange, new: ProbabilityRange) -> dict[str, Any]:
    return _extremes(old, new)


@together.register
def _(old: LatentRange, new: LatentRange) -> dict[str, Any]:
    pairs = {"mean": (old.mean, new.mean), "variance": (old.variance, new.variance)}
    return {name: Extremes(**_extremes(*pair)) for name, pair in pairs.items()}


@together.register
def _(old: Verdict, new: Verdict) -> dict[str, Any]:
    shown, least = _decided(old, new), min(old, new, key=lambda v: v.margin.upper)
    names = ("status", "counterexample", "probability")
    return {name: getattr(shown, name) for name in names} | {
        "margin": _both(old.margin, new.margin),
        "argmin": least.argmin,
    }


@together.register
def _(old: CertifiedRadius, new: CertifiedRadius) -> dict[str, Any]:
    nearest = min(old, new, key=lambda r: r.unsafe)
    found = {name: getattr(nearest, name) for name in ("unsafe", "counterexample", "probability")}
    return found | {"safe": max(old.safe, new.safe)}


@together.register
def _(old: Explanation, new: Explanation) -> dict[str, Any]:
    lower, upper = np.maximum(old.lower, new.lower), np.minimum(old.upper, new.upper)
    found = Explanation.of(lower, upper, old.balls, old.label, old.feature_names, old.about)
    return {name: getattr(found, name) for name in ("value", "lower", "upper", "sign")}


@together.register
def _(old: Evaluation, new: Evaluation) -> dict[str, Any]:
    asked = new if old.labels[0] is None else old  # of the points a store keeps one in each
    nearest = min(old, new, key=lambda e: e.unsafe[0])
    return {name: getattr(asked, name) for name in ("clean", "labels", "correct")} | {
        "certified": np.maximum(old.certified, new.certified),
        "attacked": np.minimum(old.attacked, new.attacked),
        "wrong": old.wrong | new.wrong,
        "safe": np.fmax(old.safe, new.safe),
        "unsafe": nearest.unsafe,
        "counterexamples": nearest.counterexamples,
        "verdicts": np.where(old.verdicts == "unknown", new.verdicts, old.verdicts),
    }


@together.register
def _(old: Attack, new: Attack) -> dict[str, Any]:
    lowest = min(old, new, key=lambda a: a.probability)
    return {name: getattr(lowest, name) for name in ("x", "probability", "success")}


def _extremes(old: Any, new: Any) -> dict[str, Any]:
    low, high = min(old, new, key=lambda e: e.min.upper), max(old, new, key=lambda e: e.max.lower)
    ends = {"min": _both(old.min, new.min), "max": _both(old.max, new.max)}
    return ends | {"argmin": low.argmin, "argmax": high.argmax}


def _both(one: Enclosure, other: Enclosure) -> Enclosure:
    return Enclosure(max(one.lower, other.lower), min(one.upper, other.upper))


def _decided(old: Verdict, new: Verdict) -> Verdict:
    return new if old.status is VerdictStatus.UNKNOWN else old


def _leads(new: Any, old: Any, parts: dict[str, Any]) -> bool:
    """Whether settings and ending are the new one's: what is decided or narrow enough leads, the narrower
    first; else what was searched for more sharply.
    """
    sharper = sharp_enough(effort(new), effort(old)) and not sharp_enough(effort(old), effort(new))
    ranks: list[float]
    if isinstance(new, Verdict):
        ranks = [each.status is VerdictStatus.UNKNOWN for each in (new, old)]
    elif isinstance(new, CertifiedRadius):
        ranks = [_FINAL.index(each.status) if each.status in _FINAL else 2 for each in (new, old)]
    elif isinstance(new, Evaluation):
        ranks = [int((each.verdicts == "unknown").sum()) for each in (new, old)]
    else:
        found = [replace(each, **parts) for each in (new, old)]
        ranks = [each.tolerance if narrow(each) else math.inf for each in found]
    return bool(ranks[0] < ranks[1] or (ranks[0] == ranks[1] and sharper))


def _status(answer: Any) -> dict[str, Any]:
    return {"status": answer.status} if hasattr(answer, "status") else {}


def _says(answer: Any, parts: dict[str, Any]) -> bool:
    """Whether the answer alone says all of it."""
    return all(encoded(getattr(answer, name)) == encoded(value) for name, value in parts.items())


def _opposed(old: Any, new: Any) -> bool:
    """Whether one holds what the other one refutes."""
    if isinstance(new, Verdict):
        return {old.status, new.status} == {VerdictStatus.SAFE, VerdictStatus.UNSAFE}
    if isinstance(new, Evaluation):
        words = old.verdicts, new.verdicts
        return bool(((words[0] != words[1]) & (words[0] != "unknown") & (words[1] != "unknown")).any())
    return False


def _order(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


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
    """Whether an answer found with the first settings serves a question with the second."""
    return (
        known.tolerance <= asked.tolerance
        and known.max_seconds >= asked.max_seconds
        and known.max_nodes >= asked.max_nodes
    )
