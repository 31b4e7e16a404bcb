"""Quadratics over boxes, many at once: Q2 with a dual in closed form (docs/maths/batches.md, J6 and J7).

Everything up to the choice of D and y is in float32 and certifies nothing: any y, and any D with H + D >=
0, is sound. That is verified, by a Frobenius norm or a Cholesky factorisation, and the value evaluated in
doubles.
"""

from __future__ import annotations

import math

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
#: Share of the slack that D may spend.
_SPENT = 0.9


def lower_bounds(
    backend: Backend, g: Array, H: Array, low: Array, high: Array, need: Array, tries: int, best: bool = False
) -> Array:
    """Lower bounds (N,) of g.d + d^T H d / 2 over [low, high]; work ends at `need` (N,). -inf: nothing found.
    `best`: with the best diagonals where J6's do not suffice.

    H (N, d, d) is symmetric to the last bit.
    """
    xp = backend.xp
    few = Choices(backend, *(backend.single(each) for each in (g, H, low, high)))
    y, lam = few.local_minimiser()
    mult = few.multipliers(y, lam)
    slack = 0.5 * xp.sum((few.g + lam) * y, axis=1) - backend.single(need)
    delta = few.largest_shift(mult, y, _SPENT * slack)
    found = need * 0.0 - math.inf
    left = xp.nonzero(slack > 0)[0]
    D = backend.double(xp.maximum(mult, delta[:, None]))
    if len(left):
        rows = left[xp.nonzero(dominated(backend, H[left], D[left]))[0]]
        found[rows] = dual(backend, g[rows], H[rows], D[rows], backend.double(y[rows]), low[rows], high[rows])
        left = left[xp.nonzero(~(found[left] >= need[left]))[0]]
    below, above = delta * 0.0, delta * 0.0 + math.inf
    for attempt in range(tries):
        if not len(left):
            break
        part = few.take(left)
        shift = delta[left][:, None]
        if attempt:
            weak = part.weak_direction(xp.maximum(mult[left], shift))
            shift = shift * (0.6 + 0.4 * weak) * (1.2 if attempt == 1 else 1.0)
        shifted = xp.maximum(mult[left], shift)
        ok, value = _verified(backend, part, g[left], H[left], shifted, y[left], low[left], high[left])
        found[left] = xp.maximum(found[left], value)
        now = delta[left]
        below[left] = xp.where(ok, below[left], now)
        above[left] = xp.where(ok, now, above[left])
        between = xp.sqrt(xp.clip(below[left], 1e-3, None) * above[left])
        delta[left] = xp.where(above[left] < math.inf, between, 1.7 * now)
        left = left[xp.nonzero(~(found[left] >= need[left]))[0]]
    if best and len(left):
        rows = tuple(each[left] for each in (g, H, low, high, need))
        found[left] = xp.maximum(found[left], _best(backend, *rows))
    return found


def _verified(
    backend: Backend, few: Choices, g: Array, H: Array, D: Array, y: Array, low: Array, high: Array
) -> tuple[Array, Array]:
    """Whether H + D' >= 0 is certain (N,) for a D' next to D, and Q2 there; -inf where it is not."""
    y = backend.double(few.convex_minimiser(D, y))
    return _value(backend, (g, H, low, high), backend.double(D), y)


def _value(backend: Backend, rows: tuple[Array, ...], D: Array, y: Array) -> tuple[Array, Array]:
    """The same for the y that is given."""
    g, H, low, high = rows
    ok, D = backend.definite(H, D)
    value = dual(backend, g, H, D, y, low, high)
    return ok, backend.xp.where(ok & (value > -math.inf), value, D[:, 0] * 0.0 - math.inf)


def _best(backend: Backend, g: Array, H: Array, low: Array, high: Array, need: Array) -> Array:
    """The same (N,) with the best diagonals, of what Q1 leaves free."""
    xp, d = backend.xp, g.shape[1]
    point, free, moved = _settled_faces(backend, g, H, low, high)
    turned = (H @ point[:, :, None])[:, :, 0]
    constant = xp.sum((g + 0.5 * turned) * point, axis=1)
    scale = xp.abs(g) + (xp.abs(H) @ xp.abs(point)[:, :, None])[:, :, 0]
    lost = 2.0 * gamma(2 * d + 20) * xp.sum(scale * xp.maximum(-low, high), axis=1) + moved + UNDERFLOW
    g, H, low, high = _block(backend, free, g + turned, H, low, high)
    D, y = best_duals(backend, g, H, low, high, need - constant + lost)
    value = _value(backend, (g, H, low, high), D, y)[1]
    return constant + value - lost - 8 * UNIT * (xp.abs(constant) + xp.abs(value) + lost)


def _block(
    backend: Backend, free: Array, g: Array, H: Array, low: Array, high: Array
) -> tuple[Array, Array, Array, Array]:
    """The quadratics in the free coordinates alone, as many as any row has; zeros where it has fewer."""
    xp = backend.xp
    most = max(int(xp.max(xp.sum(free, axis=1))), 1)
    first = xp.argsort(-free, axis=1)[:, :most]
    row = backend.arange(len(g))[:, None]
    mask = free[row, first]
    block = H[row[:, :, None], first[:, :, None], first[:, None, :]] * mask[:, :, None] * mask[:, None, :]
    return g[row, first] * mask, block, low[row, first] * mask, high[row, first] * mask


def _settled_faces(
    backend: Backend, g: Array, H: Array, low: Array, high: Array
) -> tuple[Array, Array, Array]:
    """Q1 repeated: points (N, d) with the settled coordinates at their ends, 0 in the free ones, of which the
    second (N, d) has 1; and what is lost (N,) by putting narrow ones to an end.
    """
    xp = backend.xp
    reach, width = xp.maximum(-low, high), high - low
    positive, negative = xp.clip(H, 0.0, None), xp.clip(H, None, 0.0)
    steepest = xp.abs(g) + (xp.abs(H) @ reach[:, :, None])[:, :, 0]
    slack = gamma(4 * g.shape[1] + 20) * steepest + UNDERFLOW
    free = ~(width <= _NARROW)
    moved = 2.0 * xp.sum(xp.where(free, width * 0.0, steepest * width), axis=1)
    bottom, top = low, xp.where(free, high, low)
    for _ in range(_FACES):
        a, b = bottom[:, :, None], top[:, :, None]
        falls = free & (g + (positive @ a + negative @ b)[:, :, 0] - slack >= 0)
        rises = free & (g + (positive @ b + negative @ a)[:, :, 0] + slack <= 0) & ~falls
        if not bool(xp.any(falls | rises)):
            break
        top, bottom = xp.where(falls, low, top), xp.where(rises, high, bottom)
        free = free & ~(falls | rises)
    return xp.where(free, low * 0.0, bottom), backend.double(free), moved


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


def dual(backend: Backend, g: Array, H: Array, D: Array, y: Array, low: Array, high: Array) -> Array:
    """Q2 at y with D (N,), rounded down: sound if H + diag(D) >= 0."""
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
    return xp.sum(terms, axis=1) - gamma(4 * d + 80) * size * 1.01 - UNDERFLOW


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
