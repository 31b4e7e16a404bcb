"""Is P(label) above a threshold on a whole region? One search that stops as soon as either answer is certain.

Safe: the certified lower end exceeds the threshold, strictly. Unsafe: a point of the region that `refutes`,
by its enclosure of P(label) and by the model's own predictor (docs/maths/bounds.md, D2). With threshold 1/2
and a symmetric link the sign of the latent mean decides, and the variance is never looked at (D1).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.interface import BoxBound
from gpcert.bounds.levels.registry import curves_of
from gpcert.engine.signs import surely_lost
from gpcert.errors import InvalidInputError
from gpcert.likelihoods import BinaryLikelihood, FiveErf, Softmax
from gpcert.likelihoods.prediction import TIE
from gpcert.posterior import Posterior
from gpcert.questions.rooted import Roots, classes
from gpcert.questions.rows import in_rows
from gpcert.regions import Box, Region
from gpcert.results import Enclosure, Status, VerdictStatus
from gpcert.running import Report
from gpcert.search import Minimiser, Recorder, Search, run
from gpcert.settings import Settings
from gpcert.validation import Float, Index, Mask

_CLEAR = 1e-6
#: Boxes for the sign of a value that is known to the tolerance: mostly a few decide, or none.
_FINE_NODES = 32


@dataclass(frozen=True)
class Decision:
    """What is known of min P(label) over the region; `point` (D,) is where the upper end is attained, and
    `probability` the predictor's P(label) there, if it was asked.
    """

    status: VerdictStatus
    smallest: Enclosure
    point: Float | None
    ended: Status
    nodes: int
    seconds: float
    probability: float | None = None


def only_the_mean_matters(post: Posterior, threshold: float) -> bool:
    """Whether P(label) > threshold exactly where the latent mean (of two: their difference) says so."""
    link = post.likelihood
    two_latents = isinstance(link, Softmax) and post.n_classes == 2
    return threshold == 0.5 and (two_latents or (isinstance(link, BinaryLikelihood) and link.symmetric))


def room(post: Posterior, threshold: float) -> float:
    """How far from the threshold a probability has to be to decide a label: 0 but for scikit-learn's formula,
    next to 1/2, where its `predict` may contradict its probabilities (docs/maths/bounds.md, D3).
    """
    return TIE if threshold == 0.5 and isinstance(post.likelihood, FiveErf) else 0.0


def labelled(post: Posterior, X: Float, device: str = "cpu") -> tuple[Index, Mask]:
    """The label of each point X (m, d), and where it is a tie: no label to keep, so nothing is asked."""
    labels, ties = classes(post, X, device), np.zeros(len(X), dtype=bool)
    rest = np.flatnonzero(labels < 0)
    if rest.size:
        p = post.probability(X[rest])
        labels[rest] = p.argmax(axis=1)
        near = p.max(axis=1, keepdims=True) - 2.0 * room(post, 0.5)
        ties[rest] = np.count_nonzero(p >= near, axis=1) > 1
    return labels, ties


def enclosed(
    post: Posterior, factory: BoundFactory, point: Float, label: int, threshold: float
) -> tuple[float, float]:
    """What is proved of P(label) at a point (D,), sharp at the threshold; several classes as in `decide`."""
    moving = np.zeros(len(point), dtype=bool)
    with np.errstate(all="ignore"):
        shape = shape_of(Box(point, point), moving)
        return _bound(post, factory, threshold, (label, shape, point, moving)).at(np.empty(0))


def refutes(post: Posterior, factory: BoundFactory, point: Float, label: int, threshold: float) -> bool:
    """Whether the point (D,) is a counterexample: P(label) < threshold by proof and by the predictor.

    Several classes: another class is more probable than the label. Every counterexample passes both tests.
    """
    if _confirmed(post, point, label, threshold) is None:
        return False
    return enclosed(post, factory, point, label, threshold)[1] < threshold - room(post, threshold)


def _confirmed(post: Posterior, point: Float, label: int, threshold: float) -> float | None:
    """The predictor's P(label) at the point (D,) if it makes a counterexample, else None."""
    try:
        p = post.probability(point[None])[0]
    except InvalidInputError:  # an indefinite covariance: the predictor does not confirm it
        return None
    rival = threshold - room(post, threshold) if len(p) == 2 else np.delete(p, label).max()
    return float(p[label]) if p[label] < rival else None


def _bound(
    post: Posterior, factory: BoundFactory, threshold: float, where: tuple[int, Shape, Float, Mask]
) -> BoxBound:
    """The bound of what is compared with the threshold: sharp there, and as cheap as that allows."""
    if post.n_classes > 2:
        return factory.margin(*where)
    if only_the_mean_matters(post, threshold):
        bound = (factory.margin if isinstance(post.likelihood, Softmax) else factory.sign)(*where)
    else:
        bound = factory.pair(*where)[0]
    return in_rows(post, bound, where[1:], 2.0 * where[0] - 1.0, 0.0)


