"""Quadratic forms on a domain, and the last step of every local model: a quadratic less its remainders."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from gpcert.bounds.geometry.domain import Domain, asked
from gpcert.clock import check
from gpcert.rounding import LARGEST, TINY, UNIT, gamma, is_certainly_psd
from gpcert.validation import Float

#: The range of S only decides where the chords lie: it need not be sharp.
RANGE_ACCURACY = 0.05


class FunctionalBound(NamedTuple):
    """`latent` <= a mu - tau S + kappa on the set; `value` has its sign and what is minimised is its scale.

    `point` (d,), scaled displacement: where the relaxation attains its minimum; `rounding`: how much of the
    deficit is rounding; `loss` (d,): how much the remainders may cost along each coordinate (for splitting).
    """

    value: float
    latent: float
    point: Float
    rounding: float
    loss: Float
    #: A positive multiple of the functional is at least value + sum_j |slopes_j| delta_j on the set (Q3).
    slopes: Float | None = None


class Supported(NamedTuple):
    """A bound of a plane over a set; `left`: outside of it, on the set, the plane is not negative. `here`:
    about the plane at its reference, where it should touch; -inf: not known.
    """

    bound: FunctionalBound
    left: Domain
    here: float


class LocalModel(Protocol):
    """The posterior around one reference, over one `Domain`."""

    @property
    def S(self) -> float:
        """The latent variance at the reference, computed."""

    def only(self, tau: float) -> LocalModel:
        """The same for functionals with a = 1 and this tau alone, which may cost less."""

    def lower_bound(
        self, a: float, tau: float, kappa: float, enough: float = np.inf, accuracy: float = 1e-6
    ) -> FunctionalBound:
        """Certified for a in {0, 1}, mu without the prior mean; effort ends once `enough` is certain."""


#: Features beyond which eigenvectors take longer than a box may.
_MOST = 1500


class Form(NamedTuple):
    """A quadratic form d^T matrix d + excess on the domain; `excess` >= 0 covers the rounding of `matrix`."""

    matrix: Float
    excess: float


class Remainder(NamedTuple):
    """Subtracted from the expansion as d^T (matrix + diag(diagonal)) d / 2 + rounding + constant; None is
    zero. Only `rounding` would stay if the domain were smaller.
    """

    matrix: Float | None
    diagonal: Float | None
    rounding: float = 0.0
    constant: float = 0.0


class Loss(NamedTuple):
    """constant + gradient.d + d^T matrix d, certainly non-negative on the domain."""

    constant: float
    gradient: Float
    matrix: Float


class Pieces(NamedTuple):
    """On the domain f >= base + g.d + d^T (sum of parts) d / 2 - remainders - excess; pieces of several
    functionals add up.
    """

    base: float
    g: Float
    parts: list[Float]
    remainders: list[Remainder]
    excess: float

    def times(self, factor: float) -> Pieces:
        """The same for factor * f, factor >= 0."""
        up = factor * (1.0 + 8 * UNIT)
        return Pieces(
            factor * self.base,
            factor * self.g,
            [factor * part for part in self.parts],
            [
                Remainder(
                    None if matrix is None else up * matrix,
                    None if diagonal is None else up * diagonal,
                    up * rounding,
                    up * constant,
                )
                for matrix, diagonal, rounding, constant in self.remainders
            ],
            up * self.excess + 4 * UNIT * abs(factor * self.base),
        )

    def measured_by(self, factor: Float, reach: Float) -> Pieces:
        """The same in displacements d' with d = factor * d' (d,), up to a rounding, |d'_j| <= reach_j."""
        sides = np.outer(factor, factor)
        up = sides * (1.0 + 8 * UNIT)
        g, parts = factor * self.g, [sides * part for part in self.parts]
        remainders = [
            Remainder(
                None if matrix is None else up * matrix,
                None if diagonal is None else np.diagonal(up) * diagonal,
                rounding,
                constant,
            )
            for matrix, diagonal, rounding, constant in self.remainders
        ]
        moved = Pieces(self.base, g, parts, remainders, self.excess)
        sizes = [*parts, *(matrix for matrix, *_ in remainders if matrix is not None)]
        size = float(np.abs(g) @ reach) + sum(float(reach @ np.abs(each) @ reach) for each in sizes)
        return moved._replace(excess=self.excess + gamma(16) * size)

    def rough(self, domain: Domain) -> float:
        """A lower bound on the domain without a programme."""
        reach = domain.reach
        bend = sum(float(reach @ np.abs(part) @ reach) for part in self.parts)
        slope = float(domain.support(-self.g[None])[0])
        lost = slope + (0.5 * bend + self.rest(reach)) * (1.0 + gamma(len(reach) ** 2 + 60))
        value = self.base - lost - 8 * UNIT * (abs(self.base) + abs(slope) + abs(lost))
        return value if math.isfinite(value) else -np.inf

    def rest(self, reach: Float) -> float:
        """The largest that is subtracted, |d_j| <= reach_j (d,)."""
        total = self.excess
        for matrix, diagonal, rounding, constant in self.remainders:
            total += rounding + constant
            total += 0.0 if matrix is None else 0.5 * float(reach @ np.abs(matrix) @ reach)
            total += 0.0 if diagonal is None else 0.5 * float(np.abs(diagonal) @ (reach * reach))
        return total * (1.0 + gamma(len(reach) ** 2 + 60))


