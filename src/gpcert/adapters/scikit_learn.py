"""`from_sklearn`: a fitted GaussianProcessClassifier, alone or at the end of a pipeline of scalers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from gpcert.adapters.covariance import Covariance, stretched
from gpcert.adapters.foreign import (
    Foreign,
    check_points,
    checked_posterior,
    checked_target,
    library_of,
    named,
    refuse,
)
from gpcert.adapters.scaling import (
    Affine,
    affine_of,
    input_size,
    names_seen,
    quietly,
    split_pipeline,
    transformed,
)
from gpcert.errors import InvalidInputError, NotFittedError
from gpcert.kernels import RBF, Kernel, Matern12, Matern32, Matern52, RationalQuadratic, Stationary
from gpcert.likelihoods import FiveErf, Logit, OneVsRest
from gpcert.posterior import Posterior
from gpcert.validation import Float

_MATERN: dict[float, type[Stationary]] = {0.5: Matern12, 1.5: Matern32, 2.5: Matern52, np.inf: RBF}
#: scikit-learn's formula is within 4.4e-4 of the logistic integral; one-vs-rest divides by a sum.
_CREDIBLE = 5e-3
_TARGETS = {
    False: "scikit-learn's predict_proba: five error functions in place of the logistic integral",
    True: "exact expectation of the logistic likelihood",
}


def from_sklearn(model: Any, *, target: str = "library", tolerance: float | None = None) -> Posterior:
    """The posterior of a model of scikit-learn.

    Scalers of a pipeline are folded into the posterior: regions and witnesses are in the units of the
    pipeline's input. A model whose `predict` is not the class of the largest probability is refused.

    Parameters
    ----------
    model : model
        A fitted GaussianProcessClassifier (two classes, or one-vs-rest), or a Pipeline that ends in one.
    target : str
        "library": scikit-learn's own probability is certified, a fixed sum of five error functions for each
        class; "exact": the logistic integral.
    tolerance : float, optional
        Refuse a model whose own prediction differs by more; None: 1e-6.

    Returns
    -------
    Posterior
        The posterior that certification uses.

    Examples
    --------
    >>> from sklearn.gaussian_process import GaussianProcessClassifier
    >>> model = GaussianProcessClassifier().fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> post = gc.from_sklearn(model)
    >>> bool(abs(post.probability([[2.5]]) - model.predict_proba([[2.5]])).max() < 1e-9)
    True
    """
    exact = checked_target(target)
    steps, classifier = split_pipeline(model)
    own = getattr(classifier, "posterior_", None)
    if isinstance(own, Posterior):
        return from_ours(model, steps, own, tolerance) if steps else own
    if library_of(classifier) == "gpcert" and hasattr(classifier, "fit"):
        raise NotFittedError(f"model must be fitted, got a {type(classifier).__name__} before fit")
    if named(classifier, "sklearn") != "GaussianProcessClassifier":
        hint = " (its best_estimator_ may be)" if hasattr(classifier, "best_estimator_") else ""
        refuse("model", f"a GaussianProcessClassifier or a Pipeline that ends in one{hint}", classifier)
    if not hasattr(classifier, "base_estimator_"):
        raise NotFittedError("model must be fitted, got a GaussianProcessClassifier before fit")
    if len(classifier.classes_) > 2 and classifier.multi_class != "one_vs_rest":
        refuse("multi_class", "'one_vs_rest' (one-vs-one has no probabilities)", classifier.multi_class)
    inner = classifier.base_estimator_
    binary = [inner] if hasattr(inner, "pi_") else list(inner.estimators_)
    training = _numbers(binary[0].X_train_)
    affine = affine_of(steps, input_size(steps, training.shape[1]))
    parts = [_binary(each, affine) for each in binary]
    link = Logit() if exact else FiveErf()
    single = len(parts) == 1
    foreign = Foreign(
        library="scikit-learn",
        model=classifier,
        centres=affine.inverse(training),
        trained=True,
        weights=parts[0][1] if single else np.stack([w for _, w, _ in parts], axis=1),
        precision=parts[0][2] if single else np.stack([R for _, _, R in parts]),
        kernel=[kernel for kernel, _, _ in parts],
        likelihood=link if single else OneVsRest(link),
        target=_TARGETS[exact],
        latent=lambda X: _latents(steps, binary, X),
        probability=lambda X: quietly(model.predict_proba, X),
        labels=lambda X: quietly(model.predict, X, None),
        credible=_CREDIBLE,
        classes=classifier.classes_,
        feature_names=names_seen(model),
        record={"scaling": list(affine.steps)} if affine.steps else {},
    )
    post = checked_posterior(foreign, exact, tolerance)
    if not steps or np.asarray(binary[0].X_train_).dtype != np.float32:
        return post
    return checked_posterior(_in_single_precision(foreign, post, model, tolerance), exact, tolerance)


def _numbers(X: Any) -> Float:
    try:
        return np.asarray(X, dtype=np.float64)
    except ValueError:
        refuse("model", "trained on numbers", f"an array of {np.asarray(X).dtype}")


def _in_single_precision(foreign: Foreign, post: Posterior, model: Any, tolerance: float | None) -> Foreign:
    """With the record of what the pipeline says about float32 points: its scalers then compute in float32."""
    X = check_points(post.centres).astype(np.float32)
    theirs = quietly(model.predict_proba, X)
    deviation = float(np.abs(post.probability(X.astype(np.float64)) - theirs).max())
    limit = 5e-3 if tolerance is None else tolerance
    if not deviation <= limit:
        raise InvalidInputError(
            f"model must predict float32 points to {limit:g}, but its scalers round, and its probability "
            f"differs by {deviation:.2g}; fit it on float64 points"
        )
    return replace(foreign, record={**foreign.record, "float32 deviation": deviation})


def _binary(estimator: Any, affine: Affine) -> tuple[Kernel, Float, Float]:
    """Kernel, weights y - pi and precision (L^-1 sqrt W)^T (L^-1 sqrt W): algorithm 3.2 of the GP book."""
    read = _covariance(estimator.kernel_, affine if affine.steps else None)
    half = solve_triangular(estimator.L_, np.diag(estimator.W_sr_), lower=True)
    weights = np.asarray(estimator.y_train_ - estimator.pi_, dtype=np.float64)
    return read.predictor(weights, half.T @ half)


def written(kernel: Any) -> str:
    """What to write in the place of a kernel of scikit-learn; "" where gpcert has no such kernel."""
    try:
        read = _covariance(kernel, None)
        found = re.sub(r"\b(?=[A-Z])", "gc.", repr(read.kernel())) if read.noise == 0 else ""
    except InvalidInputError:
        return ""
    return f": write {found}" if found else ""


def _covariance(kernel: Any, affine: Affine | None) -> Covariance:
    """A scikit-learn kernel with its lengthscales before the map."""
    name = named(kernel, "sklearn")
    if name == "Sum":
        return _covariance(kernel.k1, affine) + _covariance(kernel.k2, affine)
    if name == "Product":
        return _covariance(kernel.k1, affine) * _covariance(kernel.k2, affine)
    if name == "ConstantKernel":
        return Covariance(constant=float(kernel.constant_value))
    if name == "WhiteKernel":
        return Covariance(noise=float(kernel.noise_level))
    if name in ("RBF", "Matern", "RationalQuadratic"):
        lengthscale = np.asarray(kernel.length_scale, dtype=np.float64)
        if lengthscale.ndim and lengthscale.size == 1:
            lengthscale = lengthscale.reshape(())
        if affine is not None:
            lengthscale = affine.lengthscales(lengthscale)
        return Covariance((_stationary(kernel, name, lengthscale),))
    refuse(
        "kernel", "a sum or product of ConstantKernel, RBF, Matern, RationalQuadratic and WhiteKernel", kernel
    )


def _stationary(kernel: Any, name: str, lengthscale: Float) -> Kernel:
    if name == "RBF":
        return RBF(lengthscale)
    if name == "RationalQuadratic":
        return RationalQuadratic(lengthscale, 1.0, float(kernel.alpha))
    if kernel.nu not in _MATERN:
        refuse("kernel", "Matern with nu 0.5, 1.5, 2.5 or inf", f"nu = {kernel.nu}")
    return _MATERN[kernel.nu](lengthscale)


def _latents(steps: list[Any], binary: list[Any], X: Float) -> tuple[Float, Float]:
    """scikit-learn's own latent mean and variance (m, C)."""
    Z = transformed(steps, X)
    mean, variance = zip(*(_moments(each, Z) for each in binary), strict=True)
    return np.stack(mean, axis=1), np.stack(variance, axis=1)


