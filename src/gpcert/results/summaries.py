"""What a question about many points answers with: accuracies over radii, influences of features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from gpcert.claims import Balance, Claim, Everywhere, Quantity, Share, Term, Witness, around, one_sided
from gpcert.classes import Label, called
from gpcert.extras import extra
from gpcert.html import Html, join, tag
from gpcert.numbers import between, counted, exactly
from gpcert.pictures import image_shape, influence
from gpcert.regions import Ball, Box
from gpcert.results.about import About, Answer
from gpcert.results.answers import VerdictStatus
from gpcert.results.parts import ProofFile, Unproved
from gpcert.schema import LARGEST, Labels, NotNegative, optional
from gpcert.validation import Float, Index, Mask, require

_LINES = 10  # of radii or features, in what is printed


class _Tabular(ABC):
    """What has a `table`, of columns of one length, as data frames of others."""

    @abstractmethod
    def table(self) -> Mapping[str, NDArray[Any]]:
        """The columns by name."""

    def to_pandas(self) -> Any:
        """`table` as a data frame of pandas.

        Returns
        -------
        DataFrame
            The same columns.
        """
        return extra("pandas", "to_pandas").DataFrame(self.table())

    def to_polars(self) -> Any:
        """`table` as a data frame of polars.

        Returns
        -------
        DataFrame
            The same columns.
        """
        return extra("polars", "to_polars").DataFrame(self.table())


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(_Tabular, Answer):
    """Accuracies of a model on labelled points at every radius: certified <= true robust <= attacked.

    A point is truly robust at a radius if its true label is the most probable at it, and more probable than
    the threshold on the whole ball. Shares are the doubles nearest to count / m.

    Attributes
    ----------
    radii : array of shape (k,)
        Radii, increasing.
    clean : float
        The share that the predictor labels correctly.
    certified : array of shape (k,)
        Shares of points that are right and proved safe.
    attacked : array of shape (k,)
        Shares of points that are right and have no counterexample.
    gap : array of shape (k,)
        attacked - certified: shares of points of which nothing is known.
    labels : sequence of class values (m)
        The model's; None: not answered.
    truth : sequence of class values (m)
        The true ones.
    correct : mask of shape (m,)
        Whether the two agree.
    wrong : mask of shape (m,)
        Proved to be labelled wrongly.
    safe : array of shape (m,)
        The largest of the radii proved safe; nan: none.
    unsafe : array of shape (m,)
        The smallest of the radii with a proved counterexample; inf: none.
    verdicts : array of shape (m, k)
        "safe", "unsafe" or "unknown", about the model's own label; of a tie all are "unknown".
    counterexamples : array of shape (m, d)
        A point of the ball of radius `unsafe`; nan: none.
    seconds : float
        Time spent on all.
    threshold : float
        The probability that the label has to exceed.
    balls : tuple of Ball (m)
        Around the points, of the largest radius.
    about : record
        The model, its classes, the settings and the version: see `Answer`.
    proof : tuple of ProofFile, optional
        Where the proofs are, if some were written: one for each point of which something is proved.
    unproved : Unproved, optional
        Why a point, the first of them, has no proof that was wanted.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> e = gc.evaluate(clf, [[0.5], [2.5]], ["a", "b"], [0.25])
    >>> bool((e.certified <= e.attacked).all())
    True
    """

    radii: Annotated[Float, "k", (0.0, LARGEST)]
    clean: Annotated[float, "", (0.0, 1.0), "nan"]
    certified: Annotated[Float, "k", (0.0, 1.0)]
    attacked: Annotated[Float, "k", (0.0, 1.0)]
    labels: Annotated[Labels, "m"]
    truth: Annotated[Labels, "m"]
    correct: Annotated[Mask, "m"]
    wrong: Annotated[Mask, "m"]
    safe: Annotated[Float, "m", (0.0, LARGEST), "nan"]
    unsafe: Annotated[Float, "m", (0.0, np.inf)]
    verdicts: Annotated[NDArray[np.str_], "mk"]
    counterexamples: Annotated[Float, "md", "nan"]
    seconds: NotNegative
    threshold: Annotated[float, "", (0.0, 1.0)]
    balls: Annotated[tuple[Ball, ...], "m"]  #: around the points, of the largest radius
    about: About
    proof: tuple[ProofFile, ...] | None = optional()  #: of the points about which something is proved
    unproved: Unproved | None = optional()  #: why a point, the first of them, has no file that was asked for

    asked = "radii", "truth", "threshold"
    subject = "balls"

    def flaws(self) -> Iterator[str]:
        yield from self._strange([*self.labels, *self.truth])
        if not (self.certified <= self.attacked).all():
            yield "certified must be at most attacked, got more"
        if (np.isfinite(self.unsafe) != ~np.isnan(self.counterexamples).any(axis=1)).any():
            yield "counterexamples must be given with a radius unsafe and no other"
        if not set(self.verdicts.ravel()) <= set(VerdictStatus):
            yield "verdicts must be safe, unsafe or unknown, got others"

    @property
    def gap(self) -> Float:
        """attacked - certified (k,): the share of points about which nothing is known."""
        return np.asarray(self.attacked - self.certified)

    def table(self) -> dict[str, Float]:
        """One row for each radius.

        Returns
        -------
        dict of arrays (k,)
            radius, certified, attacked, gap.
        """
        return {
            "radius": self.radii,
            "certified": self.certified,
            "attacked": self.attacked,
            "gap": self.gap,
        }

    def points(self) -> dict[str, NDArray[Any]]:
        """One row for each point.

        Returns
        -------
        dict of arrays (m,)
            label, correct, safe, unsafe.
        """
        return {"label": self.labels, "correct": self.correct, "safe": self.safe, "unsafe": self.unsafe}

    def claims(self) -> tuple[Claim, ...]:
        """What is stated, sentence by sentence: the verdicts behind the shares, and the shares."""
        proved = [self._holds(i, self.labels[i], r) for i, r in enumerate(self.safe) if r >= 0]
        refuted = [self._refuted(i, r) for i, r in enumerate(self.unsafe) if r < np.inf]
        return (*proved, *refuted, *map(self._share, range(len(self.radii))))

    def _holds(self, point: int, label: Label, radius: float) -> Everywhere:
        """The label holds on the ball: its margin is above 0."""
        margin = Quantity("margin", label, self.threshold)
        return Everywhere(margin, around(self.balls[point], float(radius)), lower=0.0, strict=True)

    def _refuted(self, point: int, radius: float) -> Witness:
        holds = self._holds(point, self.labels[point], radius)
        return Witness(holds.quantity, holds.region, self.counterexamples[point], upper=0.0, strict=True)

    def _right(self, point: int) -> Everywhere:
        """The true label is the most probable at the point."""
        x = self.balls[point].x
        return Everywhere(Quantity("margin", self.truth[point]), Box(x, x), lower=0.0, strict=True)

    def _share(self, k: int) -> Share:
        """Of the points that are truly robust, in whole numbers."""
        radius, points = self.radii[k], range(len(self.truth))
        lost = [i for i in points if self.correct[i] and self.unsafe[i] <= radius and not self.wrong[i]]
        mistaken = [self._right(i) for i in points if self.wrong[i]]
        return Share(
            tuple((self._right(i), self._holds(i, self.truth[i], radius)) for i in points),
            (
                *(self._refuted(i, radius) for i in lost),
                *(Witness(c.quantity, c.region, c.region.centre, upper=0.0, strict=True) for c in mistaken),
            ),
            at_least=round(float(self.certified[k]) * len(points)),
            at_most=round(float(self.attacked[k]) * len(points)),
        )

    def __str__(self) -> str:
        m, more = len(self.labels), max(0, len(self.radii) - _LINES)
        lines = [f"{m} points, clean accuracy {self.clean:.3f}"]
        for r, *shares in list(zip(self.radii, self.certified, self.attacked, strict=True))[:_LINES]:
            certified, attacked = (counted(round(float(share) * m), m) for share in shares)
            lines.append(f"radius {exactly(r)}: certified {certified}, attacked {attacked}")
        return "\n".join([*lines, f"... {more} more radii"] if more else lines)

    def _repr_html_(self) -> str:
        return tag("pre", str(self))


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(_Tabular, Answer):
    """Influences Delta^i of every point and feature, with enclosures.

    Attributes
    ----------
    value : array of shape (m, d)
        The middle of the enclosure.
    lower : array of shape (m, d)
        Delta is at least this.
    upper : array of shape (m, d)
        Delta is at most this.
    sign : array of shape (m, d)
        +1 or -1 where the enclosure has that sign, else 0: not certain.
    radius : float
        How far each feature moved.
    label : class value
        Whose probability it is, a value of the model's classes.
    averaged : bool
        Whether this is the mean over several points.
    feature_names : tuple of str (d) or None
        What the features are called.
    balls : tuple of Ball (m)
        Around the points: features that move, domain.
    about : record
        The model, its classes, the settings and the version: see `Answer`.
    proof : tuple of ProofFile, optional
        Where the proofs are, if some were written: one for each point of which something is proved.
    unproved : Unproved, optional
        Why a point, the first of them, has no proof that was wanted.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> e = gc.explain(clf, [[2.5]], 0.25)
    >>> bool((e.lower <= e.value).all())
    True
    """

    value: Annotated[Float, "rd", (-2.0, 2.0)]
    lower: Annotated[Float, "rd", (-2.0, 2.0)]
    upper: Annotated[Float, "rd", (-2.0, 2.0)]
    sign: Annotated[Index, "rd"]
    radius: NotNegative
    label: Label
    feature_names: Annotated[tuple[str, ...], "d"] | None
    balls: Annotated[tuple[Ball, ...], "m"]  #: around the points: features that move, domain
    about: About
    proof: tuple[ProofFile, ...] | None = optional()  #: one for each point
    unproved: Unproved | None = optional()  #: why a point, the first of them, has no file that was asked for

    asked = "label", "averaged"
    subject = "balls"

    def table(self) -> dict[str, NDArray[Any]]:
        """One line for each point and each feature.

        Returns
        -------
        dict of arrays (m * d,)
            row (position of the point), feature, value, lower, upper, sign.
        """
        m, d = self.lower.shape
        names = self.feature_names or tuple(f"x{j}" for j in range(d))
        entries = {"row": np.repeat(np.arange(m), d), "feature": np.array(m * names, dtype=object)}
        parts = {"value": self.value, "lower": self.lower, "upper": self.upper, "sign": self.sign}
        return entries | {name: part.ravel() for name, part in parts.items()}

    @property
    def averaged(self) -> bool:
        """Whether this is the mean over several points."""
        return len(self.lower) != len(self.balls)

    def flaws(self) -> Iterator[str]:
        yield from super().flaws()
        if len(self.lower) not in (len(self.balls), min(1, len(self.balls))):
            yield f"lower must have a row for each of {len(self.balls)} points, or one, got {len(self.lower)}"
        if not ((self.lower <= self.value) & (self.value <= self.upper)).all():
            yield "value must lie between lower and upper, got others"
        if (_sign(self.lower, self.upper) != self.sign).any():
            yield "sign must be that of both ends, got another"

    @classmethod
    def of(
        cls,
        lower: Float,
        upper: Float,
        balls: tuple[Ball, ...],
        label: Label,
        feature_names: tuple[str, ...] | None,
        about: About,
    ) -> Explanation:
        """From the enclosures."""
        sign = _sign(lower, upper)
        value, radius = 0.5 * lower + 0.5 * upper, balls[0].radius if balls else 0.0
        return cls(value, lower, upper, sign, radius, label, feature_names, balls, about)

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

    def __str__(self) -> str:
        m, d = self.lower.shape
        names = self.feature_names or tuple(f"x{j}" for j in range(d))
        largest = np.abs(self.value).max(axis=0, initial=0.0)
        lines = [f"Delta of P({called(self.label)}) at {m} points, {d} features, the largest of each:"]
        for j in np.argsort(-largest, kind="stable")[: _LINES if m else 0].tolist():
            i = int(np.abs(self.value[:, j]).argmax())
            lines.append(f"{names[j]}: {between(float(self.lower[i, j]), float(self.upper[i, j]))}")
        return "\n".join(lines)

    def picture(self) -> Html:
        """The influences of pixels, of the first points."""
        shape = image_shape(self.balls[0].x, self.feature_names) if self.balls else None
        return Html("") if shape is None else join(influence(row, shape) for row in self.value[:_LINES])

    def _repr_html_(self) -> str:
        return tag("div", self.picture(), tag("pre", str(self)))

    def mean(self) -> Explanation:
        """The mean over the points, with its enclosure.

        Returns
        -------
        Explanation
            Arrays (1, d).
        """
        m = len(self.lower)
        require(m > 0, "the mean must be over at least one point, got none")
        lower, upper = self.lower.mean(axis=0, keepdims=True), self.upper.mean(axis=0, keepdims=True)
        slack = 2.0**-50 * m  # the sum of m numbers of size at most 2
        ends = np.maximum(lower - slack, -2.0), np.minimum(upper + slack, 2.0)  # as every Delta
        return Explanation.of(*ends, self.balls, self.label, self.feature_names, self.about)


def _sign(lower: Float, upper: Float) -> Index:
    """+1 or -1 where an enclosure has that sign, else 0."""
    return np.where(lower > 0, 1, np.where(upper < 0, -1, 0))
