"""The laws of every certified bound, once: a subclass says how its cases are made, and inherits all of them.

A case is B lower bounds, each of a real function on a set; an upper bound is a lower bound of the negative.
What is true is decided in ball arithmetic by functions that share nothing with the package (`judge`).

    class TestPlanes(BoundLaws):
        order = 2
        def make(self, rng, size): return PlaneCase(...)

The laws ask a case for `lower`, `points`, `truth`, `subset` and `rows` alone, so that another implementation
inherits them with a class of its own.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from flint import arb

from helpers.mutation import Row, misplaced, unnoticed
from helpers.oracle import examples
from judge import at_least

Point = Any


class Case(ABC):
    """B lower bounds. A number that is NaN or at most `nothing` claims nothing."""

    nothing = -np.inf
    #: Of so many rows the order is promised.
    sharp = 10**9

    @abstractmethod
    def lower(self) -> np.ndarray:
        """The certified numbers (B,)."""

    @abstractmethod
    def points(self, row: int, rng: np.random.Generator) -> Sequence[Point]:
        """Points of the set of one bound, the hard ones among them: ends, the reference, the minimiser."""

    @abstractmethod
    def truth(self, row: int, x: Point) -> arb:
        """What is bounded, at a point, at the precision of the context."""

    def value(self, row: int, x: Point) -> float:
        """The same as a number: decides nothing."""
        return float(self.truth(row, x).mid())

    def subset(self, share: float) -> Case:
        """The same functions on sets that are smaller by about `share`, around the same references."""
        raise NotImplementedError

    def rows(self) -> Sequence[Case]:
        """The bounds one by one, as cases of one row."""
        raise NotImplementedError

    def wanted(self, row: int) -> float:
        """What was asked for: how much more than that a bound says is chance."""
        return np.inf

    def claims(self) -> Iterator[tuple[int, float]]:
        """Row and number of each bound that claims something."""
        found = np.atleast_1d(self.lower())
        with np.errstate(all="ignore"):
            for row in np.flatnonzero(found > self.nothing):
                yield int(row), float(found[row])

    def range(self, row: int, rng: np.random.Generator) -> tuple[float, float]:
        """About the smallest and the largest value at the points tried, for sharpness alone."""
        values = [self.value(row, x) for x in self.points(row, rng)] or [0.0]
        return min(values), max(values)


class BoundLaws(ABC):
    """Inherit and say how a case is made; the attributes say what is promised of it."""

    #: Cases of each law.
    count = 20
    #: The gap to the smallest value falls with at least this power of the size; None: nothing is promised.
    order: float | None = None
    #: The sizes between which the order is measured: small, so that the leading power is seen.
    sizes = (0.4, 0.1)
    #: How much lower a bound may be on a subset, as a share of the range of what is bounded; None: any.
    slack: float | None = 1e-6
    #: At least this share of the bounds of ordinary cases claims something.
    informative = 0.5
    #: Whether bounds of several rows are made together.
    batched = False

    @abstractmethod
    def make(self, rng: np.random.Generator, size: float) -> Case | None:
        """A random case on sets of about this size, in lengthscales; None: another one is drawn."""

    def extreme(self, rng: np.random.Generator) -> Case | None:
        """One in which numbers overflow, underflow or are NaN; NotImplemented: there are none."""
        return NotImplemented

    def rng(self, law: str) -> np.random.Generator:
        """Of its own for every law of every class: the same on every run."""
        return np.random.default_rng(zlib.crc32(f"{type(self).__name__} {law}".encode()))

    def cases(
        self, law: str, size: float | None = None, count: int | None = None, fewest: int = 1
    ) -> Iterator[tuple[np.random.Generator, Case]]:
        rng, found = self.rng(law), 0
        count = max(examples(self.count if count is None else count), fewest)
        for _ in range(40 * count):
            if found == count:
                return
            case = self.make(rng, 10.0 ** rng.uniform(-3.0, 0.3) if size is None else size)
            if case is not None:
                found += 1
                yield rng, case
        raise AssertionError("too few cases")

    def test_a_bound_contains_the_truth(self):
        claimed = total = 0
        for rng, case in self.cases("truth"):
            self.check(case, rng)
            claimed += len(list(case.claims()))
            total += len(np.atleast_1d(case.lower()))
        assert claimed >= self.informative * total

    def check(self, case: Case, rng: np.random.Generator) -> None:
        for row, bound in case.claims():
            for x in case.points(row, rng):
                assert at_least(lambda x=x, row=row: case.truth(row, x), bound) is not False, (row, bound, x)

    def test_it_is_exact_at_its_reference_to_the_order_it_declares(self):
        if self.order is None:
            return
        rates = []
        most = min(max(self.count, 6), 12)
        for rng, case in self.cases("order", self.sizes[0], most, fewest=most):
            small = case.subset(self.sizes[1] / self.sizes[0])
            ends = dict(case.claims()), dict(small.claims())
            for row in (row for row in ends[0].keys() & ends[1].keys() if row < case.sharp):
                least = case.range(row, rng)[0]
                wide, narrow = least - ends[0][row], small.range(row, rng)[0] - ends[1][row]
                if wide > 1e-6 * (1.0 + abs(least)):  # less is rounding
                    rates.append(np.log(wide / max(narrow, 1e-9 * wide)))
        rates = np.array(rates) / np.log(self.sizes[0] / self.sizes[1])
        assert len(rates) >= 4
        assert np.median(rates) >= self.order, sorted(rates)

    def test_a_subset_has_no_worse_bound(self):
        if self.slack is None:
            return
        worse = [0.0]
        for rng, case in self.cases("subset", count=10):
            try:
                small = case.subset(0.5)
            except NotImplementedError:
                return
            found = np.atleast_1d(small.lower())
            for row, bound in case.claims():
                least, most = case.range(row, rng)
                wanted = min(bound, case.wanted(row))
                if row < len(found):
                    kept = found[row] if found[row] > case.nothing else -np.inf
                    worse.append((wanted - min(kept, wanted)) / (most - least + 1e-9 * (1.0 + abs(bound))))
        assert max(worse) <= self.slack, sorted(worse)[-5:]

    def test_a_batch_equals_its_rows(self):
        if not self.batched:
            return
        for _, case in self.cases("rows", count=6):
            found = np.atleast_1d(case.lower())
            single = np.array([float(np.atleast_1d(each.lower())[0]) for each in case.rows()])
            np.testing.assert_allclose(found, single, rtol=1e-9, atol=1e-9)

    def test_overflow_and_nan_claim_nothing_that_is_not_true(self):
        if self.extreme(self.rng("extreme")) is NotImplemented:
            return
        rng = self.rng("extreme")
        for _ in range(examples(self.count)):
            with np.errstate(all="ignore"):
                case = self.extreme(rng)
                if case is not None:
                    self.check(case, rng)


class TermLaws:
    """Every term of an error bound is noticed in its worst case: scaled, it makes a test of the module fail.

    `terms` has one row per term, see `helpers.mutation`.
    """

    terms: Sequence[Row]

    def test_every_term_is_in_the_source(self):
        assert not misplaced(self.terms)

    @pytest.mark.full
    def test_every_term_is_noticed(self):
        assert not unnoticed(type(self).__module__, self.terms)