class Subtracted(NamedTuple):
    """`value` + sum_j |slopes_j| delta_j (Q3) <= base + g.d + d^T H d / 2 - remainders on the set; the rest
    as in `FunctionalBound`.
    """

    value: float
    point: Float
    rounding: float
    loss: Float
    slopes: Float | None = None


def subtract(
    domain: Domain,
    base: float,
    g: Float,
    parts: list[Float],
    diagonals: list[Float],
    remainders: Iterable[Remainder],
    excess: float,
    target: tuple[float, float],
) -> Subtracted:
    """Minimises base + g.d + d^T (sum of parts + diag(sum of diagonals)) d / 2 less remainders and `excess`.

    `target`: (enough, accuracy), see `Domain.minimise`. The lists grow by what is subtracted.
    """
    reach = domain.reach
    taken = np.zeros_like(g)
    constant = 0.0
    for matrix, diagonal, rounding, still in remainders:
        if matrix is not None:
            parts.append(-matrix)
            taken += np.diagonal(matrix)
        if diagonal is not None:
            diagonals.append(-diagonal)
            taken += diagonal
        excess += rounding
        constant += still
    H = sum(parts[1:], parts[0].copy())
    diagonal = sum(diagonals[1:], diagonals[0].copy())
    sizes = sum((np.abs(part) for part in parts), np.zeros_like(H))
    size = float(reach @ sizes @ reach) + float(sum(np.abs(x) for x in diagonals) @ (reach * reach))
    size += float(np.abs(g) @ reach)
    H[np.diag_indices(len(g))] += diagonal
    excess = (excess + gamma(60) * size) * (1.0 + 1e-12) + TINY
    constant *= 1.0 + 1e-12
    enough, accuracy = target
    needed = enough + excess + constant - base + 16.0 * UNIT * (abs(base) + excess + constant)
    bound = domain.minimise(g, H, asked(enough, needed), accuracy)
    value = base + bound.value - excess - constant
    value -= 4.0 * UNIT * (abs(base) + abs(bound.value) + excess + constant)
    widths = (domain.high - domain.low) ** 2
    loss = widths * (
        taken + np.maximum(-np.diagonal(H), 0.0) + 2.0 * constant / max(float(widths.sum()), TINY)
    )
    value = value if math.isfinite(value) else -np.inf
    return Subtracted(value, bound.point, excess, loss, bound.slopes)


def least(domain: Domain, pieces: Sequence[Pieces], target: tuple[float, float]) -> Subtracted:
    """A lower bound of the sum of all these functionals over the domain; `target` as for `subtract`."""
    base = excess = 0.0
    g, parts, remainders = np.zeros(len(domain.low)), [np.zeros((len(domain.low),) * 2)], []
    for each in pieces:
        base += each.base
        g = g + each.g
        parts += each.parts
        remainders += each.remainders
        sums = gamma(2 * len(pieces) + 8) if len(pieces) > 1 else 0.0
        excess += each.excess + sums * (abs(each.base) + abs(base))
    return subtract(domain, base, g, parts, [np.zeros_like(g)], remainders, excess, target)


def balance(x: float, y: float) -> float:
    """x / y kept well inside the range of doubles (R7): any positive number is a sound theta."""
    return float(np.clip(np.divide(x, y), 1.0 / LARGEST, LARGEST)) if x < np.inf and y > 0 else 1.0


def largest_root(form: Form, domain: Domain) -> float:
    """An estimate of sup sqrt(form) on the domain: balances constants only."""
    return math.sqrt(domain.largest(form.matrix) + form.excess)


def negative_part(matrix: Float, metric: Float, reach: Float) -> Float:
    """X7: P, PSD, with matrix + P PSD: about the negative part, verified; else a dominant diagonal."""
    dominant = np.abs(matrix) @ reach / np.maximum(reach, TINY) * (1.0 + 4.0 * gamma(len(reach) + 8))
    check()
    root = np.sqrt(metric)
    unit = np.outer(root, root)
    if len(reach) > _MOST or not np.isfinite(matrix / unit).all():  # nothing is known of the latter
        return np.diag(dominant)
    values, vectors = np.linalg.eigh(matrix / unit)
    part = vectors[:, values < 0] * np.sqrt(-values[values < 0])
    slack = 1e-11 * float(np.abs(values).sum()) + TINY
    P: Float = (part @ part.T + slack * np.eye(len(root))) * unit
    if is_certainly_psd(matrix + P) and is_certainly_psd(P):
        return P
    return np.diag(dominant)
