"""Quadratics over boxes, many at once: Q2 with a dual in closed form (docs/maths/batches.md, J6 and J7).

Everything up to the choice of D and y is in float32 and certifies nothing: any y, and any D with H + D >=
0, is sound. That is verified, by a Frobenius norm or a Cholesky factorisation, and the value evaluated in
doubles.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gpcert.engine.backend import Array, Backend
from gpcert.engine.barrier import best_duals
from gpcert.rounding import UNDERFLOW, UNIT, gamma

#: Steps for a local minimiser, and for the minimiser of the convexified quadratic.
_STEPS, _AGAIN = 12, 10
#: Rounds of Q1.
_FACES = 16
#: Matrices of doubles that a row takes, without and with the best diagonals.
MATRICES = 5.0, 20.0
#: Features that move by less, in lengthscales, are put to one end: D would have to be larger than any other.
_NARROW = 1e-30
#: Free features up to which diagonals come from the negative part of H (J30): beyond, from the barrier.
_FEW = 24
#: What such a diagonal has above the smallest that makes H + D >= 0, as a share of the trace: to be verified.
_ROOM = 1e-12
#: Share of a certain deficit that a bound may lose besides.
_PART = 0.05
#: Share of the slack that D may spend.
_SPENT = 0.9


class Minima(NamedTuple):
    """Of quadratics over boxes: `value` (N,) <= the minimum, -inf: nothing found; `point` (N, d): about where
    the relaxation is smallest; J30: on the box the quadratic is at least value + sum_j |slopes_j| s_j +
    D_j s_j (width_j - s_j) / 2, s_j the distance from low_j where slopes_j >= 0, from high_j where it is < 0;
    both (N, d), zeros where nothing is known.
    """

    value: Array
    point: Array
    slopes: Array
    D: Array

    def keep(self, xp: Any, rows: Array, found: Minima) -> None:
        """What was found of some rows, where it is better."""
        better = found.value > self.value[rows]
        for mine, new in zip(self, found, strict=True):
            chosen = better if new.ndim == 1 else better[:, None]
            mine[rows] = xp.where(chosen, new, mine[rows])


def minima(
    backend: Backend, g: Array, H: Array, low: Array, high: Array, need: Array, tries: int, best: int = 0
) -> Minima:
    """Of g.d + d^T H d / 2 over [low, high], which need not hold 0; work ends at `need` (N,). `best`: with
    better diagonals where J6's do not suffice; 1: if a local minimum is above `need`, 2: always.

    H (N, d, d) is symmetric to the last bit.
    """
    xp = backend.xp
    few = Choices(backend, *(backend.single(each) for each in (g, H, low, high)))
    y, lam = few.local_minimiser()
    mult = few.multipliers(y, lam)
    slack = 0.5 * xp.sum((few.g + lam) * y, axis=1) - backend.single(need)
    delta = few.largest_shift(mult, y, _SPENT * slack)
    found = Minima(need * 0.0 - math.inf, backend.double(y), g * 0.0, g * 0.0)
    left = xp.nonzero(slack > 0)[0]
    D = backend.double(xp.maximum(mult, delta[:, None]))
    if len(left):
        rows = left[xp.nonzero(dominated(backend, H[left], D[left]))[0]]
        found.keep(
            xp,
            rows,
            dual(backend, g[rows], H[rows], low[rows], high[rows], D[rows], backend.double(y[rows])),
        )
        left = left[xp.nonzero(~(found.value[left] >= need[left]))[0]]
    below, above = delta * 0.0, delta * 0.0 + math.inf
    for attempt in range(tries):
        if not len(left):
            break
        chosen = few.take(left)
        shift = delta[left][:, None]
        if attempt:
            weak = chosen.weak_direction(xp.maximum(mult[left], shift))
            shift = shift * (0.6 + 0.4 * weak) * (1.2 if attempt == 1 else 1.0)
        shifted = backend.double(xp.maximum(mult[left], shift))
        z = backend.double(chosen.convex_minimiser(backend.single(shifted), y[left]))
        ok, value = _verified(backend, (g[left], H[left], low[left], high[left]), shifted, z)
        found.keep(xp, left, value)
        now = delta[left]
        below[left] = xp.where(ok, below[left], now)
        above[left] = xp.where(ok, now, above[left])
        between = xp.sqrt(xp.clip(below[left], 1e-3, None) * above[left])
        delta[left] = xp.where(above[left] < math.inf, between, 1.7 * now)
        left = left[xp.nonzero(~(found.value[left] >= need[left]))[0]]
    if best == 2:
        left = xp.nonzero(~(found.value >= need))[0]
        # Where the need is out of reach, nearly all that there is.
        least = need + backend.double(slack)
        need = xp.where(slack > 0, need, least - _PART * (need - least))
    if best and len(left):
        found.keep(xp, left, _best(backend, *(each[left] for each in (g, H, low, high, need))))
    return found


def _verified(backend: Backend, rows: tuple[Array, ...], D: Array, y: Array) -> tuple[Array, Minima]:
    """Whether H + D' >= 0 is certain (N,) for a D' next to D, and Q2 there; -inf where it is not."""
    g, H, low, high = rows
    ok, D = backend.definite(H, D)
    found = dual(backend, g, H, low, high, D, y)
    sure = ok & (found.value > -math.inf)
    return ok, found._replace(value=backend.xp.where(sure, found.value, D[:, 0] * 0.0 - math.inf))


def _best(backend: Backend, g: Array, H: Array, low: Array, high: Array, need: Array) -> Minima:
    """The same with better diagonals, of what Q1 leaves free."""
    xp, d = backend.xp, g.shape[1]
    point, free, moved, slopes = _settled_faces(backend, g, H, low, high)
    turned = (H @ point[:, :, None])[:, :, 0]
    constant = xp.sum((g + 0.5 * turned) * point, axis=1)
    scale = xp.abs(g) + (xp.abs(H) @ xp.abs(point)[:, :, None])[:, :, 0]
    ends = xp.maximum(xp.abs(low), xp.abs(high))
    lost = 2.0 * gamma(2 * d + 20) * xp.sum(scale * ends, axis=1) + moved + UNDERFLOW
    places, g, H, low, high = _block(backend, free, g + turned, H, low, high)
    mask = low < high
    # A power of two per coordinate makes them comparable without any rounding.
    half = xp.where(mask, xp.clip(0.5 * (high - low), _NARROW, None), low * 0.0 + 1.0)
    unit = half / xp.frexp(half)[0]
    H = H * unit[:, :, None] * unit[:, None, :]
    g, low, high = g * unit, low / unit, high / unit
    if g.shape[1] <= _FEW:
        D, y = _shifted(backend, g, H, low, high)
    else:
        D, y = best_duals(backend, g, H, low, high, need - constant + lost)
    part = _verified(backend, (g, H, low, high), D, y)[1]
    value = constant + part.value - lost - 8 * UNIT * (xp.abs(constant) + xp.abs(part.value) + lost)
    own = part.point * unit, part.slopes / unit, part.D / (unit * unit)
    row, whole = backend.arange(len(g))[:, None], [point + 0.0, slopes + 0.0, slopes * 0.0]
    for each, inside in zip(whole, own, strict=True):
        each[row, places] = xp.where(mask, inside, each[row, places])
    return Minima(value, *whole)


def _shifted(backend: Backend, g: Array, H: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """J30: diagonals D (N, d) from the negative part of H, and about the minimiser y (N, d) with it."""
    xp, d = backend.xp, g.shape[1]
    half = xp.where(high > low, 0.5 * (high - low), low * 0.0 + 1.0)
    few = Choices(backend, *(backend.single(each) for each in (g, H, low, high)))
    y, lam = few.local_minimiser()
    scaled = H * half[:, :, None] * half[:, None, :]
    known = xp.isfinite(xp.sum(xp.abs(scaled), axis=(1, 2)))  # else eigenvalues do not converge
    scaled = xp.where(known[:, None, None], scaled, xp.zeros_like(scaled))
    own = xp.reshape(scaled, (len(H), d * d))[:, :: d + 1]
    cost = (1.0 + backend.double(2.0 * xp.abs(y - few.low) / (few.high - few.low + _NARROW) - 1.0)) ** 2
    mult = backend.double(few.multipliers(y, lam)) * half * half
    first = xp.minimum(_negative_part(backend, scaled, cost), mult)
    first = xp.where(xp.isfinite(first), first, xp.zeros_like(first))  # where single precision overflows
    own += first
    D = first + _negative_part(backend, scaled, cost)
    trace = xp.sum(xp.abs(own) + D, axis=1)[:, None]
    trace = xp.where(trace > 0, trace, trace * 0.0 + 1.0)
    D = xp.where(high > low, (D + _ROOM * trace) / (half * half), trace)
    return D, backend.double(few.convex_minimiser(backend.single(D), y))


def _negative_part(backend: Backend, H: Array, cost: Array) -> Array:
    """About the cheaper of J30's shift and of the smallest eigenvalue (N, d); H (N, d, d) over [-1, 1]^d."""
    xp = backend.xp
    values, vectors = xp.linalg.eigh(H)
    lowest = xp.clip(values, None, 0.0)
    part = xp.sum(xp.abs((vectors * -lowest[:, None, :]) @ backend.transposed(vectors)), axis=2)
    flat = part * 0.0 - lowest[:, :1]
    cheaper = xp.sum(part * cost, axis=1) < xp.sum(flat * cost, axis=1)
    return xp.where(cheaper[:, None], part, flat)


