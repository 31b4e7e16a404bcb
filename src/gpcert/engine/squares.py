"""Squares that planes leave out, to second order: G6 to G8 in batches (docs/maths/batches.md, J25).

A plane supports a convex function of the posterior's features at one point; the space between the two is at
least sigma |psi(x) - psi(xh)|^2, psi without its part along psi(xh) for a root. To first order in d that is a
quadratic form Q of the reference alone; what is beyond is bounded by one norm. So the sum of kernels below
the functional may be raised by a quadratic that vanishes at the reference:

    squares = Squares(at, plane)              # any kernel with phi''(0); made once per reference
    _, matrix, loss = squares.within(h2, aim) # (N, d, d), symmetric to the last bit, and (N,)

and d^T matrix d / 2 - loss belongs to e^r f for the Gaussian kernel, to f itself for others (to G f as well:
G >= 1 where the two are positive). Boxes need not hold the reference: h2 (N,) is at least |d|^2 on the box.
`aim` (N, d): where the minimum is expected; any is sound. Rows for which it does not pay have zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpcert.engine.backend import Array
from gpcert.engine.facts import Facts
from gpcert.engine.planes import Plane, Square
from gpcert.engine.profiles import Gaussian
from gpcert.engine.rounding import sqrt_up
from gpcert.engine.values import Points
from gpcert.rounding import UNDERFLOW, UNIT, gamma
from gpcert.validation import Float, Index

#: |g_2|^2 <= this phi''(0) s2 h^2 |d|^2 for what a kernel has beyond its first order, |d| <= h.
_SECOND = 0.75
#: The same for what a Gaussian kernel has beyond its second order, times s2 h^4 |d|^2.
_THIRD = 15.0 / 36.0
#: Larger thetas keep next to nothing.
_LARGEST = 0.7
#: Roundings of positive sums, lengths and roots.
_MORE = 1.0 + 1e-8


class Form(NamedTuple):
    """Q (N, d, d), what d^T Q d may be too large by, and the sizes of its terms, per |d|^2 (N,). J25's |t|_W,
    |tau|_W and e_1 (N,), and q1 (N, d).
    """

    Q: Array
    error: Array
    size: Array
    t: Array
    wrong: Array
    mixed: Array
    q1: Array

    def take(self, rows: Array) -> Form:
        """Those of some rows."""
        return Form(*(each[rows] for each in self))


class Raised(NamedTuple):
    """What a plane may be raised by: 2 sigma (N,), 0 where nothing, a matrix (N, d, d), and a loss (N,)."""

    scale: Array
    matrix: Array
    loss: Array


@dataclass(frozen=True, eq=False)
class Squares:
    """What the planes leave out around their points."""

    at: Points
    plane: Plane

    def take(self, rows: Array) -> Squares:
        """Those of some rows, with what is known of them."""
        few = Squares(self.at.take(rows), self.plane.take(rows))
        if "form" in self.__dict__:
            few.__dict__.update(form=self.form.take(rows), _turned=self._turned[rows])
        if "cubic" in self.__dict__:
            few.__dict__["cubic"] = tuple(each[rows] for each in self.cubic)
        return few

    @property
    def known(self) -> bool:
        """Whether there are any."""
        return self.plane.square is not None and self._facts.profile.second < np.inf

    @property
    def has_cubic(self) -> bool:
        """J28: the Gaussian kernel, and no square of V_- beside those that rise."""
        if not self.known or not isinstance(self._facts.profile, Gaussian):
            return False
        return self._facts.model.definite or not bool(self._facts.backend.xp.any(~self._square.falls))

    def within(self, squares: Array, aim: Array) -> Raised:
        """J25, where |d|^2 <= `squares` (N,)."""
        if not self.known:
            return self._nothing(aim)
        worst = squares * (_SECOND * self._facts.profile.second * self._energy * (1.0 + 16 * UNIT))
        return self._raised(squares, aim, worst, 1.0)

    def joined(self, squares: Array, aim: Array) -> Raised:
        """J28 where there is a cubic X, without scale / 2 times X."""
        worst = squares * squares * (_THIRD * self._energy * (1.0 + 16 * UNIT))
        return self._raised(squares, aim, worst, 0.0)

    def _nothing(self, aim: Array) -> Raised:
        none = aim[:, 0] * 0.0
        return Raised(none, self._facts.backend.xp.zeros_like(aim)[:, :, None] * self._eye, none)

    def _raised(self, squares: Array, aim: Array, worst: Array, whole: float) -> Raised:
        """2 sigma {(1 - theta) Q - (1 / theta - whole) worst I} for the best theta where the minimum is
        expected.
        """
        xp, square, d = self._facts.backend.xp, self._square, aim.shape[1]
        most = self._energy * self._facts.profile.first  # Q is hardly more
        if not bool(xp.any(worst < _LARGEST**2 * most)):
            return self._nothing(aim)
        form, scale = self.form, self._scale(squares)
        length, trace = xp.sum(aim * aim, axis=1), xp.sum(form.Q * self._eye, axis=(1, 2))
        along = xp.sum((form.Q @ aim[:, :, None])[:, :, 0] * aim, axis=1) / (length + UNDERFLOW)
        size = xp.where(length > 1e-6 * squares, along, trace / d)
        theta = xp.sqrt(worst / xp.clip(size, UNDERFLOW, None))
        kept = scale * xp.clip(1.0 - theta - 4 * UNIT, 0.0, None)
        lost = scale * (1.0 / theta - whole + 8 * UNIT / theta) * worst * (1.0 + 16 * UNIT)
        loss = scale * (form.error + gamma(16) * form.size) + gamma(16) * lost
        loss = 0.5 * loss * squares * _MORE + UNDERFLOW
        matrix = kept[:, None, None] * form.Q - lost[:, None, None] * self._eye
        sure = (square.steep > 0) & (theta < _LARGEST)
        sure = sure & xp.isfinite(loss + xp.sum(xp.abs(matrix), axis=(1, 2)))
        zero = xp.zeros_like(loss)  # not 0 times what may be infinite
        matrix = xp.where(sure[:, None, None], matrix, zero[:, None, None])
        return Raised(xp.where(sure, scale, zero), matrix, xp.where(sure, loss, zero))

    @property
    def _facts(self) -> Facts:
        return self.at.facts

    @property
    def _square(self) -> Square:
        assert self.plane.square is not None
        return self.plane.square

    @cached_property
    def _eye(self) -> Array:
        return self._facts.backend.array(np.eye(self.at.y.shape[1]))

    @cached_property
    def _energy(self) -> float:
        """At least E."""
        model = self._facts.model
        defect = model.excess_variance(np.full(len(model.weights), model.variance))
        found = model.prior + self._facts.lift + model.contraction_negative * model.variance + defect
        return float(found * (1.0 + 16 * UNIT))

    def _scale(self, squares: Array) -> Array:
        """At most 2 sigma (N,); any smaller one is sound."""
        xp, profile, square = self._facts.backend.xp, self._facts.profile, self._square
        radius = 0.5 * squares
        near = profile.both(xp, -radius)[0] * (1.0 - (24.0 * profile.exponent(xp, -radius) + 160.0) * UNIT)
        apart = xp.minimum(1.0 - near, profile.first * radius) * (1.0 + 16 * UNIT)
        longest = square.longest + sqrt_up(self._facts.backend, 2.0 * self._energy * apart)
        return (
            square.steep
            / xp.where(square.root, longest * (1.0 + 8 * UNIT), longest * 0.0 + 1.0)
            * (1.0 - 8 * UNIT)
        )

    @cached_property
    def form(self) -> Form:
        """What does not depend on the set."""
        facts, at, square = self._facts, self.at, self._square
        backend, xp, model, n = facts.backend, facts.backend.xp, facts.model, at.k.shape[1]
        steep, U = self._steep, self._v * self._steep[:, None, :]
        J = self._turned @ backend.transposed(U)
        J = 0.5 * (J + backend.transposed(J))
        first = model.prior * facts.profile.first * (1.0 - 8 * UNIT)
        one = square.steep * 0.0 + 1.0
        plain = xp.where(square.falls, one * first, one * 0.0)
        Q = xp.where(square.falls, -one, one)[:, None, None] * J + plain[:, None, None] * self._eye
        # t and its error, per |d|, in the norm of F2
        far = xp.sqrt(xp.sum(U * U, axis=1)) * _MORE
        t, slopes = self._weighted(far), self._weighted(steep)
        longest = (at.norms + facts.reach) * _MORE
        if at.steep is None:
            own, moved = at.unit, longest * 0.0
        else:
            own, moved = at.evaluation, model.variance * facts.profile.turned(at.error, longest)
        every = self._weighted(steep * 0.0 + 1.0)
        wrong = (own + gamma(2 * n + 32)) * t * _MORE + 4 * UNIT * longest * slopes + moved * every
        error = (2.02 * t + wrong) * wrong
        q1 = (U @ at.r[:, :, None])[:, :, 0]
        reach, A2 = xp.sqrt(xp.sum(q1 * q1, axis=1)) * _MORE, square.shortest**2 * (1.0 - 4 * UNIT)
        near = (at.unit + gamma(2 * n + 32)) * at.weighted
        mixed = 1.01 * (wrong * at.weighted + (t + wrong) * near)
        A2 = xp.where(square.root, A2, one)
        q1 = xp.where(square.root[:, None], q1, q1 * 0.0)
        Q = Q - q1[:, :, None] * q1[:, None, :] / A2[:, None, None]
        error = error + xp.where(square.root, (2.0 * reach + mixed) * mixed / A2, one * 0.0)
        size = plain + 1.01 * t * t + xp.where(square.root, reach * reach / A2, one * 0.0)
        return Form(Q, error * _MORE, size * _MORE, t, wrong, mixed, q1)

    @property
    def _steep(self) -> Array:
        return self.at.k if self.at.steep is None else self.at.steep

    @property
    def _v(self) -> Array:
        """v (N, d, n)."""
        return self._facts.backend.transposed(self._facts.Z[None, :, :] - self.at.y[:, None, :])

    @cached_property
    def _turned(self) -> Array:
        """(R U)^T (N, d, n)."""
        xp, U = self._facts.backend.xp, self._v * self._steep[:, None, :]
        N, d, n = U.shape
        return xp.reshape(xp.reshape(U, (N * d, n)) @ self._facts.precision, (N, d, n))

    @cached_property
    def cubic(self) -> tuple[Array, Array]:
        """J28: the symmetric tensor of X in units of D = L d, packed as in `Forms.tensor`, and what X may be
        too large by, per |D|^3 (N,).
        """
        facts, at, square, form = self._facts, self.at, self._square, self.form
        backend, xp, model, n = facts.backend, facts.backend.xp, facts.model, at.k.shape[1]
        one = square.steep * 0.0 + 1.0
        v, d = self._v, int(at.y.shape[1])
        same = backend.array(np.where(np.equal(*np.triu_indices(d)), 1.0, 0.0))
        Y, w = self._turned * at.k[:, None, :], at.r * at.k
        sums = packed_sums(facts, v, backend.concat([Y, w[:, None, :]], axis=1))
        T = sums[:, :, :d] - same[None, :, None] * xp.sum(Y, axis=2)[:, None, :]
        T = xp.where(square.falls, -one, one)[:, None, None] * T
        near, far = (xp.where(square.root, each, one) for each in (square.shortest, square.longest))
        A2, prior = far * far, model.prior + facts.lift
        bent = same * (xp.sum(w, axis=1) - prior)[:, None] - sums[:, :, d]
        T = T + (bent / A2[:, None])[:, :, None] * form.q1[:, None, :]  # q1 is 0 where there is no root
        # s and its error, per |d|^2, in the norm of F2
        lengths = xp.sum(v * v, axis=1)
        second = at.k * (lengths + 1.0) * (0.5 * _MORE)
        s, unit, K = self._weighted(second), at.unit + gamma(2 * n + 64), at.weighted
        bad = unit * s + 4.1 * UNIT * (at.norms + facts.reach) * _MORE * form.t
        wrong = 2.02 * ((form.t + form.wrong) * bad + form.wrong * s)
        first = at.k * xp.sqrt(lengths) * _MORE
        both = [xp.sqrt((each * each) @ facts.defect) * _MORE for each in (first, second)]
        wrong = wrong + xp.where(square.falls, one * 0.0, 2.02 * both[0] * both[1])
        size, error = 0.5 * prior + 1.01 * s * K, 1.01 * (bad * K + (s + bad) * unit * K)
        reach = xp.sqrt(xp.sum(form.q1 * form.q1, axis=1)) * _MORE
        apart = xp.clip(1.0 - (near / far) ** 2 * (1.0 - 16 * UNIT), 0.0, None) + 16 * UNIT
        total = 2.02 * (form.mixed * (size + error) + reach * (error + size * apart))
        sizes = 2.0 * form.t * s + xp.where(square.root, 2.0 * reach * size / (near * near), one * 0.0)
        wrong = wrong + xp.where(square.root, total / (near * near), one * 0.0) + gamma(160) * sizes
        return self._symmetric(T), wrong * (_MORE / xp.min(facts.metrics[0]) ** 1.5)

    def _symmetric(self, T: Array) -> Array:
        """The same cubic by its symmetric tensor in units of D."""
        backend, d = self._facts.backend, int(T.shape[2])
        xp, root, (rows, columns, _) = (
            backend.xp,
            backend.xp.sqrt(self._facts.metrics[0]),
            self._facts.triangle,
        )
        flat = xp.reshape(T, (len(T), len(rows) * d))
        total = sum(xp.take(flat, backend.indices(way), axis=1) for way in _ways(d))
        share = backend.array(packed_shares(d) / 3.0) / (root[rows] * root[columns])
        return xp.reshape(total, (len(T), len(rows), d)) * (share[:, None] / root[None, :])

    def _weighted(self, y: Array) -> Array:
        """F2: at least |V z| (N,) for |z| <= y (N, n)."""
        return self._facts.backend.xp.sqrt((y * y) @ self._facts.row_weight) * _MORE + UNDERFLOW


def packed_sums(facts: Facts, v: Array, weights: Array) -> Array:
    """sum_i v_ai v_bi weights_ci, packed (N, d (d + 1) / 2, m), for v (N, d, n) and weights (N, m, n)."""
    backend, (rows, columns, _), parts = facts.backend, facts.triangle, []
    xp, step = backend.xp, backend.rows(2.0 * v.shape[2] * len(rows), 1)
    for start in range(0, len(v), step):
        few, part = v[start : start + step], backend.transposed(weights[start : start + step])
        parts.append((xp.take(few, rows, axis=1) * xp.take(few, columns, axis=1)) @ part)
    return backend.concat(parts)


def packed_shares(d: int) -> Float:
    """What an entry of a packed triangle counts in a norm: 1, and the root of 2 off the diagonal."""
    return np.where(np.equal(*np.triu_indices(d)), 1.0, np.sqrt(2.0))


def _ways(d: int) -> list[Index]:
    """Where (a, b, c), (a, c, b) and (c, b, a) are in a packed tensor, for all a <= b and c."""
    rows, columns = np.triu_indices(d)
    place = np.zeros((d, d), dtype=np.int64)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    a, b, c = rows[:, None], columns[:, None], np.arange(d)[None, :]
    ways = (a, b, c), (a, c, b), (c, b, a)
    return [np.ravel(place[i, j] * d + k) for i, j, k in ways]
