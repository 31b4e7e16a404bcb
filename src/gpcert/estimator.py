"""`GPClassifier`: Gaussian-process classification behind scikit-learn's estimator protocol.

The protocol is followed, not inherited: scikit-learn is imported only where it asks for its own objects
(`__sklearn_tags__`).
"""

from __future__ import annotations

import inspect
from numbers import Integral
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpcert.errors import InvalidInputError
from gpcert.html import facts, rounded
from gpcert.inference.inputs import (
    check_names,
    checked_labels,
    checked_points,
    feature_names,
    label_vector,
    not_fitted_error,
)
from gpcert.inference.optimise import Bounds, Progress
from gpcert.inference.train import METHODS, Trained, TrainingSettings, check_memory, train
from gpcert.kernels import RBF, Kernel
from gpcert.likelihoods import BY_NAME, BinaryLikelihood, Logit, OneVsRest, Probit, Softmax
from gpcert.posterior import Posterior
from gpcert.posterior_columns import TRAINED
from gpcert.running import one_thread
from gpcert.tables import check_labelled
from gpcert.validation import Float, as_vector, meant, random_start, require, shown

Labels = NDArray[Any]


class GPClassifier:
    """Gaussian-process classifier: two classes; more by softmax, or one-vs-rest.

    The estimator contract of scikit-learn, without needing it.

    Parameters
    ----------
    kernel : Kernel, optional
        Where the search for hyper-parameters starts; None: `RBF()`.
    likelihood : str, BinaryLikelihood or Softmax
        "probit", "logit", `Probit(scale)` or `Logit()`: two classes, more are trained one-vs-rest. "softmax"
        or `Softmax()`: all classes together, one latent each, with one kernel.
    inference : str
        "laplace" or "ep" (expectation propagation; not for softmax).
    max_evals : int
        Evaluations of the marginal likelihood, at most (of each class's, if trained one-vs-rest); 0 keeps the
        kernel.
    random_state : int, Generator or None
        Of the restarts; the model's record of training keeps the integer that they started from.
    bounds : mapping, optional
        Parameter name ("lengthscale", "variance", "terms[0].alpha", ...) to its (lowest, highest) value.
    n_restarts : int
        Further random starts, sharing `max_evals`.
    progress : callable, optional
        Called after each evaluation with (evaluations, log marginal likelihood, theta); returning True stops
        the search.

    Attributes
    ----------
    classes_ : array of shape (C,)
        Labels.
    posterior_ : Posterior
        The trained posterior, its centres in the order of X.
    kernel_ : Kernel, or tuple of C where one-vs-rest
        The kernel found.
    trace_ : tuple of float, or of C such tuples where one-vs-rest
        The log marginal likelihood of every evaluation.
    log_marginal_likelihood_ : float
        Of `kernel_`; summed over the models.
    n_evals_ : int
        Evaluations used; the largest over the models.
    converged_ : bool
        Whether the inference at `kernel_` converged, for every model; not about the search that led there.
    n_features_in_ : int
        d.
    feature_names_in_ : array of shape (d,)
        The names, if X had names.

    Examples
    --------
    >>> clf = gc.GPClassifier(gc.RBF(1.0), max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> clf.predict([[0.5], [2.5]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        likelihood: str | BinaryLikelihood | Softmax = "probit",
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
        """Train on labelled points of at least two classes; more than two need at least two points each.

        Parameters
        ----------
        X : array of shape (n, d) or table
            The points.
        y : array of shape (n,)
            Their classes, numbers or strings.

        Returns
        -------
        GPClassifier
            Itself.
        """
        check_labelled(X, y)
        names = feature_names(X)
        points = checked_points(X)
        classes, codes = checked_labels(label_vector(y), len(points))
        kernel, link, settings = self._checked_parameters(points.shape[1])
        state = self.random_state
        drawn = state.randint(2**31) if isinstance(state, np.random.RandomState) else state
        start = random_start("random_state", drawn)
        random = np.random.default_rng(start)
        together = isinstance(link, Softmax)
        check_memory(len(points), len(classes), together)
        targets = _targets(codes, len(classes), together)
        with one_thread(len(points), len(points)):
            models = [train(points, target, kernel, link, settings, random) for target in targets]
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
        self.posterior_ = self._posterior(points, models, link, start)
        return self

    def predict_proba(self, X: ArrayLike) -> Float:
        """Class probabilities.

        Parameters
        ----------
        X : array of shape (m, d) or table
            The points.

        Returns
        -------
        array of shape (m, C)
            Columns in the order of `classes_`.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        if not self.__sklearn_is_fitted__():
            raise not_fitted_error()(f"{type(self).__name__} must be fitted first, got a call before fit")
        check_names(type(self).__name__, getattr(self, "feature_names_in_", None), feature_names(X))
        points = checked_points(X)
        require(
            points.shape[1] == self.n_features_in_,
            f"X has {points.shape[1]} features, but {type(self).__name__} is expecting "
            f"{self.n_features_in_} features as input",
        )
        return self.posterior_.probability(points)

    def predict(self, X: ArrayLike) -> Labels:
        """The most probable class.

        Parameters
        ----------
        X : array of shape (m, d) or table
            The points.

        Returns
        -------
        array of shape (m,)
            Values of `classes_`.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        columns = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[columns])

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy.

        Parameters
        ----------
        X : array of shape (m, d) or table
            The points.
        y : array of shape (m,)
            Their true classes.
        sample_weight : array of shape (m,), optional
            Weights of the points; None: all alike.

        Returns
        -------
        float
            The share of points that are labelled correctly.
        """
        check_labelled(X, y)
        predicted, labels = self.predict(X), label_vector(y)
        message = f"y must hold one label per point, {len(predicted)}, got shape {labels.shape}"
        require(labels.shape == predicted.shape, message)
        texts = [np.asarray(each.tolist()).dtype.kind == "U" for each in (labels, predicted)]
        message = "y must hold labels of the model's kind, texts or numbers, got the other"
        require(texts[0] == texts[1], message)
        weights = None if sample_weight is None else as_vector("sample_weight", sample_weight, len(labels))
        require(weights is None or bool(weights.sum() > 0), "sample_weight must have a sum > 0, got another")
        return float(np.average(predicted == labels, weights=weights))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments.

        Parameters
        ----------
        deep : bool
            Of no effect: none of them has parameters of its own.

        Returns
        -------
        dict
            Name to value.
        """
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change the constructor's arguments.

        Parameters
        ----------
        **params
            Name to value.

        Returns
        -------
        GPClassifier
            Itself.
        """
        known = self.get_params()
        for name, value in params.items():
            message = f"parameter must be one of {', '.join(known)}, got {name!r}{meant(name, known)}"
            require(name in known, message)
            setattr(self, name, value)
        return self

    def _checked_parameters(self, d: int) -> tuple[Kernel, BinaryLikelihood | Softmax, TrainingSettings]:
        kernel = RBF() if self.kernel is None else self.kernel
        if not isinstance(kernel, Kernel):
            from gpcert.adapters.scikit_learn import written  # what a mistake needs

            raise InvalidInputError(f"kernel must be one of gpcert, got {kernel!r}{written(kernel)}")
        require(
            kernel.n_features in (None, d),
            f"kernel must have one lengthscale or {d}, as X has features, got {kernel.n_features}",
        )
        require(
            isinstance(self.inference, str) and self.inference in METHODS,
            f"inference must be one of {', '.join(METHODS)}, got {self.inference!r}",
        )
        likelihood = _checked_likelihood(self.likelihood)
        require(
            self.inference == "laplace" or not isinstance(likelihood, Softmax),
            f"inference must be 'laplace' for the softmax likelihood, got {self.inference!r}",
        )
        known = self.progress is None or callable(self.progress)
        require(known, f"progress must be a function, got {shown(self.progress)}")
        settings = TrainingSettings(
            inference=self.inference,
            max_evals=_count("max_evals", self.max_evals),
            bounds=self.bounds,
            n_restarts=_count("n_restarts", self.n_restarts),
            progress=self.progress,
        )
        return kernel, likelihood, settings

    def _posterior(
        self, points: Float, models: list[Trained], link: BinaryLikelihood | Softmax, start: int
    ) -> Posterior:
        record = {
            "centres": TRAINED,
            "inference": self.inference,
            "likelihood": link.name,
            "max_evals": int(self.max_evals),
            "n_restarts": int(self.n_restarts),
            "random_state": start,
            "n_evals": _one_or_all([len(model.trace) for model in models]),
            "log_marginal_likelihood": _one_or_all([model.log_marginal_likelihood for model in models]),
            "converged": _one_or_all([model.converged for model in models]),
            "optimum_found": _one_or_all([model.optimum_found for model in models]),
        }
        single = len(models) == 1
        sites = [model.site_precision for model in models if model.site_precision is not None]
        return Posterior(
            points,
            models[0].weights if single else np.stack([model.weights for model in models], axis=1),
            models[0].precision if single else np.stack([model.precision for model in models]),
            kernel=models[0].kernel if single else [model.kernel for model in models],
            likelihood=OneVsRest(link) if not single and isinstance(link, BinaryLikelihood) else link,
            classes=self.classes_,
            feature_names=getattr(self, "feature_names_in_", None),
            factors={"site_precision": sites[0] if single else np.stack(sites)} if sites else None,
            training=record,
        )

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

    def _repr_html_(self) -> str:
        rows = [("parameters", rounded(repr(self)))]
        if self.__sklearn_is_fitted__():
            classes = ", ".join(map(str, self.classes_[:12]))
            rows += [("classes", classes), ("trained on", f"{self.posterior_.n_centres} points")]
            rows += [("kernel", rounded(repr(self.kernel_)))]
            rows += [("log marginal likelihood", f"{self.log_marginal_likelihood_:.6g}")]
        return facts(type(self).__name__, rows)

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        changed = (
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not defaults[name].default and value != defaults[name].default
        )
        return f"{type(self).__name__}({', '.join(changed)})"


def _checked_likelihood(value: Any) -> BinaryLikelihood | Softmax:
    found = BY_NAME[value]() if isinstance(value, str) and value in BY_NAME else value
    rule = "likelihood must be 'probit', 'logit', 'softmax', Probit(scale), Logit() or Softmax()"
    require(isinstance(found, Probit | Logit | Softmax), f"{rule}, got {shown(value)}")
    return cast("BinaryLikelihood | Softmax", found)


def _targets(codes: NDArray[np.intp], classes: int, together: bool) -> list[Float]:
    """What each model is trained on: the class indices, or +-1 for one class against the rest.

    Two classes against each other are one latent, which speaks for the second.
    """
    if together:
        return [codes.astype(np.float64)]
    positives = (1,) if classes == 2 else range(classes)
    return [np.where(codes == c, 1.0, -1.0) for c in positives]


def _count(name: str, value: Any) -> int:
    valid = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0
    require(valid, f"{name} must be an integer >= 0, got {shown(value)}")
    return int(value)


def _one_or_all(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)
