"""Ground truth for the tests of bounds: exact definiteness, functionals as balls, random models and boxes.

Means and variances in ball arithmetic come from `judge.Truth`; nothing of it is shared with `gpcert.bounds`
(`around` only calls what is tested).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq
from hypothesis import strategies as st

from gpcert.bounds.geometry.domain import BoxDomain, scaled_box
from gpcert.bounds.local.gaussian.expansion import expand
from gpcert.kernels import RBF, Kernel
from gpcert.likelihoods import BinaryLikelihood, Probit
from gpcert.posterior import Posterior
from judge import Truth

BITS = 320  # models of condition 1e12 cancel some 80 of them

PRECISIONS = ("laplace", "psd", "zero", "indefinite", "variational")
OFFSETS = (0.0, 1e3, 1e6)


def examples(count: int) -> int:
    """`count` times the environment's GPCERT_SOAK, through its GPCERT_THIN (both 1 unless told)."""
    more, fewer = (int(os.environ.get(name, "1")) for name in ("GPCERT_SOAK", "GPCERT_THIN"))
    return max(1, count * more // fewer)


@contextmanager
def bits(precision: int) -> Iterator[None]:
    """Ball arithmetic with so many bits."""
    saved, ctx.prec = ctx.prec, precision
    try:
        yield
    finally:
        ctx.prec = saved


def rational(x: float) -> fmpq:
    """The double as a rational number."""
    return fmpq(*float(x).as_integer_ratio())


def is_psd(matrix: np.ndarray, diagonal: np.ndarray | None = None) -> bool:
    """Whether the stored symmetric matrix (n, n), plus a diagonal (n,) if given, is positive semidefinite,
    decided by exact elimination.
    """
    rows = [[rational(v) for v in row] for row in matrix]
    for j, d in enumerate([] if diagonal is None else diagonal):
        rows[j][j] += rational(d)
    while rows:
        pivot = rows[0][0]
        if pivot < 0:
            return False
        if pivot == 0:  # semidefinite only if the whole row is zero
            if any(v != 0 for v in rows[0]):
                return False
            rows = [row[1:] for row in rows[1:]]
            continue
        head = rows[0]
        rows = [[v - row[0] * h / pivot for v, h in zip(row[1:], head[1:], strict=True)] for row in rows[1:]]
    return True


def is_certainly_indefinite(matrix: arb_mat) -> bool:
    """Whether elimination of the symmetric ball matrix meets a pivot that is negative for certain."""
    n = matrix.nrows()
    rows = [[matrix[i, j] for j in range(n)] for i in range(n)]
    for k in range(n):
        pivot = rows[k][k]
        if pivot < 0:
            return True
        assert pivot > 0, "more bits are needed to decide a pivot"
        for i in range(k + 1, n):
            factor = rows[i][k] / pivot
            for j in range(i, n):
                rows[i][j] = rows[j][i] = rows[i][j] - factor * rows[k][j]
    return False


def gram(post: Posterior) -> arb_mat:
    """The kernel matrix of the stored centres (n, n) as balls."""
    points, n = post.centres, post.n_centres
    variance = arb(float(post.kernel.variance))
    entries = [
        variance * (-half_square(points[i], points[j], post)).exp() for i in range(n) for j in range(n)
    ]
    return arb_mat(n, n, entries)


def half_square(x: np.ndarray, y: np.ndarray, post: Posterior) -> arb:
    """Half the squared scaled distance of two points (d,) as a ball."""
    steps = [
        (arb(float(a)) - arb(float(b))) / arb(float(s))
        for a, b, s in zip(x, y, lengthscale(post), strict=True)
    ]
    return sum((v * v for v in steps), arb(0)) / 2


def balls(matrix: np.ndarray) -> arb_mat:
    """A matrix of doubles, exactly."""
    return arb_mat(*matrix.shape, [arb(float(v)) for v in matrix.ravel()])


def lengthscale(post: Posterior) -> np.ndarray:
    """One lengthscale per feature (d,)."""
    return np.array(np.broadcast_to(post.kernel.lengthscale, (post.n_features,)))


@dataclass(frozen=True)
class Functional:
    """f(x) = a sign mu(x) - tau S(x) + kappa without the prior mean, of which bounds are tested."""

    a: float
    tau: float
    kappa: float
    sign: float = 1.0

    def values(self, post: Posterior, X: np.ndarray) -> np.ndarray:
        """f at X (m, d) in floating point (m,): chooses points, decides nothing."""
        k = post.kernel(X, post.centres)
        S = post.kernel.variance - np.einsum("ij,jk,ik->i", k, post.precision, k)
        return self.a * self.sign * (k @ post.weights) - self.tau * S + self.kappa

    def ball(self, exact: Truth, x: np.ndarray) -> arb:
        """f(x) as a ball."""
        mean, S = exact.latent(x)
        mean = arb(self.sign) * (mean - arb(exact.post.mean))
        return arb(self.a) * mean - arb(self.tau) * S + arb(self.kappa)


@st.composite
def posteriors(
    draw: st.DrawFn,
    n: st.SearchStrategy[int] | None = None,
    d: st.SearchStrategy[int] | None = None,
    precisions: tuple[str, ...] = PRECISIONS,
    likelihood: BinaryLikelihood | None = None,
) -> Posterior:
    """Random two-class RBF posteriors, from well-behaved to condition 1e12 and data far from the origin."""
    points = draw(st.integers(1, 30) if n is None else n)
    features = draw(st.integers(1, 6) if d is None else d)
    kind, offset = draw(st.sampled_from(precisions)), draw(st.sampled_from(OFFSETS))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_posterior(rng, points, features, kind, offset, likelihood)


def random_posterior(
    rng: np.random.Generator,
    n: int,
    d: int,
    kind: str = "laplace",
    offset: float = 0.0,
    likelihood: BinaryLikelihood | None = None,
    make: Callable[[Any, float], Kernel] = RBF,
) -> Posterior:
    """n centres `offset` lengthscales from the origin; lengthscales 0.05 to 50, variances 1e-3 to 1e3;
    `make`: the kernel of these two.
    """
    ard = rng.random() < 0.5
    scale = 10.0 ** rng.uniform(-1.3, 1.7, size=d) if ard else np.full(d, 10.0 ** rng.uniform(-1.3, 1.7))
    variance = 10.0 ** rng.uniform(-3, 3)
    spread = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 0.7)
    centres = (spread + offset * rng.choice([-1.0, 1.0], size=d)) * scale
    weights = rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 3) / variance
    gram, known = make(1.0, variance)(spread), kind == "sites"  # the inverse of K + 1 / sites, which are told
    sites = 10.0 ** rng.uniform(-3, 2, size=n if known else 0) / variance
    R = np.linalg.inv(gram + np.diag(1.0 / sites)) if known else _precision(rng, kind, gram, variance)
    return Posterior(
        centres,
        weights,
        0.5 * (R + R.T),
        kernel=make(scale if ard else float(scale[0]), variance),
        likelihood=Probit() if likelihood is None else likelihood,
        mean=float(rng.choice([0.0, 0.0, 0.7, -1.3])),
        factors={"site_precision": sites} if known else {},
    )


