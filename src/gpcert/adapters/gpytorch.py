"""`from_gpytorch`: variational classifiers (ApproximateGP), whitened or not, one latent or one per class."""

from __future__ import annotations

from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np

from gpcert.adapters.covariance import Covariance, conditional, stacked, widened
from gpcert.adapters.foreign import Foreign, checked_posterior, named, refuse, two_columns
from gpcert.kernels import RBF, Kernel, Matern12, Matern32, Matern52, RationalQuadratic, Stationary
from gpcert.likelihoods import Likelihood, Probit, Softmax
from gpcert.posterior import Posterior
from gpcert.validation import Float, require

_LIBRARY = "gpytorch"
_MATERN: dict[float, type[Stationary]] = {0.5: Matern12, 1.5: Matern32, 2.5: Matern52}


def from_gpytorch(model: Any, likelihood: Any = None, *, tolerance: float | None = None) -> Posterior:
    """The posterior of a GPyTorch ApproximateGP.

    A float32 model is certified as re-evaluated in float64, and the gap to the library is recorded. Softmax
    probabilities are sampled by GPyTorch: there the exact expectation is certified.

    Parameters
    ----------
    model : model
        A trained ApproximateGP.
    likelihood : likelihood of GPyTorch, optional
        BernoulliLikelihood (the default for one latent function; GPyTorch has no other for two classes) or
        SoftmaxLikelihood without mixing weights.
    tolerance : float, optional
        Refuse a model whose own prediction differs by more; None: 1e-6, of float32 5e-3.

    Returns
    -------
    Posterior
        The posterior that certification uses.

    Examples
    --------
    >>> post = gc.from_gpytorch(model)  # doctest: +SKIP
    """
    strategy, latents = _strategy(model)
    kind = str(strategy.inducing_points.dtype).removeprefix("torch.")
    require(kind in ("float64", "float32"), f"model must be in float64 or float32, got {kind}")
    # GPyTorch draws the variational parameters of a model that was never called, at its first call.
    _evaluate(model, _numpy(strategy.inducing_points).reshape(-1, strategy.inducing_points.shape[-1])[:1])
    likelihood = getattr(model, "likelihood", None) if likelihood is None else likelihood
    certified = _likelihood(likelihood, latents)
    several = latents > 1
    precise = strategy.inducing_points.element_size() == 8
    foreign = Foreign(
        library="gpytorch",
        model=model,
        **stacked([_latent(model, strategy, c) for c in range(latents)]),
        likelihood=certified,
        target="exact expectation of the softmax likelihood, which GPyTorch samples"
        if several
        else "GPyTorch's likelihood(model(x)).probs: Phi(mean / sqrt(1 + variance))",
        latent=lambda X: _moments(model, X),
        probability=None if several else lambda X: _bernoulli(model, X),
        precise=precise,
        record={"float": "float64" if precise else "float32, re-evaluated in float64"},
    )
    return checked_posterior(foreign, several, tolerance)


def _strategy(model: Any) -> tuple[Any, int]:
    """The variational strategy, and the number of latent functions."""
    strategy = getattr(model, "variational_strategy", None)
    if strategy is None:
        if "Dirichlet" in type(getattr(model, "likelihood", None)).__name__:
            refuse("likelihood", "Bernoulli or softmax; a Dirichlet one is not certified", model.likelihood)
        refuse("model", "an ApproximateGP with a variational_strategy", model)
    latents = 1
    if named(strategy, _LIBRARY) == "IndependentMultitaskVariationalStrategy":
        latents, strategy = int(strategy.num_tasks), strategy.base_variational_strategy
    if named(strategy, _LIBRARY) not in ("VariationalStrategy", "UnwhitenedVariationalStrategy"):
        refuse("variational_strategy", "VariationalStrategy or UnwhitenedVariationalStrategy", strategy)
    shapes = (strategy.inducing_points.shape[:-2], strategy.variational_distribution.mean.shape[:-1])
    for shape in shapes:
        require(
            tuple(shape) in ((), (1,), (latents,)),
            f"model must have a batch of {latents} latent functions, got batch shape {tuple(shape)}",
        )
    return strategy, latents


def _likelihood(likelihood: Any, latents: int) -> Likelihood:
    if likelihood is None and latents == 1:
        return Probit()
    name = named(likelihood, _LIBRARY)
    if name == "BernoulliLikelihood" and latents == 1:
        return Probit()
    if name == "SoftmaxLikelihood" and latents > 1:
        if likelihood.mixing_weights is not None:
            refuse("likelihood", "SoftmaxLikelihood with mixing_weights=False", "mixing weights")
        if likelihood.num_classes != latents:
            classes = f"{likelihood.num_classes} classes"
            refuse("likelihood", f"a SoftmaxLikelihood of {latents} classes, one per latent", classes)
        return Softmax()
    rule = "BernoulliLikelihood" if latents == 1 else "SoftmaxLikelihood"
    refuse("likelihood", f"GPyTorch's {rule} for {latents} latent function(s)", likelihood)


