"""For the tests of ranges: an adversary, and random queries. What is true is decided by `judge`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from gpcert.kernels import (
    RBF,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    radial_terms,
)
from gpcert.likelihoods import Logit, Probit
from gpcert.posterior import Posterior
from gpcert.questions.ranges import probability_range
from gpcert.regions import Ball, Box, Region
from gpcert.results import ProbabilityRange
from judge.refute import complaints, same


def extreme_points(
    post: Posterior, region: Region, label: int, rng: np.random.Generator
) -> tuple[np.ndarray, ...]:
    """Points of the region (d,) of small and of large P(label): sampling, then L-BFGS from the best few."""
    inner = region.inner_box()
    low, high = inner.lower, inner.upper
    d = len(low)
    part = rng.random((160, d))
    inside = (1.0 - part) * low + part * high
    vertices = np.where(rng.random((96, d)) < 0.5, low, high)
    mixed = np.where(rng.random((64, d)) < 0.5, inside[:64], vertices[:64])
    centred = inner.centre + (inside[:64] - inner.centre) * 10.0 ** rng.uniform(-3, 0, (64, 1))
    data = post.centres[rng.permutation(post.n_centres)[:64]]
    X = np.clip(
        np.concatenate([inside, vertices, mixed, centred, data, [low, high, inner.centre]]), low, high
    )
    if isinstance(region, Ball) and region.norm != math.inf:
        X = np.array([region.project(x) for x in X])
    p = post.probability(X)[:, label]
    order = np.argsort(p, kind="stable")
    refine = _refine if isinstance(region, Box) or region.norm == math.inf else _refine_in_ball
    return tuple(refine(post, region, label, sign, X[order[::sign][:3]]) for sign in (1, -1))


def _refine_in_ball(post: Posterior, region: Ball, label: int, sign: int, starts: np.ndarray) -> np.ndarray:
    """The best point found for sign * P(label) from the starts (m, d), by projected gradients."""
    width = region.inner_box().upper - region.inner_box().lower
    best = [(sign * post.probability(x[None])[0, label], tuple(x)) for x in starts]
    for start in starts:
        x, length = start, 1.0
        value = sign * post.probability(x[None])[0, label]
        for _ in range(30):
            slope = sign * post.probability_gradient(x[None])[0, label] * width
            step = length * slope / (np.abs(slope).max() or 1.0) * width
            new = region.project(x - step)
            found = sign * post.probability(new[None])[0, label]
            length, x, value = (2.0 * length, new, found) if found < value else (0.3 * length, x, value)
        best.append((value, tuple(x)))
    return np.array(min(best)[1])


def _refine(post: Posterior, region: Region, label: int, sign: int, starts: np.ndarray) -> np.ndarray:
    """The best point found for sign * P(label) from the starts (m, d), by L-BFGS on the log-odds."""
    low, high = region.inner_box().lower, region.inner_box().upper
    width = np.where(high > low, high - low, 1.0)

    def objective(y: np.ndarray) -> tuple[float, np.ndarray]:
        x = np.clip(low + y * width, low, high)[None]
        p = post.probability(x)[0]
        slope = post.probability_gradient(x)[0, label]
        spread = max(float(p[0] * p[1]), 1e-280)
        odds = math.log(max(p[label], 1e-290)) - math.log(max(p[1 - label], 1e-290))
        return sign * odds, sign * slope * width / spread

    found = [starts[0]]
    bounds = list(zip(np.zeros_like(low), (high - low) / width, strict=True))
    for start in starts:
        result = minimize(
            objective,
            (start - low) / width,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": 60},
        )
        found.append(np.clip(low + result.x * width, low, high))
    return found[int(np.argmin(sign * post.probability(np.array(found))[:, label]))]


#: A random query is one choice per line, and a seed for its numbers. hypothesis draws and shrinks them (the
#: simplest choice comes first), the soak run picks them at random. Sizes that cost little are repeated.
CHOICES: dict[str, Sequence[Any]] = {
    "n": (1, 1, 2, 2, 3, 3, 5, 5, 8, 8, 13, 13, 30, 80, 200),
    "d": (1, 1, 1, 2, 2, 2, 3, 3, 5, 8, 13, 25, 30, 60),
    "link": ("probit", "logit", "scaled probit"),
    "precision": ("laplace", "zero", "spectrum", "stiff", "excess", "indefinite"),
    "layout": ("normal", "multimodal", "ard", "duplicates", "symmetric", "offset"),
    "shape": ("box", "ball", "features", "domain", "scale", "thin", "point"),
    "place": ("data", "far"),
    "width": (0.0, 1e-18, 1e-9, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0),
    "label": (1, 0),
    "tolerance": (0.02, 0.1, 1e-3, 1e-9),
    "stop": ("nodes", "few nodes", "seconds", "progress", "interrupt"),
    "kernel": ("rbf",),  # KERNELS in the tests of kernels
    "seed": range(2**30),
    "norm": (math.inf, math.inf, 2.0, 1.0, 1.5, 3.0, 0.0),
}

#: "other": metrics that are not proportional.
KERNELS = (
    "matern52",
    "matern32",
    "matern12",
    "rational quadratic",
    "sum",
    "product",
    "other sum",
    "other product",
    "sum of products",
)


@dataclass(frozen=True)
class Case:
    """One random query, reproduced by its fields; `width`: of the region's diagonal, in lengthscales."""

    n: int
    d: int
    link: str
    precision: str
    layout: str
    shape: str
    place: str
    width: float
    label: int
    tolerance: float
    stop: str
    seed: int
    kernel: str = "rbf"
    norm: float = math.inf  #: of a ball

    @classmethod
    def pick(cls, rng: np.random.Generator) -> Case:
        """A random case."""
        return cls(**{name: values[int(rng.integers(len(values)))] for name, values in CHOICES.items()})