def _moments(estimator: Any, Z: Float) -> tuple[Float, Float]:
    """Algorithm 3.2 with scikit-learn's kernel; `latent_mean_and_variance` exists only from 1.7 on."""
    k = estimator.kernel_(estimator.X_train_, Z)
    v = solve_triangular(estimator.L_, estimator.W_sr_[:, None] * k, lower=True)
    variance = estimator.kernel_.diag(Z) - np.einsum("ij,ij->j", v, v)
    return k.T @ (estimator.y_train_ - estimator.pi_), variance


def from_ours(model: Any, steps: list[Any], post: Posterior, tolerance: float | None) -> Posterior:
    """The posterior of a whole pipeline, in the units of its input, checked against the pipeline itself."""
    assert post.likelihood is not None  # it belongs to a classifier
    affine = affine_of(steps, input_size(steps, post.n_features))

    def latent(X: Float) -> tuple[Float, Float]:
        mean, variance = post.latent(transformed(steps, X))
        return mean, variance if variance.ndim == 1 else np.einsum("mcc->mc", variance)

    foreign = Foreign(
        library="gpcert",
        model=model,
        centres=affine.inverse(post.centres),
        weights=post.weights,
        precision=post.precision,
        kernel=[stretched(kernel, affine.lengthscales) for kernel in post.kernels],
        likelihood=post.likelihood,
        target=post.target,
        latent=latent,
        probability=lambda X: quietly(model.predict_proba, X),
        labels=lambda X: quietly(model.predict, X, None),
        mean=post.mean,
        classes=post.classes,
        feature_names=names_seen(model),
        record={**post.training, "scaling": list(affine.steps)},
    )
    return checked_posterior(foreign, exact=False, tolerance=tolerance)
