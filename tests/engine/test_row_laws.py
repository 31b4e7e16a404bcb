"""The laws of many rows at once (`helpers.laws`): sums of kernels, and what the root of a batch answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from flint import arb
from scipy.special import ndtr

import gpcert as gc
from gpcert.bounds.levels.registry import curves_of
from gpcert.engine.apart import kept_apart, parts_of
from gpcert.engine.backend import Backend
from gpcert.engine.boxes import boxes
from gpcert.engine.facts import Facts, facts_of
from gpcert.engine.labels import classes_of, kept_labels, knows_labels
from gpcert.engine.lines import lines
from gpcert.engine.planes import mean_plane, plane
from gpcert.engine.root import smallest, sums_of, values_of, verdicts
from gpcert.engine.rows import Rows
from gpcert.engine.shells import bounded
from gpcert.engine.values import amplitudes, points
from helpers.batches import as_if_large
from helpers.cases import drawn, unit
from helpers.laws import BoundLaws, Case
from helpers.rows import Batch, random_batch
from judge import Truth, at_most

CPU = Backend()
KINDS = ("laplace", "laplace", "psd", "indefinite", "zero", "sites")


@dataclass
class RowCase(Case):
    """Bounds of a function of mean and variance on the rows of a batch."""

    batch: Batch
    bounded: Callable[[Batch], np.ndarray]
    function: Callable[[RowCase, int, np.ndarray], arb]
    nothing: float = -np.inf
    goal: float = np.inf  #: no effort is made beyond

    def wanted(self, row):
        return self.goal

    def lower(self) -> np.ndarray:
        with np.errstate(all="ignore"):
            return self.bounded(self.batch)

    def points(self, row, rng):
        low, high = self.batch.rows.lower[row], self.batch.rows.upper[row]
        found = self.batch.inside(row, rng, 2)
        if self.batch.rows.axes is None and len(low) <= 3:
            found += [self.batch.point(row, np.where(end, low, high)) for end in np.ndindex(*[2] * len(low))]
        return found

    def truth(self, row, x):
        if not hasattr(self, "_truth"):
            self._truth = Truth(self.batch.post)
        return self.function(self, row, x)

    def changed(self, rows: Rows, references: np.ndarray) -> RowCase:
        with np.errstate(all="ignore"):
            at = points(self.batch.facts, references, amplitudes(self.batch.facts, rows.standing))
            where = boxes(self.batch.facts, rows, references)
        batch = replace(self.batch, rows=rows, references=references, at=at, boxes=where)
        return replace(self, batch=batch)

    def subset(self, share: float) -> RowCase:
        rows, here = self.batch.rows, self.batch.references
        if rows.axes is not None:
            raise NotImplementedError
        ends = (here + share * (end - here) for end in (rows.lower, rows.upper))
        low, high = (np.clip(end, rows.lower, rows.upper) for end in ends)
        smaller = replace(rows, lower=low, upper=high, inner_lower=low, inner_upper=high)
        return self.changed(smaller, here)

    def rows(self) -> list[RowCase]:
        whole, here = self.batch.rows, self.batch.references
        return [self.changed(whole.take(one), here[one]) for one in np.arange(len(whole))[:, None]]


def mean(case: RowCase, row: int, x: np.ndarray) -> arb:
    return arb(float(case.batch.rows.sign[row])) * case._truth.latent(x)[0]


def probability(case: RowCase, row: int, x: np.ndarray) -> arb:
    return case._truth.probability(x, int(case.batch.rows.sign[row] > 0))


class RowLaws(BoundLaws):
    batched = True
    balls = False
    kernels: tuple = (gc.RBF,)
    links: tuple = (gc.Probit(),)
    kinds = KINDS
    informative = 0.3
    n, d = 12, 4

    def make(self, rng, size):
        kernel, link = (each[int(rng.integers(len(each)))] for each in (self.kernels, self.links))
        kind, offset = str(rng.choice(self.kinds)), float(rng.choice([0.0, 0.0, 1e3]))
        shape = {"n": self.n, "d": self.d, "balls": self.balls}
        batch = random_batch(rng, **shape, kind=kind, offset=offset, make=kernel, likelihood=link)
        return None if batch is None else self.case(rng, batch)


class SumLaws(RowLaws):
    """Of the mean."""

    order = 1.8
    slack = 0.02
    goal = np.inf

    def values(self, sums):
        return sums.order_two()

    def bound(self, batch, level):
        sums = sums_of(batch.at, batch.boxes, level)
        return sums.latent(self.values(sums))

    def case(self, rng, batch):
        return RowCase(batch, lambda b: self.bound(b, mean_plane(b.at, b.rows.sign)), mean, goal=self.goal)

    def extreme(self, rng):
        """NaN and inf among the kernels."""
        case = self.make(rng, 1.0)
        if case is None:
            return None
        wrong = replace(case.batch.at, k=case.batch.at.k * float(rng.choice([np.nan, np.inf])))
        found = replace(case, batch=replace(case.batch, at=wrong)).lower()
        assert not (found > -1e300).any()
        return None


class TestMeans(SumLaws):
    pass


class TestMeansByForms(SumLaws):
    """The third order as a form, as far as it takes to be positive."""

    order = None
    goal = 0.0

    def values(self, sums):
        return sums.order_three(2)


class TestMeansInShells(TestMeansByForms):
    def values(self, sums):
        return bounded(sums, 2, 3)


class TestMeansOnBalls(TestMeansByForms):
    balls = True


class TestMeansOfOtherKernels(SumLaws):
    kernels = (gc.Matern32, gc.Matern52, gc.RationalQuadratic)
    order = 1.5

    def values(self, sums):
        return values_of(sums, 2, 0)


class LevelLaws(SumLaws):
    """mu - t sqrt(c + max(S, 0)) for targets a little below the value at the reference (G1, G2, J4, J17)."""

    kinds = ("laplace", "laplace", "psd", "indefinite")

    def case(self, rng, batch):
        if not batch.facts.has_planes:
            return None
        with np.errstate(all="ignore"):
            low, high = batch.at.variance
            standard = batch.rows.sign * batch.at.mean()[0] / np.sqrt(1.0 + np.maximum(high, 0.0))
            targets = ndtr(np.clip(standard - 10.0 ** rng.uniform(-2, 0.5, len(low)), -8.0, 8.0))
        targets = dict(zip(map(tuple, batch.references), targets, strict=True))  # a row keeps its own

        def line(b):
            goal = np.array([targets[tuple(x)] for x in b.references])
            low, high = b.at.variance
            return lines(CPU, curves_of(b.post.likelihood), goal, 0.5 * (low + high), low, 0.02)

        def value(case, row, x):
            mu, S = case._truth.latent(x)
            with np.errstate(all="ignore"):
                t = arb(float(line(case.batch).t[row]))
            return arb(float(case.batch.rows.sign[row])) * mu - (arb(1) + S.max(arb(0))).sqrt() * t

        return RowCase(
            batch, lambda b: self.bound(b, plane(b.at, b.rows.sign, line(b))), value, goal=self.goal
        )


class TestLevels(LevelLaws):
    pass


class TestLevelsOfIndefinitePrecisions(LevelLaws):
    """J4: what the negative part may cost."""

    kinds = ("indefinite",)
    count = 40


class TestLevelsByForms(LevelLaws, TestMeansByForms):
    pass


class TestLevelsInShells(LevelLaws, TestMeansInShells):
    pass


class TestLevelsOnBalls(TestLevelsByForms):
    balls = True


class TestLevelsOfOtherKernels(LevelLaws, TestMeansOfOtherKernels):
    order = 1.5


class PointLaws(RowLaws):
    """Mean, -mean, variance, -variance at the references."""

    def case(self, rng, batch):
        def ends(b):
            (low, high), (least, most) = b.at.mean(), b.at.variance
            return np.concatenate([low, -high, least, -most])

        def value(case, row, x):
            which = row // len(case.batch.rows)
            part = case._truth.latent(x)[which // 2]
            return -part if which % 2 else part

        return PointCase(batch, ends, value)


class PointCase(RowCase):
    def points(self, row, rng):
        row = row % len(self.batch.rows)
        return [self.batch.point(row, self.batch.references[row])]


class TestPoints(PointLaws):
    batched = False


class TestPointsOfOtherKernels(TestPoints):
    kernels = (gc.Matern32, gc.Matern52, gc.RationalQuadratic)


class AnswerLaws(RowLaws):
    """What the root says of P of each row's class, above and below."""

    slack = None  # a witness is searched for on every row
    splits = 0

    def settled(self, batch):
        return smallest(batch.facts, curves_of(batch.post.likelihood), batch.rows, 0.02, splits=self.splits)

    def case(self, rng, batch):
        return RowCase(batch, lambda b: self.settled(b).lower, probability, 0.0)

    def check(self, case, rng):
        super().check(case, rng)
        with np.errstate(all="ignore"):
            found = self.settled(case.batch)
        inner = case.batch.rows
        assert (found.lower <= found.upper).all()
        for row in np.flatnonzero(found.upper < 1.0):
            x = case.batch.point(row, found.witness[row])
            assert inner.axes is not None or (inner.inner_lower[row] <= found.witness[row]).all()
            assert inner.axes is not None or (found.witness[row] <= inner.inner_upper[row]).all()
            assert at_most(lambda x=x, row=row: case.truth(row, x), float(found.upper[row])) is not False