def decide(
    post: Posterior,
    factory: BoundFactory,
    region: Region,
    label: int,
    threshold: float,
    settings: Settings,
    report: Report | None = None,
    start_at: Float | None = None,
    recorder: Recorder | None = None,
) -> Decision:
    """The decision, as far as the limits allow; Ctrl-C ends it as "unknown".

    Several classes: the quantity is (1 + P(label) - the largest other)/2, the threshold 1/2.

    `start_at` (D,): a point of the region where P(label) seems smallest, if one is known.
    """
    if post.n_classes > 2:
        settings = replace(settings, tolerance=0.5 * settings.tolerance)
    search = _DecisionSearch(post, factory, region, label, threshold, settings, start_at)
    run(search, settings, report, recorder)
    return search.result()


def settled(post: Posterior, roots: Roots, labels: Index, threshold: float, device: str) -> tuple[Mask, Mask]:
    """Which regions (m,) the roots of a batch prove safe, and which unsafe: the same tests as below, the
    predictor asked at once; labels (m,) are theirs.
    """
    away = room(post, threshold)
    safe, low = roots.lower[0] > threshold + away, np.flatnonzero(roots.upper[0] < threshold - away)
    unsafe = np.zeros(len(safe), dtype=bool)
    if isinstance(post.likelihood, BinaryLikelihood) and only_the_mean_matters(post, threshold):
        unsafe = roots.upper[0] <= surely_lost(roots.facts, curves_of(post.likelihood))
        low = low[~unsafe[low]]
    # A predictor without an answer at one of them: each is asked about by itself.
    with suppress(InvalidInputError):
        if low.size and threshold == 0.5:
            other, ties = labelled(post, roots.points(0, low), device)
            unsafe[low] = (other != labels[low]) & ~ties
        elif low.size:
            p = post.probability(roots.points(0, low))
            unsafe[low] = p[np.arange(len(low)), labels[low]] < threshold
    return safe, unsafe & ~safe


def decision(roots: Roots, at: int, safe: bool) -> Decision:
    """What the root has decided of one region."""
    (root,) = roots.sides(at)
    status = VerdictStatus.SAFE if safe else VerdictStatus.UNSAFE
    known = Enclosure(root.lower, root.upper)
    return Decision(status, known, root.point, Status.CONVERGED, root.nodes, root.seconds)


class _DecisionSearch(Search):
    """One `Minimiser` with the threshold as its goal."""

    def __init__(
        self,
        post: Posterior,
        factory: BoundFactory,
        region: Region,
        label: int,
        threshold: float,
        settings: Settings,
        start_at: Float | None,
    ) -> None:
        super().__init__(region)
        self._post, self._factory, self._label, self._threshold = post, factory, label, threshold
        self._goal = threshold + room(post, threshold)
        self._start_at, self._settings = start_at, settings
        self._verdict = VerdictStatus.UNKNOWN
        self._probability: float | None = None  # the predictor's, at a counterexample
        self._coarse = 0  # boxes when the value was last known to less than the tolerance

    def begin(self) -> Iterator[None]:
        where, ends = self.place()
        mean_decides = self._post.n_classes > 2 or only_the_mean_matters(self._post, self._threshold)
        bound = _bound(self._post, self._factory, self._threshold, (self._label, *where))
        self.sides = (side,) = self.minimisers((bound,), ends, goal=self._goal)
        # The objective of such a bound is the mean, or has its sign: below 0 is a counterexample.
        known = None if self._start_at is None else self._start_at[self._moving]
        side.start(-_CLEAR if mean_decides else -np.inf, known)
        yield

    def choose(self) -> Minimiser | None:
        """The search, until one of the two answers is certain, or the value is known and the sign is not."""
        (side,) = self.sides
        if side.lower > self._goal:
            self._verdict = VerdictStatus.SAFE
        elif self._refuted(side):
            self._verdict = VerdictStatus.UNSAFE
        elif not side.exhausted and self._worth_more(side):
            return side
        return None

    def _worth_more(self, side: Minimiser) -> bool:
        """Whether to go on: the sign is pursued beyond the tolerance, but not for ever."""
        if side.upper - side.lower > self._settings.tolerance:
            self._coarse = side.nodes
        return side.nodes < self._coarse + _FINE_NODES

    def known(self) -> tuple[float, float]:
        (side,) = self.sides
        return side.lower, side.upper

    def _refuted(self, side: Minimiser) -> bool:
        """The tests of `refutes`: the search has enclosed P(label) at its witness."""
        point = self.point(side.witness)
        if point is None or not side.upper < self._threshold - room(self._post, self._threshold):
            return False
        self._probability = _confirmed(self._post, point, self._label, self._threshold)
        return self._probability is not None

    def result(self) -> Decision:
        smallest, point = Enclosure(0.0, 1.0), None
        if self.sides:
            (side,) = self.sides
            smallest, point = Enclosure(side.lower, side.upper), self.point(side.witness)
            if side.lower > self._goal:  # decided by the last box, after which the search was stopped
                self._verdict = VerdictStatus.SAFE
        ended = self.status
        undecided = self._verdict is VerdictStatus.UNKNOWN and ended is Status.CONVERGED
        if undecided and not smallest.width <= self._settings.tolerance:
            ended = self.exhausted()
        return Decision(self._verdict, smallest, point, ended, self.nodes, self.seconds, self._probability)
