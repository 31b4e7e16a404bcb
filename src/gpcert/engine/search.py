"""A point of small probability per row: vertices first, projected gradients where they do not settle.

In float32, on a sketch of the model. Any point is sound; a good one saves work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gpcert.engine.backend import Array
from gpcert.engine.balls import nearest
from gpcert.engine.facts import Facts
from gpcert.engine.values import Amplitudes

#: Steps from vertex to vertex, and projected ones; in balls, to the lowest points of tangents.
_VERTICES, _PROJECTED, _LOWEST = 4, 8, 5
#: A point so far away that the nearest one of a ball is the lowest of a tangent; a step of the lowest points
#: that ends the search.
_BEYOND, _TURNED = 1e6, 0.02


class Guide(Protocol):
    """What a search descends on, in float32."""

    @property
    def facts(self) -> Facts: ...

    def __call__(self, x: Array, rows: Array, sign: Array) -> tuple[Array, Array]: ...


@dataclass(frozen=True, eq=False)
class Objective:
    """mu / sqrt(noise + S), or mu alone where noise is None, in float32; `standing` (B, m): -z of the
    features that stand still and the centres of the sketch, or None.
    """

    facts: Facts
    noise: float | None
    standing: Array | None

    def __call__(self, x: Array, rows: Array, sign: Array) -> tuple[Array, Array]:
        """Values (N,) and gradients (N, d) at x (N, d); the standing features are those of `rows` (N,)."""
        facts, xp, model = self.facts, self.facts.backend.xp, self.facts.model
        _, Z, half, alpha, V, signs = facts.sketch
        e = x @ Z.T
        e -= half
        e -= 0.5 * xp.sum(x * x, axis=1)[:, None]
        if self.standing is not None:
            e += self.standing[rows]
        k, steep = facts.profile.both(xp, xp.clip(e, None, 0.0))
        k = k * model.variance
        mu = sign * (k @ alpha + model.mean)
        if self.noise is None:
            steep = steep * (model.variance * alpha)
            return mu, sign[:, None] * (steep @ Z - xp.sum(steep, axis=1)[:, None] * x)
        t = k @ V.T
        spread = xp.clip(model.prior - (t * t) @ signs, 0.0, None) + self.noise
        root = xp.sqrt(spread)
        t *= (mu / (spread * root))[:, None] * signs
        weights = t @ V
        weights += (sign / root)[:, None] * alpha
        weights *= steep
        weights *= model.variance
        return mu / root, weights @ Z - xp.sum(weights, axis=1)[:, None] * x


def objective(facts: Facts, around: Amplitudes, noise: float | None) -> Objective:
    """That of rows with these amplitudes."""
    if isinstance(around.value, float):
        return Objective(facts, noise, None)
    return Objective(facts, noise, facts.backend.single(facts.sketch.seen(around.exponent)))


@dataclass(eq=False)
class _Best:
    """The best point so far of every row (N, d), its value and gradient."""

    xp: object
    x: Array
    value: Array
    gradient: Array

    def offer(self, rows: Array, x: Array, value: Array, gradient: Array) -> None:
        """Take what is better; `rows` (m,) are those the offer is about."""
        better = value < self.value[rows]
        rows, x, value, gradient = rows[better], x[better], value[better], gradient[better]
        self.x[rows], self.value[rows], self.gradient[rows] = x, value, gradient


def descend(objective: Guide, low: Array, high: Array, sign: Array) -> Array:
    """Shares t (N, d) of [low, high], scaled coordinates: exactly 0 or 1 at the ends. sign (N,): of the
    side.
    """
    backend = objective.facts.backend
    xp = backend.xp
    a, b, sign = backend.single(low), backend.single(high), backend.single(sign)
    rows = backend.arange(len(a))
    # Features without data have zero gradient at the centre, a saddle: start a little beside it.
    tilt = [0.01 if j * 0x9E3779B1 & 0x10000 else -0.01 for j in range(a.shape[1])]
    x = 0.5 * (a + b) + backend.single(backend.array(tilt)) * (b - a)
    value, gradient = objective(x, rows, sign)
    best = _Best(xp, x + 0.0, value, gradient + 0.0)
    _visit_vertices(objective, best, a, b, sign, x, gradient)
    moving = xp.any(_vertex(xp, best.gradient, best.x, a, b) != best.x, axis=1)
    left = rows[moving]
    if len(left):
        _project(objective, best, a, b, sign, left)
    width = b - a
    share = backend.double((best.x - a) / xp.where(width > 0, width, width * 0.0 + 1.0))
    return xp.where(share <= 1e-6, share * 0.0, xp.where(share >= 1.0 - 1e-6, share * 0.0 + 1.0, share))


def _vertex(xp: object, gradient: Array, x: Array, a: Array, b: Array) -> Array:
    where = xp.where  # type: ignore[attr-defined]
    return where(gradient > 0, a, where(gradient < 0, b, x))


def _visit_vertices(
    objective: Guide, best: _Best, a: Array, b: Array, sign: Array, x: Array, gradient: Array
) -> None:
    """Each row until its vertex does not change any more."""
    backend = objective.facts.backend
    rows = backend.arange(len(a))
    for _ in range(_VERTICES):
        vertex = _vertex(backend.xp, gradient, x, a[rows], b[rows])
        moved = backend.xp.any(vertex != x, axis=1)
        rows, x = rows[moved], vertex[moved]
        if not len(rows):
            return
        value, gradient = objective(x, rows, sign[rows])
        best.offer(rows, x, value, gradient)


def _project(objective: Guide, best: _Best, a: Array, b: Array, sign: Array, rows: Array) -> None:
    """Steps of Barzilai and Borwein in units of the widths, projected onto the boxes."""
    xp = objective.facts.backend.xp
    a, b, sign = a[rows], b[rows], sign[rows]
    x, gradient = best.x[rows], best.gradient[rows]
    width = b - a
    inverse = xp.where(width > 0, 1.0 / xp.where(width > 0, width, width * 0.0 + 1.0), width * 0.0)
    length = 1.0 / xp.clip(xp.max(xp.abs(gradient * width), axis=1)[:, None], 1e-30, None)
    for _ in range(_PROJECTED):
        new = xp.minimum(xp.maximum(x - length * gradient * width * width, a), b)
        value, slope = objective(new, rows, sign)
        best.offer(rows, new, value, slope)
        moved, turned = (new - x) * inverse, (slope - gradient) * width
        bend, size = xp.sum(moved * turned, axis=1)[:, None], xp.sum(moved * moved, axis=1)[:, None]
        longer = xp.clip(size / xp.clip(bend, 1e-12, None), 1e-6, 1e6)
        length = xp.where(bend > 1e-12, longer, 2.0 * length)
        x, gradient = new, slope


def in_balls(objective: Guide, centre: Array, axes: Array, low: Array, high: Array, sign: Array) -> Array:
    """Units u (N, d), |u| <= 1, low <= u <= high, of points centre + axes u in scaled coordinates."""
    backend = objective.facts.backend
    xp = backend.xp
    c, h, a, b, sign = (backend.single(each) for each in (centre, axes, low, high, sign))
    a, b = xp.clip(a, -1.0, 0.0), xp.clip(b, 0.0, 1.0)

    def at(u: Array, rows: Array) -> tuple[Array, Array]:
        value, slope = objective(c[rows] + h[rows] * u, rows, sign[rows])
        return value, slope * h[rows]

    rows = backend.arange(len(c))
    tilt = [0.01 if j * 0x9E3779B1 & 0x10000 else -0.01 for j in range(c.shape[1])]
    u = nearest(xp, backend.single(backend.array(tilt)) + c * 0.0, a, b)
    value, gradient = at(u, rows)
    best = _Best(xp, u + 0.0, value, gradient + 0.0)
    for _ in range(_LOWEST):  # from one tangent's lowest point to the next
        far = _BEYOND / xp.clip(xp.max(xp.abs(gradient), axis=1), 1e-30, None)
        new = nearest(xp, -far[:, None] * gradient, a[rows], b[rows])
        value, gradient = at(new, rows)
        best.offer(rows, new, value, gradient)
        moved = xp.max(xp.abs(new - u), axis=1) > _TURNED
        rows, u, gradient = rows[moved], new[moved], gradient[moved]
        if not len(rows):
            break
    u, gradient = best.x[rows], best.gradient[rows]
    length = 1.0 / xp.clip(xp.max(xp.abs(gradient), axis=1), 1e-30, None)
    for _ in range(_PROJECTED if len(rows) else 0):  # steps of Barzilai and Borwein
        new = nearest(xp, u - length[:, None] * gradient, a[rows], b[rows])
        value, slope = at(new, rows)
        best.offer(rows, new, value, slope)
        bend, size = xp.sum((new - u) * (slope - gradient), axis=1), xp.sum((new - u) ** 2, axis=1)
        length = xp.where(bend > 1e-12, xp.clip(size / xp.clip(bend, 1e-12, None), 1e-6, 1e6), 2.0 * length)
        u, gradient = new, slope
    return backend.double(best.x)
