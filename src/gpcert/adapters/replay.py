"""`replay`: the points of a result through the user's own model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gpcert.classes import Label, called
from gpcert.errors import InvalidInputError
from gpcert.results import Attack, CertifiedRadius, ProbabilityRange, Verdict
from gpcert.validation import Float, require

Result = ProbabilityRange | Verdict | CertifiedRadius | Attack


@dataclass(frozen=True, eq=False)
class Replay:
    """What the user's own model says at the points of a result.

    Attributes
    ----------
    names : tuple of str (k)
        "argmin", "argmax" of a range, "counterexample" of a verdict or radius, "x" of an attack.
    points : array of shape (k, d)
        The points.
    claimed : array of shape (k,)
        P(label) there by the certified model: for a range the inner ends, at most `min.upper` and at least
        `max.lower`.
    reported : array of shape (k,)
        P(label) by the user's model.
    changed : tuple of bool (k)
        Whether the user's model gives another label the largest probability there.
    label : class value
        Whose probability it is.
    target : str
        What is certified, in words.
    deviation : float
        The largest |reported - claimed|; 0 without points.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> gc.replay(gc.certify(clf, gc.Ball([1.75], 0.5)), clf.predict_proba).changed
    (True,)
    """

    names: tuple[str, ...]
    points: Float
    claimed: Float
    reported: Float
    changed: tuple[bool, ...]
    label: Label
    target: str

    @property
    def deviation(self) -> float:
        """The largest |reported - claimed|; 0 without points."""
        return float(np.abs(self.reported - self.claimed).max(initial=0.0))

    def __str__(self) -> str:
        if not self.names:
            return "nothing to replay: the result holds no point"
        rows = zip(self.names, self.claimed, self.reported, self.changed, strict=True)
        return "\n".join(
            f"{name}: certified P({called(self.label)}) = {p:.6g}, your model says {q:.6g}"
            + (", another label" if other else "")
            for name, p, q, other in rows
        )


def replay(result: Result, predict: Callable[[Float], ArrayLike]) -> Replay:
    """Put the points of a result through the user's own model, and report what it says.

    Nothing here is a proof: it shows that a counterexample is one for the model that is deployed.

    Parameters
    ----------
    result : ProbabilityRange, Verdict, CertifiedRadius or Attack
        The answer whose points are replayed.
    predict : callable
        Points (k, d) to class probabilities (k, C), as `predict_proba`, or to the probability of the second
        class alone, (k,) or (k, 1).

    Returns
    -------
    Replay
        What both models say at each point.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> gc.replay(gc.attack(clf, gc.Ball([1.75], 0.5)), clf.predict_proba).names
    ('x',)
    """
    witnesses = _witnesses(result)
    require(callable(predict), f"predict must be a function of points (k, d), got {predict!r}")
    points = np.array([x for _, x, _ in witnesses], dtype=np.float64)
    if not witnesses:
        return Replay((), np.zeros((0, 0)), np.zeros(0), np.zeros(0), (), result.label, result.target)
    # One by one: a library may take as many points as it has classes for something else.
    P = np.concatenate([_probabilities(predict(point[None].copy())) for point in points])
    classes, column = len(result.about.classes), result.column
    require(
        P.shape[1] == classes, f"predict must return a column for each of {classes} classes, got {P.shape[1]}"
    )
    return Replay(
        names=tuple(name for name, _, _ in witnesses),
        points=points,
        claimed=np.array([p for _, _, p in witnesses]),
        reported=P[:, column],
        changed=tuple(bool(row.argmax() != column) for row in P),
        label=result.label,
        target=result.target,
    )


def _witnesses(result: Result) -> list[tuple[str, Float, float]]:
    """(name, point, P(label) by the certified model) of every point a result holds."""
    if isinstance(result, ProbabilityRange):
        ends = [("argmin", result.argmin, result.min.upper), ("argmax", result.argmax, result.max.lower)]
        return [(name, x, p) for name, x, p in ends if x is not None]
    if isinstance(result, Verdict | CertifiedRadius):
        if result.counterexample is None or result.probability is None:
            return []
        return [("counterexample", result.counterexample, result.probability)]
    if isinstance(result, Attack):
        return [("x", result.x, result.probability)]
    raise InvalidInputError(f"result must be a range, verdict, radius or attack, got {type(result).__name__}")


def _probabilities(values: ArrayLike) -> Float:
    """(1, C) from what predict returned for one point."""
    rule = "predict must return probabilities, k rows of C or k numbers, for k points"
    try:
        given = np.asarray(values)
        P = given.astype(np.float64)
    except (ValueError, TypeError, RuntimeError):
        raise InvalidInputError(f"{rule}, got {type(values).__name__}") from None
    require(given.dtype.kind == "f", f"{rule}, got {given.dtype}: labels?")
    if P.shape in ((1,), (1, 1)):
        P = np.stack([1.0 - P.ravel(), P.ravel()], axis=1)
    require(P.ndim == 2 and len(P) == 1, f"{rule}, got shape {P.shape} for one point")
    inside = (P >= -1e-6) & (P <= 1.0 + 1e-6)
    require(bool(inside.all()), f"predict must return probabilities in [0, 1], got {P[~inside][:1]}")
    total = float(P.sum())
    require(abs(total - 1.0) <= 1e-2, f"predict must return probabilities of sum 1, got {total:g}")
    return P
