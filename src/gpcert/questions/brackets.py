"""Up to which of a list of radii do many labels hold? All points at once, a round of the bisection each.

Balls around one point are nested: what is safe at one radius is safe at all smaller ones, what is unsafe at
one is so at all larger ones. First counterexamples alone, which are cheap: their bisection takes log2 k
rounds for k radii. Then proofs, from the largest radius that is not lost downwards: most points need one.
What the roots of a batch (`rooted`) do not settle stays open. On a GPU, where a round costs the same for some
thousand balls, the radii of the next rounds are asked along.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from gpcert.attacks.objectives import AttackObjective, Careful, LatentMargin, LogOdds, Margin
from gpcert.attacks.pgd import nearest_counterexamples
from gpcert.attacks.sets import Sets
from gpcert.engine.backend import chosen
from gpcert.likelihoods import Softmax
from gpcert.posterior import Posterior
from gpcert.questions import rooted
from gpcert.questions.balls import Balls
from gpcert.questions.decision import only_the_mean_matters, settled
from gpcert.questions.rooted import Roots
from gpcert.settings import Settings
from gpcert.validation import Float, Index, Mask

#: Balls of one round that pay, once the arrays they need are there.
_FEWEST = 2
#: Balls of one round that cost a GPU about what one does.
_ROUND = 4096


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of the balls around every point; labels (m,)."""

    post: Posterior
    balls: Balls
    labels: Index
    threshold: float
    settings: Settings
    device: str

    def radii_at_once(self, points: int) -> int:
        """How many radii of each of so many points a round takes."""
        on_gpu = points > 0 and chosen(self.device, points).name != "cpu"
        return max(_ROUND // points, 1) if on_gpu else 1

    def roots(
        self, rows: Index, radii: Float, fewest: int = rooted.FEWEST, prove: bool = True
    ) -> Iterator[tuple[Roots, Mask, Mask]]:
        """One ball for each of some points (k,), all at once: what is known, who is safe, who is unsafe."""
        labels, regions = self.labels[rows], self.balls.regions(rows, radii)
        asked = self.post, regions, labels, self.threshold, self.settings, self.device
        for roots in rooted.decisions(*asked, fewest=fewest, prove=prove):
            yield roots, *settled(self.post, roots, labels[roots.numbers], self.threshold, self.device)


@dataclass(frozen=True, eq=False)
class Brackets:
    """Of every point that is asked (m,): how many of the first radii are safe, and from which on they are
    unsafe.
    """

    asked: Mask
    safe: Index
    unsafe: Index
    _points: dict[int, Float] = field(default_factory=dict)
    _starts: dict[tuple[int, int], Float] = field(default_factory=dict)

    @classmethod
    def of(cls, asked: Mask, k: int) -> Brackets:
        """Nothing is known of k radii; of points that are not asked nothing will be."""
        none = np.zeros(len(asked), dtype=np.intp)
        return cls(asked, none, none + k)

    def point(self, i: int) -> Float | None:
        """A counterexample (D,) in the ball of the first radius that is unsafe."""
        return self._points.get(i)

    def start(self, i: int, radius: int) -> Float | None:
        """Where P(label) seems smallest in a ball that was asked in vain (D,)."""
        return self._starts.get((i, radius))

    def lose(self, i: int, radius: int, point: Float) -> None:
        """The point (D,) is a counterexample in the ball of this radius, by its number.

        In this order: stopped in between, the point lies in the ball that is said to be unsafe.
        """
        self._points[i] = point
        self.unsafe[i] = radius

    @property
    def _many(self) -> bool:
        return bool(np.count_nonzero(self.asked) >= rooted.FEWEST)

    def refute(self, question: Asked, radii: Float) -> bool:
        """Counterexamples on radii (k,), as far as the roots tell; whether they tell anything."""
        if not self._many:
            return False
        kept = self.safe.copy()  # so many of the first radii seem safe
        any_, found_some = False, True
        while found_some:
            rows = np.flatnonzero(self.asked & (kept + 1 < self.unsafe))  # a proof looks for one, too
            count, wide = question.radii_at_once(len(rows)), self.unsafe[rows] - kept[rows]
            shares = np.arange(1, count + 1)[:, None]
            rows, at = _each(rows, kept[rows] + wide * shares // (count + 1))
            found_some = self._round(question, radii, rows, at, prove=False)
            any_ |= found_some
            seem = self.unsafe[rows] > at
            np.maximum.at(kept, rows[seem], at[seem] + 1)
        return any_

    def prove(self, question: Asked, radii: Float) -> None:
        """Proofs, as far as the roots tell."""
        vain = self.unsafe.copy()  # the smallest radius without an answer
        failed = np.zeros_like(vain)
        found_some = self._many
        while found_some:
            below = np.minimum(vain, self.unsafe)
            rows = np.flatnonzero(self.asked & (self.safe < below))
            steps, below = [], below[rows]
            for more in range(question.radii_at_once(len(rows))):
                # Farther and farther down where proofs fail.
                down = below - np.maximum(failed[rows] + more, 1)
                below = np.maximum((self.safe[rows] + below) // 2, down)
                steps.append(below)
            rows, at = _each(rows, np.array(steps))
            found_some = self._round(question, radii, rows, at, prove=True)
            neither = (self.safe[rows] <= at) & (at < self.unsafe[rows])
            np.minimum.at(vain, rows[neither], at[neither])
            np.add.at(failed, rows[neither], 1)

    def _round(self, question: Asked, radii: Float, rows: Index, at: Index, prove: bool) -> bool:
        """One radius for each of some points, which may come again; whether anything was found."""
        found_some = False
        for roots, safe, unsafe in question.roots(rows, radii[at], fewest=_FEWEST, prove=prove):
            found_some, few = True, roots.numbers
            np.maximum.at(self.safe, rows[few[safe]], at[few[safe]] + 1)
            for place in np.flatnonzero(~safe).tolist():
                i, radius, point = int(rows[few[place]]), int(at[few[place]]), roots.points(0, place)
                if unsafe[place] and radius < self.unsafe[i]:
                    self.lose(i, radius, point)
                elif not unsafe[place]:
                    self._starts[i, radius] = point
        return found_some


def _each(rows: Index, at: Index) -> tuple[Index, Index]:
    """Points (k,) and radii (t, k) of each, monotone, as pairs without repetitions."""
    new = np.ones(at.shape, dtype=bool)
    new[1:] = at[1:] != at[:-1]
    return np.broadcast_to(rows, at.shape)[new], at[new]


#: Counterexamples lie this far beyond the threshold (relative in the mean, absolute in log odds): beyond
#: rounding, and too little to matter for the radius.
_BEYOND = 1e-7
#: How finely means look for a first counterexample, which probabilities then bring nearer.
_ROUGHLY = 0.02


def nearest(
    post: Posterior,
    balls: Balls,
    labels: Index,
    threshold: float,
    rtol: float,
    known: Float | None = None,
    deadline: float = np.inf,
) -> tuple[Float, Float]:
    """Radii (m,) of the nearest counterexamples an attack finds, inf for none, and the points (m, d).

    `known` (m, d): counterexamples to start from. After the deadline (`gpcert.clock.now`) it only ends.
    """
    plain, level = _objective(post, threshold)
    objective = Careful(plain, deadline)
    with np.errstate(all="ignore"):
        value = plain(balls.X, labels, slopes=False)[0]
        radius, points = np.zeros(len(labels)), balls.X.copy()
        rows = np.flatnonzero(value >= level)  # the others are counterexamples themselves
        if known is None and isinstance(post.likelihood, Softmax) and post.n_classes > 2:
            led, known = _led_by_means(post, balls, labels, rows, deadline)
            led = led[objective(known[led], labels[led], slopes=False)[0] < level]
            groups = [(led, known), (np.setdiff1d(rows, led), None)]
        else:
            groups = [(rows, known)]
        for some, start in groups:
            radius[some], points[some] = _nearest(objective, level, balls, labels, some, rtol, start)
    return radius, points


def _led_by_means(
    post: Posterior, balls: Balls, labels: Index, rows: Index, deadline: float
) -> tuple[Index, Float]:
    """The rows for which the means, far cheaper than probabilities, change their order; where (m, d)."""
    points, means = balls.X.copy(), Careful(LatentMargin(post), deadline)
    radius, points[rows] = _nearest(means, 0.0, balls, labels, rows, _ROUGHLY)
    return rows[np.isfinite(radius)], points


def _nearest(
    objective: AttackObjective,
    level: float,
    balls: Balls,
    labels: Index,
    rows: Index,
    rtol: float,
    known: Float | None = None,
) -> tuple[Float, Float]:
    """`nearest_counterexamples` of some rows (k,); `known` (m, d): of all of them."""
    if not len(rows):
        return np.empty(0), np.empty((0, balls.X.shape[1]))

    def sets(chosen: Index, radii: Float) -> Sets:
        return Sets.of([balls.ball(int(rows[i]), r) for i, r in zip(chosen, radii, strict=True)])

    largest = np.array([balls.largest(int(i)) for i in rows])
    start = None if known is None else known[rows]
    return nearest_counterexamples(objective, level, sets, labels[rows], largest, rtol, start)


def _objective(post: Posterior, threshold: float) -> tuple[AttackObjective, float]:
    """What to make small, and the level below which it is a counterexample."""
    if post.n_classes > 2:
        return Margin(post), -_BEYOND
    if only_the_mean_matters(post, threshold):
        return LatentMargin(post), -_BEYOND * float(np.sqrt(post.kernels[0].prior_variance))
    return LogOdds(post), float(np.log(threshold) - np.log1p(-threshold)) - _BEYOND
