"""Levels of a link with a floor (docs/maths/proof.md, V17): those of the link itself."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gpcert.proofs.facts import Fact
from gpcert.proofs.levels import Ends, Level, Place, Plane
from gpcert.rounding import down, up

#: Of the inner link: levels below it are left to the floor.
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class _FlooredAt(Level):
    """P >= floor + (1 - 2 floor) p where the inner link has p; `t` is the inner one's."""

    inner: Level
    floor: float

    @property
    def t(self) -> float:  # type: ignore[override]
        return self.inner.t

    @property
    def fact(self) -> Fact:  # type: ignore[override]
        return self.inner.fact

    @property
    def p(self) -> float:
        floor = Fraction(self.floor)
        return down(float(floor + (1 - 2 * floor) * Fraction(self.inner.p)))

    @property
    def told(self) -> dict[str, Any]:
        return self.inner.told

    @property
    def outright(self) -> dict[str, Any]:
        return self.inner.outright

    def clears(self, mean: float) -> bool:
        return self.inner.clears(mean)

    def cleared(self, mean: float, ends: Ends | None = None) -> float:
        return self.inner.cleared(mean, ends)

    def between(self, ends: Ends) -> tuple[float, dict[str, Any]] | None:
        return self.inner.between(ends)

    def plane(self, place: Place) -> Plane:
        return self.inner.plane(place)

    def growth(self, place: Place) -> tuple[float, dict[str, Any]]:
        return self.inner.growth(place)


@dataclass(frozen=True, eq=False)
class FlooredLevels:
    """The levels of a link with a floor for one model; `inner`: those of the link."""

    inner: Any
    floor: float

    @property
    def least(self) -> float:
        """Probabilities up to it are not told from 0."""
        return 0.0

    @property
    def free(self) -> float:
        """P is at least that, without a proof."""
        return self.floor

    @property
    def other(self) -> FlooredLevels:
        """Of the other class: the same."""
        return self

    @property
    def most(self) -> float:
        """See `Levels.most`."""
        return float(self.inner.most)

    @property
    def mixed(self) -> bool:
        """See `Levels.mixed`."""
        return bool(self.inner.mixed)

    def of(self, value: float, other: bool, flat: bool, near: tuple[float, ...] = ()) -> Level:
        """See `Levels.of`."""
        floor, claimed = Fraction(self.floor), 1 - Fraction(value) if other else Fraction(value)
        inner = min(max(up(float((claimed - floor) / (1 - 2 * floor))), _LEAST), 1.0)
        return _FlooredAt(self.inner.of(inner, False, flat, near), self.floor)

    def at(self, t: float, flat: bool, near: tuple[float, ...] = ()) -> Level:
        """See `Levels.at`."""
        return _FlooredAt(self.inner.at(t, flat, near), self.floor)
