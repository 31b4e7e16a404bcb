"""Branch and bound over cells of latent space: three classes (docs/maths/multiclass.md, T5).

The image of a box of inputs lies in a polytope of few latent coordinates (`Image`). On a cell of it the
convex bounds of some anchors are combined with multipliers of the half-spaces: convex again, so largest at a
vertex of the cell. The multipliers come from linear programmes, which certify nothing. A cell that fails gets
a half-space if one would suffice judging by sampled points of the image, else an anchor of its own, and is
split at last. Nothing but half-spaces costs more with more data or features. Anchors are any mean and
covariance of the differences of latents, whether some input has them or not (T4).
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from gpcert.bounds.several.cells.image import INVERSE, Coordinates, Image
from gpcert.bounds.several.tangents.anchor import anchor_at
from gpcert.bounds.several.tangents.tangent import weighted, whitening
from gpcert.rounding import symmetric
from gpcert.validation import Float, Mask

#: Eigenvalues of the relative change of V stay above -1 by this much.
_POSITIVE = 1e-6


@dataclass(frozen=True, eq=False)
class AnchoredTangent:
    """log sum_i beta_i p_i <= log sum_i e^{logs_i + slopes_i . (z - anchor)} + pen(z), called T4."""

    coordinates: Coordinates
    anchor: Float  #: z of the anchor (n,)
    logs: Float  #: (m,), one per class with beta_i > 0
    slopes: Float  #: (m, n)
    whitened: Float  #: (N, N): W_a L; the change of V relative to the anchor is whitened E whitened^T
    blur: float  #: rounding of anchor and whitening, per unit

    def __call__(self, z: Float) -> Float:
        """At z (m, n), rounded up; inf where V is not safely positive definite."""
        step = z - self.anchor
        E = self.whitened @ self.coordinates.changed(step) @ self.whitened.T
        values = np.linalg.eigvalsh(0.5 * (E + E.transpose(0, 2, 1)))
        size = np.abs(E).sum(axis=(1, 2))
        safe = values[:, 0] > -1.0 + _POSITIVE + 1e-9 * size
        v = np.where(safe[:, None], values, 0.0)
        exponents = self.logs + step @ self.slopes.T
        largest = exponents.max(axis=1)
        with np.errstate(invalid="ignore"):
            total = largest + np.log(np.exp(exponents - largest[:, None]).sum(axis=1))
        bound = total + 0.5 * (v - np.log1p(v)).sum(axis=1)
        moved = np.abs(step) @ (1.0 + np.abs(self.slopes).max(axis=0)) + size * (1.0 + size)
        # Near -1 the logarithm magnifies errors of an eigenvalue by at most 1 / _POSITIVE.
        steep = 1.0 / np.where(safe, 1.0 + values[:, 0], 1.0)
        bound = bound + self.blur * (1.0 + moved) * steep + 1e-13 * (1.0 + np.abs(bound))
        return np.where(safe & np.isfinite(bound), bound, np.inf)


def anchored(coordinates: Coordinates, beta: Float, z: Float, widths: Float) -> AnchoredTangent | None:
    """The tangent anchored at z (n,), for points that differ from it by at most `widths` (n,) per coordinate.

    Three classes. None where no rule applies.
    """
    N = len(coordinates.mean)
    L = coordinates.L
    mean = coordinates.mean + L @ z[:N]
    V = coordinates.V + L @ coordinates.changed(z[None])[0] @ L.T
    V = symmetric(V)
    W = whitening(V) if np.isfinite(V).all() and np.isfinite(mean).all() else None
    if W is None:
        return None
    # Latents with these differences: the last is 0 but for what all share, which makes them definite.
    embedded = np.zeros((N + 1, N + 1))
    embedded[:N, :N] = V
    embedded += float(np.trace(V)) / N
    at = anchor_at(np.append(mean, 0.0), embedded, True)
    if at is None:
        return None
    size = coordinates.size
    eta, rho = (float(np.linalg.norm(part)) * (1.0 + 1e-6) for part in (widths[:N], widths[N:]))
    a, B, weights, total = weighted(at, beta, size, eta, rho)
    if not (math.isfinite(total) and total > 0):
        return None
    used = weights > 0
    bent = np.einsum("pa,ipq,qb->iab", L, B[used], L, optimize=True)
    slopes = np.concatenate(
        [a[used] @ L, np.einsum("iab,mab->im", bent, coordinates.basis, optimize=True)], axis=1
    )
    whitened = W @ L
    condition = 1.0 + float(np.linalg.norm(W)) ** 2 * float(np.linalg.norm(V))
    scale = 1.0 + size * size + float(np.abs(coordinates.mean).max())
    blur = 8.0 * INVERSE + 1e-14 * condition * scale
    return AnchoredTangent(coordinates, z, np.log(weights[used]) + math.log(total), slopes, whitened, blur)


#: Anchors that a cell inherits.
_INHERITED = 4
#: Half-spaces per cell, and per image.
_TRIES, _HALFSPACES = 2, 120
#: Points sampled before a half-space is computed.
_PROBES = 4
#: With so many cells open, splitting the box is better.
_OPEN = 400
#: Multipliers and slopes larger than this help nobody.
_LARGEST = 1e3


class _Cell(NamedTuple):
    bound: float  #: minus a certified bound on the cell
    number: int
    lower: Float
    upper: Float
    tangents: tuple[AnchoredTangent, ...]


class _Guess(NamedTuple):
    """What the cell's bound would be if the image were the hull of the samples."""

    top: float
    slopes: Float  #: of the affine majorant (n,)
    shares: Float  #: of the anchors
    worst: Float  #: where it is attained (n,)


