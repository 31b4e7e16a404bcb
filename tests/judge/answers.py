"""What an answer must be apart from its claims: ends in order, statuses that its numbers bear out."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from gpcert.results import (
    Attack,
    CertifiedRadius,
    Enclosure,
    Evaluation,
    Explanation,
    Extremes,
    LatentRange,
    ProbabilityRange,
    Robustness,
    Status,
    Verdict,
    answer_from_dict,
)


def came_back(answer: Any) -> Any:
    """The answer as a reader of its JSON text has it: that is what is judged."""
    return answer_from_dict(json.loads(json.dumps(answer.to_dict(), allow_nan=False)))


def inconsistencies(answer: Any) -> list[str]:
    """What an answer says that its own numbers contradict."""
    check = {
        ProbabilityRange: _range,
        LatentRange: _latent,
        Verdict: _verdict,
        CertifiedRadius: _radius,
        Robustness: _robustness,
        Explanation: _explanation,
        Evaluation: _evaluation,
        Attack: _attack,
    }[type(answer)]
    return [sentence for sentence, holds in check(answer).items() if not holds]


def _ordered(e: Enclosure, low: float = -np.inf, high: float = np.inf) -> bool:
    return bool(low <= e.lower <= e.upper <= high)


def _narrow(answer: Any, *parts: Extremes) -> bool:
    """A search that has converged has done so to its tolerance."""
    widest = max(e.width for part in parts for e in (part.min, part.max))
    return answer.status is not Status.CONVERGED or widest <= answer.tolerance


def _range(r: ProbabilityRange) -> dict[str, bool]:
    return {
        "min is an enclosure in [0, 1]": _ordered(r.min, 0.0, 1.0),
        "max is an enclosure in [0, 1]": _ordered(r.max, 0.0, 1.0),
        "min is at most max": r.min.lower <= r.max.upper,
        "an inner end has its point": (r.min.upper == 1.0 or r.argmin is not None)
        and (r.max.lower == 0.0 or r.argmax is not None),
        "converged to the tolerance": _narrow(r, r),
    }


def _latent(r: LatentRange) -> dict[str, bool]:
    return {
        "the mean's ends are in order": _ordered(r.mean.min) and _ordered(r.mean.max),
        "the variance's ends are in order": _ordered(r.variance.min, 0.0) and _ordered(r.variance.max, 0.0),
        "an inner end has its point": all(
            (e.min.upper == np.inf or e.argmin is not None) and (e.max.lower <= floor or e.argmax is not None)
            for e, floor in ((r.mean, -np.inf), (r.variance, 0.0))
        ),
        "converged to the tolerance": _narrow(r, r.mean, r.variance),
    }


def _verdict(v: Verdict) -> dict[str, bool]:
    return {
        "the margin is an enclosure": _ordered(v.margin, -1.0, 1.0),
        "safe has a margin that may be above 0": v.status != "safe"
        or v.margin.upper >= 0.0 <= v.margin.lower,
        "unsafe has a margin that may be below 0": v.status != "unsafe"
        or v.margin.lower <= 0.0 >= v.margin.upper,
        "unsafe has a counterexample": (v.status == "unsafe") == (v.counterexample is not None),
        "an upper end of the margin has its point": v.margin.upper >= 1.0 - v.threshold
        or v.argmin is not None,
    }


def _radius(r: CertifiedRadius) -> dict[str, bool]:
    return {
        "safe below unsafe": 0.0 <= r.safe < r.unsafe or r.safe == r.unsafe in (0.0, np.inf),
        "unsafe has a counterexample": (r.unsafe < np.inf) == (r.counterexample is not None),
    }


def _robustness(r: Robustness) -> dict[str, bool]:
    return {"delta is enclosed in [0, 1]": 0.0 <= r.lower <= r.upper <= 1.0}


def _explanation(e: Explanation) -> dict[str, bool]:
    return {
        "ends in order": bool((e.lower <= e.upper).all()),
        "the value lies between": bool(((e.lower <= e.value) & (e.value <= e.upper)).all()),
        "a sign is that of both ends": bool(
            ((e.sign == 1) <= (e.lower > 0)).all() and ((e.sign == -1) <= (e.upper < 0)).all()
        ),
    }


def _evaluation(t: Evaluation) -> dict[str, bool]:
    safe, unsafe = t.verdicts == "safe", t.verdicts == "unsafe"
    right = t.correct[:, None]
    return {
        "certified at most attacked": bool((t.certified <= t.attacked).all()),
        "certified counts safe points only": bool((t.certified <= (safe & right).mean(axis=0)).all()),
        "attacked counts the others": np.array_equal(
            t.attacked, (~(t.wrong[:, None] | (right & unsafe))).mean(axis=0)
        ),
        "correct is what the labels say": np.array_equal(t.correct, t.labels == t.truth),
        "what is wrong is not correct": not (t.wrong & t.correct).any(),
        "verdicts are nested": bool((np.diff(safe.astype(int), axis=1) <= 0).all())
        and bool((np.diff(unsafe.astype(int), axis=1) >= 0).all()),
        "safe and unsafe are the ends of the verdicts": all(
            np.array_equal(safe[i], t.radii <= t.safe[i])
            and np.array_equal(unsafe[i], t.radii >= t.unsafe[i])
            for i in range(len(t.labels))
        ),
        "a lost point has its counterexample": bool(
            (np.isfinite(t.unsafe) == ~np.isnan(t.counterexamples).any(axis=1)).all()
        ),
    }


def _attack(a: Attack) -> dict[str, bool]:
    return {"a probability": 0.0 <= a.probability <= 1.0}
