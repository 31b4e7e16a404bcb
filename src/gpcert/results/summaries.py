"""What a question about many points answers with: accuracies over radii, influences of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpcert.claims import Balance, Claim, Everywhere, Quantity, Share, Term, Witness, around, one_sided
from gpcert.regions import Ball
from gpcert.validation import Float, Index

__all__ = ["Evaluation", "Explanation", "LimeComparison"]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Accuracies of a model on labelled points at every radius: certified <= true robust <= attacked.

    Per radius (k,): `certified`, `attacked`, shares of points, the doubles nearest to count / m; `clean` is
    the share at radius 0. Per point (m,): `labels` the model's (-1: not asked), `correct`, `safe` the largest
    radius of the list proved safe (nan: none), `unsafe` the smallest with a counterexample (inf: none).
    `counterexamples` (m, d): a point of that ball, nan where there is none. `verdicts` (m, k) holds "safe",
    "unsafe" or "unknown" about the model's own label.
    """

    radii: Float
    clean: float
    certified: Float
    attacked: Float
    labels: Index
    correct: NDArray[np.bool_]
    safe: Float
    unsafe: Float
    counterexamples: Float
    verdicts: NDArray[Any]
    seconds: float
    threshold: float
    target: str  #: what is certified: `Posterior.target`
    balls: tuple[Ball, ...]  #: around the points, of the largest radius

    @property
    def gap(self) -> Float:
        """attacked - certified (k,): the share of points about which nothing is known."""
        return np.asarray(self.attacked - self.certified)

    def table(self) -> dict[str, Float]:
        """One row per radius: radius, certified, attacked, gap."""
        return {
            "radius": self.radii,
            "certified": self.certified,
            "attacked": self.attacked,
            "gap": self.gap,
        }

    def points(self) -> dict[str, NDArray[Any]]:
        """One row per point: label, correct, safe, unsafe."""
        return {"label": self.labels, "correct": self.correct, "safe": self.safe, "unsafe": self.unsafe}

    def claims(self) -> tuple[Claim, ...]:
        """What is stated, sentence by sentence: the verdicts behind the shares, and the shares."""
        proved = tuple(self._holds(i, r) for i, r in enumerate(self.safe) if r >= 0)
        refuted = [self._refuted(i, r) for i, r in enumerate(self.unsafe) if r < np.inf]
        return (*proved, *(w for w in refuted if w is not None), *map(self._share, range(len(self.radii))))

    def _holds(self, point: int, radius: float) -> Everywhere:
        """The model's label holds on the ball: the margin is above 0."""
        margin = Quantity("margin", int(self.labels[point]), self.threshold)
        return Everywhere(margin, around(self.balls[point], float(radius)), lower=0.0, strict=True)

    def _refuted(self, point: int, radius: float) -> Witness | None:
        if np.isnan(self.counterexamples[point]).any():  # a tie: no label to keep, and nothing to show
            return None
        holds = self._holds(point, radius)
        return Witness(holds.quantity, holds.region, self.counterexamples[point], upper=0.0, strict=True)

    def _share(self, k: int) -> Share:
        """Points with the right label on the whole ball, in whole numbers; the others are not in question."""
        in_question = np.flatnonzero(self.correct | (self.labels < 0))
        asked = [i for i in in_question.tolist() if self.labels[i] >= 0]
        lost = [i for i in asked if self.unsafe[i] <= self.radii[k]]
        witnesses = [self._refuted(i, self.radii[k]) for i in lost]
        return Share(
            tuple(self._holds(i, self.radii[k]) for i in asked),
            tuple(w for w in witnesses if w is not None),
            at_least=round(float(self.certified[k]) * len(self.labels)),
            at_most=round(float(self.attacked[k]) * len(self.labels)) - (len(in_question) - len(asked)),
        )

    def to_pandas(self) -> Any:
        """`table` as a data frame; needs pandas."""
        import pandas

        return pandas.DataFrame(self.table())


@dataclass(frozen=True, eq=False)
class Explanation:
    """Delta^i of every point and feature: `lower <= Delta <= upper`, `value` the middle; arrays (m, d).

    `sign` is +1 or -1 where the enclosure has that sign, else 0: not certain.
    """

    value: Float
    lower: Float
    upper: Float
    sign: Index
    radius: float
    label: int
    feature_names: tuple[str, ...] | None
    target: str  #: what is certified: `Posterior.target`
    balls: tuple[Ball, ...]  #: around the points: features that move, domain

    @classmethod
    def of(
        cls,
        lower: Float,
        upper: Float,
        balls: tuple[Ball, ...],
        label: int,
        feature_names: tuple[str, ...] | None,
        target: str,
    ) -> Explanation:
        """From the enclosures."""
        sign = np.where(lower > 0, 1, np.where(upper < 0, -1, 0))
        value, radius = 0.5 * lower + 0.5 * upper, balls[0].radius if balls else 0.0
        return cls(value, lower, upper, sign, radius, label, feature_names, target, balls)

    def claims(self) -> tuple[Claim, ...]:
        """What is stated, sentence by sentence: each Delta, or its mean over all points, lies in between."""
        groups = [(ball,) for ball in self.balls] if len(self.lower) == len(self.balls) else [self.balls]
        return tuple(
            self._claim(group, j, float(self.lower[i, j]), float(self.upper[i, j]))
            for i, group in enumerate(groups)
            for j in np.flatnonzero(group[0].moving()).tolist()
        )

    def _claim(self, balls: tuple[Ball, ...], feature: int, lower: float, upper: float) -> Balance:
        terms: list[Term] = []
        for ball in balls:
            right, left = one_sided(ball, feature, 1), one_sided(ball, feature, -1)
            terms += [Term(1, "max", right), Term(-1, "max", left)]
            terms += [Term(1, "min", right), Term(-1, "min", left)]
        quantity = Quantity("probability", self.label)
        return Balance(quantity, (tuple(terms),), lower, upper, count=len(balls))

    def mean(self) -> Explanation:
        """The mean over the points, (1, d), with its enclosure."""
        m = max(len(self.lower), 1)
        lower, upper = self.lower.mean(axis=0, keepdims=True), self.upper.mean(axis=0, keepdims=True)
        slack = 2.0**-50 * m  # the sum of m numbers of size at most 2
        ends = lower - slack, upper + slack
        return Explanation.of(*ends, self.balls, self.label, self.feature_names, self.target)


@dataclass(frozen=True, eq=False)
class LimeComparison:
    """Delta with enclosures beside LIME's weights (m, d) at the same points.

    `cosine` (m,): of the angle between the two, nan where one is zero. `agreement` (m,): the share of the
    features with a certain sign to which LIME gives that sign; nan where no sign is certain.
    """

    explanation: Explanation
    weights: Float
    cosine: Float
    agreement: Float

    def claims(self) -> tuple[Claim, ...]:
        """Those of the explanation: LIME's weights are estimates."""
        return self.explanation.claims()

    @classmethod
    def of(cls, explanation: Explanation, weights: Float) -> LimeComparison:
        """From both."""
        a, b = explanation.value, weights
        with np.errstate(invalid="ignore"):
            cosine = (a * b).sum(axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
            certain = explanation.sign != 0
            agree = (np.sign(b) == explanation.sign) & certain
            agreement = agree.sum(axis=1) / certain.sum(axis=1)
        return cls(explanation, weights, cosine, agreement)
