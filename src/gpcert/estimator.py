"""`GPClassifier`: Gaussian-process classification behind scikit-learn's estimator protocol.

The protocol is followed, not inherited: scikit-learn is imported only where it asks for its own objects
(`__sklearn_tags__`), or where it is loaded already and its exception and warning classes are expected. Some
messages below are worded as `sklearn.utils.estimator_checks` looks for them.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpcert.errors import InvalidInputError, NotFittedError
from gpcert.inference import (
    METHODS,
    Bounds,
    Progress,
    Settings,
    Trained,
    checked_labels,
    checked_points,
    train,
)
from gpcert.kernels import RBF, Kernel
from gpcert.likelihoods import BinaryLikelihood, Logit, OneVsRest, Probit
from gpcert.posterior import Posterior
from gpcert.validation import Float, require

__all__ = ["GPClassifier"]

Labels = NDArray[Any]


class GPClassifier:
    """Gaussian-process classifier; more than two classes are trained one against the rest.

    Parameters
    ----------
    kernel : Kernel or None
        Where the search for hyper-parameters starts; None: `RBF()`.
    likelihood : str or BinaryLikelihood
        "probit", "logit", `Probit(scale)` or `Logit()`.
    inference : str
        "laplace" or "ep" (expectation propagation).
    max_evals : int
        Evaluations of the marginal likelihood, at most (of each class's, if there are more than two); 0 keeps
        the kernel.
    random_state : int, None or numpy generator
        Seed of the restarts.
    bounds : mapping or None
        Parameter name ("lengthscale", "variance", "terms[0].alpha", ...) to its (lowest, highest) value.
    n_restarts : int
        Further random starts, sharing `max_evals`.
    progress : callable or None
        Called after each evaluation with (evaluations, log marginal likelihood, theta); returning True stops
        the search.

    Attributes
    ----------
    classes_ : array of shape (C,)
        Labels.
    posterior_ : Posterior
        The trained posterior, its centres in the order of X.
    kernel_ : Kernel, or tuple of C for C > 2
        The kernel found.
    trace_ : tuple of floats, or of C such tuples for C > 2
        The log marginal likelihood of every evaluation.
    log_marginal_likelihood_ : float
        Of `kernel_`; summed over the latents.
    n_evals_ : int
        Evaluations used; the largest over the latents.
    converged_ : bool
        Whether the inference at `kernel_` converged, for every latent; not about the search that led there.
    n_features_in_ : int
        d.
    feature_names_in_ : array of shape (d,)
        The names, if X had names.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        likelihood: str | BinaryLikelihood = "probit",
        inference: str = "laplace",
        max_evals: int = 40,
        random_state: Any = 0,
        *,
        bounds: Bounds | None = None,
        n_restarts: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.inference = inference
        self.max_evals = max_evals
        self.random_state = random_state
        self.bounds = bounds
        self.n_restarts = n_restarts
        self.progress = progress

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train on points X (n, d) with labels y (n,), numbers or strings, of at least two classes."""
        names = _feature_names(X)
        points = checked_points(X)
        classes, codes = checked_labels(_as_vector(y), len(points))
        kernel, link, settings = self._checked_parameters(points.shape[1])
        random = _generator(self.random_state)
        # Two classes are one latent, which speaks for the second.
        positives = (1,) if len(classes) == 2 else range(len(classes))
        models = [
            train(points, np.where(codes == c, 1.0, -1.0), kernel, link, settings, random) for c in positives
        ]
        self.classes_ = classes
        self.n_features_in_ = points.shape[1]
        vars(self).pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        self.kernel_ = _one_or_all([model.kernel for model in models])
        self.trace_ = _one_or_all([model.trace for model in models])
        self.log_marginal_likelihood_ = sum(model.log_marginal_likelihood for model in models)
        self.n_evals_ = max(len(model.trace) for model in models)
        self.converged_ = all(model.converged for model in models)
        self.posterior_ = self._posterior(points, models, link)
        return self

    def predict_proba(self, X: ArrayLike) -> Float:
        """Class probabilities (m, C) at X (m, d), columns in the order of `classes_`."""
        if not self.__sklearn_is_fitted__():
            raise _not_fitted_error()(f"{type(self).__name__} must be fitted first, got a call before fit")
        self._check_names(_feature_names(X))
        points = checked_points(X)
        require(
            points.shape[1] == self.n_features_in_,
            f"X has {points.shape[1]} features, but {type(self).__name__} is expecting "
            f"{self.n_features_in_} features as input",
        )
        return self.posterior_.probability(points)

    def predict(self, X: ArrayLike) -> Labels:
        """Labels (m,) of the most probable class at X (m, d)."""
        columns = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[columns])

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy on X (m, d) with labels y (m,); `sample_weight` (m,) weighs the points."""
        right = self.predict(X) == np.asarray(y)
        return float(np.average(right, weights=None if sample_weight is None else np.asarray(sample_weight)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments by name; none of them has parameters of its own."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Set constructor arguments by name."""
        known = self.get_params()
        for name, value in params.items():
            require(name in known, f"parameter must be one of {', '.join(known)}, got {name!r}")
            setattr(self, name, value)
        return self

    def _checked_parameters(self, d: int) -> tuple[Kernel, BinaryLikelihood, Settings]:
        kernel = RBF() if self.kernel is None else self.kernel
        require(isinstance(kernel, Kernel), f"kernel must be a kernel, got {kernel!r}")
        require(
            kernel.n_features in (None, d),
            f"kernel must have one lengthscale or {d}, as X has features, got {kernel.n_features}",
        )
        require(
            isinstance(self.inference, str) and self.inference in METHODS,
            f"inference must be one of {', '.join(METHODS)}, got {self.inference!r}",
        )
        settings = Settings(
            inference=self.inference,
            max_evals=_count("max_evals", self.max_evals),
            bounds=self.bounds,
            n_restarts=_count("n_restarts", self.n_restarts),
            progress=self.progress,
        )
        return kernel, _checked_likelihood(self.likelihood), settings

    def _posterior(self, points: Float, models: list[Trained], link: BinaryLikelihood) -> Posterior:
        two = len(models) == 1
        record = {
            "inference": self.inference,
            "likelihood": link.name,
            "max_evals": int(self.max_evals),
            "n_restarts": int(self.n_restarts),
            "random_state": int(self.random_state) if isinstance(self.random_state, Integral) else None,
            "n_evals": _one_or_all([len(model.trace) for model in models]),
            "log_marginal_likelihood": _one_or_all([model.log_marginal_likelihood for model in models]),
            "converged": _one_or_all([model.converged for model in models]),
            "optimum_found": _one_or_all([model.optimum_found for model in models]),
        }
        return Posterior(
            points,
            models[0].weights if two else np.stack([model.weights for model in models], axis=1),
            models[0].precision if two else np.stack([model.precision for model in models]),
            kernel=models[0].kernel if two else [model.kernel for model in models],
            likelihood=link if two else OneVsRest(link),
            classes=self.classes_,
            feature_names=getattr(self, "feature_names_in_", None),
            factors={
                "site_precision": models[0].site_precision
                if two
                else np.stack([model.site_precision for model in models])
            },
            training=record,
        )

    def _check_names(self, names: Labels | None) -> None:
        """Compare feature names with those seen by `fit`, as scikit-learn does."""
        fitted = getattr(self, "feature_names_in_", None)
        me = type(self).__name__
        if fitted is None and names is not None:
            warnings.warn(f"X has feature names, but {me} was fitted without feature names", stacklevel=4)
        elif fitted is not None and names is None:
            warnings.warn(
                f"X does not have valid feature names, but {me} was fitted with feature names", stacklevel=4
            )
        elif fitted is not None and names is not None and list(fitted) != list(names):
            raise InvalidInputError(_name_mismatch(list(fitted), list(names)))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "posterior_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(),
        )

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        changed = (
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not defaults[name].default and value != defaults[name].default
        )
        return f"{type(self).__name__}({', '.join(changed)})"


def _as_vector(y: Any) -> Labels:
    """y as an array; a column (n, 1) becomes (n,) with scikit-learn's warning."""
    require(y is not None, "GPClassifier requires y to be passed, but the target y is None")
    try:
        labels = np.asarray(y)
    except ValueError:
        raise InvalidInputError("y must be one-dimensional, got rows of different lengths") from None
    if labels.ndim != 2 or labels.shape[1] != 1:
        return labels
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
        "(n_samples,), for example using ravel().",
        _sklearn_class("DataConversionWarning", UserWarning),
        stacklevel=3,
    )
    return labels[:, 0]


def _checked_likelihood(value: Any) -> BinaryLikelihood:
    if isinstance(value, Probit | Logit):
        return value
    links: dict[str, BinaryLikelihood] = {"probit": Probit(), "logit": Logit()}
    name = value if isinstance(value, str) else ""
    rule = "likelihood must be 'probit', 'logit', Probit(scale) or Logit()"
    require(name != "softmax", f"{rule}, got 'softmax', which this version cannot train yet")
    require(name in links, f"{rule}, got {value!r}")
    return links[name]


def _count(name: str, value: Any) -> int:
    valid = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0
    require(valid, f"{name} must be an integer >= 0, got {value!r}")
    return int(value)


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InvalidInputError(f"random_state must be a seed or generator, got {random_state!r}") from None


def _feature_names(X: Any) -> Labels | None:
    """Column names (d,) of a data frame if all are strings, else None; a mixture is an error."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = np.array(list(columns), dtype=object)
    strings = [isinstance(name, str) for name in names]
    require(
        all(strings) or not any(strings),
        "Feature names are only supported if all input features have string names, got a mixture",
    )
    return names if len(names) and all(strings) else None


def _name_mismatch(fitted: list[str], names: list[str]) -> str:
    lines = ["The feature names should match those that were passed during fit."]
    unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    if unseen:
        lines += ["Feature names unseen at fit time:", *(f"- {name}" for name in unseen)]
    if missing:
        lines += ["Feature names seen at fit time, yet now missing:", *(f"- {name}" for name in missing)]
    if not unseen and not missing:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"


def _sklearn_class(name: str, otherwise: type[Any]) -> type[Any]:
    """A class of `sklearn.exceptions` if scikit-learn is loaded; it is never loaded for this."""
    return getattr(sys.modules.get("sklearn.exceptions"), name, otherwise)


def _not_fitted_error() -> type[Exception]:
    """gpcert's `NotFittedError`, which is also scikit-learn's if that is loaded."""
    theirs = _sklearn_class("NotFittedError", NotFittedError)
    return (
        NotFittedError if theirs is NotFittedError else type("NotFittedError", (NotFittedError, theirs), {})
    )


def _one_or_all(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)
