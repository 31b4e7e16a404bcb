"""The judge: what is false about an answer, decided claim by claim in ball arithmetic.

It knows the four kinds of sentences of `gpcert.claims`, and nothing of questions. A sentence about all points
of a set cannot be proved here, only refuted at the points of an adversary; every other one has to be proved:
what stays undecided is told apart and never counts as true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from flint import arb

from gpcert.claims import Balance, Claim, Everywhere, Quantity, Share, Term, Witness
from gpcert.likelihoods import FiveErf, Probit
from gpcert.posterior import Posterior
from gpcert.regions import Ball, Box, Region
from judge.adversary import column, suspects
from judge.answers import inconsistencies
from judge.decide import PRECISIONS, above, at_least, at_most, below, precision
from judge.line import extremes
from judge.regions import inside
from judge.truth import Truth

#: Enclosures of extremes along a line: at most this wide, or narrower than the claim by this factor.
_WIDTH, _FINER = 1e-6, 0.05
#: Evaluations along one line, at most.
_CALLS = 600


def complaints(
    post: Posterior, answers: Iterable[Any], rng: np.random.Generator, hints: Sequence[np.ndarray] = ()
) -> list[str]:
    """What is false about the answers; `hints`: points (d,) where a claim may fail."""
    judge, found = Judge(post, rng, hints), []
    for answer in answers:
        found += inconsistencies(answer)
        judge.judge(answer.claims())
    return found + judge.false


class Judge:
    """Of the claims of one answer about one model; `false` and `undecided` hold sentences."""

    def __init__(self, post: Posterior, rng: np.random.Generator, hints: Sequence[np.ndarray] = ()) -> None:
        self._post, self._truth, self._rng, self._hints = post, Truth(post), rng, list(hints)
        # With its region, which must live as long: a number of `id` is given again when its object is gone.
        self._suspects: dict[tuple[int, Quantity], tuple[Region, list[np.ndarray]]] = {}
        self._known: list[tuple[Region, np.ndarray]] = []
        self.false: list[str] = []
        self.undecided: list[str] = []

    def judge(self, claims: Sequence[Claim]) -> None:
        """All of them; the points of all witnesses are suspects of every claim about their region."""
        self._known = [(c.region, c.point) for c in claims if isinstance(c, Witness)]
        for claim in claims:
            {
                Everywhere: self._everywhere,
                Witness: self._witness,
                Balance: self._balance,
                Share: self._share,
            }[type(claim)](claim)

    def _note(self, truth: bool | None, claim: Claim, why: str) -> None:
        if truth is None:
            self.undecided.append(f"{claim}: {why}")
        elif not truth:
            self.false.append(f"{claim}: {why}")

    def _value(self, quantity: Quantity, x: np.ndarray) -> arb:
        truth, c = self._truth, column(self._post, quantity)
        if quantity.name == "mean":
            return truth.mean(x, c)
        if quantity.name == "variance":
            return truth.clipped(x, c)
        if quantity.name == "probability":
            return truth.probability(x, c)
        return truth.margin(x, c, quantity.threshold)

    def _points(self, quantity: Quantity, region: Region) -> list[np.ndarray]:
        key = id(region), quantity
        if key not in self._suspects:
            known = [p for r, p in self._known if same(r, region)] + self._hints
            self._suspects[key] = region, suspects(self._post, region, quantity, self._rng, known)
        return self._suspects[key][1]

    def _refuting(self, claim: Everywhere) -> tuple[np.ndarray | None, bool]:
        """A point where the claim is certainly false, and whether any point was undecided."""
        open_ = False
        for x in self._points(claim.quantity, claim.region):
            value = lambda x=x: self._value(claim.quantity, x)  # noqa: E731
            bounds = _beyond_doubt(claim)
            enough = bounds[0] or (above if claim.strict else at_least)(value, claim.lower)
            little = bounds[1] or at_most(value, claim.upper)
            if enough is False or little is False:
                return x, open_
            open_ |= enough is None or little is None
        return None, open_

    def _everywhere(self, claim: Everywhere) -> None:
        if not claim.lower <= claim.upper:
            self.false.append(f"{claim}: no interval")
        if claim.lower == -np.inf and claim.upper == np.inf:
            return
        point, open_ = self._refuting(claim)
        self._note(False if point is not None else None if open_ else True, claim, f"at {point!r}")

    def _holds(self, claim: Witness) -> bool | None:
        facts = [inside(claim.region, claim.point)]
        if facts[0] is True and (claim.lower > -np.inf or claim.upper < np.inf):
            value = lambda: self._value(claim.quantity, claim.point)  # noqa: E731
            bounds = _beyond_doubt(claim)
            facts.append(bounds[0] or at_least(value, claim.lower))
            facts.append(bounds[1] or (below if claim.strict else at_most)(value, claim.upper))
        return False if False in facts else None if None in facts else True

    def _witness(self, claim: Witness) -> None:
        self._note(self._holds(claim), claim, "the point does not show it")

    def _share(self, claim: Share) -> None:
        """Statements that count must withstand the adversary; those that do not need a point each."""
        refuted = sum(any(self._refuting(e)[0] is not None for e in s) for s in claim.statements)
        if claim.at_least > len(claim.statements) - refuted:
            self.false.append(f"{claim}: {refuted} are false")
        shown, perhaps = (
            {
                i
                for w in claim.witnesses
                for i, statement in enumerate(claim.statements)
                for s in statement
                if s.quantity == w.quantity and same(s.region, w.region) and self._holds(w) in taken
            }
            for taken in ((True,), (True, None))
        )
        enough = len(claim.statements) - claim.at_most
        self._note(
            True if len(shown) >= enough else None if len(perhaps) >= enough else False,
            claim,
            f"only {len(shown)} shown to be false",
        )

    def _balance(self, claim: Balance) -> None:
        """Where extremes are enclosed (lines, points), the enclosure decides; else points have to show it."""
        wide = max(_WIDTH, _FINER * (claim.upper - claim.lower) / (4 * claim.count))
        with precision(PRECISIONS[0]):
            sums = [[self._term(claim.quantity, term, wide) for term in terms] for terms in claim.sums]
            low = reduce(arb.max, (sum((t[0] for t in terms), arb(0)) / claim.count for terms in sums))
            highs = [None if any(t[1] is None for t in ts) else sum(t[1] for t in ts) for ts in sums]
            high = None if None in highs else max(h.upper() / claim.count for h in highs)
            shown = low >= claim.lower
            if not low.is_finite():
                self.undecided.append(f"{claim}: not known")
            elif low > claim.upper or (low if high is None else high) < claim.lower:
                self.false.append(f"{claim}: it lies in [{low}, {high}]")
            elif not shown or (high is not None and not high <= claim.upper):
                self.undecided.append(f"{claim}: it lies in [{low}, {high}]")

    def _term(self, quantity: Quantity, term: Term, wide: float) -> tuple[arb, arb | None]:
        """Balls: sign * extreme is at least a number of the first, at most one of the second (None: inf)."""
        line = _line(term.region)
        if line is not None:
            low, high = self._line_ends(quantity, term, *line, wide)
        else:
            values = [self._value(quantity, x) for x in self._points(quantity, term.region)]
            inner = reduce(arb.max if term.extreme == "max" else arb.min, values)
            low, high = (inner, None) if term.extreme == "max" else (None, inner)
        if term.sign < 0:
            low, high = None if high is None else -high, None if low is None else -low
        assert low is not None, "a balance is judged from below by points"
        return low, high

    def _line_ends(
        self, quantity: Quantity, term: Term, x: np.ndarray, i: int, t0: Fraction, t1: Fraction, wide: float
    ) -> tuple[arb, arb]:
        cheap = isinstance(self._post.likelihood, Probit | FiveErf)
        calls = _CALLS if cheap else _CALLS // 15  # integrals
        smallest, largest = extremes(lambda z: self._value(quantity, z), x, i, t0, t1, wide, calls)
        found = largest if term.extreme == "max" else smallest
        return found, found


def _beyond_doubt(claim: Everywhere | Witness) -> tuple[bool, bool]:
    """Ends that hold by the nature of the quantity: no ball need be narrow enough to tell 1 - e^-5000 from 1.

    A strict claim is strict at its lower end where it is made everywhere, at its upper end where of a point.
    """
    low, high = {
        "probability": (0.0, 1.0),
        "margin": (-1.0, 1.0),
        "mean": (-np.inf, np.inf),
        "variance": (0.0, np.inf),
    }[claim.quantity.name]
    strict = claim.strict, isinstance(claim, Witness)
    return claim.lower <= low and strict != (True, False), claim.upper >= high and strict != (True, True)


def same(a: Region, b: Region) -> bool:
    """Whether two regions are the same set, given in the same way."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    return all(_equal(getattr(a, name), getattr(b, name)) for name in vars(a))


