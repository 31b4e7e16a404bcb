"""Cases of `helpers.laws`: what the search asks of a bound on a box, and what is true there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from flint import arb

from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.interface import BoxBound
from gpcert.kernels import radial_terms
from gpcert.posterior import Posterior
from gpcert.questions.rows import in_rows
from gpcert.regions import Ball, Box, Region
from gpcert.search.local import descend
from helpers.laws import Case
from judge import Truth, inside, points
from judge.models import CHOICES, Model

PRECISIONS = ("laplace", "laplace", "stiff", "spectrum", "excess", "zero", "indefinite")


def drawn(rng: np.random.Generator, **fields: Any) -> Posterior:
    """A posterior of ordinary size: of `Model`, a value or one of a tuple of values for each field."""
    usual = {"precision": PRECISIONS, "layout": ("normal", "multimodal", "ard", "duplicates", "offset"),
             "n": (1, 3, 5, 8), "d": (1, 2, 3), "classes": 3, "seed": int(rng.integers(10**9))}  # fmt: skip
    chosen = {
        name: values[int(rng.integers(len(values)))] if isinstance(values, tuple) else values
        for name, values in (usual | fields).items()
    }
    return Model(**chosen).posterior()


def unit(post: Posterior) -> np.ndarray:
    """The smallest lengthscale of any kernel along each feature (D,)."""
    terms = [term for kernel in post.kernels for term in radial_terms(kernel, post.n_features)]
    return np.min([group.lengthscale for term in terms for group in term], axis=0)


def region_near(
    rng: np.random.Generator, post: Posterior, norm: float, size: float, place: float = 0.7
) -> Region:
    """A box (NaN) or a ball of the norm near a centre, about `size` lengthscales across."""
    scale, d = unit(post), post.n_features
    x = post.centres[rng.integers(post.n_centres)] + place * scale * rng.standard_normal(d) / d**0.5
    half = size * scale * rng.uniform(0.3, 1.0, d) / d**0.5
    if np.isnan(norm):
        still = rng.random(d) < 0.15
        return Box(x - np.where(still, 0.0, half), x + half * rng.choice([0.0, 1.0], d))
    if norm == 0:
        return Ball(x, float(rng.integers(1, d + 1)), 0, domain=(x - half, x + half))
    cut = (x - half * rng.random(d), x + half) if rng.random() < 0.3 else None
    return Ball(x, size, norm, domain=cut, scale=scale)


class Quantity(NamedTuple):
    """What a box bound is of: how the bound is made, the truth at a point, and the same as a number."""

    make: Callable[..., BoxBound]
    truth: Callable[[Truth, np.ndarray], arb]
    value: Callable[[Posterior, np.ndarray], float]
    least: float = 1e-6  #: nothing is asked below


def share(label: int, side: int) -> Quantity:
    """P(label), or 1 - P(label)."""

    def truth(truth: Truth, x: np.ndarray) -> arb:
        p = truth.probability(x, label)
        return 1 - p if side else p

    def value(post: Posterior, x: np.ndarray) -> float:
        p = post.probability(x[None])[0, label]
        return 1.0 - p if side else p

    return Quantity(lambda factory, *where: factory.pair(label, *where)[side], truth, value)


def sign(label: int) -> Quantity:
    """P(label), sharp at 1/2."""
    return share(label, 0)._replace(make=lambda factory, *where: factory.sign(label, *where))


def lead(label: int) -> Quantity:
    """(1 + the margin of the label over the largest other) / 2."""

    def value(post: Posterior, x: np.ndarray) -> float:
        p = post.probability(x[None])[0]
        return 0.5 + 0.5 * (p[label] - np.delete(p, label).max())

    return Quantity(
        lambda factory, *where: factory.margin(label, *where),
        lambda truth, x: (1 + truth.margin(x, label)) / 2,
        value,
    )


def latent(which: int) -> Quantity:
    """mean, -mean, variance, -variance."""

    def truth(truth: Truth, x: np.ndarray) -> arb:
        part = truth.mean(x) if which < 2 else truth.clipped(x)
        return -part if which % 2 else part

    def value(post: Posterior, x: np.ndarray) -> float:
        part = float(post.latent(x[None])[which // 2][0])
        return -part if which % 2 else part

    return Quantity(lambda factory, *where: factory.latent(*where)[which], truth, value, -np.inf)


def in_arrays(quantity: Quantity, sign: float) -> Quantity:
    """The same, as questions ask it where many boxes are bounded together; of the latent with this sign."""
    return quantity._replace(
        make=lambda factory, *where: in_rows(factory.post, quantity.make(factory, *where), where, sign)
    )


def _between(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> bool:
    return bool(((low <= x) & (x <= high)).all())


@dataclass
class BoxCase(Case):
    """`BoxBound.over` of one box, at the point that the search would begin with; a second row is what is said
    of the set beside the pieces.
    """

    sharp = 1
    bound: BoxBound
    of: Quantity
    post: Posterior
    region: Region
    moving: np.ndarray  #: (D,)
    box: tuple[np.ndarray, np.ndarray]  #: of the moving features
    reference: np.ndarray
    slack: float | None  #: below the value at the reference; None: the least value at a corner is aimed at

    @classmethod
    def made(cls, quantity: Quantity, post: Posterior, region: Region, slack: float | None) -> BoxCase | None:
        """Seen from where it is smallest; without a `slack` from the middle, as in no search."""
        box = region.box()
        moving = box.upper > box.lower
        if not moving.any():
            return None
        lower, upper = box.lower[moving], box.upper[moving]
        bound = quantity.make(BoundFactory(post), shape_of(region, moving), region.centre, moving)
        with np.errstate(all="ignore"):
            start = (
                bound.shape.project(0.5 * lower + 0.5 * upper)
                if slack is None
                else descend(bound, lower, upper)
            )
        return cls(bound, quantity, post, region, moving, (lower, upper), start, slack)

    def lower(self) -> np.ndarray:
        with np.errstate(all="ignore"):
            if self.slack is None:
                self.target = min(self.bound.at(x)[0] for x in (self.reference, *self.corners()))
            else:
                self.target = self.bound.at(self.reference)[0] - self.slack
            self.found = self.bound.over(*self.box, self.reference, max(self.target, self.of.least))
        if self.found.pieces is not None:  # the second number is of what lies beside the pieces
            return np.array([self.found.value, self.found.elsewhere])
        return np.array([self.found.value])

    def wanted(self, row: int) -> float:
        return self.target

    def whole(self, x: np.ndarray) -> np.ndarray:
        point = self.region.centre.copy()
        point[self.moving] = x
        return point

    def points(self, row: int, rng: np.random.Generator) -> list[np.ndarray]:
        low, high = self.box
        ends = [*self.corners(), self.reference, self.found.point]
        every = [*points(self.region, rng, 8), *map(self.whole, ends)]
        kept = [z for z in every if _between(z[self.moving], low, high) and inside(self.region, z)]
        beside = self.found.pieces if row else ()
        return [z for z in kept if not any(_between(z[self.moving], *piece) for piece in beside)]

    def corners(self) -> list[np.ndarray]:
        """Of the first three features, or the nearest points of the region."""
        (low, high), d = self.box, len(self.reference)
        ends = (np.where([i >> j & 1 for j in range(d)], high, low) for i in range(2 ** min(d, 3)))
        return [self.bound.shape.project(x) for x in ends]

    def truth(self, row: int, x: np.ndarray) -> arb:
        if not hasattr(self, "_truth"):
            self._truth = Truth(self.post)
        return self.of.truth(self._truth, x)

    def value(self, row: int, x: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            return float(self.of.value(self.post, x))

    def subset(self, share: float) -> BoxCase:
        ends = tuple(self.reference + share * (end - self.reference) for end in self.box)
        return replace(self, box=ends)


def extreme(rng: np.random.Generator, **fields: Any) -> Posterior:
    """A posterior whose numbers are at the ends of the doubles."""
    wild = {name: tuple(v for v in CHOICES[name] if v) for name in ("units", "size", "push")}
    name = str(rng.choice(list(wild)))
    return drawn(rng, **fields, **{name: wild[name]})
