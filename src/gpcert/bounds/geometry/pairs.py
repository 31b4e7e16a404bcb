"""A quadratic over all choices of few coordinates (docs/maths/regions.md, section 4).

Z3. With b_j <= the minimum of the diagonal part over coordinate j, C_ij <= H_ij e_i e_j (both over the box),
and e = 0 outside a support T of at most k coordinates,

    g.e + e^T H e / 2 >= sum_{j in T} b_j + sum_{i < j in T} C_ij.

`survivors` finds the supports for which that is below a target, level by level, vectorised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.rounding import TINY, gamma
from gpcert.validation import Float, Index, Mask


@dataclass(frozen=True, eq=False)
class PairBound:
    """b (d,), C (d, d) with zero diagonal, `forced` coordinates in every support, `count` further ones."""

    b: Float
    C: Float
    forced: Mask
    count: int
    error: float  #: rounding of any sum of them

    def _start(self) -> tuple[float, Float]:
        """The sum over the forced coordinates, and what each other one adds to it alone (d,)."""
        own, others = np.flatnonzero(self.forced), self.C[:, self.forced]
        # Row by row: no sum has more than d terms, which is what `error` counts.
        total = float(self.b[own].sum()) + 0.5 * float(others[own].sum(axis=1).sum())
        gain = self.b + others.sum(axis=1)
        return total, np.where(self.forced, np.inf, gain)

    def _shared(self, partners: int) -> Float:
        """Half of the smallest sums of C_ij over so many partners that are not forced (d,), <= 0."""
        if partners <= 0:
            return np.zeros(len(self.b))
        free = np.where(self.forced[None], 0.0, self.C)
        partners = min(partners, len(self.b))
        return np.asarray(0.5 * np.partition(free, partners - 1, axis=1)[:, :partners].sum(axis=1))

    def with_each(self) -> Float:
        """At most the quadratic over every support that holds j (d,); inf where no support does."""
        total, gain = self._start()
        if self.count <= 0:
            return np.where(self.forced, total - self.error, np.inf)
        gain = gain + self._shared(self.count - 1)
        smallest = np.sort(np.minimum(gain, 0.0))
        rest = float(smallest[: self.count - 1].sum())
        everywhere = (
            total + rest + min(float(smallest[self.count - 1]) if self.count <= len(gain) else 0.0, 0.0)
        )
        return np.where(self.forced, everywhere, total + gain + rest) - self.error

    def least(self) -> float:
        """At most the quadratic over every support."""
        total, gain = self._start()
        gain = np.sort(np.minimum(gain + self._shared(self.count - 1), 0.0))
        return total + float(gain[: self.count].sum()) - self.error

    def survivors(self, target: float, candidates: Mask, limit: int) -> Index | None:
        """The supports (m, count), without the forced ones, that may lie below the target; None: too many."""
        total, gain = self._start()
        names = np.flatnonzero(candidates & ~self.forced)
        depth = min(self.count, len(names))
        chosen = np.zeros((1, 0), dtype=np.intp)
        sums, gains = np.array([total]), gain[names][None]
        C = self.C[np.ix_(names, names)]
        for level in range(depth):
            left = depth - level  # still to choose, this one included
            add = gains + self._shared(left - 1)[names]
            rest = np.sort(np.minimum(add, 0.0), axis=1)[:, : left - 1].sum(axis=1)
            last = chosen[:, -1] if level else np.full(1, -1)
            place = np.arange(len(names))
            # In rising order; enough candidates must remain for the rest of the support.
            fits = (place[None] > last[:, None]) & (place[None] <= len(names) - left)
            low = ~(sums[:, None] + add + rest[:, None] - self.error >= target)  # NaN may lie anywhere
            rows, new = np.nonzero(fits & low)
            if len(rows) > limit:
                return None
            chosen = np.concatenate([chosen[rows], new[:, None]], axis=1)
            sums = sums[rows] + gains[rows, new]
            gains = gains[rows] + C[new]
        return names[chosen[~(sums - self.error >= target)]]


def pair_bound(g: Float, H: Float, low: Float, high: Float, forced: Mask, count: int) -> PairBound:
    """Z3 for coordinates in [low, high] (d,); 0 lies in it where a coordinate is not forced."""
    diagonal = np.diagonal(H)
    turning = np.where(diagonal > 0, -g / np.where(diagonal > 0, diagonal, 1.0), low)
    b: Float = np.minimum.reduce(
        [g * e + 0.5 * diagonal * e * e for e in (low, high, np.clip(turning, low, high))]
    )
    b = np.where(forced, b, np.minimum(b, 0.0))
    corners = [np.outer(u, v) * H for u in (low, high) for v in (low, high)]
    C: Float = np.asarray(np.minimum.reduce(corners))
    one_free = ~(forced[:, None] & forced[None])
    C = np.where(one_free, np.minimum(C, 0.0), C)
    np.fill_diagonal(C, 0.0)
    reach = np.maximum(np.abs(low), np.abs(high))
    sizes = np.abs(g) * reach + (np.abs(H) * np.outer(reach, reach)).max(axis=1) * (count + int(forced.sum()))
    largest = np.sort(sizes)[-(count + int(forced.sum()) + 1) :]
    error = 4.0 * gamma(len(g) + 40) * float(largest.sum()) + TINY
    return PairBound(b, C, forced, count, error)
