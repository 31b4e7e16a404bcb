"""The normalised set {u: low <= u <= high, |u|_p <= 1}: certified suprema (docs/maths/regions.md, B3, B4).

Powers are assumed exact to 32 ulp (R6); conjugate exponents are rounded, which costs a factor n^(4u) (B3).

At the end, a quadratic over all choices of few coordinates (Z3, section 4): with b_j <= the minimum of
the diagonal part over coordinate j, C_ij <= H_ij e_i e_j (both over the box), and e = 0 outside a support
T,

    g.e + e^T H e / 2 >= sum_{j in T} b_j + sum_{i < j in T} C_ij.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.regions import lowest
from gpcert.rounding import POWER, TINY, UNIT, gamma, norm_up, sum_up
from gpcert.validation import Float, Index, Mask

#: Coordinates below are taken for this: more room is sound, and its square is a normal number.
_LEAST_CAP = 1e-150


@dataclass(frozen=True, eq=False)
class UnitBall:
    """low <= u <= high, both (d,) within [-1, 1], and |u|_norm <= 1."""

    low: Float
    high: Float
    norm: float

    @property
    def rest(self) -> Float:
        """The point of the box nearest to 0 (d,)."""
        return np.asarray(np.clip(0.0, self.low, self.high))

    @property
    def caps(self) -> Float:
        """The largest |u_j| (d,)."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def is_empty(self) -> bool:
        """B1: True only if no point of the box is in the ball: |rest| > 1 for certain."""
        n = len(self.low)
        size = float(norm_up(self.rest, self.norm)) / (1.0 + 8.0 * gamma(n + 400)) - 2.0 * TINY
        return bool((self.low > self.high).any() or size > 1.0)

    def restricted(self, free: Mask) -> UnitBall:
        """The set on some coordinates: the projection of the whole lies in it."""
        return UnitBall(self.low[free], self.high[free], self.norm)

    def support(self, rows: Float) -> Float:
        """B3: at least sup rows_i . u (n,): Hoelder on the slopes whose side has room, or the box."""
        room_up, room_down = np.maximum(self.high, 0.0), np.maximum(-self.low, 0.0)
        rising, falling = np.maximum(rows, 0.0), np.maximum(-rows, 0.0)
        slopes = rising * (room_up > 0) + falling * (room_down > 0)
        box = (rising @ room_up + falling @ room_down) * (1.0 + 2.0 * gamma(2 * rows.shape[-1] + 8)) + TINY
        return np.asarray(np.minimum(box, norm_up(slopes, conjugate(self.norm))))

    def square(self, weights: Float) -> float:
        """B4: at least sup sum_j weights_j u_j^2, for weights (d,) >= 0."""
        caps, p = np.maximum(self.caps, _LEAST_CAP), self.norm
        if p > 2.0:
            hoelder = float(norm_up(weights, p / (p - 2.0)))
            return min(hoelder, sum_up(weights * caps * caps))
        slopes, room = weights * caps ** (2.0 - p), caps**p
        threshold = _filled(slopes, room, 1.0)
        total = threshold + sum_up(np.maximum(slopes - threshold, 0.0) * room)
        return total * (1.0 + 4.0 * POWER) + TINY

    def least(self, gradient: Float, penalty: Float | None = None) -> float:
        """B3: at most min gradient . u - penalty . |u|; a penalty (d,) >= 0 only for norm 1."""
        if self.norm == 1.0:
            return self._least_of_kinks(gradient, np.zeros_like(gradient) if penalty is None else penalty)
        p, low, high = self.norm, self.low, self.high
        u = lowest(gradient, low, high, p)
        size = np.abs(u)
        loose = (u > low) & (u < high) & (size > 0)
        multiplier = 0.0
        if loose.any():
            j = int(np.argmax(np.where(loose, size, 0.0)))
            multiplier = float(abs(gradient[j]) / (p * size[j] ** (p - 1.0)))
        price = multiplier * size**p
        pull = multiplier * p * size ** (p - 1.0)
        slope = gradient + np.sign(u) * pull
        ends = np.minimum(slope * (low - u), slope * (high - u))
        terms = gradient * u + price + ends
        error = (np.abs(gradient) + pull) * 8.0 + price
        slack = 4.0 * (POWER + gamma(len(u) + 16)) * (float(error.sum()) + multiplier) + TINY
        value = float(terms.sum()) - multiplier - slack
        box = -sum_up(np.maximum(-np.minimum(gradient * low, gradient * high), 0.0)) * (1.0 + 4 * UNIT)
        return max(value, box) if np.isfinite(value) else box

    def multiplier(self, gradient: Float, penalty: float | Float = 0.0) -> float:
        """norm 1: a good multiplier of |u|_1 <= 1 for the linear function; any is sound."""
        up, down = (
            np.where(self.high > 0, penalty - gradient, -np.inf),
            np.where(self.low < 0, penalty + gradient, -np.inf),
        )
        slopes, rest = np.maximum(np.maximum(up, down), 0.0), np.abs(self.rest)
        room = np.maximum(np.where(up >= down, self.high, -self.low) - rest, 0.0)
        return _filled(slopes, room, 1.0 - float(rest.sum()))

    def _least_of_kinks(self, gradient: Float, penalty: Float) -> float:
        """norm 1: piecewise linear with a kink at 0, so smallest at an end or at the rest."""
        low, high, rest = self.low, self.high, self.rest
        multiplier = self.multiplier(gradient, penalty)
        steeper = multiplier - penalty
        terms = np.minimum.reduce([gradient * u + steeper * np.abs(u) for u in (low, high, rest)])
        size = float((np.abs(gradient) + penalty).sum()) + (len(low) + 1) * multiplier
        value = float(terms.sum()) - multiplier
        return value - 4.0 * gamma(len(low) + 16) * size - TINY


def conjugate(p: float) -> float:
    """The exponent q with 1/p + 1/q = 1, to one rounding."""
    return np.inf if p == 1.0 else p / (p - 1.0)


def _filled(slopes: Float, room: Float, budget: float) -> float:
    """The slope at which the budget is spent, coordinates taken by falling slope; 0 if it never is."""
    order = np.argsort(-slopes)
    spent = np.cumsum(room[order])
    full = np.flatnonzero(spent >= budget)
    return float(slopes[order[full[0]]]) if full.size else 0.0


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
