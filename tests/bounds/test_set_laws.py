"""The laws of sets, quadratics and level curves: what planes rest on, decided in exact arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from flint import arb, fmpq

import gpcert as gc
from gpcert.bounds.factory import shape_of
from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.geometry.remnant import remnant
from gpcert.bounds.levels.registry import curves_of
from gpcert.engine.backend import Backend
from gpcert.engine.quadratic import minima
from gpcert.regions import Ball, Box
from helpers.laws import BoundLaws, Case
from helpers.oracle import rational
from helpers.quadratics import exact, matrix
from judge import inside, points
from judge.links import expectation

KINDS = ("psd", "indefinite", "low rank", "negative", "diagonal", "badly scaled", "zero")


def ball(value: fmpq) -> arb:
    return arb(value)


@dataclass
class SetCase(Case):
    """What a domain says of its points d: -sup of norm, of rows, of absolute values, and its quadratics.

    Rows of the case: one norm, then for each of three vectors its support and its absolute support, then
    one quadratic for each kind of matrix.
    """

    domain: Domain
    displaced: list[list[fmpq]]  #: points of the set, exactly
    metric: np.ndarray
    vectors: np.ndarray
    quadratics: list[tuple[np.ndarray, np.ndarray]]

    def lower(self):
        domain, up = self.domain, 1.0 + 1e-15
        with np.errstate(all="ignore"):
            found = [-(domain.norm(self.metric) ** 2) * up]
            for sup in (domain.support, domain.absolute):
                found += [-float(each) for each in sup(self.vectors)]
            self.minima = [domain.minimise(g, H) for g, H in self.quadratics]
        return np.array([*found, *(each.value for each in self.minima)])

    def points(self, row, rng):
        return self.displaced

    def truth(self, row, d):
        if row == 0:
            return -ball(sum((rational(m) * v * v for m, v in zip(self.metric, d, strict=True)), fmpq(0)))
        if row <= 6:
            terms = [rational(w) * v for w, v in zip(self.vectors[(row - 1) % 3], d, strict=True)]
            return -ball(sum(map(abs, terms) if row > 3 else terms, fmpq(0)))
        g, H = self.quadratics[row - 7]
        bends = (rational(H[i, j]) * d[i] * d[j] for i in range(len(d)) for j in range(len(d)))
        linear = sum((rational(a) * v for a, v in zip(g, d, strict=True)), fmpq(0))
        return ball(linear + sum(bends, fmpq(0)) / 2)


class SetLaws(BoundLaws):
    norm = np.inf
    informative = 1.0
    slack = None
    count = 25

    def region(self, rng, d):
        """Widths of all magnitudes, some features that hardly move; balls are cut by domains at times."""
        x, half = 10.0 ** rng.uniform(-1, 4) * rng.standard_normal(d), 10.0 ** rng.uniform(-3, 1, d)
        half = np.where(rng.random(d) < 0.1, 1e-9 * half, half)
        low, high = x - half * rng.choice([0.0, 1.0, 0.3], d), x + half
        if self.norm == np.inf:
            return Box(low, high)
        cut = (np.minimum(low, x), high) if rng.random() < 0.5 else None
        return Ball(x, 1.0, self.norm, domain=cut, scale=half)

    def make(self, rng, size):
        d = int(rng.integers(1, 8))
        region, unit = self.region(rng, d), 10.0 ** rng.uniform(-1, 1, d)
        shape, box = shape_of(region, np.ones(d, dtype=bool)), region.box()
        inner = points(region, rng, 10)
        low, high = np.array(box.lower), np.array(box.upper)
        if rng.random() < 0.4:  # one of the boxes of a search
            j = int(rng.integers(d))
            low[j] = 0.5 * (low[j] + high[j])
        inner = [z for z in inner if ((low <= z) & (z <= high)).all()]
        if not inner:
            return None
        start = inner[int(rng.integers(len(inner)))]
        domain = shape.domain(low, high, start, unit)
        assert domain is not None
        inner = [z for z in inner if inside(region, z)]
        displaced = [
            [(rational(a) - rational(b)) / rational(c) for a, b, c in zip(z, start, unit, strict=True)]
            for z in inner
        ]
        metric, vectors = 10.0 ** rng.uniform(-2, 2, d), rng.standard_normal((3, d))
        forms = [(rng.standard_normal(d) * 10.0 ** rng.uniform(-3, 1), matrix(rng, k, d)) for k in KINDS]
        return SetCase(domain, displaced, metric, vectors, forms)


class TestBoxes(SetLaws):
    pass


class TestBallsOfNorm1(SetLaws):
    norm = 1.0


class TestBallsOfNorm2(SetLaws):
    norm = 2.0


class TestBallsOfNorm3(SetLaws):
    norm = 3.0


class TestBallsNearlyOfNorm1(SetLaws):
    norm = 1.01
    count = 12


class TestBallsOfLargeNorms(SetLaws):
    norm = 60.0
    count = 8


class TestRemnants(SetLaws):
    """Where a quadratic that fails is negative (Q3, Q4)."""

    informative = 0.9

    def make(self, rng, size):
        case = super().make(rng, size)
        if case is None:
            return None
        case.lower()
        which = int(rng.integers(len(KINDS)))
        found, values = case.minima[which], [case.truth(7 + which, d) for d in case.displaced]
        base = -float(sorted(values, key=float)[len(values) // 2])  # at half of the points it is negative
        with np.errstate(all="ignore"):
            rounding = 1e-12 * (abs(base) + abs(found.value))
            part = remnant(case.domain, base + found.value - rounding, found.slopes)
        if part is None:
            return None
        negative = [d for d, v in zip(case.displaced, values, strict=True) if v < -arb(base)]
        edge = (filled(rng, part) for _ in range(8))
        return replace(case, domain=part, displaced=[*negative, *(d for d in edge if d is not None)])


def filled(rng, part):
    """A point of the remnant, mostly on its edge: features leave near ends one by one; None: outside."""
    near, far = np.where(part.slopes > 0, (part.low, part.high), (part.high, part.low))
    d, room, steep = near.copy(), part.room, np.abs(part.slopes)
    for j in rng.permutation(len(d)):
        price = steep[j] * abs(far[j] - near[j])
        part_of = 1.0 if price <= room else room / price * (1.0 - 1e-12)
        d[j] = near[j] + part_of * (far[j] - near[j])
        room = max(room - price, 0.0)
    d = [rational(v) for v in np.clip(d, part.low, part.high)]
    spent = (abs(rational(s)) * abs(v - rational(n)) for s, v, n in zip(part.slopes, d, near, strict=True))
    return d if sum(spent, fmpq(0)) <= rational(part.room) else None


@dataclass
class QuadraticRows(Case):
    """g.d + d^T H d / 2 over boxes, as far as is needed."""

    g: np.ndarray
    H: np.ndarray
    low: np.ndarray
    high: np.ndarray
    need: np.ndarray
    best: bool

    def lower(self):
        with np.errstate(all="ignore"):
            return minima(Backend(), self.g, self.H, self.low, self.high, self.need, 3, self.best).value

    def points(self, row, rng):
        low, high = self.low[row], self.high[row]
        corners = [np.where(end, low, high) for end in np.ndindex(*[2] * len(low))]
        return [*corners, *rng.uniform(low, high, (3, len(low)))]

    def truth(self, row, x):
        return ball(exact(self.g[row], self.H[row], x))

    def wanted(self, row):
        return self.need[row]

    def subset(self, share):
        return replace(self, low=share * self.low, high=share * self.high)

    def rows(self):
        each = (np.array([row]) for row in range(len(self.g)))
        return [
            replace(self, **{name: getattr(self, name)[row] for name in ("g", "H", "low", "high", "need")})
            for row in each
        ]


class TestQuadraticsOfRows(BoundLaws):
    batched = True
    informative = 0.5
    best = False
    slack = 0.05

    def make(self, rng, size):
        N, d = 6, int(rng.integers(1, 5))
        H = np.stack([matrix(rng, KINDS[int(rng.integers(len(KINDS)))], d) for _ in range(N)])
        g = rng.standard_normal((N, d)) * 10.0 ** rng.uniform(-1, 1)
        low, high = -rng.random((N, d)), rng.random((N, d))
        case = QuadraticRows(g, H, low, high, np.zeros(N), self.best)
        case.need = np.array([case.range(row, rng)[0] for row in range(N)])
        case.need -= 0.1 * np.abs(case.need)
        return case

    def extreme(self, rng):
        case = self.make(rng, 1.0)
        H = case.H * float(rng.choice([np.nan, np.inf, 1e300]))
        found = replace(case, H=H).lower()
        assert not (found > -1e200).any() or not np.isnan(H).any()
        return None


class TestBestQuadraticsOfRows(TestQuadraticsOfRows):
    best = True


@dataclass
class LevelCase(Case):
    """P along a line or a root below a level curve: at least p, whatever the variance; where a deficit is
    known, at least what is left; and corners of rectangles.
    """

    link: object
    p: float
    touch: float
    largest: float
    move: float

    def lower(self):
        level = curves_of(self.link).level(self.p)
        self.level, none = level, (0.0, 0.0, 0.0)
        self.tangent = level.tangent(self.touch, self.largest) if level.concave else none[:2]
        self.chord = none[:2] if level.concave else level.chord(self.touch, self.largest)
        self.root = none if level.concave else level.root(self.touch, self.largest) or none
        lines = self.tangent, self.chord, self.root
        claims = [level.p if any(line) else -np.inf for line in lines]
        corner = curves_of(self.link).bounds((-self.move, self.touch), (self.touch, self.largest))
        claims += [level.after_deficit(self.move, 0.0), level.after_surplus(self.move, self.largest)]
        return np.array([*claims, corner[0], -corner[1]])

    def points(self, row, rng):
        share = rng.random(4)
        near = self.touch + (self.largest - self.touch) * share[:2]
        if row in (1, 5, 6):
            return [self.touch, self.largest, *near]
        return [
            0.0,
            self.largest,
            self.touch,
            *(self.largest * share),
            self.largest * 10.0 ** -rng.uniform(1, 9),
        ]

    def truth(self, row, S):
        S_ = arb(float(S))
        if row == 2:
            steep, c, kappa = map(arb, self.root)
            mean = -(steep * (c + S_).sqrt() + kappa)
        elif row in (0, 1):
            slope, kappa = (self.tangent, self.chord)[row]
            mean = arb(slope) * S_ - arb(kappa)
        elif row in (3, 4):
            mean = arb(self.level.curve(float(S))[1]) + (arb(self.move) if row == 4 else -arb(self.move))
        else:
            mean = arb(-self.move + (self.touch + self.move) * (float(S) / (self.largest + 1e-300)) ** 2)
            value = expectation(self.link, mean, S_, 1)
            return value if row == 5 else -value
        return expectation(self.link, mean, S_, 1) + arb(1e-13)


class LevelLaws(BoundLaws):
    """Tangents, chords, roots, deficits, surpluses, corners of the curves of one link."""

    links: tuple = (gc.Probit(), gc.Probit(0.05), gc.Probit(30.0), gc.Probit(1e-9))
    slack = None
    count = 60
    informative = 0.6

    def make(self, rng, size):
        p = float(rng.choice([1e-6, 1e-3, 0.1, 0.4999, 0.5, 0.5001, 0.7, 0.99, 1 - 1e-6, rng.random()]))
        largest = 10.0 ** rng.uniform(-6, 4)
        touch = largest * float(rng.choice([0.0, 1.0, rng.random(), 1e-6]))
        link = self.links[int(rng.integers(len(self.links)))]
        return LevelCase(link, p, touch, largest, 10.0 ** rng.uniform(-9, 1))


class TestProbitCurves(LevelLaws):
    pass


class TestLogitCurves(LevelLaws):
    links = (gc.Logit(),)
    count = 25


class TestCurvesOfFormulas(LevelLaws):
    links = (gc.FiveErf(), gc.Floored(gc.Probit(), 0.01), gc.Floored(gc.Logit(), 0.1))
    count = 25
