"""`from_gpflow`: VGP, SVGP (whitened or not, diagonal or full) and VGPOpperArchambeau."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, ndtr

from gpcert.adapters.covariance import Covariance, conditional, stacked
from gpcert.adapters.foreign import (
    Foreign,
    checked_posterior,
    checked_target,
    library_of,
    named,
    refuse,
    two_columns,
)
from gpcert.kernels import RBF, Kernel, Matern12, Matern32, Matern52, RationalQuadratic, Stationary
from gpcert.likelihoods import Floored, Likelihood, Logit, Probit, Softmax
from gpcert.posterior import Posterior
from gpcert.validation import Float, require

_LIBRARY = "gpflow"
_FLOOR = 1e-3  # of gpflow.likelihoods.utils.inv_probit
_STATIONARY: dict[str, type[Stationary]] = {
    "SquaredExponential": RBF,
    "Matern12": Matern12,
    "Matern32": Matern32,
    "Matern52": Matern52,
}


def from_gpflow(model: Any, *, target: str = "library", tolerance: float | None = None) -> Posterior:
    """The posterior of a GPflow classifier.

    Bernoulli with the sigmoid: GPflow uses 20 quadrature points; the exact integral is certified, and
    "library" refuses where the two differ by more than the tolerance. Softmax: GPflow samples, so the exact
    expectation is certified under either target.

    Parameters
    ----------
    model : model
        A trained VGP, SVGP or VGPOpperArchambeau.
    target : str
        "library": Bernoulli with the probit link is certified as GPflow predicts it, 0.001 + 0.998 Phi(...);
        "exact": without that floor.
    tolerance : float, optional
        Refuse a model whose own prediction differs by more; None: 1e-6.

    Returns
    -------
    Posterior
        The posterior that certification uses.

    Examples
    --------
    >>> post = gc.from_gpflow(model)  # doctest: +SKIP
    """
    exact = checked_target(target)
    name = named(model, _LIBRARY)
    if name not in ("VGP", "SVGP", "VGPOpperArchambeau"):
        refuse("model", "a GPflow VGP, SVGP or VGPOpperArchambeau", model)
    latents = int(model.num_latent_gps)
    likelihood, says = _likelihood(model.likelihood, latents, exact)
    several = latents > 1
    foreign = Foreign(
        library="gpflow",
        model=model,
        **stacked([_latent(model, name, c) for c in range(latents)]),
        trained=name != "SVGP",
        likelihood=likelihood,
        target=says,
        latent=lambda X: tuple(moment.numpy() for moment in model.predict_f(X)),
        probability=None if several else lambda X: two_columns(model.predict_y(X)[0].numpy()),
        hint="; target='exact' certifies the exact integral" if isinstance(likelihood, Logit) else "",
    )
    return checked_posterior(foreign, exact or several, tolerance)


def _likelihood(likelihood: Any, latents: int, exact: bool) -> tuple[Likelihood, str]:
    """What is certified, and how a result calls it."""
    name = named(likelihood, _LIBRARY)
    if name == "Bernoulli" and latents == 1:
        link = likelihood.invlink
        if _is(link, "inv_probit", lambda f: _FLOOR + (1.0 - 2.0 * _FLOOR) * ndtr(f)):
            if exact:
                return Probit(), "exact expectation of the probit likelihood"
            says = "GPflow's predict_y: 0.001 + 0.998 Phi(mean / sqrt(1 + variance))"
            return Floored(Probit(), _FLOOR), says
        if _is(link, "sigmoid", expit):
            says = "exact expectation of the logistic likelihood"
            return Logit(), says if exact else f"{says}, for which GPflow's predict_y takes 20 points"
        refuse("invlink", "inv_probit or tf.sigmoid", getattr(link, "__name__", "another function"))
    if name == "Softmax" and latents > 1:
        return Softmax(), "exact expectation of the softmax likelihood, which GPflow samples"
    if name == "MultiClass":
        refuse("likelihood", "Bernoulli or Softmax, the certified ones", "MultiClass (RobustMax)")
    refuse("likelihood", f"GPflow's {'Bernoulli' if latents == 1 else 'Softmax'}", likelihood)


def _is(link: Any, name: str, values: Callable[[Float], Float]) -> bool:
    """Whether a link has this name and these values: a name alone proves nothing."""
    if getattr(link, "__name__", "") != name:
        return False
    f = np.linspace(-6.0, 6.0, 41)
    return bool(np.abs(np.asarray(link(f), dtype=np.float64) - values(f)).max() <= 1e-9)


def _latent(model: Any, name: str, c: int) -> tuple[Float, Float, Float, Kernel, float]:
    """Centres, weights, precision, kernel and prior mean of latent c."""
    Z = _inducing(model, name, c)
    read = _covariance(_kernel_of(model.kernel, c), Z.shape[1])
    kernel = read.kernel()
    # GPflow's noise is in K(Z, Z) and on the diagonal at new points, never between the two.
    K = kernel(Z) + read.noise * np.eye(len(Z))
    if name == "VGPOpperArchambeau":
        weights = _numpy(model.q_alpha)[:, c]
        precision = cho_solve(
            cho_factor(K + np.diag(_numpy(model.q_lambda)[:, c] ** -2.0), lower=True), np.eye(len(Z))
        )
        precision = 0.5 * (precision + precision.T)
    else:
        import gpflow

        K = K + float(gpflow.config.default_jitter()) * np.eye(len(Z))
        q_mu, C = _numpy(model.q_mu)[:, c], _spread(model, c)
        whitened = name == "VGP" or bool(model.whiten)
        weights, precision = conditional(K, q_mu, C, whitened)
    kernel, weights, precision = read.predictor(weights, precision)
    return Z, weights, precision, kernel, _mean(model.mean_function, c)


def _inducing(model: Any, name: str, c: int) -> Float:
    if name != "SVGP":
        return _numpy(model.data[0])
    inducing = model.inducing_variable
    kind = named(inducing, _LIBRARY)
    if kind == "SharedIndependentInducingVariables":
        inducing = inducing.inducing_variable
    elif kind == "SeparateIndependentInducingVariables":
        inducing = inducing.inducing_variable_list[c]
    if named(inducing, _LIBRARY) != "InducingPoints":
        refuse("inducing_variable", "InducingPoints", inducing)
    return _numpy(inducing.Z)


def _kernel_of(kernel: Any, c: int) -> Any:
    name = named(kernel, _LIBRARY)
    if name == "SharedIndependent":
        return kernel.kernel
    return kernel.kernels[c] if name == "SeparateIndependent" else kernel


def _spread(model: Any, c: int) -> Float:
    """The covariance q_sqrt q_sqrt^T of latent c."""
    q_sqrt = _numpy(model.q_sqrt)
    if q_sqrt.ndim == 2:
        return np.diag(q_sqrt[:, c] ** 2)
    half = np.tril(q_sqrt[c])
    return np.asarray(half @ half.T)


def _mean(function: Any, c: int) -> float:
    name = named(function, _LIBRARY)
    if name == "Zero":
        return 0.0
    if name == "Constant":
        values = _numpy(function.c).ravel()
        return float(values[c] if values.size > 1 else values[0])
    refuse("mean_function", "Zero or Constant", function)


def _covariance(kernel: Any, d: int) -> Covariance:
    """A GPflow kernel of all d features."""
    name = named(kernel, _LIBRARY)
    if name in ("Sum", "Product"):
        return reduce(add if name == "Sum" else mul, (_covariance(part, d) for part in kernel.kernels))
    active = kernel.active_dims if library_of(kernel) == _LIBRARY else slice(None)
    if not np.array_equal(np.arange(d)[active], np.arange(d)):
        refuse("kernel", f"a kernel of all {d} features", f"active_dims {active}")
    if name == "White":
        return Covariance(noise=float(_numpy(kernel.variance)))
    if name in ("Constant", "Bias"):
        return Covariance(constant=float(_numpy(kernel.variance)))
    if name in ("RationalQuadratic", "Exponential") or name in _STATIONARY:
        return Covariance((_stationary(kernel, name),))
    refuse("kernel", "a sum or product of SquaredExponential, Exponential, Matern, RationalQuadratic", kernel)


def _stationary(kernel: Any, name: str) -> Kernel:
    scales = _numpy(kernel.lengthscales)
    lengthscale: Float | float = scales if scales.ndim else float(scales)
    variance = float(_numpy(kernel.variance))
    if name == "RationalQuadratic":
        return RationalQuadratic(lengthscale, variance, float(_numpy(kernel.alpha)))
    if name == "Exponential":  # exp(-r/2)
        return Matern12(2.0 * lengthscale, variance)
    return _STATIONARY[name](lengthscale, variance)


def _numpy(value: Any) -> Float:
    """A parameter, tensor or array as float64."""
    array = value.numpy() if hasattr(value, "numpy") else value
    require(np.asarray(array).dtype == np.float64, "model must be in float64, GPflow's default, got another")
    return np.asarray(array, dtype=np.float64)
