"""What a kernel owes to the rest: certified affine functionals of mean and variance around one reference.

Everything above (level curves, probabilities, latent ranges, the search) knows a kernel only through this.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from gpcert.bounds.geometry.domain import Domain
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