class TestRoots(AnswerLaws):
    links = (gc.Probit(), gc.Probit(3.0), gc.Logit(), gc.FiveErf(), gc.Floored(gc.Probit(), 0.01))
    count = 16


class TestRootsOfHalves(AnswerLaws):
    splits = 3


class TestRootsOnBalls(AnswerLaws):
    balls = True


class TestRootsOfOtherKernels(AnswerLaws):
    kernels = (gc.Matern32, gc.Matern52, gc.RationalQuadratic)


class TestRootsOfManyFeatures(AnswerLaws):
    n, d = 20, 40
    count = 8


class TestVerdicts(AnswerLaws):
    kernels = (gc.RBF, gc.RBF, gc.Matern52)

    def settled(self, batch):
        return verdicts(batch.facts, curves_of(batch.post.likelihood), batch.rows)


@pytest.fixture
def large():
    """Small models have planes of predictors (J17), seen through some of their centres (J23)."""
    with as_if_large():
        yield


@pytest.mark.usefixtures("large")
class TestMeansSeenByFew(TestMeansByForms):
    kinds = ("sites", "laplace")


@pytest.mark.usefixtures("large")
class TestLevelsSeenByFew(TestLevelsByForms):
    kinds = ("sites",)


@pytest.mark.usefixtures("large")
class TestRootsSeenByFew(AnswerLaws):
    kinds = ("sites",)