def _latent(model: Any, strategy: Any, c: int) -> tuple[Float, Float, Float, Kernel, float]:
    """Centres, weights, precision, kernel and prior mean of latent c."""
    Z = _of_latent(strategy.inducing_points, c, 2)
    kernel = _covariance(model.covar_module, c, Z.shape[1]).kernel()
    mean = _mean(model.mean_module, c)
    distribution = strategy.variational_distribution
    m = _of_latent(distribution.mean, c, 1)
    delta = type(distribution).__name__ == "Delta"
    C = np.zeros((len(Z), len(Z))) if delta else _of_latent(distribution.covariance_matrix, c, 2)
    whitened = named(strategy, _LIBRARY) == "VariationalStrategy"
    jitter = float(strategy.jitter_val)
    K = kernel(Z) + jitter * np.eye(len(Z))
    weights, precision = conditional(K, m if whitened else m - mean, C, whitened)
    # The whitened strategy adds its jitter to the predicted variance too; the other does not.
    kernel, weights, precision = widened(kernel, jitter if whitened else 0.0, weights, precision)
    return Z, weights, precision, kernel, mean


def _mean(module: Any, c: int) -> float:
    name = named(module, _LIBRARY)
    if name == "ZeroMean":
        return 0.0
    if name == "ConstantMean":
        return float(_of_latent(module.constant, c, 0))
    refuse("mean_module", "ConstantMean or ZeroMean", module)


def _covariance(kernel: Any, c: int, d: int) -> Covariance:
    """A GPyTorch kernel of latent c on all d features."""
    name = named(kernel, _LIBRARY)
    active = getattr(kernel, "active_dims", None)
    if active is not None and not np.array_equal(_numpy(active), np.arange(d)):
        refuse(
            "kernel", f"a kernel of all {d} features", f"active_dims {_numpy(active).astype(int).tolist()}"
        )
    if name == "ScaleKernel":
        scale = float(_of_latent(kernel.outputscale, c, 0))
        return Covariance(constant=scale) * _covariance(kernel.base_kernel, c, d)
    if name in ("AdditiveKernel", "ProductKernel"):
        both = add if name == "AdditiveKernel" else mul
        return reduce(both, (_covariance(part, c, d) for part in kernel.kernels))
    if name == "ConstantKernel":
        return Covariance(constant=float(_of_latent(kernel.constant, c, 0)))
    if name in ("RBFKernel", "MaternKernel", "RQKernel"):
        return Covariance((_stationary(kernel, name, c),))
    refuse("covar_module", "made of ScaleKernel, RBF, Matern and RQKernel, sums and products", kernel)


def _stationary(kernel: Any, name: str, c: int) -> Kernel:
    scales = _of_latent(kernel.lengthscale, c, 2)[0]
    lengthscale: Float | float = scales if scales.size > 1 else float(scales[0])
    if name == "RBFKernel":
        return RBF(lengthscale)
    if name == "RQKernel":
        return RationalQuadratic(lengthscale, 1.0, float(_of_latent(kernel.alpha, c, 1)[0]))
    return _MATERN[float(kernel.nu)](lengthscale)


def _of_latent(tensor: Any, c: int, axes: int) -> Float:
    """The part of latent c of a parameter with `axes` axes of its own, float64; a batch of one is shared."""
    array = _numpy(tensor)
    while array.ndim > axes:
        array = array[c] if array.shape[0] > c else array[0]
    return array


def _numpy(tensor: Any) -> Float:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)


def _moments(model: Any, X: Float) -> tuple[Float, Float]:
    """GPyTorch's own latent mean and variance (m,), or (m, C) each."""
    output = _evaluate(model, X)
    return _numpy(output.mean), _numpy(output.variance)


def _bernoulli(model: Any, X: Float) -> Float:
    import gpytorch

    p = _numpy(gpytorch.likelihoods.BernoulliLikelihood()(_evaluate(model, X)).probs)
    return two_columns(p.reshape(-1, 1))


def _evaluate(model: Any, X: Float) -> Any:
    """q(f(X)) in evaluation mode; the model's mode is put back."""
    import torch

    strategy = model.variational_strategy
    points = getattr(strategy, "base_variational_strategy", strategy).inducing_points
    training = model.training
    try:
        model.eval()
        with torch.no_grad():
            return model(torch.as_tensor(X, dtype=points.dtype, device=points.device))
    finally:
        model.train(training)
