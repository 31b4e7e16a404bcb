"""Ground truth for the tests of ranges: a posterior in ball arithmetic, an adversary, and random queries.

Nothing is shared with `gpcert.bounds`: kernel, quadratic form and links are written again, in python-flint.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import acb, arb, arb_mat, ctx
from scipy.optimize import minimize
from scipy.special import expit

from gpcert.kernels import (
    RBF,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Product,
    RationalQuadratic,
    Sum,
    radial_terms,
)
from gpcert.likelihoods import Logit, Probit
from gpcert.posterior import Posterior
from gpcert.questions import probability_range
from gpcert.regions import Ball, Box, Region, project
from gpcert.results import ProbabilityRange

Point = np.ndarray | Sequence[float | arb]

PRECISIONS = (160, 640, 2560)  # bits: cancellation in models of condition 1e12 needs more than one


def covariance(kernel: Kernel, difference: Sequence[arb]) -> arb:
    """k(x, x') for x - x' = difference (d,), in balls."""
    if isinstance(kernel, Sum):
        return sum((covariance(part, difference) for part in kernel.parts), arb(0))
    if isinstance(kernel, Product):
        return math.prod((covariance(part, difference) for part in kernel.parts), start=arb(1))
    lengthscale = np.broadcast_to(kernel.lengthscale, (len(difference),)).tolist()
    squares = ((v / arb(l)) ** 2 for v, l in zip(difference, lengthscale, strict=True))
    square = sum(squares, arb(0)).nonnegative_part()
    if isinstance(kernel, RBF):
        shape = (-square / 2).exp()
    elif isinstance(kernel, RationalQuadratic):
        shape = (1 + square / (2 * arb(kernel.alpha))) ** -arb(kernel.alpha)
    else:
        nu2 = {Matern12: 1, Matern32: 3, Matern52: 5}[type(kernel)]
        s = (nu2 * square).sqrt()
        shape = {1: arb(1), 3: 1 + s, 5: 1 + s + s * s / 3}[nu2] * (-s).exp()
    return arb(float(kernel.variance)) * shape


class Exact:
    """Mean, variance and probability of a two-class posterior at a point (d,) of doubles or balls."""

    def __init__(self, post: Posterior) -> None:
        n = post.n_centres
        self.post = post
        self._precision = arb_mat(n, n, [arb(float(v)) for v in post.precision.ravel()])

    def latent(self, x: Point) -> tuple[arb, arb]:
        """Latent mean and (unclipped) latent variance at x (d,)."""
        point = [v if isinstance(v, arb) else arb(float(v)) for v in x]
        k = []
        for row in self.post.centres.tolist():
            k.append(covariance(self.post.kernel, [arb(c) - p for c, p in zip(row, point, strict=True)]))
        mean = sum(
            (arb(w) * v for w, v in zip(self.post.weights.tolist(), k, strict=True)), arb(self.post.mean)
        )
        column = arb_mat(len(k), 1, k)
        prior = covariance(self.post.kernel, [arb(0)] * len(point))  # here: at the precision of the context
        return mean, prior - (column.transpose() * self._precision * column)[0, 0]

    def probability(self, x: Point, label: int) -> arb:
        """P(label) at x (d,), at the precision of the context."""
        mean, variance = self.latent(x)
        mean, variance = (mean if label == 1 else -mean), variance.nonnegative_part()
        if isinstance(self.post.likelihood, Probit):
            spread = variance + 1 / arb(self.post.likelihood.scale) ** 2
            return (-mean / (2 * spread).sqrt()).erfc() / 2
        return logistic_normal(mean, variance)

    def at_most(self, x: Point, label: int, bound: float) -> bool:
        """Whether P(label) <= bound at x (d,), decided with certainty."""
        return bound >= 1.0 or self._decide(x, label, lambda p: (p <= bound, p > bound))

    def at_least(self, x: Point, label: int, bound: float) -> bool:
        """Whether P(label) >= bound at x (d,), decided with certainty."""
        return bound <= 0.0 or self._decide(x, label, lambda p: (p >= bound, p < bound))

    def _decide(self, x: Point, label: int, compare: Callable[[arb], tuple[bool, bool]]) -> bool:
        for _ in at_rising_precision():
            yes, no = compare(self.probability(x, label))
            if yes or no:
                return yes
        raise AssertionError(f"{PRECISIONS[-1]} bits do not decide the comparison at {x!r}")


def at_rising_precision() -> Iterator[int]:
    """Sets the context's precision to one of PRECISIONS after the other, and puts it back."""
    saved = ctx.prec
    try:
        for ctx.prec in PRECISIONS:
            yield ctx.prec
    finally:
        ctx.prec = saved


def logistic_normal(mean: arb, variance: arb) -> arb:
    """E 1 / (1 + e^-f) for f ~ N(mean, variance), relatively accurate in the tails.

    The integrand g is log-concave: with slope b = (log g)'(c) at any c, its integral beyond Z deviations s
    of c is at most g(c) e^(b^2 s^2 / 2) s sqrt(2 pi) erfc((Z - b s) / sqrt 2). Inside, g / g(c) is summed.
    """
    if not variance > 0:  # a ball around 0 (S is clipped there): |d E / d S| <= max |sigma''| / 2 < 1/20
        return 1 / (1 + (-mean).exp()) + arb(0, 1) * (variance / 20).upper()
    if abs(mean) > 10_000 * (1 + variance):  # sigma(f) <= e^f
        tail = (variance / 2 - abs(mean)).exp().upper() * arb(0.5, 0.5)
        return tail if mean < 0 else 1 - tail
    s = variance.sqrt()
    c = arb(_mode(float(mean), float(variance))).mid()
    for _ in range(6):  # Newton, quadratic near the mode; where it ends does not matter for the enclosure
        up, down = 1 / (1 + (-c).exp()), 1 / (1 + c.exp())
        c = (c + (down - (c - mean) / variance) / (up * down + 1 / variance)).mid()
    slope = abs(1 / (1 + c.exp()) - (c - mean) / variance) * s
    reach = arb(2 * ctx.prec).sqrt() + 2
    offset, top = (c - mean) / s, 1 / (1 + (-c).exp())

    def density(z: acb, _: bool) -> acb:
        f = c + s * z
        # sigma(f) / sigma(c), in the form whose exponential stays small
        ratio = (
            (1 + (-c).exp()) / (1 + (-f).exp())
            if f.real.mid() > 0
            else (s * z).exp() * (1 + c.exp()) / (1 + f.exp())
        )
        return ratio * (-z * (z + 2 * offset) / 2).exp()

    integral = acb.integral(density, acb(-reach), acb(reach), rel_tol=arb(2) ** (20 - ctx.prec)).real
    root = (2 * arb.pi()).sqrt()
    tail = (slope * slope / 2).exp() * root * ((reach - slope) / arb(2).sqrt()).erfc()
    return top * (-offset * offset / 2).exp() * (integral + arb(0, 1) * tail.upper()) / root


def _mode(mean: float, variance: float) -> float:
    """The maximum of sigma(f) N(f; mean, variance), by bisection."""
    low, high = mean, mean + variance
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if expit(-middle) * variance > middle - mean else (low, middle)
    return low


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
        X = np.array([project(region, x) for x in X])
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
            new = project(region, x - step)
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
    n: int = 12, d: int = 2, likelihood: str = "probit", seed: int = 0, **options: Any
) -> Posterior:
    """A well-conditioned model with several valleys around the origin; `options` as for the posterior."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    kernel = RBF(0.8, 4.0)
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
    """What an adversary can prove wrong about an answer."""
    label, exact, found = answer.label, Exact(post), []
    low, high = answer.min, answer.max
    if not 0 <= low.lower <= low.upper <= 1 or not 0 <= high.lower <= high.upper <= 1:
        found.append(f"not enclosures within [0, 1]: {low}, {high}")
    if answer.status == "converged" and max(low.width, high.width) > answer.tolerance:
        found.append(f"converged to {max(low.width, high.width)} > {answer.tolerance}")
    for name, point in (("argmin", answer.argmin), ("argmax", answer.argmax)):
        if point is not None and not region.contains(point):
            found.append(f"{name} outside the region: {point!r}")
    if answer.argmin is not None and not exact.at_most(answer.argmin, label, low.upper):
        found.append(f"min.upper {low.upper!r} not attained at argmin {answer.argmin!r}")
    if answer.argmax is not None and not exact.at_least(answer.argmax, label, high.lower):
        found.append(f"max.lower {high.lower!r} not attained at argmax {answer.argmax!r}")
    for point in (*extreme_points(post, region, label, rng), answer.argmin, answer.argmax):
        if point is None or not region.contains(point):
            continue
        if not exact.at_least(point, label, answer.lower):
            found.append(f"P = {post.probability([point])[0, label]} < lower {answer.lower!r} at {point!r}")
        if not exact.at_most(point, label, answer.upper):
            found.append(f"P = {post.probability([point])[0, label]} > upper {answer.upper!r} at {point!r}")
    return found
