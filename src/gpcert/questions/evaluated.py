"""What an evaluation says of one point, and of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpcert.bounds.factory import BoundFactory
from gpcert.posterior import Posterior
from gpcert.questions.balls import Balls
from gpcert.results import About, Evaluation, ProofFile, Unproved
from gpcert.settings import Settings
from gpcert.validation import Float, Index

if TYPE_CHECKING:
    from gpcert.proofs.prover import Prover


class Row(NamedTuple):
    """One point: its label, how many of the first radii are safe, and from which on they are unsafe."""

    label: int  #: -1: not asked
    safe: int
    unsafe: int
    point: Float | None  #: the counterexample (d,), of the first unsafe radius
    right: bool  #: whether the true label is proved to be the model's
    wrong: bool  #: whether it is proved not to be
    proof: ProofFile | None = None
    unproved: Unproved | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """What every point is asked."""

    post: Posterior
    factory: BoundFactory
    balls: Balls
    truth: Index
    radii: Float
    threshold: float
    settings: Settings
    about: About
    device: str
    prover: Prover | None


def point_of(task: Task, i: int, row: Row | None) -> Evaluation:
    """One point alone; None: it was not asked."""
    radii, k, balls = task.radii, len(task.radii), task.balls
    row = row or Row(-1, 0, k, None, False, False)
    classes = task.about.classes
    order = np.arange(k)
    is_safe, is_unsafe = order < row.safe, order >= row.unsafe
    correct = row.label == task.truth[i]
    # What is not proved wrong may be right, asked or not; a counterexample to another label says nothing.
    lost = row.wrong | (correct & is_unsafe)
    point = np.full(balls.X.shape[1], np.nan) if row.point is None else row.point
    return Evaluation(
        radii=radii,
        clean=float(correct) if row.label >= 0 else float("nan"),
        certified=(row.right & is_safe).astype(np.float64),
        attacked=(~lost).astype(np.float64),
        labels=np.array([None if row.label < 0 else classes[row.label]], dtype=object),
        truth=np.array([classes[task.truth[i]]], dtype=object),
        correct=np.array([correct]),
        wrong=np.array([row.wrong]),
        safe=np.array([radii[row.safe - 1] if row.safe else np.nan]),
        unsafe=np.array([radii[row.unsafe] if row.unsafe < k else np.inf]),
        verdicts=np.where(is_safe, "safe", np.where(is_unsafe, "unsafe", "unknown"))[None],
        counterexamples=point[None],
        seconds=0.0,
        threshold=task.threshold,
        balls=(balls.ball(i, balls.limit(i)),),
        about=task.about,
        proof=None if row.proof is None else (row.proof,),
        unproved=row.unproved,
    )


#: What an evaluation has of every point.
_EACH = ("labels", "truth", "correct", "wrong", "safe", "unsafe", "verdicts", "counterexamples")


def joined(task: Task, points: list[Evaluation], seconds: float) -> Evaluation:
    """All points together."""
    each = {name: np.concatenate([getattr(point, name) for point in points]) for name in _EACH}
    asked = np.array([label is not None for label in each["labels"]])
    return Evaluation(
        radii=task.radii,
        clean=float(each["correct"][asked].mean()) if asked.any() else float("nan"),
        certified=np.mean([point.certified for point in points], axis=0),
        attacked=np.mean([point.attacked for point in points], axis=0),
        **each,
        seconds=seconds,
        threshold=task.threshold,
        balls=tuple(point.balls[0] for point in points),
        about=task.about,
        proof=None if task.prover is None else tuple(f for point in points for f in point.proof or ()),
        unproved=next((point.unproved for point in points if point.unproved is not None), None),
    )