class Cells:
    """A certified upper bound of log sum_i beta_i p_i over the points of an image; refined step by step."""

    def __init__(self, image: Image, beta: Float, reference: Float) -> None:
        """`reference`: a point (d,) of the box, raw units, where the sum seems largest."""
        self.image = image
        self._beta = beta
        self.reference = reference
        self.z = np.clip(image.z(reference[None])[0], image.lower, image.upper)
        image.samples = np.concatenate([image.samples, self.z[None]])
        first = self.anchor(self.z)
        self._numbers = itertools.count()
        self._settled = -np.inf  # the largest bound of the cells that need no more work
        tangents = () if first is None else (first,)
        self._open = [_Cell(-np.inf, next(self._numbers), image.lower, image.upper, tangents)]

    def anchor(self, z: Float) -> AnchoredTangent | None:
        """The tangent anchored at z (n,), for the whole image."""
        return anchored(self.image.coordinates, self._beta, z, self.image.upper - self.image.lower)

    @property
    def top(self) -> float:
        """Certified: no point of the box has more."""
        return max(self._settled, -self._open[0].bound if self._open else -np.inf)

    def refine(self, goal: float, steps: int) -> bool:
        """Works on the worst cells until `top` <= goal; whether more steps could still help."""
        while self._open and self._settled <= goal < self.top:
            if steps == 0:
                return len(self._open) < _OPEN
            steps -= 1
            self._step(goal)
        return False

    def _step(self, goal: float) -> None:
        """The worst cell is settled, or split. In this order, so that an interrupt cannot lose it."""
        cell = self._open[0]
        ends = self.image.tightened(cell.lower, cell.upper)
        if ends is None:  # no point of the image in it
            heapq.heappop(self._open)
            return
        work = _Work(self, goal, *ends, cell.tangents)
        top = min(-cell.bound, work.run())
        n = work.widest()
        low, high = ends[0][n], ends[1][n]
        middle = 0.5 * (low + high)
        if top <= goal or not low < middle < high:
            self._settled = max(self._settled, top)
            heapq.heappop(self._open)
            return
        left, right = ends[1].copy(), ends[0].copy()
        left[n] = right[n] = middle
        tangents = work.tangents[-_INHERITED:]
        heapq.heappush(self._open, _Cell(-top, next(self._numbers), right, ends[1], tangents))
        heapq.heapreplace(self._open, _Cell(-top, next(self._numbers), ends[0], left, tangents))

    def home(self, lower: Float, upper: Float) -> Float | None:
        """The reference, if its latents lie in the cell."""
        return self.reference if ((lower <= self.z) & (self.z <= upper)).all() else None


