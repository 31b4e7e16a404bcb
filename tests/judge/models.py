"""Random posteriors of every kind that can be certified, at ordinary and at absurd magnitudes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from gpcert.kernels import RBF, Kernel, Matern12, Product, RationalQuadratic, Sum
from gpcert.likelihoods import FiveErf, Floored, Link, Logit, OneVsRest, Probit, Softmax
from gpcert.posterior import Posterior
from helpers.exact import random_kernel, random_precision


def _cloglog(f: Any) -> Any:
    return -np.expm1(-np.exp(np.minimum(f, 5.0)))


def _stairs(f: Any) -> Any:
    """Jumps, the first of them large, and no symmetry."""
    return 0.05 + 0.5 * (f > -0.3) + 0.15 * (f > 0.5) + 0.25 * (f > 4.0)


def _narrow(f: Any) -> Any:
    """Neither quartile of 0 to 1 is ever reached."""
    return 0.3 + 0.4 * ndtr(f)


#: Names of likelihoods -> how to make one.
TWO = {
    "probit": Probit,
    "logit": Logit,
    "scaled probit": lambda: Probit(3.0),
    "steep probit": lambda: Probit(1e4),
    "five erf": FiveErf,
    "floored": Floored,
    "floored logit": lambda: Floored(Logit(), 0.03),
    "link": lambda: Link(ndtr, lambda a, b: (ndtr(a) - 1e-14, ndtr(b) + 1e-14), "link", symmetric=True),
    "cloglog": lambda: Link(_cloglog, lambda a, b: (_cloglog(a) - 1e-14, _cloglog(b) + 1e-14), "cloglog"),
    "stairs": lambda: Link(_stairs, lambda a, b: (_stairs(a), _stairs(b)), "stairs"),
    "narrow": lambda: Link(_narrow, lambda a, b: (_narrow(a) - 1e-14, _narrow(b) + 1e-14), "narrow"),
}
SEVERAL = ("softmax", "independent", "separate", "one-vs-rest probit", "one-vs-rest logit", "one-vs-rest erf")
KINDS = (*TWO, *SEVERAL, "regression")
#: Drawn in the place of "link", so that earlier numbers stay what they were.
OTHER_LINKS = ("cloglog", "stairs", "narrow")

CHOICES: dict[str, tuple[Any, ...]] = {
    "kind": (
        *(kind for kind in KINDS if kind not in OTHER_LINKS), "probit", "logit", "probit", "logit", "softmax",
    ),
    "kernel": (
        "rbf", "rbf", "rbf", "matern52", "matern32", "matern12", "rational quadratic", "sum", "product",
        "other sum", "other product", "sum of products", "apart", "odd rational",
    ),
    "precision": ("laplace", "laplace", "zero", "spectrum", "stiff", "excess", "indefinite"),
    "layout": ("normal", "multimodal", "ard", "duplicates", "symmetric", "offset", "far offset"),
    "n": (1, 1, 2, 3, 5, 8, 13, 30),
    "d": (1, 1, 2, 2, 3, 5, 8, 20),
    "classes": (2, 3, 3, 4, 5, 9),
    "units": (0, 0, 0, 0, 0, 0, -3, 3, -100, 100, -150, 150, -290, 290),  # powers of ten of the inputs
    "size": (0, 0, 0, 0, 0, 0, -3, 3, 12, -36, 36, -150, 150, -290, 290),  # of the kernel's variance
    "push": (0, 0, 0, 0, 0, 2, 6, -6, 18, -200, 200),  # of the weights, beyond what balances the variance
}  # fmt: skip


@dataclass(frozen=True)
class Model:
    """One choice per field; `seed` for the numbers."""

    kind: str = "probit"
    kernel: str = "rbf"
    precision: str = "laplace"
    layout: str = "normal"
    n: int = 5
    d: int = 2
    classes: int = 3
    units: int = 0
    size: int = 0
    push: int = 0
    seed: int = 0

    def posterior(self) -> Posterior:
        """The model itself; numbers that overflow are cut off at the largest that a file could hold."""
        with np.errstate(all="ignore"):
            return _posterior(self, np.random.default_rng(self.seed))


def _posterior(model: Model, rng: np.random.Generator) -> Posterior:
    n, d = model.n, model.d
    unit = 10.0**model.units
    l = unit * 10.0 ** rng.uniform(-1.0, 1.0, d if model.layout == "ard" else ())
    Z = _layout(model.layout, rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1.0, 0.5), rng)
    variance = 10.0 ** (model.size + rng.uniform(-1.0, 1.0))
    X = _finite(Z * l)
    if model.kind in SEVERAL:
        return _several(model, X, l, variance, rng)
    kernel = _kernel(model.kernel, l, variance, rng, d)
    R = _precision(model.precision, kernel, X, rng)
    weights = _weights(model, kernel, (n,), rng)
    root = min(float(kernel.prior_variance) ** 0.5, 1e100)
    mean = float(rng.choice([0.0, rng.normal(), root * rng.normal()]))
    likelihood = None if model.kind == "regression" else TWO[model.kind]()
    return Posterior(X, weights, R, kernel=kernel, likelihood=likelihood, mean=mean)


def _several(model: Model, X: np.ndarray, l: Any, variance: float, rng: np.random.Generator) -> Posterior:
    C, d, one_by_one = model.classes, model.d, model.kind.startswith("one-vs-rest")
    odd = np.random.default_rng((model.seed, 7))  # of its own: earlier numbers stay what they were
    if one_by_one and odd.random() < 0.8:
        C = max(C, 3)
    shared = _kernel(model.kernel, l, variance, rng, d)
    kernels, each = [shared] * C, model.kind == "separate" or (one_by_one and odd.random() < 0.3)
    if each:
        apart = 10.0 ** odd.uniform(-1.0, 1.0, C) if odd.random() < 0.5 else np.ones(C)
        kernels = [
            _kernel(str(rng.choice(["rbf", "matern32", "matern52"])), l * apart[c], variance, rng, d)
            for c in range(C)
        ]
    weights = _weights(model, shared, (len(X), C), rng)
    mean = rng.standard_normal(C) * rng.choice([0.0, 1.0])
    if odd.random() < 0.15:  # into the tails
        mean = odd.standard_normal(C) * odd.choice([5.0, 20.0, 40.0])
    if model.kind == "softmax" and odd.random() < 0.3:  # others may be no covariance, which is refused
        kind = str(odd.choice(["laplace", "spectrum", "indefinite"]))
        both = random_precision(kind, np.kron(np.eye(C), shared(X) / shared.prior_variance), odd)
        R = _blocks(both / shared.prior_variance, C)
        return Posterior(X, weights, R, kernel=shared, likelihood=Softmax(), mean=mean)
    if model.kind == "softmax":
        R = _laplace_blocks(shared, X, C, 10.0 ** rng.uniform(0, 3) if model.layout == "close" else 1.0, rng)
        return Posterior(X, weights, R, kernel=shared, likelihood=Softmax(), mean=mean)
    R = np.stack([_precision(model.precision, kernel, X, rng) for kernel in kernels])
    likelihood = {
        "one-vs-rest probit": OneVsRest(Probit()),
        "one-vs-rest logit": OneVsRest(Logit()),
        "one-vs-rest erf": OneVsRest(FiveErf()),
    }.get(model.kind, Softmax())
    kernel = kernels if each else shared
    return Posterior(X, weights, R, kernel=kernel, likelihood=likelihood, mean=mean)


def _layout(name: str, Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Centres (n, d) in lengthscales."""
    n, d = Z.shape
    if name == "multimodal":
        return rng.uniform(-3.0, 3.0, (n, d))
    if name == "close":  # next to each other: a precision that is positive only after a shift one can see
        return Z * 10.0 ** rng.uniform(-4.0, -1.0)
    if name == "duplicates":
        return Z[rng.integers((n + 1) // 2, size=n)]
    if name == "symmetric":
        return np.where(np.arange(n)[:, None] % 2, -np.roll(Z, 1, axis=0), Z)
    if name in ("offset", "far offset"):
        return Z + rng.choice([-1.0, 1.0], d) * 10.0 ** (
            rng.uniform(1, 6) if name == "offset" else rng.uniform(6, 15)
        )
    return Z


def _kernel(name: str, l: Any, variance: float, rng: np.random.Generator, d: int) -> Kernel:
    if name == "apart":  # lengthscales that no double holds the ratio of
        other = np.clip(
            np.asarray(l) * 10.0 ** float(rng.choice([-200, -155, -60, 60, 155, 200])), 1e-300, 1e300
        )
        parts = (RBF(l, variance), Matern12(other, 0.5 * variance))
        return Sum(parts) if rng.random() < 0.7 else Product((RBF(l, variance), Matern12(other, 0.5)))
    if name == "odd rational":
        return RationalQuadratic(l, variance, 10.0 ** float(rng.choice([-306, -100, -4, -2, 4, 100, 300])))
    return random_kernel(name, l, variance, rng, d)


def _precision(name: str, kernel: Kernel, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Symmetric (n, n) of the kind in units of 1 / variance; zeros where the numbers do not allow it."""
    s2 = float(kernel.prior_variance)
    try:
        R = random_precision(name, kernel(X) / s2, rng) / s2
    except np.linalg.LinAlgError:
        return np.zeros((len(X), len(X)))
    return R if np.isfinite(R).all() else np.zeros_like(R)


def _laplace_blocks(
    kernel: Kernel, X: np.ndarray, C: int, size: float, rng: np.random.Generator
) -> np.ndarray:
    """(C, C, n, n): W_i = diag(p) - p p^T at every centre, as Laplace's method gives them, times `size`."""
    n, s2 = len(X), float(kernel.prior_variance)
    p = rng.dirichlet(np.ones(C), size=n)
    W = np.zeros((C, n, C, n))
    for i in range(n):
        W[:, i, :, i] = (np.diag(p[i]) - np.outer(p[i], p[i])) * size * 10.0 ** rng.uniform(-2, 1)
    W = W.reshape(C * n, C * n)
    R = np.linalg.solve(np.eye(C * n) + W @ np.kron(np.eye(C), kernel(X) / s2), W) / s2
    R = 0.5 * (R + R.T)
    return _blocks(R, C)


def _blocks(R: np.ndarray, C: int) -> np.ndarray:
    """(C, C, n, n) of a matrix of all latents; zeros where the numbers do not allow it."""
    n = len(R) // C
    return np.where(np.isfinite(R).all(), R, 0.0).reshape(C, n, C, n).transpose(0, 2, 1, 3)


def _weights(model: Model, kernel: Kernel, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Weights with which means are of the size of the link's slope, times 10^push."""
    size = 10.0 ** (rng.uniform(-1, 1.5) + model.push) / (float(kernel.prior_variance) * shape[0] ** 0.5)
    weights = _finite(rng.standard_normal(shape) * size)
    if model.layout == "symmetric":
        odd = (np.arange(shape[0]) % 2).reshape(-1, *[1] * (len(shape) - 1))
        weights = np.where(odd, -np.roll(weights, 1, axis=0), weights)
    return weights


def _finite(values: np.ndarray) -> np.ndarray:
    return np.clip(np.nan_to_num(values), -1e300, 1e300)
