"""Training one model, of two classes or softmax: hyper-parameters, then the posterior at the best ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from gpcert.inference.approximation import Approximation, Fit
from gpcert.inference.ep import fit_ep
from gpcert.inference.laplace import fit_laplace
from gpcert.inference.limits import Bounds, log_bounds
from gpcert.inference.marginal import Evaluated, marginal_likelihood
from gpcert.inference.optimise import Progress, maximise
from gpcert.inference.softmax import fit_softmax
from gpcert.kernels import Kernel
from gpcert.likelihoods import BinaryLikelihood, Softmax
from gpcert.validation import Float

METHODS: Mapping[str, Fit] = MappingProxyType({"laplace": fit_laplace, "ep": fit_ep})
"""Inference methods of two classes by name."""

# During the search a looser tolerance saves EP a sweep in six; values still have an error below 1e-12.
_SEARCH: Mapping[str, Fit] = MappingProxyType({"laplace": fit_laplace, "ep": partial(fit_ep, tolerance=1e-7)})


@dataclass(frozen=True)
class Settings:
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
    settings: Settings,
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
