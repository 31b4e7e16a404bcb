"""Random batches of boxes, and what two answers to the same question must not say of each other."""

from __future__ import annotations

import numpy as np

import gpcert as gc
from helpers.oracle import lengthscale, random_posterior

KINDS = ("laplace", "psd", "indefinite", "laplace")
KERNELS = (gc.RBF, gc.RBF, gc.RBF, gc.Matern32, gc.Matern52, gc.RationalQuadratic)
LINKS = (gc.Probit(), gc.Logit(), gc.Probit(2.0), gc.FiveErf(), gc.Floored(gc.Probit(), 0.01))


def random_questions(rng: np.random.Generator, regions: int = 20) -> tuple[gc.Posterior, list]:
    """A two-class model with one stationary kernel, boxes and balls near its data: of one norm, or both."""
    norms = ((np.inf,), (2.0,), (np.inf, 2.0))[int(rng.integers(3))]
    kind, link = KINDS[int(rng.integers(4))], LINKS[int(rng.integers(len(LINKS)))]
    offset = float(rng.choice([0.0, 0.0, 1e3]))
    n, d = int(rng.integers(2, 25)), int(rng.integers(1, 6))
    post = random_posterior(rng, n, d, kind, offset, link, KERNELS[int(rng.integers(len(KERNELS)))])
    scale = lengthscale(post)
    count = int(rng.integers(1, post.n_features + 1))
    features = sorted(rng.choice(post.n_features, count, replace=False).tolist())
    found = []
    for _ in range(regions):
        x = post.centres[rng.integers(post.n_centres)] + 0.7 * scale * rng.standard_normal(post.n_features)
        r = 10.0 ** rng.uniform(-2, 0)
        shape, norm = int(rng.integers(4)), norms[int(rng.integers(len(norms)))]
        if shape == 0 and count == post.n_features:
            found.append(gc.Box(x - r * scale, x + r * scale * rng.random(post.n_features)))
        elif shape == 1:
            domain = x - r * scale * rng.random(post.n_features), x + 3.0 * r * scale
            found.append(gc.Ball(x, r, norm, features, domain, scale))
        else:
            found.append(gc.Ball(x, float(r * scale.min()), norm, features))
    return post, found


def contradictions(batch: list, alone: list) -> list[str]:
    """What is said in a batch and denied by single answers, ranges or verdicts."""
    found = []
    for i, (one, two) in enumerate(zip(batch, alone, strict=True)):
        if isinstance(one, gc.Verdict):
            if {str(one.status), str(two.status)} == {"safe", "unsafe"}:
                found.append(f"{i}: {one.status} and {two.status}")
            one, two = (one.margin,), (two.margin,)
        else:
            one, two = (one.min, one.max), (two.min, two.max)
        for a, b in zip(one, two, strict=True):
            if not (a.lower <= b.upper and b.lower <= a.upper):
                found.append(f"{i}: {a} and {b}")
    return found