@dataclass
class LabelCase(Case):
    """Rows of labels: what is kept leads everywhere (lower), what is lost does not at its witness."""

    post: gc.Posterior
    facts: Facts
    low: np.ndarray
    high: np.ndarray
    labels: np.ndarray
    nothing: float = 0.5

    def settled(self):
        ends = self.low, self.high
        rows = Rows(*ends, *ends, self.low[:, :0], self.labels.astype(float))
        with np.errstate(all="ignore"):
            if isinstance(self.post.likelihood, gc.OneVsRest):
                return kept_apart(parts_of(self.post), self.facts, rows)
            return kept_labels(self.facts, classes_of(self.post, self.facts), rows)

    def lower(self):
        return self.settled().lower

    def points(self, row, rng):
        low, high = self.low[row], self.high[row]
        vertices = [np.where(end, low, high) for end in np.ndindex(*[2] * len(low))]
        return [*vertices, *rng.uniform(low, high, (2, len(low)))]

    def truth(self, row, x):
        return Truth(self.post).margin(x, int(self.labels[row])) + arb(0.5)

    def claims(self):
        yield from ((row, 0.5) for row, _ in super().claims())

    def rows(self):
        return [replace(self, low=self.low[one], high=self.high[one], labels=self.labels[one])
                for one in np.arange(len(self.labels))[:, None]]  # fmt: skip


class TestLabels(BoundLaws):
    kind = ("softmax", "independent")
    kernel = ("rbf", "rbf", "matern52", "rational quadratic", "matern32")
    batched = True
    count = 8
    informative = 0.1  # most labels asked about are lost

    def make(self, rng, size):
        post = drawn(rng, kind=self.kind, kernel=self.kernel, classes=(3, 4), d=(1, 2),
                     precision=("laplace", "laplace", "zero", "indefinite"))  # fmt: skip
        if not knows_labels(post):
            return None
        part = parts_of(post)[0] if isinstance(post.likelihood, gc.OneVsRest) else post
        facts = facts_of(part, np.arange(post.n_features), CPU)
        scale, d = unit(post), post.n_features
        x = post.centres[rng.integers(post.n_centres, size=8)] + 0.3 * scale * rng.standard_normal((8, d))
        half = scale * 10.0 ** rng.uniform(-3, -0.5, (8, 1))
        labels = np.where(
            rng.random(8) < 0.7, post.probability(x).argmax(axis=1), rng.integers(post.n_classes, size=8)
        )
        return LabelCase(post, facts, x - half, x + half, labels)

    def check(self, case, rng):
        super().check(case, rng)
        found = case.settled()
        for row in np.flatnonzero(found.upper < 0.5):
            x = found.witness[row]
            assert ((case.low[row] <= x) & (x <= case.high[row])).all()
            assert at_most(lambda x=x, row=row: case.truth(row, x), 0.5) is not False


class TestLabelsOfOneVsRest(TestLabels):
    kind = ("one-vs-rest probit", "one-vs-rest logit", "one-vs-rest erf")
