"""Random models and regions with several classes, and a judge that samples and optimises inside regions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

import gpcert as gc
from gpcert.claims import Quantity
from gpcert.kernels import RBF
from gpcert.likelihoods import Logit, OneVsRest, Probit, Softmax
from gpcert.posterior import Posterior
from gpcert.regions import Ball, Box, Region
from gpcert.results import Verdict
from judge import Truth
from judge.adversary import estimates
from judge.doubles import upper
from judge.refute import complaints

CHOICES = {
    "kind": ("correlated", "correlated", "independent", "probit", "logit"),
    "classes": (2, 3, 3, 4, 5, 7, 10, 12),
    "n": (2, 5, 12, 25),
    "d": (1, 2, 4, 12, 40),
    "width": (0.0, 1e-6, 0.02, 0.1, 0.3, 3.0),
    "norm": (np.inf, np.inf, 2.0, 1.0, 0.0),
    "kernel": ("rbf", "rbf", "rbf", "matern12", "matern32", "matern52", "rational", "sum", "product"),
}


@dataclass(frozen=True)
class Setting:
    """What is drawn: `kind` is a link of one-vs-rest, "independent" or "correlated" softmax."""

    kind: str
    classes: int
    n: int
    d: int
    width: float
    seed: int
    norm: float = np.inf
    kernel: str = "rbf"

    @classmethod
    def pick(cls, rng: np.random.Generator) -> Setting:
        """One of all; two classes only where there is a softmax of them."""
        drawn = {name: values[rng.integers(len(values))] for name, values in CHOICES.items()}
        if drawn["kind"] in ("probit", "logit"):
            drawn["classes"] = max(drawn["classes"], 3)
        return cls(seed=int(rng.integers(2**31)), **drawn)


def random_kernel(name: str, lengthscale: float, variance: float) -> gc.Kernel:
    return {
        "rbf": lambda: RBF(lengthscale, variance),
        "matern12": lambda: gc.Matern12(2.0 * lengthscale, variance),
        "matern32": lambda: gc.Matern32(lengthscale, variance),
        "matern52": lambda: gc.Matern52(lengthscale, variance),
        "rational": lambda: gc.RationalQuadratic(lengthscale, variance, alpha=1.5),
        "sum": lambda: RBF(lengthscale, 0.7 * variance) + gc.Matern52(0.5 * lengthscale, 0.3 * variance),
        "product": lambda: RBF(lengthscale, variance) * gc.Matern32(3.0 * lengthscale, 1.0),
    }[name]()


def random_model(setting: Setting) -> Posterior:
    rng = np.random.default_rng(setting.seed)
    n, C = setting.n, setting.classes
    X = rng.standard_normal((n, setting.d)) * 10.0 ** rng.uniform(-0.5, 0.5)
    variance = 10.0 ** rng.uniform(-1, 1.5)
    kernel = random_kernel(setting.kernel, 10.0 ** rng.uniform(-0.3, 0.7), variance)
    weights = rng.standard_normal((n, C)) * 10.0 ** rng.uniform(-1, 0.3) / np.sqrt(n)
    mean = rng.standard_normal(C) * rng.choice([0.0, 1.0])
    K = kernel(X, X)
    if setting.kind == "correlated":
        p = rng.dirichlet(np.ones(C), size=n)  # W_i = diag(p) - p p^T as in Laplace's method
        W = np.zeros((C, n, C, n))
        for i in range(n):
            W[:, i, :, i] = np.diag(p[i]) - np.outer(p[i], p[i])
        W = W.reshape(C * n, C * n)
        R = np.linalg.solve(np.eye(C * n) + W @ np.kron(np.eye(C), K), W)
        R = 0.5 * (R + R.T)
        precision = R.reshape(C, n, C, n).transpose(0, 2, 1, 3)
        return Posterior(X, weights, precision, kernel=kernel, likelihood=Softmax(), mean=mean)
    noise = 10.0 ** rng.uniform(-1, 2, size=(C, n))
    R = np.stack([np.linalg.inv(K + np.diag(variance * w)) for w in noise])
    R = 0.5 * (R + R.transpose(0, 2, 1))
    likelihood = {"probit": OneVsRest(Probit()), "logit": OneVsRest(Logit()), "independent": Softmax()}
    return Posterior(X, weights, R, kernel=kernel, likelihood=likelihood[setting.kind], mean=mean)


def random_box(setting: Setting, post: Posterior) -> Box:
    rng = np.random.default_rng(setting.seed + 1)
    x = post.centres[rng.integers(post.n_centres)] + 0.3 * rng.standard_normal(setting.d)
    half = setting.width * rng.random(setting.d) * (rng.random(setting.d) < 0.8)
    return Box(x - half, x + half)


def random_region(setting: Setting, post: Posterior) -> Region:
    """The box, or a ball in its middle of the same size, sometimes cut by a domain."""
    box = random_box(setting, post)
    if setting.norm == np.inf:
        return box
    rng = np.random.default_rng(setting.seed + 2)
    radius = float(rng.integers(0, 3)) if setting.norm == 0 else setting.width
    cut = setting.norm == 0 or rng.random() < 0.3
    return Ball(box.centre, radius, setting.norm, domain=(box.lower, box.upper) if cut else None)


def extremes(
    post: Posterior, region: Region, value, rng: np.random.Generator, starts: int = 1
) -> list[np.ndarray]:
    """Points of the region where value(X) (m,) is small or large: samples, corners, local optima."""
    box = region.inner_box()
    d = len(box.lower)
    width = box.upper - box.lower
    U = np.concatenate([rng.random((20, d)), rng.integers(0, 2, (12, d)).astype(float)])
    X = box.lower + U * width
    found = list(X)
    values = value(X)
    bounds = [(0.0, 1.0)] * d
    for sign in (1.0, -1.0):
        for start in np.argsort(sign * values)[:starts]:
            result = minimize(
                lambda u, sign=sign: sign * float(value((box.lower + u * width)[None])[0]),
                U[start],
                method="L-BFGS-B",
                bounds=bounds,
                options={"maxiter": 6},
            )
            found.append(np.clip(box.lower + result.x * width, box.lower, box.upper))
    return found if isinstance(region, Box) else [region.project(x) for x in found]


def at_least(post: Posterior, X: np.ndarray) -> np.ndarray:
    """Lower ends (m, C) of the true probabilities at X (m, d)."""
    truth = Truth(post)
    return np.array([[-upper(-p) for p in truth.probabilities(x)] for x in X])


def falsehoods(post: Posterior, region: Region, answer, rng: np.random.Generator) -> list[str]:
    """What the judge finds false about a range or a verdict."""
    name = "margin" if isinstance(answer, Verdict) else "probability"
    quantity = Quantity(name, answer.label)
    hints = extremes(post, region, lambda Z: estimates(post, quantity, Z), rng)
    return complaints(post, [answer], rng, hints)


def questioned(setting: Setting) -> list[str]:
    """What is wrong about the answers to the setting: the range of a class, and the verdict on the middle."""
    rng = np.random.default_rng(setting.seed)
    post = random_model(setting)
    region = random_region(setting, post)
    limits = {"max_nodes": int(rng.integers(0, 7)), "max_seconds": 5.0}
    label = int(rng.integers(setting.classes))
    answer = gc.probability_range(post, region, label, tolerance=0.05, **limits)
    found = falsehoods(post, region, answer, rng)
    middle = region.project(region.centre) if isinstance(region, Ball) else region.centre
    if region.contains(middle):
        found += falsehoods(post, region, gc.certify(post, middle, region, **limits), rng)
    return found