def _block(
    backend: Backend, free: Array, g: Array, H: Array, low: Array, high: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Which coordinates are free, as many as any row has, and the quadratics in these alone; zeros where a
    row has fewer.
    """
    xp = backend.xp
    most = max(int(xp.max(xp.sum(free, axis=1))), 1)
    first = xp.argsort(-free, axis=1)[:, :most]
    row = backend.arange(len(g))[:, None]
    mask = free[row, first]
    block = H[row[:, :, None], first[:, :, None], first[:, None, :]] * mask[:, :, None] * mask[:, None, :]
    return first, g[row, first] * mask, block, low[row, first] * mask, high[row, first] * mask


def _settled_faces(
    backend: Backend, g: Array, H: Array, low: Array, high: Array
) -> tuple[Array, Array, Array, Array]:
    """Q1 repeated: points (N, d) with the settled coordinates at their ends, 0 in the free ones, of which the
    second (N, d) has 1; what is lost (N,) by putting narrow ones to an end; and the slopes of Q3 (N, d).
    """
    xp = backend.xp
    reach, width = xp.maximum(xp.abs(low), xp.abs(high)), high - low
    positive, negative = xp.clip(H, 0.0, None), xp.clip(H, None, 0.0)
    steepest = xp.abs(g) + (xp.abs(H) @ reach[:, :, None])[:, :, 0]
    slack = gamma(4 * g.shape[1] + 20) * steepest + UNDERFLOW
    free = ~(width <= _NARROW)
    moved = 2.0 * xp.sum(xp.where(free, width * 0.0, steepest * width), axis=1)
    bottom, top, slopes = low, xp.where(free, high, low), low * 0.0
    for _ in range(_FACES):
        a, b = bottom[:, :, None], top[:, :, None]
        least = g + (positive @ a + negative @ b)[:, :, 0] - slack
        most = g + (positive @ b + negative @ a)[:, :, 0] + slack
        falls = free & (least >= 0)
        rises = free & (most <= 0) & ~falls
        if not bool(xp.any(falls | rises)):
            break
        slopes = xp.where(falls, least, xp.where(rises, most, slopes))
        top, bottom = xp.where(falls, low, top), xp.where(rises, high, bottom)
        free = free & ~(falls | rises)
    return xp.where(free, low * 0.0, bottom), backend.double(free), moved, slopes


def dominated(backend: Backend, H: Array, D: Array) -> Array:
    """J7: H + diag(D) >= 0, because the rest of a^{-1/2} H a^{-1/2}, a = D + diag H > 0, has Frobenius
    norm < 1.
    """
    xp, d = backend.xp, H.shape[1]
    diagonal = xp.reshape(H, (len(H), d * d))[:, :: d + 1]
    a = (D + diagonal) - 4.0 * gamma(4) * (D + xp.abs(diagonal))
    positive = xp.all(a > 0, axis=1)
    inverse = 1.0 / xp.where(a > 0, a, a * 0.0 + 1.0)
    squares = xp.sum(((H * H) @ inverse[:, :, None])[:, :, 0] * inverse, axis=1)
    own = xp.sum((diagonal * inverse) ** 2, axis=1)
    room = 4.0 * gamma(2 * d + 16) * (squares + own)
    return positive & (squares - own + room <= 0.999)


def dual(backend: Backend, g: Array, H: Array, low: Array, high: Array, D: Array, y: Array) -> Minima:
    """Q2 at y with D, rounded down: sound if H + diag(D) >= 0."""
    xp, d = backend.xp, H.shape[1]
    c = g - 0.5 * D * (low + high)
    Hy = (H @ y[:, :, None])[:, :, 0]
    slope = c + Hy + D * y
    terms = 0.5 * (c + slope) * y + 0.5 * D * low * high + xp.minimum(slope * (low - y), slope * (high - y))
    ends = xp.maximum(xp.abs(low), xp.abs(high))
    reach = 2.0 * (xp.abs(y) + ends)
    norm = xp.sqrt(xp.sum(H * H, axis=(1, 2)))
    size = xp.sum((xp.abs(g) + 2.0 * D * (ends + xp.abs(y))) * reach, axis=1)
    size = size + norm * xp.sqrt(xp.sum(y * y, axis=1)) * xp.sqrt(xp.sum(reach * reach, axis=1))
    value = xp.sum(terms, axis=1) - gamma(4 * d + 80) * size * 1.01 - UNDERFLOW
    return Minima(value, xp.minimum(xp.maximum(y, low), high), slope, D)


def remnants(xp: Any, low: Array, high: Array, found: Minima) -> tuple[Array, Array, Array, Array]:
    """J30: boxes (N, d) outside of which a quadratic over [low, high] with these minima, less than 0, is not
    negative; and per coordinate a hole (from, to), where it is not negative either: NaN where there is none.
    """
    width, steep, D = high - low, xp.abs(found.slopes), found.D
    lack = xp.clip(-found.value, 0.0, None)[:, None] * (1.0 + 64 * UNIT)
    b = (steep + 0.5 * D * width) * (1.0 - 16 * UNIT)
    square = b * b * (1.0 - 16 * UNIT) - 2.0 * D * lack * (1.0 + 16 * UNIT)
    root = xp.sqrt(xp.clip(square, 0.0, None)) * (1.0 - 16 * UNIT)
    roots, nothing = square > 0, width * 0.0 + float("inf")
    near = xp.where(roots, 2.0 * lack / (b + root) * (1.0 + 64 * UNIT), nothing)
    far = xp.where(roots & (D > 0), (b + root) / D * (1.0 - 64 * UNIT), nothing)
    near = xp.where(near == near, near, nothing)
    margin = 8 * UNIT * (xp.abs(low) + xp.abs(high)) + UNDERFLOW
    up, short = found.slopes >= 0, near + margin < width
    whole = short & (steep * width * (1.0 - 64 * UNIT) >= lack)
    below = xp.where(whole & ~up, high - near - margin, low)
    above = xp.where(whole & up, low + near + margin, high)
    hole = short & ~whole & (near + 2.0 * margin < far) & (far < width)
    start = xp.where(up, low + near, high - far) + margin
    stop = xp.where(up, low + far, high - near) - margin
    none = nothing - nothing
    return below, above, xp.where(hole, start, none), xp.where(hole, stop, none)


class Choices:
    """The same quadratics in float32, to choose D and y by."""

    def __init__(self, backend: Backend, g: Array, H: Array, low: Array, high: Array) -> None:
        self._backend, self.xp = backend, backend.xp
        self.g, self.H, self.low, self.high = g, H, low, high
        self._norm = self.xp.sqrt(self.xp.sum(H * H, axis=(1, 2)))[:, None]

    def take(self, rows: Array) -> Choices:
        """Those of some rows."""
        return Choices(self._backend, self.g[rows], self.H[rows], self.low[rows], self.high[rows])

    def _times(self, y: Array) -> Array:
        return (self.H @ y[:, :, None])[:, :, 0]

    def _inside(self, y: Array) -> Array:
        return self.xp.minimum(self.xp.maximum(y, self.low), self.high)

    def local_minimiser(self) -> tuple[Array, Array]:
        """About a local minimiser (N, d), and the gradient there: projected steps of Barzilai and Borwein."""
        return self._descend(
            self.g * 0.0, self.g * 0.0, self.g, 3.0 / self.xp.clip(self._norm, 1e-30, None), _STEPS
        )

    def convex_minimiser(self, D: Array, y: Array) -> Array:
        """About the minimiser (N, d) of the quadratic with H + D and Q2's linear part, from y on."""
        c = self.g - 0.5 * D * (self.low + self.high)
        largest = self.xp.max(D, axis=1)[:, None]
        return self._descend(D, y, c, 1.0 / self.xp.clip(0.3 * self._norm + largest, 1e-30, None), _AGAIN)[0]

    def penalised_minimiser(self, D: Array, o: Array, y: Array, steps: int) -> Array:
        """About the minimiser (N, d) over the boxes of the quadratic plus D (d - o)^2 / 2, from y on."""
        largest = self.xp.max(D, axis=1)[:, None]
        step = 1.0 / self.xp.clip(0.3 * self._norm + largest, 1e-30, None)
        return self._descend(D, self._inside(y), self.g - D * o, step, steps)[0]

    def _descend(self, D: Array, y: Array, c: Array, step: Array, steps: int) -> tuple[Array, Array]:
        xp = self.xp
        slope = c + self._times(y) + D * y
        for _ in range(steps):
            moved = self._inside(y - step * slope)
            turned = c + self._times(moved) + D * moved
            dy, change = moved - y, turned - slope
            bend, size = xp.sum(dy * change, axis=1)[:, None], xp.sum(dy * dy, axis=1)[:, None]
            step = xp.where(bend > 1e-14 * size, size / xp.clip(bend, 1e-30, None), 1.5 * step)
            y, slope = moved, turned
        return y, slope

    def multipliers(self, y: Array, lam: Array) -> Array:
        """J6: 2 |lambda_j| / width_j at the ends (N, d): with H + diag(.) >= 0 Q2 is exact."""
        xp = self.xp
        width = self.high - self.low
        near = 1e-5 * width
        pull = xp.where(y <= self.low + near, lam, xp.where(y >= self.high - near, -lam, lam * 0.0))
        return xp.where(width > _NARROW, 2.0 * xp.clip(pull, 0.0, None) / xp.clip(width, _NARROW, None), 0.0)

    def largest_shift(self, mult: Array, y: Array, slack: Array) -> Array:
        """delta (N,): D = max(mult, delta) costs the slack at y, sum_j (delta - mult_j)_+ m_j (Newton's
        method).
        """
        xp = self.xp
        m = 0.5 * xp.maximum(y - self.low, self.high - y) ** 2
        slack = xp.clip(slack, 0.0, None)
        delta = slack / xp.clip(xp.sum(m, axis=1), 1e-30, None) + xp.max(mult, axis=1)
        for _ in range(8):
            active = xp.where(delta[:, None] > mult, m, m * 0.0)
            delta = (slack + xp.sum(active * mult, axis=1)) / xp.clip(xp.sum(active, axis=1), 1e-30, None)
        return delta

    def weak_direction(self, D: Array) -> Array:
        """|e_j| / max |e| (N, d) of about the lowest eigenvector of H + diag(D)."""
        xp = self.xp
        D = xp.minimum(D, 4.0 * self._norm)
        largest = 0.6 * self._norm + xp.max(D, axis=1)[:, None]
        z = 1.0 / (1.0 + D)
        for _ in range(_AGAIN):
            z = z - (self._times(z) + D * z) / largest
            z = z / xp.clip(xp.sqrt(xp.sum(z * z, axis=1))[:, None], 1e-30, None)
        z = xp.abs(z)
        return z / xp.clip(xp.max(z, axis=1)[:, None], 1e-30, None)
