"""The best diagonals for Q2, many at once: Newton's method on the barrier of `bounds.geometry.box_quadratic`.

For rows whose quadratic is high enough at its local minimiser while J6's diagonal does not prove it. Some
ten inverses a row, in doubles, and nothing here certifies: any D and y are sound (docs/maths/batches.md, J7).
"""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.engine.backend import Array, Backend

#: Newton's steps, and on a device, where one costs the same for a row as for all; shortenings of one, and
#: doublings until the first point is inside.
_STEPS, _SHORTER, _OUTSIDE = (16, 9), 6, 6
#: Weight of the barrier at first, in units of the gap a feature, and what is left of it once a step is long.
_FIRST, _NEXT = 0.05, 0.1
#: Room for rounding above what is needed, relative to the sizes; a gap that is not worth a step.
_ROOM, _SOLVED = 1e-11, 1e-6


def best_duals(
    backend: Backend, g: Array, H: Array, low: Array, high: Array, need: Array
) -> tuple[Array, Array]:
    """D (N, d) and y (N, d) for Q2, near the best of all; work ends where its value reaches `need` (N,).

    In units d = middle + half z the box is [-1, 1]^d.
    """
    xp, half, middle = backend.xp, 0.5 * (high - low), 0.5 * (low + high)
    turned = (H @ middle[:, :, None])[:, :, 0]
    matrix, vector = H * half[:, :, None] * half[:, None, :], (g + turned) * half
    size = xp.sqrt(xp.sum(matrix * matrix, axis=(1, 2))) + xp.max(xp.abs(vector), axis=1)
    goal = need - xp.sum((g + 0.5 * turned) * middle, axis=1) + _ROOM * size
    point = _inside(backend, matrix, vector, size)
    D, z, left = point.D + 0.0, point.z + 0.0, backend.arange(len(g))
    mu = size * 0.0
    for step in range(_STEPS[backend.forms]):
        gap = point.gap()
        mu = _FIRST * gap / g.shape[1] if step == 0 else mu
        # Where no D can reach the goal, what is found is as good as it gets.
        on = (
            (point.dual < goal[left]) & (gap > _SOLVED * xp.abs(point.dual)) & (point.dual + gap > goal[left])
        )
        left, mu, point = left[on], mu[on], point.take(on)
        if not len(left):
            break
        point, length = point.advance(mu)
        mu = xp.where(length > 0.5, _NEXT * mu, mu)
        D[left], z[left] = point.D, point.z
    # Elsewhere any D will do, if it is of the size of H: what verifies H + D looks at its trace.
    wide, norm = half > 0, xp.sqrt(xp.sum(H * H, axis=(1, 2)))
    filler = half * 0.0 + xp.where(norm > 0, norm / g.shape[1], norm * 0.0 + 1.0)[:, None]
    squares = xp.where(wide, half * half, half * 0.0 + 1.0)
    return xp.where(wide, D / squares, filler), middle + half * z


@dataclass(frozen=True, eq=False)
class _Points:
    """max over D of -v^T A^-1 v / 2 - sum D / 2 + mu (log det A + sum log D), A = matrix + diag(D), at some D
    (N, d) inside: z = -A^-1 v, the first two terms, and the logarithms. `ok`: A is definite.
    """

    backend: Backend
    matrix: Array
    vector: Array
    D: Array
    ok: Array
    inverse: Array
    z: Array
    dual: Array
    logs: Array

    @classmethod
    def at(cls, backend: Backend, matrix: Array, vector: Array, D: Array) -> _Points:
        xp, (count, d, _) = backend.xp, matrix.shape
        A = matrix + 0.0
        own = xp.reshape(A, (count, d * d))[:, :: d + 1]
        own += D
        ok, inverse, determinant = backend.inverses(A)
        z = -(inverse @ vector[:, :, None])[:, :, 0]
        dual = 0.5 * xp.sum(vector * z - D, axis=1)
        ok = ok & xp.all(D > 0, axis=1)
        logs = determinant + xp.sum(xp.log(xp.where(D > 0, D, D * 0.0 + 1.0)), axis=1)
        return cls(backend, matrix, vector, D, ok, inverse, z, dual, logs)

    def _columns(self) -> tuple[Array, ...]:
        return self.D, self.ok, self.inverse, self.z, self.dual, self.logs

    def take(self, rows: Array) -> _Points:
        """Some of them."""
        columns = self.matrix, self.vector, *self._columns()
        return _Points(self.backend, *(column[rows] for column in columns))

    def put(self, rows: Array, other: _Points) -> None:
        """Others of the same quadratics in the place of some."""
        for mine, theirs in zip(self._columns(), other._columns(), strict=True):
            mine[rows] = theirs

    def gap(self) -> Array:
        """How far the quadratic at the nearest point of the box lies above the dual (N,)."""
        xp = self.backend.xp
        z = xp.clip(self.z, -1.0, 1.0)
        turned = (self.matrix @ z[:, :, None])[:, :, 0]
        return xp.sum((self.vector + 0.5 * turned) * z, axis=1) - self.dual

    def advance(self, mu: Array) -> tuple[_Points, Array]:
        """One step of Newton's method, shortened until the barrier improves, and its lengths (N,) or 0."""
        backend, xp, (count, d, _) = self.backend, self.backend.xp, self.matrix.shape
        own = xp.reshape(self.inverse, (count, d * d))[:, :: d + 1]
        slope = 0.5 * (self.z * self.z - 1.0) + mu[:, None] * (own + 1.0 / self.D)
        bend = (self.z[:, :, None] * self.z[:, None, :] + mu[:, None, None] * self.inverse) * self.inverse
        diagonal = xp.reshape(bend, (count, d * d))[:, :: d + 1]
        diagonal += mu[:, None] / (self.D * self.D)
        ok, inverse, _ = backend.inverses(bend)
        change = (inverse @ slope[:, :, None])[:, :, 0]
        rise, start = xp.sum(slope * change, axis=1), self.dual + mu * self.logs
        room = xp.where(change < 0, -self.D / xp.where(change < 0, change, change * 0.0 - 1.0), 1e300)
        length = xp.where(ok & (rise > 0), xp.clip(0.95 * xp.min(room, axis=1), None, 1.0), rise * 0.0)
        new = _Points.at(backend, self.matrix, self.vector, self.D + length[:, None] * change)
        for share in (*(0.5,) * _SHORTER, 0.0):
            left = xp.nonzero(~(new.ok & (new.dual + mu * new.logs >= start + 0.1 * length * rise)))[0]
            if not len(left):
                break
            length[left] = share * length[left]
            D = self.D[left] + length[left][:, None] * change[left]
            new.put(left, _Points.at(backend, self.matrix[left], self.vector[left], D))
        return new, length


def _inside(backend: Backend, matrix: Array, vector: Array, size: Array) -> _Points:
    """First points: as much as the linear part asks, and what makes the matrix definite."""
    xp = backend.xp
    shift = size / 16.0
    found = _Points.at(backend, matrix, vector, xp.abs(vector) + shift[:, None])
    for _ in range(_OUTSIDE):
        left = xp.nonzero(~found.ok)[0]
        if not len(left):
            break
        shift = 2.0 * shift
        D = xp.abs(vector[left]) + shift[left][:, None]
        found.put(left, _Points.at(backend, matrix[left], vector[left], D))
    return found
