"""What planes are planes of: levels, lines in mean and deviation, variances, with values in balls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from flint import arb, arb_mat

from gpcert.bounds.levels.registry import curves_of
from gpcert.engine.lines import Lines, latent_lines, lines
from gpcert.engine.planes import Plane, plane, variance_plane
from gpcert.kernels import RBF
from helpers.oracle import balls, half_square, lengthscale
from helpers.rows import Batch
from judge import Truth
from judge.kernels import covariance

Value = Callable[[int, np.ndarray], arb]


def functionals(batch: Batch, rng: np.random.Generator) -> list[tuple[Plane, Value]]:
    """Planes of every row at its reference, and what they lie below: for a row and a point (D,)."""
    at, truth, N = batch.at, Truth(batch.post), len(batch.rows)
    S, zero = 0.5 * (at.variance[0] + at.variance[1]), np.zeros(N)
    target = rng.standard_normal(N) * batch.facts.model.variance
    side = rng.choice([-1.0, 1.0], N)
    noise = rng.choice([0.0, 1.0], N)
    level = lines(at.facts.backend, curves_of(batch.post.likelihood), rng.uniform(0.03, 0.97, N), S, S, 0.02)
    latent = latent_lines(at.facts.backend, 2.0 * rng.standard_normal(N), noise, target, S)
    mean = latent_lines(at.facts.backend, zero, zero, target, S)

    def variance(row: int, x: np.ndarray) -> arb:
        return arb(side[row]) * truth.variance(x) - arb(target[row])

    found = [(plane(at, batch.rows.sign, line), _below(batch, truth, line)) for line in (level, latent, mean)]
    return [*found, (variance_plane(at, side, target), variance)]


def _below(batch: Batch, truth: Truth, line: Lines) -> Value:
    def value(row: int, x: np.ndarray) -> arb:
        mu, S = truth.latent(x)
        slope, c, constant = (arb(float(each[row])) for each in (line.slope, line.c, line.constant))
        clipped = S.max(arb(0))
        curve = -slope * clipped if line.rising[row] else slope * (c + clipped).sqrt()
        return arb(float(batch.rows.sign[row])) * mu + curve + constant

    return value


def grown(batch: Batch, row: int, x: np.ndarray) -> arb:
    """e^r for the Gaussian kernel, 1 for others."""
    return batch.grown(row, x) if isinstance(batch.post.kernel, RBF) else arb(1)


def steps(batch: Batch, row: int, x: np.ndarray) -> list[arb]:
    """The displacement of a point (D,) from the reference, in lengthscales, along the moving features."""
    here, scale = batch.point(row, batch.references[row]), lengthscale(batch.post)
    return [(arb(float(x[j])) - arb(float(here[j]))) / arb(float(scale[j])) for j in batch.facts.features]


def plane_value(batch: Batch, plane: Plane, row: int, x: np.ndarray) -> arb:
    """The sum of kernels of a row at a point (D,), with what it may lack."""
    post, here = batch.post, batch.point(row, batch.references[row])
    kernel, s2 = post.kernel, arb(float(post.kernel.variance))

    def near(z: np.ndarray) -> arb:
        return covariance(kernel, [arb(float(a)) - arb(float(b)) for a, b in zip(x, z, strict=True)])

    b, still, constant, lost, bend, _, blur, *_ = (None if e is None else e[row] for e in plane[:-1])
    total = sum((arb(float(w)) * near(z) for w, z in zip(b, post.centres, strict=True)), arb(0))
    share = near(here) / s2
    total += arb(float(still)) * share + arb(float(constant)) - arb(float(lost))
    blurred = arb(float(blur))
    if isinstance(kernel, RBF):  # of e^r f e^-R
        blurred *= (arb(float(batch.boxes.squares[row])) / 2 - half_square(x, here, post)).exp()
    return total - 2 * arb(float(bend)) * (1 - share) - blurred


def form_value(matrix: np.ndarray, d: list[arb]) -> arb:
    """d^T matrix d."""
    rows = (sum((arb(float(m)) * e for m, e in zip(row, d, strict=True)), arb(0)) for row in matrix)
    return sum((e * r for e, r in zip(d, rows, strict=True)), arb(0))


def packed_value(T: np.ndarray, d: list[arb]) -> arb:
    """The cubic of a packed symmetric tensor, as `Forms.tensor` has it."""
    rows, columns = np.triu_indices(T.shape[1])
    total = arb(0)
    for p, (a, b) in enumerate(zip(rows, columns, strict=True)):
        share = arb(1) if a == b else arb(2).sqrt()
        for c in range(T.shape[1]):
            total += share * arb(float(T[p, c])) * d[a] * d[b] * d[c]
    return total


def _space(batch: Batch, plane: Plane, row: int, c: arb) -> Callable[[list[arb]], arb]:
    """A function of d: the square that the plane leaves out, without its factor, for the stored precision."""
    post, square, scale = batch.post, plane.square, lengthscale(batch.post)
    here, R = [arb(float(v)) for v in batch.point(row, batch.references[row])], balls(post.precision)
    total = (arb(float(post.kernel.variance)) + arb(float(batch.facts.lift))) / post.kernel.variance

    def at(d):
        x = list(here)
        for j, step in zip(batch.facts.features, d, strict=True):
            x[j] = x[j] + arb(float(scale[j])) * step
        return x, arb_mat(post.n_centres, 1, [near(x, [arb(float(v)) for v in z]) for z in post.centres])

    def near(x, z):
        return covariance(post.kernel, [a - b for a, b in zip(x, z, strict=True)])

    def of(d):
        (x, k), (y, kh) = at(d), at([arb(0)] * len(d))
        if not square.falls[row]:
            return ((k - kh).transpose() * R * (k - kh))[0, 0]
        ends = (x, k, x, k), (x, k, y, kh), (y, kh, y, kh)
        own, cross, first = (total * near(a, b) - (p.transpose() * R * q)[0, 0] for a, p, b, q in ends)
        return own - 2 * cross + first if not square.root[row] else own + c - (cross + c) ** 2 / (first + c)

    return of


def third_order(batch: Batch, plane: Plane, row: int, e: np.ndarray) -> arb:
    """That of the same square along e (d,), from its values a little before and behind the reference."""
    S = Truth(batch.post).variance(batch.point(row, batch.references[row]))
    c = arb(float(plane.square.longest[row])) ** 2 - S - arb(float(batch.facts.lift))
    of, small = _space(batch, plane, row, c), arb(2) ** -100
    ends = [of([arb(float(v)) * small * side for v in e]) for side in (1, -1)]
    return (ends[0] - ends[1]) / 2 / small**3
