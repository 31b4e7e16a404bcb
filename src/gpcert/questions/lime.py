"""LIME beside our explanations: a local linear model around one input, by the authors' package (`lime`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.errors import GpcertError
from gpcert.posterior import Posterior
from gpcert.questions.asking import question
from gpcert.questions.checks import Label
from gpcert.questions.explain import explain
from gpcert.results import LimeComparison
from gpcert.tables import matrix
from gpcert.validation import Float, require


@question
def compare_with_lime(
    post: Posterior,
    X: Any,
    radius: float,
    X_train: Any,
    label: Label = 1,
    *,
    samples: int = 5000,
    width: float | None = None,
    domain: Any = None,
) -> LimeComparison:
    """Delta of `explain` and LIME's weights of P(label) at the same points, and how far they agree.

    Needs the package: pip install 'gpcert[lime]'.

    Parameters
    ----------
    post : model
        Any model that `posterior_of` takes.
    X : array of shape (m, d) or table
        The points.
    radius : float
        How far each feature moves, >= 0.
    X_train : array of shape (n, d) or table
        The data that LIME takes its scales from.
    label : class value, optional
        The class whose probability it is, a value of the model's classes. Two classes: the second by default;
        several: must be given.
    samples : int
        LIME's perturbations of each point.
    width : float, optional
        LIME's kernel width; None: the package's default.
    domain : pair (low, high) or mapping, optional
        Where inputs are valid: numbers, arrays (d,) or by name, None for an open end; intervals end there.

    Returns
    -------
    LimeComparison
        Both, with their agreement for each point.

    Examples
    --------
    >>> c = gc.compare_with_lime(clf, X[:10], 0.1, X)  # doctest: +SKIP
    >>> c.agreement.mean()  # doctest: +SKIP
    """
    ours = explain(post, X, radius, label, domain=domain)
    names, d = post.feature_names, post.n_features
    points = np.stack([ball.x for ball in ours.balls]) if ours.balls else np.empty((0, d))
    train = matrix("X_train", X_train, names, d)
    require(int(samples) >= 1, f"samples must be >= 1, got {samples}")
    weights = lime_weights(post, train, points, ours.label, int(samples), post.n_features, width)
    return LimeComparison.of(ours, weights)


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
    try:
        from lime.lime_tabular import LimeTabularExplainer
    except ImportError:
        raise GpcertError("LIME needs the package lime: pip install 'gpcert[lime]'") from None
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
