"""Is P(label) above a threshold on a whole region? One search that stops as soon as either answer is certain.

Safe: the certified lower end exceeds the threshold, strictly. Unsafe: a point of the region that `refutes`,
by its enclosure of P(label) and by the model's own predictor (docs/maths.md, D2). With threshold 1/2 and a
symmetric link the sign of the latent mean decides, and the variance is never looked at (D1).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from gpcert.attacks import Careful, LatentMargin, LogOdds, Margin, Objective, Sets, pgd, settle
from gpcert.bounds import BoundFactory, BoxBound, Shape, shape_of
from gpcert.errors import InvalidInputError
from gpcert.likelihoods import BinaryLikelihood, Softmax
from gpcert.posterior import Posterior
from gpcert.questions.checks import Limits
from gpcert.regions import Box, Region
from gpcert.results import Enclosure, Status, VerdictStatus
from gpcert.search import Minimiser
from gpcert.validation import Float, Index, Mask

__all__ = ["Decision", "decide", "enclosed", "labelled", "only_the_mean_matters", "refutes"]

_CLEAR = 1e-6


@dataclass(frozen=True)
class Decision:
    """What is known of min P(label) over the region; `point` (D,) is where the upper end is attained."""

    status: VerdictStatus
    smallest: Enclosure
    point: Float | None
    ended: Status
    nodes: int
    seconds: float


def only_the_mean_matters(post: Posterior, threshold: float) -> bool:
    """Whether P(label) > threshold exactly where the latent mean (of two: their difference) says so."""
    link = post.likelihood
    two_latents = isinstance(link, Softmax) and post.n_classes == 2
    return threshold == 0.5 and (two_latents or (isinstance(link, BinaryLikelihood) and link.symmetric))


def labelled(post: Posterior, X: Float) -> tuple[Index, Mask]:
    """The label of each point X (m, d), and where it is a tie: no label to keep, so nothing is asked."""
    p = post.probability(X)
    return p.argmax(axis=1), np.count_nonzero(p == p.max(axis=1, keepdims=True), axis=1) > 1


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

    Several classes: another class is more probable than the label. The one test of every counterexample.
    """
    try:
        p = post.probability(point[None])[0]
    except InvalidInputError:  # an indefinite covariance: the predictor does not confirm it
        return False
    rival = threshold if len(p) == 2 else np.delete(p, label).max()
    return bool(p[label] < rival) and enclosed(post, factory, point, label, threshold)[1] < threshold


def _bound(
    post: Posterior, factory: BoundFactory, threshold: float, where: tuple[int, Shape, Float, Mask]
) -> BoxBound:
    """The bound of what is compared with the threshold: sharp there, and as cheap as that allows."""
    if post.n_classes > 2:
        return factory.margin(*where)
    if only_the_mean_matters(post, threshold):
        return (factory.margin if isinstance(post.likelihood, Softmax) else factory.sign)(*where)
    return factory.pair(*where)[0]


def decide(
    post: Posterior,
    factory: BoundFactory,
    region: Region,
    label: int,
    threshold: float,
    limits: Limits,
    start_at: Float | None = None,
) -> Decision:
    """The decision, as far as the limits allow; Ctrl-C ends it as "unknown".

    Several classes: the quantity is (1 + P(label) - the largest other)/2, the threshold 1/2.

    `start_at` (D,): a point of the region where P(label) seems smallest, if one is known.
    """
    search = _Search(post, region, label, threshold)
    start = time.perf_counter()
    status, ended = VerdictStatus.UNKNOWN, Status.INTERRUPTED
    try:
        with np.errstate(all="ignore"):
            status, ended = search.run(factory, limits, start_at)
    except KeyboardInterrupt:
        pass
    return search.result(status, ended, time.perf_counter() - start)