class _Work:
    """The work on one cell."""

    def __init__(
        self, cells: Cells, goal: float, lower: Float, upper: Float, tangents: tuple[AnchoredTangent, ...]
    ) -> None:
        self._cells, self._image = cells, cells.image
        self._goal = goal
        self._lower, self._upper = lower, upper
        self._corners = np.where(_vertices(len(lower)), upper, lower)
        self.tangents: tuple[AnchoredTangent, ...] = ()
        self._values = np.zeros((0, len(self._corners)))
        for tangent in tangents:
            self._add(tangent)

    def _add(self, tangent: AnchoredTangent | None) -> bool:
        """Uses the tangent if it is finite at all vertices."""
        values = None if tangent is None else tangent(self._corners)
        if tangent is None or values is None or not np.isfinite(values).all():
            return False
        self.tangents += (tangent,)
        self._values = np.concatenate([self._values, values[None]])
        return True

    def run(self) -> float:
        """A certified bound on the cell."""
        top = np.inf
        if not self.tangents and not self._add(self._cells.anchor(0.5 * (self._lower + self._upper))):
            return top
        top = self._outer()
        tried, anchored_here = 0, False
        while top > self._goal:
            guess = self._probed_guess()
            if guess is None:
                break
            if self._pays(guess) and tried < _TRIES:
                tried += 1
                top = min(top, self._halfspace(guess))
                top = min(top, self._outer()) if top > self._goal else top
                continue
            if anchored_here or not self._add(self._cells.anchor(guess.worst)):
                break
            anchored_here = True
            top = min(top, self._outer())
        return top

    def _pays(self, guess: _Guess) -> bool:
        """Whether a half-space would settle the cell, by estimates."""
        few = len(self._image.bounds) < _HALFSPACES
        return few and guess.top + self._image.slack(guess.slopes) <= self._goal

    def _probed_guess(self) -> _Guess | None:
        """A guess that stands where the image reaches farthest in its direction."""
        guess = self._guess()
        for _ in range(_PROBES):
            if guess is None or not self._pays(guess) or not self._image.probe(guess.slopes):
                break
            guess = self._guess()
        return guess

    def _halfspace(self, guess: _Guess) -> float:
        """A certified bound by a half-space of its own."""
        k = guess.slopes
        lines = self._corners @ k
        constant = float((guess.shares @ self._values - lines).max())
        constant += 1e-13 * (1.0 + abs(constant) + float(np.abs(self._corners).max(axis=0) @ np.abs(k)))
        home = self._cells.home(self._lower, self._upper)
        return self._image.halfspace(k, self._goal - constant, home) + constant

    def _outer(self) -> float:
        """T5: tangents and multiples of half-spaces, largest at a vertex; the best shares and multipliers."""
        values, slack = self._values, self._image.bounds - self._corners @ self._image.normals.T
        A, J = len(values), slack.shape[1]
        best = float(values.max(axis=1).min())
        if J == 0 and A == 1:
            return best
        columns = np.concatenate([-np.ones((len(slack), 1)), values.T, slack], axis=1)
        solution = _solve(
            np.eye(1 + A + J)[0],
            columns,
            np.concatenate([[0.0], np.ones(A), np.zeros(J)]),
            [(None, None)] + [(0.0, None)] * A + [(0.0, _LARGEST)] * J,
        )
        if solution is None:
            return best
        shares, multipliers = np.maximum(solution[0][1 : 1 + A], 0.0), np.maximum(solution[0][1 + A :], 0.0)
        shares = shares / shares.sum()
        size = np.abs(self._image.bounds) + np.abs(self._image.normals) @ np.abs(self._corners).max(axis=0)
        rounding = 1e-13 * (1.0 + float(np.abs(values).max()) + float(multipliers @ size))
        return min(best, float((shares @ values + slack @ multipliers).max()) + rounding)

    def _guess(self) -> _Guess | None:
        """The same with the hull of the samples for the image, and free slopes."""
        values, samples, corners = self._values, self._image.samples, self._corners
        A, n, V, M = len(values), corners.shape[1], len(corners), len(samples)
        ones, zeros = -np.ones((V, 1)), np.zeros((V, 1))
        above = np.concatenate([ones, zeros, -corners, values.T], axis=1)
        image = np.concatenate([np.zeros((M, 1)), -np.ones((M, 1)), samples, np.zeros((M, A))], axis=1)
        solution = _solve(
            np.eye(2 + n + A)[:2].sum(axis=0),
            np.concatenate([above, image]),
            np.concatenate([np.zeros(2 + n), np.ones(A)]),
            [(None, None)] * 2 + [(-_LARGEST, _LARGEST)] * n + [(0.0, None)] * A,
        )
        if solution is None:
            return None
        x, duals = solution
        shares, weights = np.maximum(x[2 + n :], 0.0), np.maximum(duals[:V], 0.0)
        if not (shares.sum() > 0 and weights.sum() > 0):
            return None
        worst = np.clip(weights @ corners / weights.sum(), self._lower, self._upper)
        return _Guess(float(x[0] + x[1]), x[2 : 2 + n], shares / shares.sum(), worst)

    def widest(self) -> int:
        """The coordinate along which the tangents lie farthest below their chords; else the widest."""
        middle, steps = 0.5 * (self._lower + self._upper), np.diag(0.5 * (self._upper - self._lower))
        for tangent in self.tangents[-1:]:
            gaps = 0.5 * (tangent(middle + steps) + tangent(middle - steps)) - tangent(middle[None])[0]
            if np.isfinite(gaps).all() and gaps.max() > 0:
                return int(np.argmax(gaps))
        return int(np.argmax(self._upper - self._lower))


def _solve(
    costs: Float, rows: Float, equal: Float, bounds: list[tuple[float | None, float | None]]
) -> tuple[Float, Float] | None:
    """min costs.x for rows x <= 0, equal.x = 1: x and the multipliers of the rows, in floating point."""
    zeros = np.zeros(len(rows))
    result = linprog(costs, rows, zeros, equal[None], [1.0], bounds, method="highs")
    if result.status != 0 or not np.isfinite(result.x).all():
        return None
    return result.x, -result.ineqlin.marginals


@cache
def _vertices(n: int) -> Mask:
    """Of the unit cube (2^n, n): which coordinates are 1."""
    return np.array(list(itertools.product((False, True), repeat=n)))