def random_posterior(case: Case, rng: np.random.Generator) -> Posterior:
    """A posterior of the case's kind: lengthscales 0.05 to 50, variance 1e-3 to 1e3, means of any size."""
    n, d = case.n, case.d
    l = 10.0 ** rng.uniform(np.log10(0.05), np.log10(50.0), d if case.layout == "ard" else ())
    Z = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1.5, 0.5)
    if case.layout == "multimodal":
        Z = rng.uniform(-3.0, 3.0, (n, d))
    if case.layout == "duplicates":
        Z = Z[rng.integers((n + 1) // 2, size=n)]
    if case.layout == "symmetric":
        Z = np.where(np.arange(n)[:, None] % 2, -np.roll(Z, 1, axis=0), Z)
    if case.layout == "offset":
        Z += rng.choice([-1.0, 1.0], d) * 10.0 ** rng.uniform(1, 6)
    kernel = random_kernel(case.kernel, l, 10.0 ** rng.uniform(-3, 3), rng, d)
    X = Z * l
    R = random_precision(case.precision, kernel(X), rng)
    weights = rng.standard_normal(n) * 10.0 ** rng.uniform(-1, 2.5) / (kernel.prior_variance * n**0.5)
    if case.layout == "symmetric":
        weights = np.where(np.arange(n) % 2, -np.roll(weights, 1), weights)
    link = {"probit": Probit(), "logit": Logit(), "scaled probit": Probit(10.0 ** rng.uniform(-1, 1))}[
        case.link
    ]
    mean = float(rng.choice([0.0, rng.normal(), kernel.prior_variance**0.5 * rng.normal()]))
    return Posterior(X, weights, R, kernel=kernel, likelihood=link, mean=mean)


def random_kernel(kind: str, l: Any, variance: float, rng: np.random.Generator, d: int) -> Kernel:
    """A kernel of the kind with lengthscales about l, a number or (d,)."""
    if kind == "rbf":
        return RBF(l, variance)

    def other() -> np.ndarray:
        return np.broadcast_to(l, (d,)) * 10.0 ** rng.uniform(0, 0.7, d)

    alpha, wider = 10.0 ** rng.uniform(-1, 2), l * 10.0 ** rng.uniform(0, 1)
    simple = [
        lambda scale, size: Matern52(scale, size),
        lambda scale, size: Matern32(scale, size),
        lambda scale, size: Matern12(scale, size),
        lambda scale, size: RationalQuadratic(scale, size, alpha),
        lambda scale, size: RBF(scale, size),
    ]
    one, two, three = (simple[i] for i in rng.permutation(5)[:3])
    return {
        "matern52": lambda: simple[0](l, variance),
        "matern32": lambda: simple[1](l, variance),
        "matern12": lambda: simple[2](l, variance),
        "rational quadratic": lambda: simple[3](l, variance),
        "sum": lambda: one(l, variance) + two(wider, variance),
        "product": lambda: one(l, variance) * two(wider, 2.0),
        "other sum": lambda: one(l, variance) + two(other(), 0.5 * variance),
        "other product": lambda: one(l, variance) * two(other(), 0.7),
        "sum of products": lambda: (one(l, variance) + two(other(), variance)) * three(other(), 1.5),
    }[kind]()


def shortest(post: Posterior) -> np.ndarray:
    """The smallest lengthscale of the kernel along each feature (d,)."""
    groups = [group for term in radial_terms(post.kernel, post.n_features) for group in term]
    return np.min([group.lengthscale for group in groups], axis=0)


def small_model(
    n: int = 12,
    d: int = 2,
    likelihood: str = "probit",
    seed: int = 0,
    kernel: Kernel = RBF(0.8, 4.0),  # noqa: B008 - frozen
    **options: Any,
) -> Posterior:
    """A well-conditioned model with several valleys around the origin; `options` as for the posterior."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    R = np.linalg.inv(kernel(X) + np.diag(10.0 ** rng.uniform(-1, 1, n)))
    weights = rng.standard_normal(n)
    return Posterior(X, weights, 0.5 * (R + R.T), kernel=kernel, likelihood=likelihood, **options)


def random_precision(kind: str, K: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Symmetric (n, n) for the Gram matrix K: see the names in CHOICES."""
    n = len(K)
    if kind == "zero":
        return np.zeros((n, n))
    if kind in ("laplace", "stiff"):  # R = (K + W^-1)^-1; stiff: W up to 1e10, R close to K^-1
        W = 10.0 ** (rng.uniform(-4, 0, n) if kind == "laplace" else rng.uniform(0, 10, n)) / K[0, 0]
        root = np.sqrt(W)
        R = root[:, None] * np.linalg.inv(np.eye(n) + root[:, None] * K * root) * root
    else:  # condition up to 1e12; excess: R > K^-1, so that variances are clipped at 0; indefinite: R < 0 too
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        values = 10.0 ** rng.uniform(-12, 0, n)
        values[0] = 1.0
        if kind == "indefinite":
            values *= rng.choice([-1.0, 1.0], n)
        size = {"spectrum": 1.0, "excess": 10.0 ** rng.uniform(0, 1), "indefinite": 1.0}[kind]
        roots = Q * np.sqrt(np.abs(values))
        R = (Q * values) @ Q.T * (size / float(np.linalg.eigvalsh(roots.T @ K @ roots).max()))
    return 0.5 * (R + R.T)


def random_region(case: Case, post: Posterior, rng: np.random.Generator) -> Region:
    """A region of the case's shape, place and width, in raw units."""
    d = case.d
    l = shortest(post)
    x = (
        post.centres[rng.integers(post.n_centres)]
        + l * rng.standard_normal(d) * 10.0 ** rng.uniform(-3, 0.3) / d**0.5
    )
    if case.place == "far":
        x = x + l * rng.choice([-1.0, 1.0], d) * 10.0 ** rng.uniform(0.5, 3)
    half = 0.5 * case.width * l / d**0.5
    if case.shape == "point":
        return Box(x, x)
    if case.shape in ("box", "thin"):
        still = rng.random(d) < (0.5 if case.shape == "thin" else 0.0)
        below, above = (np.where(still, 0.0, half * rng.random(d)) for _ in range(2))
        return Box(x - below, x + above)
    radius = float(half.min())
    features = rng.permutation(d)[: rng.integers(1, d + 1)] if case.shape == "features" else None
    domain = (np.minimum(x - rng.random(d) * half, x), x) if case.shape == "domain" else None
    scale = 10.0 ** rng.uniform(-1, 1, d) if case.shape == "scale" else None
    if case.norm == 0:  # a few coordinates, anywhere around x
        radius, domain = float(rng.integers(0, min(d, 4) + 1)), domain or (x - half, x + half)
    return Ball(x, radius, case.norm, features=features, domain=domain, scale=scale)


def ask(
    case: Case, post: Posterior, region: Region, rng: np.random.Generator, method: str = "auto"
) -> ProbabilityRange:
    """The case's question, stopped in the case's way."""
    calls = int(rng.integers(1, 12))

    def progress(*_: float) -> bool:
        nonlocal calls
        calls -= 1
        if calls <= 0 and case.stop == "interrupt":
            raise KeyboardInterrupt
        return calls <= 0 and case.stop == "progress"

    limits = {
        "nodes": {"max_nodes": 40},
        "few nodes": {"max_nodes": int(rng.integers(0, 6))},
        "seconds": {"max_seconds": 10.0 ** rng.uniform(-4, -1), "max_nodes": 40},
        "progress": {"max_nodes": 40, "progress": progress},
        "interrupt": {"max_nodes": 40, "progress": progress},
    }[case.stop]
    return probability_range(post, region, case.label, method, tolerance=case.tolerance, **limits)


def falsehoods(case: Case, method: str = "auto") -> list[str]:
    """Everything that is not true about the answer to the case; each is decided in ball arithmetic."""
    rng = np.random.default_rng(case.seed)
    post = random_posterior(case, rng)
    region = random_region(case, post, rng)
    answer = ask(case, post, region, rng, method)
    return refute(post, region, answer, rng)


def refute(post: Posterior, region: Region, answer: ProbabilityRange, rng: np.random.Generator) -> list[str]:
    """What the judge finds false about the answer to a question about the region, which it must name."""
    named = [] if same(answer.region, region) else ["the answer is about another region"]
    return named + complaints(post, [answer], rng, extreme_points(post, region, answer.label, rng))
