"""Training one model, of two classes or softmax: hyper-parameters, then the posterior at the best ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from math import isqrt
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from gpcert.inference.approximation import Approximation
from gpcert.inference.ep import fit_ep
from gpcert.inference.laplace import SoftmaxApproximation, fit_laplace, fit_softmax
from gpcert.inference.optimise import Bounds, Progress, log_bounds, maximise
from gpcert.kernels import Gram, Kernel
from gpcert.likelihoods import BinaryLikelihood, Softmax
from gpcert.validation import Float, require

#: An inference method: K (n, n), labels y (n,), likelihood, sites of a similar problem. Labels are +-1 for
#: a two-class likelihood, class indices for softmax.
Fit = Callable[..., Approximation | SoftmaxApproximation]

_DOUBLE = 8  # bytes


def matrices(classes: int, together: bool) -> int:
    """How many (n, n) arrays there are at once, at least: tests/inference/test_memory.py measures them.

    One latent: distances, the kernel matrix, a factor, its inverse and what becomes of it. One-vs-rest keeps
    a precision of each class, softmax (C, C) blocks of them.
    """
    return 4 * classes**2 if together else max(7, 5 * classes * (classes > 2))


def check_memory(n: int, classes: int, together: bool) -> None:
    """Refuse what cannot fit."""
    each = matrices(classes, together) * _DOUBLE
    there = available()
    if there is None or each * n**2 <= there:
        return
    most = isqrt(there // each)
    fits = f"X must have at most {most} points to be trained on in {there / 1e9:.1f} GB of memory"
    require(False, f"{fits}, got {n}, which need {each * n**2 / 1e9:.1f} GB")


def available() -> int | None:
    """Bytes that could be had now, of this machine and of the container; None: nobody says."""
    found = []
    with suppress(OSError, ValueError):
        (line,) = (line for line in Path("/proc/meminfo").read_text().splitlines() if "MemAvailable:" in line)
        found.append(1024 * int(line.split()[1]))
    if not found:
        with suppress(OSError, ValueError, AttributeError):  # AttributeError: not on Windows
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # "max" is no number
            found.append(int(Path("/sys/fs/cgroup", limit).read_text()))
    return min(found, default=None)


@dataclass(frozen=True)
class Evaluated:
    """One kernel, its posterior approximation, and what the approximation says about the kernel."""

    kernel: Kernel
    gram: Gram
    approximation: Approximation | SoftmaxApproximation

    @property
    def value(self) -> float:
        return self.approximation.log_marginal_likelihood

    @cached_property
    def gradient(self) -> Float:
        return self.gram.contract(self.approximation.gradient_matrix(self.gram.matrix))


def marginal_likelihood(
    X: Float, y: Float, kernel: Kernel, likelihood: BinaryLikelihood | Softmax, fit: Fit
) -> Callable[[Kernel], Evaluated]:
    """The function kernel -> Evaluated for points X (n, d), labels y (n,) as `fit` takes them.

    Kernels must be like `kernel`. It remembers the unscaled distances of X, and the sites of its last
    evaluation as the next one's start: in a sequence of similar kernels this saves about half the time.
    """
    gram = kernel.gram_builder(X)
    sites: Any = None

    def evaluate(kernel: Kernel) -> Evaluated:
        nonlocal sites
        prior = gram(kernel)
        approximation = fit(prior.matrix, y, likelihood, sites)
        sites = approximation.sites
        return Evaluated(kernel, prior, approximation)

    return evaluate


METHODS: Mapping[str, Fit] = MappingProxyType({"laplace": fit_laplace, "ep": fit_ep})
"""Inference methods of two classes by name."""

# During the search a looser tolerance saves EP a sweep in six; values still have an error below 1e-12.
_SEARCH: Mapping[str, Fit] = MappingProxyType({"laplace": fit_laplace, "ep": partial(fit_ep, tolerance=1e-7)})


@dataclass(frozen=True)
class TrainingSettings:
    """How to train: method name, budget of evaluations (0 keeps the kernel), bounds, restarts, callback."""

    inference: str = "laplace"
    max_evals: int = 40
    bounds: Bounds | None = None
    n_restarts: int = 0
    progress: Progress | None = None


@dataclass(frozen=True)
class Trained:
    """A trained model; arrays in the order of the training points.

    Two classes: `weights` (n,), `precision` (n, n), `site_precision` (n,). Softmax: (n, C), (C, C, n, n) and
    None (sites of C latents are C x C blocks, not precisions). `converged`: whether the inference at this
    kernel did; `optimum_found`: whether the search for the kernel ended before its budget. `trace`: the log
    marginal likelihood of every evaluation.
    """

    kernel: Kernel
    weights: Float
    precision: Float
    site_precision: Float | None
    log_marginal_likelihood: float
    converged: bool
    optimum_found: bool
    trace: tuple[float, ...]


def train(
    X: Float,
    y: Float,
    kernel: Kernel,
    likelihood: BinaryLikelihood | Softmax,
    settings: TrainingSettings,
    random: np.random.Generator,
) -> Trained:
    """Train on points X (n, d) with labels y (n,): +-1 for a two-class likelihood, else class indices.

    The points are brought into lexicographic order first, so that their order in X cannot matter: rounding
    would otherwise differ, and a search multiplies rounding.
    """
    order = np.lexsort((y, *X.T))
    several = isinstance(likelihood, Softmax)
    search: Fit = fit_softmax if several else _SEARCH[settings.inference]
    fit: Fit = fit_softmax if several else METHODS[settings.inference]
    evaluate = marginal_likelihood(X[order], y[order], kernel, likelihood, search)
    best: Evaluated
    trace: tuple[float, ...] = ()
    found = False
    if settings.max_evals == 0:
        best = evaluate(kernel)
    else:
        optimum = maximise(
            lambda theta: evaluate(kernel.with_theta(theta)),
            kernel.theta,
            log_bounds(kernel, X, settings.bounds),
            settings.max_evals,
            n_restarts=settings.n_restarts,
            random=random,
            progress=settings.progress,
        )
        best, trace, found = optimum.best, optimum.trace, optimum.converged
    answer = fit(best.gram.matrix, y[order], likelihood, best.approximation.sites)
    rank = np.argsort(order)
    return Trained(
        kernel=best.kernel,
        weights=answer.weights[rank],
        precision=answer.precision()[..., rank[:, None], rank],
        site_precision=answer.site_precision[rank] if isinstance(answer, Approximation) else None,
        log_marginal_likelihood=answer.log_marginal_likelihood,
        converged=answer.converged,
        optimum_found=found,
        trace=trace,
    )