def _equal(a: object, b: object) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)


def _line(region: Region) -> tuple[np.ndarray, int, Fraction, Fraction] | None:
    """(x, i, t0, t1) where the region is the real segment x + t e_i, t0 <= t <= t1; a point is one, too."""
    if isinstance(region, Box):
        moving = np.flatnonzero(region.lower < region.upper)
        x = np.array(region.lower)
        ends = lambda i: (Fraction(0), Fraction(region.upper[i]) - Fraction(region.lower[i]))  # noqa: E731
    else:
        moving, x = np.flatnonzero(region.moving()), np.array(region.x)
        ends = lambda i: _reach(region, i)  # noqa: E731
        if region.radius == 0:
            moving = moving[:0]
    if len(moving) > 1:
        return None
    if len(moving) == 0:
        return x, 0, Fraction(0), Fraction(0)
    i = int(moving[0])
    return x, i, *ends(i)


def _reach(ball: Ball, i: int) -> tuple[Fraction, Fraction]:
    """How far a ball lets feature i alone move, down and up: of every norm p >= 1 the same."""
    reach = Fraction(float(ball.radius)) * (1 if ball.scale is None else Fraction(float(ball.scale[i])))
    low, high = -reach, reach
    if ball.domain is not None:
        below, over = float(ball.domain[0][i]), float(ball.domain[1][i])
        here = Fraction(float(ball.x[i]))
        if ball.norm == 0:
            return Fraction(below) - here, Fraction(over) - here
        low = low if below == -np.inf else max(low, Fraction(below) - here)
        high = high if over == np.inf else min(high, Fraction(over) - here)
    return low, high
