"""Random batches of regions, and what two answers to the same question must not say of each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from unittest.mock import patch

import numpy as np

import gpcert as gc
from gpcert.engine import fewer, thin
from gpcert.engine.facts import FEW, knows
from gpcert.engine.labels import knows_labels
from helpers.oracle import random_posterior
from judge.models import Model

KINDS = ("laplace", "psd", "indefinite", "laplace")
KERNELS = (gc.RBF, gc.RBF, gc.RBF, gc.Matern32, gc.Matern52, gc.RationalQuadratic)
LINKS = (gc.Probit(), gc.Logit(), gc.Probit(2.0), gc.FiveErf(), gc.Floored(gc.Probit(), 0.01))
SEVERAL = ("softmax", "independent", "one-vs-rest probit", "one-vs-rest logit", "one-vs-rest erf")


def random_questions(rng: np.random.Generator, regions: int = 20) -> tuple[gc.Posterior, list]:
    """A two-class model with one stationary kernel, boxes and balls near its data: of one norm, or both."""
    n, d = int(rng.integers(2, 25)), int(rng.integers(1, 6))
    kind, offset = KINDS[int(rng.integers(4))], float(rng.choice([0.0, 0.0, 1e3]))
    kernel, link = KERNELS[int(rng.integers(len(KERNELS)))], LINKS[int(rng.integers(len(LINKS)))]
    post = random_posterior(rng, n, d, kind, offset, link, kernel)
    return post, random_regions(rng, post, regions, (-2.0, 0.0))


def many_features(rng: np.random.Generator, regions: int) -> tuple[gc.Posterior, list]:
    """So many features move that what is left is bounded by order three as a form, and in shells; half of the
    regions are near ties.
    """
    n, d = int(rng.integers(8, 30)), FEW + int(rng.integers(1, 8))
    X = rng.standard_normal((n, d))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n) > 0).astype(int)
    y[:2] = 0, 1
    kernel = gc.RBF(float(rng.uniform(3.0, 9.0)), 10.0 ** rng.uniform(0.0, 1.5))
    post = gc.GPClassifier(kernel, max_evals=0).fit(X, y).posterior_
    ties = [near_tie(rng, post, X[int(rng.integers(n))]) for _ in range(regions // 2)]
    return post, ties + random_regions(rng, post, regions - len(ties), (-1.8, -0.6), list(range(d)))


def near_tie(rng: np.random.Generator, post: gc.Posterior, x: np.ndarray) -> gc.Ball:
    """A ball around x (D,) a little smaller than one that a few steps against the gradient find a
    counterexample in, if there is one.
    """
    x = x + 0.1 * rng.standard_normal(len(x))
    sign = np.sign(post.latent(x[None])[0][0])
    small, large = 0.0, 4.0
    for _ in range(12):
        radius, z = 0.5 * (small + large), x
        for _ in range(3):
            z = x - sign * radius * np.sign(post.latent_gradient(z[None])[0][0])
        lost = sign * post.latent(z[None])[0][0] < 0
        small, large = (small, radius) if lost else (radius, large)
    return gc.Ball(x, large * (1.0 - 10.0 ** rng.uniform(-2.5, -0.7)))


def predicted(rng: np.random.Generator, regions: int) -> tuple[gc.Posterior, list]:
    """A model whose sites are known, as one of very many centres has them (`as_if_large`)."""
    link, kernel = LINKS[int(rng.integers(3))], KERNELS[int(rng.integers(len(KERNELS)))]
    post = random_posterior(
        rng, int(rng.integers(8, 40)), int(rng.integers(1, 6)), "sites", 0.0, link, kernel
    )
    return post, random_regions(rng, post, regions, (-2.0, 0.0))


def several_classes(rng: np.random.Generator, regions: int) -> tuple[gc.Posterior, list]:
    """A model with several classes."""
    post = Model(
        kind=SEVERAL[int(rng.integers(len(SEVERAL)))],
        kernel=str(rng.choice(["rbf", "rbf", "matern52", "rational quadratic", "matern32"])),
        precision=str(rng.choice(["laplace", "laplace", "zero", "indefinite"])),
        layout=str(rng.choice(["normal", "ard", "offset"])),
        n=int(rng.integers(2, 12)),
        d=int(rng.integers(1, 4)),
        classes=int(rng.integers(3, 6)),
        seed=int(rng.integers(10**6)),
    ).posterior()
    return post, random_regions(rng, post, regions, (-3.0, -0.5))


def large(rng: np.random.Generator, regions: int, n: int = 3100) -> tuple[gc.Posterior, list]:
    """So many centres that planes are those of predictors, seen through a quarter of them."""
    X = rng.uniform(0.0, 1.0, (n, 12))
    y = (np.sin(4.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(n) > 0.9).astype(int)
    post = gc.GPClassifier(gc.RBF(1.5, 20.0), max_evals=0).fit(X, y).posterior_
    return post, random_regions(rng, post, regions, (-2.0, -0.5))


@contextmanager
def as_if_large() -> Iterator[None]:
    """Small models have planes of predictors (J17), seen through some of their centres (J23)."""
    with (
        patch.multiple(thin, MANY=1, RANK=4, _SMALL=np.inf),
        patch.multiple(fewer, MANY=6, SHARE=2, _SMALL=np.inf),
    ):
        yield


def random_regions(
    rng: np.random.Generator,
    post: gc.Posterior,
    regions: int,
    sizes: tuple[float, float],
    features: list[int] | None = None,
) -> list:
    """Boxes and balls near the centres, of one norm or both, some cut by domains; `sizes`: powers of ten, in
    lengthscales; `features`: those that move, else some of them.
    """
    norms = ((np.inf,), (2.0,), (np.inf, 2.0))[int(rng.integers(3))]
    scale = np.min([np.broadcast_to(k.lengthscale, (post.n_features,)) for k in post.kernels], axis=0)
    count = int(rng.integers(1, post.n_features + 1))
    if features is None:
        features = sorted(rng.choice(post.n_features, count, replace=False).tolist())
    found = []
    for _ in range(regions):
        x = post.centres[rng.integers(post.n_centres)] + 0.7 * scale * rng.standard_normal(post.n_features)
        r = 10.0 ** rng.uniform(*sizes)
        shape, norm = int(rng.integers(4)), norms[int(rng.integers(len(norms)))]
        if shape == 0 and len(features) == post.n_features:
            found.append(gc.Box(x - r * scale, x + r * scale * rng.random(post.n_features)))
        elif shape == 1:
            domain = x - r * scale * rng.random(post.n_features), x + 3.0 * r * scale
            found.append(gc.Ball(x, r, norm, features, domain, scale))
        else:
            found.append(gc.Ball(x, float(r * scale.min()), norm, features))
    return found


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


#: Families of models, in the order of their turns, and the regions of one model.
FAMILIES = {
    "two classes": (random_questions, 32),
    "many features": (many_features, 32),
    "several classes": (several_classes, 32),
    "two classes again": (random_questions, 32),
    "predictors": (predicted, 32),
    "many centres": (large, 16),
}


def asked_both_ways(
    name: str, seed: int, nodes: int = 14, regions: int | None = None
) -> tuple[Counter, list[str]]:
    """How much was asked about one model of a family, in a batch and alone, and what was contradicted."""
    rng = np.random.default_rng(seed)
    make, usual = FAMILIES[name]
    with as_if_large() if name == "predictors" else nullcontext():
        post, some = make(rng, regions or usual)
        if not (knows_labels if post.n_classes > 2 else knows)(post):
            return Counter({"models left alone": 1}), []
        count, found = _asked(post, some, rng, nodes)
    family = name.removesuffix(" again")
    return count + Counter({"models": 1, family: count["verdicts"] + count["ranges"]}), found


def _asked(post: gc.Posterior, regions: list, rng: np.random.Generator, nodes: int) -> tuple[Counter, list]:
    limits = {"max_nodes": nodes, "n_jobs": 1}
    X, count = np.stack([region.centre for region in regions]), Counter()
    threshold = 0.5 if post.n_classes > 2 else float(rng.choice([0.5, 0.5, 0.8]))
    verdicts = list(gc.certify(post, X, regions, threshold, **limits))
    single = [gc.certify(post, x, each, threshold, **limits) for x, each in zip(X, regions, strict=True)]
    found = contradictions(verdicts, single)
    count["verdicts"] = len(regions)
    count["decided in both"] = sum(
        "unknown" not in (str(a.status), str(b.status)) for a, b in zip(verdicts, single, strict=True)
    )
    if post.n_classes == 2:
        tolerance = float(rng.choice([0.2, 0.02, 1e-3]))
        ranges = list(gc.probability_range(post, regions, tolerance=tolerance, **limits))
        alone = [gc.probability_range(post, each, tolerance=tolerance, **limits) for each in regions]
        found += contradictions(ranges, alone)
        count["ranges"] = len(regions)
        count["ranges at the root"] = sum(answer.nodes <= 2 for answer in ranges)
    return count, found