class _Search:
    """One `Minimiser` with the threshold as its goal."""

    def __init__(self, post: Posterior, region: Region, label: int, threshold: float) -> None:
        self._post, self._region, self._label, self._threshold = post, region, label, threshold
        self._base = region.inner_box().lower
        box = region.box()
        self._moving = box.lower < box.upper
        self._ends = box.lower[self._moving], box.upper[self._moving]
        self._side: Minimiser | None = None

    def run(
        self, factory: BoundFactory, limits: Limits, start_at: Float | None
    ) -> tuple[VerdictStatus, Status]:
        """Steps until one of the two answers is certain, or a limit is met."""
        deadline, begin = limits.deadline(), time.perf_counter()
        shape = shape_of(self._region, self._moving)
        several = self._post.n_classes > 2
        mean_decides = several or only_the_mean_matters(self._post, self._threshold)
        tolerance = 0.5 * limits.tolerance if several else limits.tolerance  # of (1 + margin) / 2
        where = self._label, shape, self._base, self._moving
        bound = _bound(self._post, factory, self._threshold, where)
        side = self._side = Minimiser(bound, *self._ends, goal=self._threshold)
        # The objective of such a bound is the mean, or has its sign: below 0 is a counterexample.
        known = None if start_at is None else start_at[self._moving]
        side.start(-_CLEAR if mean_decides else -np.inf, known)
        while True:
            if side.lower > self._threshold:
                return VerdictStatus.SAFE, Status.CONVERGED
            if self._refuted(factory):
                return VerdictStatus.UNSAFE, Status.CONVERGED
            if limits.progress is not None:
                seconds = time.perf_counter() - begin
                stop = limits.progress(side.lower, side.upper, side.nodes, seconds)
                if isinstance(stop, bool | np.bool_) and stop:
                    return VerdictStatus.UNKNOWN, Status.INTERRUPTED
            if side.upper - side.lower <= tolerance:
                return VerdictStatus.UNKNOWN, Status.CONVERGED
            if side.exhausted:
                ended = Status.MEMORY if side.coarsened else Status.NUMERICAL
                return VerdictStatus.UNKNOWN, ended
            if time.perf_counter() >= deadline:
                return VerdictStatus.UNKNOWN, Status.TIME
            if side.nodes >= limits.max_nodes:
                return VerdictStatus.UNKNOWN, Status.NODES
            side.step(tolerance)
            if side.nodes == 1 and not side.lower > self._threshold:
                self._attack(side, deadline)

    def _attack(self, side: Minimiser, deadline: float) -> None:
        """The first bound did not decide: a stronger search for a counterexample, once."""
        post, sets, labels = self._post, Sets.of([self._region]), np.array([self._label])
        mean_guides = only_the_mean_matters(post, self._threshold) or isinstance(post.likelihood, Softmax)
        objective: Objective = LogOdds(post)
        if mean_guides:
            objective = LatentMargin(post)
        elif post.n_classes > 2:
            objective = Margin(post)
        found, _ = pgd(Careful(objective, deadline), sets, labels, starts=3)
        if mean_guides and post.n_classes > 2:  # the means lead near; probabilities, which cost more, on
            last = Careful(Margin(post), deadline)
            found, _ = pgd(last, sets, labels, starts=1, steps=8, flips=0, first=found)
        side.offer(settle(self._region, found[0])[self._moving])

    def _refuted(self, factory: BoundFactory) -> bool:
        assert self._side is not None
        if not self._side.upper < self._threshold:
            return False
        point = self._point()
        return point is not None and refutes(self._post, factory, point, self._label, self._threshold)

    def _point(self) -> Float | None:
        if self._side is None or self._side.witness is None:
            return None
        point = self._base.copy()
        point[self._moving] = self._side.witness
        return point

    def result(self, status: VerdictStatus, ended: Status, seconds: float) -> Decision:
        """The state of the search."""
        side = self._side
        smallest = Enclosure(0.0, 1.0) if side is None else Enclosure(side.lower, side.upper)
        nodes = 0 if side is None else side.nodes
        return Decision(status, smallest, self._point(), ended, nodes, seconds)
