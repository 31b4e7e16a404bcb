"""What the bounds of a box have left of it: elsewhere the target is met (docs/maths/regions.md, B10)."""

from __future__ import annotations

import numpy as np

from gpcert.bounds.geometry.domain import Boxes, Domain, Shape, divided
from gpcert.bounds.geometry.remnant import Remnant
from gpcert.bounds.interface import Certified
from gpcert.validation import Float

#: What is left is looked at whole, not halved, where its diagonal is at most this share of the box's.
_SHORT = 0.5


class Left:
    """[lower, upper] (d,), raw units: a part of the box asked about, on whose rest the target is met.

    `part`: whether bounds are of less than the box.
    """

    def __init__(self, lower: Float, upper: Float) -> None:
        self.lower, self.upper = lower, upper
        self._whole = lower, upper
        self.part = False

    @property
    def _shorter(self) -> bool:
        lower, upper = self._whole
        return not (np.array_equal(self.lower, lower) and np.array_equal(self.upper, upper))

    def share(self, lengthscale: Float) -> float:
        """Of the box's diagonal, in lengthscales, what that of the part has."""
        (lower, upper), length = self._whole, lengthscale
        whole = float(np.linalg.norm((upper - lower) / length))
        return float(np.linalg.norm((self.upper - self.lower) / length)) / whole if whole > 0.0 else 1.0

    def shorten(self, lower: Float, upper: Float) -> None:
        """To [lower, upper], which lies inside."""
        self.lower, self.upper, self.part = lower, upper, True

    def take(self, part: Domain, reference: Float, lengthscale: Float) -> None:
        """To a remnant that was seen from `reference` (d,); other sets change nothing."""
        if isinstance(part, Remnant):
            self.shorten(*part.shortened(reference, lengthscale, self.lower, self.upper))

    def proved(self, found: Certified, target: float) -> Certified:
        """Of the whole box what is proved of the part: elsewhere no more than the target is known."""
        return found._replace(value=min(found.value, target)) if self.part else found

    def divided(self, found: Certified, shape: Shape, lengthscale: Float, target: float) -> Certified:
        """With the boxes to look at next: what is left, or parts of it."""
        j, box = found.split, (self.lower, self.upper)
        if not self._shorter or not shape.capped:  # a proof file can tell how halves came about
            return found._replace(pieces=shape.parts(*self._whole, j), elsewhere=np.inf)
        pieces: Boxes | None = (box,)
        if not 0.0 < self.share(lengthscale) <= _SHORT:
            j = j if self.lower[j] < self.upper[j] else int(np.argmax((box[1] - box[0]) / lengthscale))
            pieces = shape.parts(*box, j) or divided(*box, j, (0.5 * box[0][j] + 0.5 * box[1][j],))
        return found if pieces is None else found._replace(pieces=pieces, elsewhere=target)
