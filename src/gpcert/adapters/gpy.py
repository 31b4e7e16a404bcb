"""`from_gpy`: GPy's GPClassification (EP, Laplace), SparseGPClassification and SVGP."""

from __future__ import annotations

from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np

from gpcert.adapters.covariance import Covariance
from gpcert.adapters.foreign import Foreign, checked_posterior, named, refuse, two_columns
from gpcert.kernels import RBF, Kernel, Matern12, Matern32, Matern52, RationalQuadratic, Stationary
from gpcert.likelihoods import Probit
from gpcert.posterior import Posterior
from gpcert.validation import Float, require

_MODELS = ("GP", "GPClassification", "SparseGP", "SparseGPClassification", "SVGP")
_STATIONARY: dict[str, type[Stationary]] = {
    "RBF": RBF,
    "ExpQuad": RBF,
    "Exponential": Matern12,
    "OU": Matern12,
    "Matern32": Matern32,
    "Matern52": Matern52,
}


def from_gpy(model: Any, *, tolerance: float | None = None) -> Posterior:
    """The posterior of a GPy classifier: what `model.predict` calls the probability of label 1 is certified.

    Parameters
    ----------
    model : model
        GPClassification (EP or Laplace), SparseGPClassification or SVGP with the Bernoulli likelihood and its
        probit link.
    tolerance : float, optional
        Refuse a model whose own prediction differs by more; None: 1e-6.

    Returns
    -------
    Posterior
        The posterior that certification uses.

    Examples
    --------
    >>> post = gc.from_gpy(model)  # doctest: +SKIP
    """
    if named(model, "GPy") not in _MODELS:
        refuse("model", f"a GPy model of type {', '.join(_MODELS)}", model)
    _check(model)
    centres = np.asarray(model._predictive_variable, dtype=np.float64)
    read = _covariance(model.kern, centres.shape[1])
    inside = model.posterior
    weights, precision = np.asarray(inside.woodbury_vector), np.asarray(inside.woodbury_inv)
    require(
        weights.size == len(centres) and precision.size == len(centres) ** 2,
        f"model must have one latent function, got woodbury_vector of shape {weights.shape}",
    )
    n = len(centres)
    kernel, weights, precision = read.predictor(weights.reshape(n), precision.reshape(n, n))
    foreign = Foreign(
        library="GPy",
        model=model,
        centres=centres,
        trained=named(model, "GPy") in ("GP", "GPClassification"),
        weights=weights,
        precision=precision,
        kernel=[kernel],
        likelihood=Probit(),
        target="GPy's predict: Phi(mean / sqrt(1 + variance))",
        latent=lambda X: tuple(np.asarray(moment)[:, 0] for moment in model._raw_predict(X)),
        probability=lambda X: two_columns(model.predict(X)[0]),
        classes=[-1, 1] if (np.asarray(model.Y) < 0).any() else [0, 1],
    )
    return checked_posterior(foreign, False, tolerance)


def _check(model: Any) -> None:
    """Everything beside the kernel that would change the prediction."""
    if named(model.likelihood, "GPy") != "Bernoulli":
        refuse("likelihood", "GPy's Bernoulli", model.likelihood)
    # Bernoulli.predictive_mean treats ScaledProbit as Probit: the scale has no effect on what is predicted.
    if named(model.likelihood.gp_link, "GPy") not in ("Probit", "ScaledProbit"):
        refuse("likelihood", "Bernoulli with the Probit link", model.likelihood.gp_link)
    if model.mean_function is not None:
        refuse("mean_function", "None", model.mean_function)
    if model.normalizer is not None:
        refuse("normalizer", "None", model.normalizer)
    if hasattr(model.X, "variance"):
        refuse("X", "known exactly, not uncertain inputs", model.X)


def _covariance(kernel: Any, d: int) -> Covariance:
    """A GPy kernel of all d features."""
    name = named(kernel, "GPy")
    if name in ("Add", "Prod"):
        return reduce(add if name == "Add" else mul, (_covariance(part, d) for part in kernel.parts))
    if name == "White":
        return Covariance(noise=float(kernel.variance[0]))
    if name == "Bias":
        return Covariance(constant=float(kernel.variance[0]))
    if name == "RatQuad" or name in _STATIONARY:
        active = np.asarray(kernel.active_dims)
        require(
            np.array_equal(active, np.arange(d)),
            f"kernel must act on all {d} features in order, got active_dims {active.tolist()}",
        )
        return Covariance((_stationary(kernel, name),))
    refuse(
        "kernel",
        "made of RBF, ExpQuad, Exponential, OU, Matern32, Matern52, RatQuad, White, sums and products",
        kernel,
    )


def _stationary(kernel: Any, name: str) -> Kernel:
    scales = np.array(kernel.lengthscale, dtype=np.float64)
    lengthscale: Float | float = scales if scales.size > 1 else float(scales[0])
    variance = float(kernel.variance[0])
    if name == "RatQuad":
        # GPy: (1 + r^2/2)^-power; ours: (1 + r^2/(2 alpha))^-alpha.
        power = float(kernel.power[0])
        return RationalQuadratic(lengthscale / np.sqrt(power), variance, power)
    return _STATIONARY[name](lengthscale, variance)
