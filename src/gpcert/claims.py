"""What an answer states, as data: sentences about the stored model that are true or false, and nothing else.

Whatever is said about an answer (its printed form, a page, a file, a judge) follows from its claims; a judge
that knows these four kinds of sentences can check every question, present and future.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpcert.classes import Label, called
from gpcert.regions import Ball, Box, Region
from gpcert.validation import Float


@dataclass(frozen=True)
class Quantity:
    """A function of the input that claims are about.

    "probability": P(label). "margin": P(label) - threshold; of several classes P(label) less the largest
    other. "mean", "variance": of the latent of `label` (None: of a regression), the variance clipped at 0.
    """

    name: Literal["probability", "margin", "mean", "variance"]
    label: Label | None
    threshold: float = 0.5

    def __str__(self) -> str:
        of = "" if self.label is None else f" of {called(self.label)}"
        return f"the {self.name}{of}"


@dataclass(frozen=True)
class Everywhere:
    """For every z of the region: lower <= quantity(z) <= upper; `strict`: lower < quantity(z)."""

    quantity: Quantity
    region: Region
    lower: float = -math.inf
    upper: float = math.inf
    strict: bool = False

    def __str__(self) -> str:
        less = "<" if self.strict else "<="
        return f"everywhere in the region: {self.lower!r} {less} {self.quantity} <= {self.upper!r}"


@dataclass(frozen=True)
class Witness:
    """The point (d,) lies in the region, and lower <= quantity(point) <= upper; `strict`: < upper."""

    quantity: Quantity
    region: Region
    point: Float
    lower: float = -math.inf
    upper: float = math.inf
    strict: bool = False

    def __str__(self) -> str:
        less = "<" if self.strict else "<="
        at = np.array2string(self.point, threshold=6)
        return f"in the region, at {at}: {self.lower!r} <= {self.quantity} {less} {self.upper!r}"


@dataclass(frozen=True)
class Term:
    """`sign` times the largest ("max") or smallest ("min") value of the quantity over the region."""

    sign: Literal[1, -1]
    extreme: Literal["max", "min"]
    region: Region


@dataclass(frozen=True)
class Balance:
    """lower <= the largest of the sums, each a sum of terms divided by `count` <= upper."""

    quantity: Quantity
    sums: tuple[tuple[Term, ...], ...]
    lower: float
    upper: float
    count: int = 1

    def __str__(self) -> str:
        return f"{self.lower!r} <= a balance of extremes of {self.quantity} <= {self.upper!r}"


@dataclass(frozen=True)
class Share:
    """Of the statements, each true if all its sentences are, `at_least` to `at_most` are true.

    `witnesses` hold the points by which those that do not count at the upper end are known to be false.
    """

    statements: tuple[tuple[Everywhere, ...], ...]
    witnesses: tuple[Witness, ...]
    at_least: int
    at_most: int

    def __str__(self) -> str:
        return f"of {len(self.statements)} statements {self.at_least} to {self.at_most} are true"


Claim = Everywhere | Witness | Balance | Share


def one_sided(ball: Ball, feature: int, side: Literal[1, -1]) -> Ball:
    """The points of the ball that differ from its centre in one feature, upward or downward.

    An exact set: x + radius need not be a double.
    """
    low, high = (
        (np.full(ball.n_features, -np.inf), np.full(ball.n_features, np.inf))
        if ball.domain is None
        else (np.array(ball.domain[0]), np.array(ball.domain[1]))
    )
    (low if side > 0 else high)[feature] = ball.x[feature]
    return Ball(ball.x, ball.radius, ball.norm, (feature,), (low, high), ball.scale)


def around(ball: Ball, radius: float) -> Region:
    """The ball of another radius; inf: all of the domain that its features reach."""
    if math.isfinite(radius):
        whole = float(math.floor(radius)) if ball.norm == 0 else radius
        return Ball(ball.x, whole, ball.norm, ball.features, ball.domain, ball.scale)
    moving = ball.moving()
    assert ball.domain is not None or not moving.any()  # else no radius is the largest
    low, high = (ball.x, ball.x) if ball.domain is None else ball.domain
    return Box(np.where(moving, low, ball.x), np.where(moving, high, ball.x))
