"""Squares that planes leave out, to second order: G6 to G8 in batches (docs/maths/batches.md, J25).

A plane supports a convex function of the posterior's features at one point; the space between the two is at
least sigma |psi(x) - psi(xh)|^2, psi without its part along psi(xh) for a root. To first order in d that is a
quadratic form Q of the reference alone; what is beyond is bounded by one norm. So the sum of kernels below
the functional may be raised by a quadratic that vanishes at the reference:

    squares = Squares(at, plane)              # any kernel with phi''(0); made once per reference
    matrix, loss = squares.within(h2, aim)    # (N, d, d), symmetric to the last bit, and (N,)

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
from gpcert.engine.rounding import sqrt_up
from gpcert.engine.values import Points
from gpcert.rounding import UNDERFLOW, UNIT, gamma

#: |g_2|^2 <= this phi''(0) s2 h^2 |d|^2 for what a kernel has beyond its first order, |d| <= h.
_SECOND = 0.75
#: Larger thetas keep next to nothing.
_LARGEST = 0.7
#: Roundings of positive sums, lengths and roots.
_MORE = 1.0 + 1e-8


class Form(NamedTuple):
    """Q (N, d, d), what d^T Q d may be too large by, and the sizes of its terms, per |d|^2 (N,)."""

    Q: Array
    error: Array
    size: Array

    def take(self, rows: Array) -> Form:
        """Those of some rows."""
        return Form(*(each[rows] for each in self))


@dataclass(frozen=True, eq=False)
class Squares:
    """What the planes leave out around their points."""

    at: Points
    plane: Plane

    def take(self, rows: Array) -> Squares:
        """Those of some rows, with what is known of them."""
        few = Squares(self.at.take(rows), self.plane.take(rows))
        if "form" in self.__dict__:
            few.__dict__["form"] = self.form.take(rows)
        return few

    @property
    def known(self) -> bool:
        """Whether there are any."""
        return self.plane.square is not None and self._facts.profile.second < np.inf

    def within(self, squares: Array, aim: Array) -> tuple[Array, Array]:
        """J25: the matrix (N, d, d) and the loss (N,) where |d|^2 <= `squares` (N,)."""
        xp, d = self._facts.backend.xp, aim.shape[1]
        square, none = self._square, squares * 0.0
        worst = squares * (_SECOND * self._facts.profile.second * self._energy * (1.0 + 16 * UNIT))
        most = self._energy * self._facts.profile.first  # Q is hardly more
        if not self.known or not bool(xp.any(worst < _LARGEST**2 * most)):
            return xp.zeros_like(aim)[:, :, None] * self._eye, none
        form, scale = self.form, self._scale(squares)
        length, trace = xp.sum(aim * aim, axis=1), xp.sum(form.Q * self._eye, axis=(1, 2))
        along = xp.sum((form.Q @ aim[:, :, None])[:, :, 0] * aim, axis=1) / (length + UNDERFLOW)
        size = xp.where(length > 1e-6 * squares, along, trace / d)
        theta = xp.sqrt(worst / xp.clip(size, UNDERFLOW, None))
        kept = scale * xp.clip(1.0 - theta - 4 * UNIT, 0.0, None)
        lost = scale * (1.0 / theta - 1.0 + 8 * UNIT / theta) * worst * (1.0 + 16 * UNIT)
        loss = scale * (form.error + gamma(16) * form.size) + gamma(16) * lost
        loss = 0.5 * loss * squares * _MORE + UNDERFLOW
        matrix = kept[:, None, None] * form.Q - lost[:, None, None] * self._eye
        sure = (square.steep > 0) & (theta < _LARGEST)
        sure = sure & xp.isfinite(loss + xp.sum(xp.abs(matrix), axis=(1, 2)))
        return xp.where(sure[:, None, None], matrix, xp.zeros_like(matrix)), xp.where(sure, loss, none)

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
        v = backend.transposed(facts.Z[None, :, :] - at.y[:, None, :])
        B, d, _ = v.shape
        steep = at.k if at.steep is None else at.steep
        U = v * steep[:, None, :]
        product = xp.reshape(xp.reshape(U, (B * d, n)) @ facts.precision, (B, d, n))
        J = product @ backend.transposed(U)
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
        return Form(Q, error * _MORE, size * _MORE)

    def _weighted(self, y: Array) -> Array:
        """F2: at least |V z| (N,) for |z| <= y (N, n)."""
        return self._facts.backend.xp.sqrt((y * y) @ self._facts.row_weight) * _MORE + UNDERFLOW
