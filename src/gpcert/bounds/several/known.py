"""What was proved on boxes of one search: it holds on their parts, where it need not be asked again."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from gpcert.validation import Float, Mask

#: Boxes that are remembered.
_KEPT = 256


@dataclass(eq=False)
class Known:
    """The last boxes of one region, each with what holds at every point of the region in it."""

    boxes: deque[tuple[Float, Float, Mask]] = field(default_factory=partial(deque, maxlen=_KEPT), repr=False)

    def on(self, lower: Float, upper: Float, *shape: int) -> Mask:
        """What holds on a box, a mask of this shape: all that holds on a box around it."""
        known = np.zeros(shape, dtype=bool)
        for low, high, what in self.boxes:
            if (low <= lower).all() and (upper <= high).all():
                known |= what
        return known

    def add(self, lower: Float, upper: Float, what: Mask) -> None:
        if what.any():
            self.boxes.append((lower, upper, what))
