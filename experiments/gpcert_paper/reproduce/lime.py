"""LIME's weights: a local linear model around one input, by the authors' package (`lime`)."""

from __future__ import annotations

import numpy as np

from gpcert.posterior import Posterior
from gpcert.validation import Float


def lime_weights(
    post: Posterior,
    X_train: Float,
    X: Float,
    label: int,
    samples: int,
    kept: int,
    width: float | None = None,
) -> Float:
    """Weights (m, d) of P(label) at X (m, d); features beyond the `kept` most important get 0.

    `width` None: the package's defaults, samples around the mean of the data, weighted with a kernel of width
    0.75 sqrt(d); else samples around each input, weighted with that kernel width.
    """
    from lime.lime_tabular import LimeTabularExplainer

    explainer = LimeTabularExplainer(
        X_train,
        mode="classification",
        discretize_continuous=False,
        random_state=0,
        kernel_width=width,
        sample_around_instance=width is not None,
    )
    weights = np.zeros_like(X)
    for i, x in enumerate(X):
        found = explainer.explain_instance(
            x, post.probability, labels=(label,), num_features=min(kept, X.shape[1]), num_samples=samples
        )
        # LIME fits in standardised features: per unit of the feature itself, divide by its scale.
        for feature, weight in found.as_map()[label]:
            weights[i, feature] = weight / explainer.scaler.scale_[feature]
    return weights
