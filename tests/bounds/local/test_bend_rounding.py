"""The rounding of planes of second order (G6 to G8), in ball arithmetic where it is all that can go wrong.

On a set of 2^-60 lengthscales theta is about as small, so that the form lies next to the truth, and a
precision with large entries of both signs cancels most of d^T J d.
"""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb

import gpcert as gc
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.geometry.domain import BoxDomain
from gpcert.bounds.levels.registry import curves_of
from gpcert.bounds.local.gaussian.plane import plane_at
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.rounding import gamma
from helpers.oracle import bits

BITS = 500
REACH = 2.0**-60
REFERENCE = np.array([0.5, -0.25])


def cancelling(rng, variance, offset, definite, n=6):
    """Near-duplicate centres, and the inverse of their Gram matrix with noise, a precision without defect
    (F5), or half of it and a negative direction, whose variances are not lifted (M2): nothing else hides
    a rounding. The link's c is large, so that what is known of S hardly matters to A.
    """
    noise = 1e-5 if definite else 1e-7
    gap = np.round(rng.uniform(0.5, 1.0, (n // 2, 2)) * 2.0**12) * 2.0**-28
    first = np.round(rng.uniform(-1.5, 1.5, (n // 2, 2)) * 2.0**20) * 2.0**-20
    points = np.concatenate([first, first + gap])
    R = np.linalg.inv(gc.RBF(1.0, 1.0)(points) + noise * np.eye(n))
    R = R if definite else 0.5 * R - np.full((n, n), 1.0 / n)
    sites = {"site_precision": np.full(n, 1.0 / (noise * variance))} if definite else {}
    kernel, weights = gc.RBF(1.0, variance), rng.standard_normal(n) / variance
    R, link = 0.5 * (R + R.T) / variance, gc.Probit(1e-6 / np.sqrt(variance))
    return gc.Posterior(points + offset, weights, R, kernel=kernel, likelihood=link, factors=sites)


def claimed(plane, d):
    """The gain of e^r f at the displacement d (2,) as a ball, before its rounding is subtracted, which comes
    second; less what `subtract` takes for adding the parts up.
    """
    reach = plane.around.domain.reach
    flat = plane.lower_bound(True)._replace(value=0.0, point=reach)
    parts, rest = plane._between(flat)
    size = float(reach @ sum(np.abs(part) for part in parts) @ reach + rest.diagonal @ reach**2)
    matrix = sum(parts) - np.diag(rest.diagonal)
    form = sum(arb(float(matrix[i, j])) * d[i] * d[j] for i in range(2) for j in range(2))
    return form / 2 - arb(gamma(60) * size), arb(rest.rounding)


def kernels(post, x):
    """k(x) as balls; lengthscale 1."""
    squares = [sum((a - arb(float(b))) ** 2 for a, b in zip(x, each, strict=True)) for each in post.centres]
    return [arb(float(post.kernel.variance)) * (-square / 2).exp() for square in squares]


def product(R, left, right):
    n = range(len(R))
    return sum((arb(float(R[i, j])) * left[i] * right[j] for i in n for j in n), arb(0))


def space(post, level, plane, start, d):
    """What lies between: e^r tau |V (k - kh)|^2 where the curve rises with S, e^r |psi - psih|^2 over the
    line of a variance that falls, else e^r nu (B - q).
    """
    model, R = model_of(post), post.precision
    here = [arb(float(c)) for c in start]
    k, kh = kernels(post, [a + b for a, b in zip(here, d, strict=True)]), kernels(post, here)
    grow = (sum(each * each for each in d) / 2).exp()
    step = [a - b for a, b in zip(k, kh, strict=True)]
    if not plane.bend.falls:
        defect = sum((arb(float(e)) * s * s for e, s in zip(model.parts.defect, step, strict=True)), arb(0))
        return arb(plane.bend.steep) / 2 * (product(R, step, step) + defect) * grow
    prior = arb(model.prior) + arb(model.lift)
    if isinstance(level, tuple):
        return (2 * prior * (1 - 1 / grow) - product(R, step, step)) * grow
    c = arb(level.c_low)
    A, B = ((c + prior - product(R, each, each)).sqrt() for each in (kh, k))
    return arb(plane.bend.steep) * (B - (c + prior / grow - product(R, k, kh)) / A) * grow


@pytest.mark.parametrize("offset", [0.0, 32.0])
@pytest.mark.parametrize("variance", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("p", [0.1, 0.9, (-1.0, 0.0), (1.0, 0.0)])
def test_the_rounding_of_a_bent_plane_is_paid_for(p, variance, offset):
    """True with what is subtracted for rounding, and without it false for some of these models."""
    rng = np.random.default_rng(5)
    crossed, start, sides = 0, REFERENCE + offset, np.full(2, REACH)
    for _ in range(8):
        rises = p[0] > 0 if isinstance(p, tuple) else p > 0.5
        post = cancelling(rng, variance, offset, rises)
        slice_ = make_slice(model_of(post), start, np.arange(2))
        level = p if isinstance(p, tuple) else curves_of(post.likelihood).level(p)
        plane = plane_at(slice_, BoxDomain(-sides, sides), start, level, slice_.largest_variance)
        with bits(BITS):
            for direction in ([1, 1], [1, -1], [1, 0], [0, -1]):
                d = [arb(REACH) * each for each in direction]
                (gain, paid), known = claimed(plane, d), space(post, level, plane, start, d)
                assert gain - paid <= known
                crossed += bool(gain > known)
    assert crossed > 0
