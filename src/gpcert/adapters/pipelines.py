"""Pipelines that end in gpcert's own classifier: their scalers folded into its posterior."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.adapters.covariance import stretched
from gpcert.adapters.foreign import Foreign, checked_posterior
from gpcert.adapters.scaling import affine_of, input_size, names_seen, quietly, transformed
from gpcert.posterior import Posterior
from gpcert.validation import Float


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
