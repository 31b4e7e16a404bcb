"""Level curves of a link with a floor: those of the link itself (docs/maths/bounds.md#derived-links, W1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.bounds.levels.curves import Level, LevelCurves, Line, Root
from gpcert.rounding import UNIT, down
from gpcert.validation import Float


@dataclass(frozen=True)
class FlooredCurves(LevelCurves):
    """P = floor + (1 - 2 floor) P'."""

    inner: LevelCurves
    floor: float

    def mirrored(self) -> LevelCurves:
        """1 - P = floor + (1 - 2 floor) (1 - P')."""
        return FlooredCurves(self.inner.mirrored(), self.floor)

    @property
    def noise(self) -> float:
        return self.inner.noise

    def bounds(self, mu: tuple[float, float], S: tuple[float, float]) -> tuple[float, float]:
        lower, upper = (self.floor + (1.0 - 2.0 * self.floor) * p for p in self.inner.bounds(mu, S))
        return max(0.0, lower - 4 * UNIT), min(1.0, upper + 4 * UNIT)

    def bounds_of_rows(self, mu: tuple[Float, Float], S: tuple[Float, Float]) -> tuple[Float, Float]:
        lower, upper = (self.floor + (1.0 - 2.0 * self.floor) * p for p in self.inner.bounds_of_rows(mu, S))
        return np.maximum(lower - 4 * UNIT, 0.0), np.minimum(upper + 4 * UNIT, 1.0)

    @property
    def slope(self) -> float:
        return self.inner.slope

    def level(self, p: float) -> Level:
        """See `LevelCurves.level`; p at most the floor holds everywhere, p beyond 1 - floor nowhere."""
        inner = (p - self.floor) / (1.0 - 2.0 * self.floor)
        return FlooredLevel(self.inner.level(min(max(inner, 1e-12), 1.0 - 1e-12)), self.floor)


@dataclass(frozen=True)
class FlooredLevel(Level):
    """The inner level of p' read as one of floor + (1 - 2 floor) p'."""

    inner: Level
    floor: float

    @property
    def p(self) -> float:
        """floor + (1 - 2 floor) p', rounded down."""
        return self._lifted(self.inner.p)

    @property
    def concave(self) -> bool:
        return self.inner.concave

    def rises(self, S: float, largest: float) -> bool:
        return self.inner.rises(S, largest)

    def tangent(self, S: float, largest: float) -> Line:
        return self.inner.tangent(S, largest)

    def chord(self, start: float, end: float) -> Line:
        return self.inner.chord(start, end)

    def root(self, S: float, largest: float) -> Root | None:
        return self.inner.root(S, largest)

    def within(self, variances: tuple[float, float]) -> Level:
        return FlooredLevel(self.inner.within(variances), self.floor)

    def curve(self, S: float) -> tuple[float, float]:
        return self.inner.curve(S)

    def after_deficit(self, deficit: float, smallest: float) -> float:
        return self._lifted(self.inner.after_deficit(deficit, smallest))

    def after_surplus(self, surplus: float, largest: float) -> float:
        return self._lifted(self.inner.after_surplus(surplus, largest))

    def _lifted(self, p: float) -> float:
        return down(self.floor + (1.0 - 2.0 * self.floor) * p - 4 * UNIT)