def _precision(rng: np.random.Generator, kind: str, gram: np.ndarray, variance: float) -> np.ndarray:
    n = len(gram)
    if kind == "zero":
        return np.zeros((n, n))
    if kind in ("laplace", "variational"):
        noise = 10.0 ** rng.uniform(-6, 6, size=n)
        R = np.linalg.inv(gram + np.diag(variance * noise))
        if kind == "variational":  # less certain than the prior in some directions: indefinite, contraction 1
            explained = R @ gram @ rng.standard_normal((n, 2))
            R -= explained @ explained.T * 10.0 ** rng.uniform(-2, 2) / variance
    else:
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        values = 10.0 ** rng.uniform(-12, 0, size=n) if kind == "psd" else rng.standard_normal(n)
        R = (Q * values) @ Q.T * 10.0 ** rng.uniform(-3, 1) / variance
    return 0.5 * (R + R.T)


@dataclass(frozen=True)
class BoxCase:
    """A box (d,) in raw units and a reference point in it."""

    lower: np.ndarray
    upper: np.ndarray
    reference: np.ndarray

    def points(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Points of the box (m, d): vertices, interior, faces through the reference, near the reference."""
        shape = (count, len(self.lower))
        vertices = np.where(rng.random(shape) < 0.5, self.lower, self.upper)
        inside = self.lower + rng.random(shape) * (self.upper - self.lower)
        faces = np.where(rng.random(shape) < 0.5, vertices, self.reference)
        near = self.reference + (inside - self.reference) * 10.0 ** rng.uniform(-8, 0, (count, 1))
        every = np.concatenate([vertices, inside, faces, near, self.reference[None]])
        return np.clip(every, self.lower, self.upper)


def random_box(rng: np.random.Generator, post: Posterior, largest: float = 3.0) -> BoxCase:
    """A box near the data, 1e-6 to `largest` lengthscales wide; reference at a vertex, a face or inside."""
    d, scale = post.n_features, lengthscale(post)
    near = post.centres[rng.integers(post.n_centres)]
    near = near + scale * rng.standard_normal(d) * 10.0 ** rng.uniform(-2, 0.5)
    width = scale * 10.0 ** rng.uniform(-6, np.log10(largest)) * rng.uniform(0.1, 1.0, size=d)
    lower = near - width
    upper = np.maximum(near + width, np.nextafter(lower, np.inf))
    share = np.where(rng.random(d) < 0.25, rng.random(d), rng.choice([0.0, 0.5, 1.0], size=d))
    return BoxCase(lower, upper, np.clip(lower + share * (upper - lower), lower, upper))


def around(slice_, lower, upper, reference):
    """The expansion at a reference over the box [lower, upper]."""
    return expand(slice_, BoxDomain(*scaled_box(lower, upper, reference, slice_.lengthscale)), reference)
