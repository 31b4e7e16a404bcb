"""scikit-learn pipelines: the affine steps before the classifier as one map x -> (x[at] - offset)/scale.

Distances after the map are distances before it with every lengthscale multiplied by the feature's scale, so
the map is folded into centres and lengthscales, and regions stay in the units of the pipeline's input. `at`
is a permutation: a ColumnTransformer puts columns in the order of its parts.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpcert.adapters.foreign import library_of, named
from gpcert.errors import InvalidInputError, NotFittedError
from gpcert.validation import Float, Index

_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
_LINEAR = ("PCA", "IncrementalPCA", "TruncatedSVD", "FactorAnalysis", "FastICA", "KernelPCA", "NMF")
_RULE = "pipeline steps before the classifier must be affine feature by feature"


@dataclass(frozen=True)
class Affine:
    """x -> (x[at] - offset)/scale, feature by feature; `steps` names what it was made of."""

    offset: Float  #: (d,)
    scale: Float  #: (d,), never 0
    at: Index  #: (d,), a permutation
    steps: tuple[str, ...] = ()

    @classmethod
    def identity(cls, d: int, *steps: str) -> Affine:
        """x -> x."""
        return cls(np.zeros(d), np.ones(d), np.arange(d), steps)

    def then(self, other: Affine) -> Affine:
        """This map, then the other."""
        offset, scale = self.offset[other.at], self.scale[other.at]
        steps = self.steps + other.steps
        return Affine(offset + scale * other.offset, scale * other.scale, self.at[other.at], steps)

    def inverse(self, Z: Float) -> Float:
        """The points whose images are Z (m, d)."""
        points = np.empty_like(Z)
        points[:, self.at] = Z * self.scale + self.offset
        return points

    def lengthscales(self, lengthscale: Float) -> Float:
        """Lengthscales (d,) before the map, of one or (d,) after it."""
        found = np.empty_like(self.scale)
        found[self.at] = lengthscale * np.abs(self.scale)
        return found


def split_pipeline(model: object) -> tuple[list[Any], Any]:
    """The steps before the last, nested pipelines flattened, and the last."""
    if named(model, "sklearn") != "Pipeline":
        return [], model
    steps: list[Any] = []
    for _, step in model.steps:  # type: ignore[attr-defined]
        before, last = split_pipeline(step)
        steps += [*before, last]
    if not steps:
        raise InvalidInputError("model must be a Pipeline that ends in a classifier, got an empty one")
    return steps[:-1], steps[-1]


def input_size(steps: list[Any], otherwise: int) -> int:
    """How many features go into the first step that says so."""
    return next((int(step.n_features_in_) for step in steps if hasattr(step, "n_features_in_")), otherwise)


def affine_of(steps: list[Any], n_features: int) -> Affine:
    """The steps as one map; a step that is not affine feature by feature is refused by name."""
    total = Affine.identity(n_features)
    for step in steps:
        if step is not None and not (isinstance(step, str) and step == "passthrough"):
            total = total.then(_one(step, n_features))
    return total


def transformed(steps: list[Any], X: Float) -> Float:
    """X after the steps, as scikit-learn computes it."""
    for step in steps:
        if step is not None and not isinstance(step, str):
            X = quietly(step.transform, X)
    return X


def names_seen(model: Any) -> Any:
    """What the columns were called that a fitted model saw; of a pipeline: its first step at work."""
    names = getattr(model, "feature_names_in_", None)
    steps = [
        step for _, step in getattr(model, "steps", ()) if step is not None and not isinstance(step, str)
    ]
    return names_seen(steps[0]) if names is None and steps else names


def quietly(method: Callable[[Any], Any], X: NDArray[Any], dtype: type | None = np.float64) -> NDArray[Any]:
    """method(X), as a table if the model saw one (parts may ask for columns by name), and without warning."""
    names, seen = names_seen(getattr(method, "__self__", None)), sys.modules
    library = seen.get("pandas") or seen.get("polars")
    if names is not None and library is not None:
        X = library.DataFrame(dict(zip(names, X.T, strict=True)))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return np.asarray(method(X), dtype=dtype)


def _one(step: Any, d: int) -> Affine:
    """One step."""
    name = named(step, "sklearn")
    if name in (*_SCALERS, "ColumnTransformer", "SimpleImputer"):
        fitted = getattr(step, "n_features_in_", None)
        if fitted is None:
            raise NotFittedError(f"model must be fitted, got a {name} before fit")
        if fitted != d:
            raise InvalidInputError(f"pipeline steps must have {d} features, got a {name} of {fitted}")
    offset = scale = None
    if name == "StandardScaler":
        offset, scale = step.mean_ if step.with_mean else None, step.scale_
    elif name == "MinMaxScaler" and not step.clip:
        scale = 1.0 / _array(step.scale_, d, 1.0)
        offset = -_array(step.min_, d, 0.0) * scale
    elif name == "MaxAbsScaler" and not getattr(step, "clip", False):
        scale = step.scale_
    elif name == "RobustScaler":
        offset = step.center_ if step.with_centering else None
        scale = step.scale_ if step.with_scaling else None
    elif name == "ColumnTransformer":
        return _by_columns(step, d)
    elif not (
        (name == "FunctionTransformer" and step.func is None)
        or (name == "SimpleImputer" and _keeps_all(step))  # regions hold numbers, never missing values
    ):
        raise InvalidInputError(_refusal(step, name))
    return Affine(_array(offset, d, 0.0), _array(scale, d, 1.0), np.arange(d), (name,))


def _keeps_all(imputer: Any) -> bool:
    """Whether a row without missing values comes out as it went in."""
    of_nan = isinstance(imputer.missing_values, float) and np.isnan(imputer.missing_values)
    empty = [value != value for value in np.asarray(imputer.statistics_, dtype=object)]
    return bool(of_nan and not imputer.add_indicator and (imputer.keep_empty_features or not any(empty)))


def _by_columns(transformer: Any, d: int) -> Affine:
    """Each part on its own columns; together they have to keep every column once."""
    made: dict[int, tuple[int, float, float]] = {}
    names: list[str] = []
    for name, part, _ in transformer.transformers_:
        columns = np.asarray(transformer._transformer_to_input_indices[name], dtype=np.intp)
        where = transformer.output_indices_[name]
        if not columns.size:
            continue
        if isinstance(part, str) and part == "drop":
            raise InvalidInputError(f"{_RULE}, got a ColumnTransformer that drops columns ({name!r})")
        before, last = split_pipeline(part)
        inner = affine_of([*before, last], len(columns))
        names += inner.steps
        for k, out in enumerate(range(where.start, where.stop)):
            made[out] = int(columns[inner.at[k]]), inner.offset[k], inner.scale[k]
    at = [made[k][0] for k in sorted(made)]
    if sorted(at) != list(range(d)):
        raise InvalidInputError(f"{_RULE}, got a ColumnTransformer that uses a column twice or not at all")
    offset, scale = (np.array([made[k][i] for k in sorted(made)]) for i in (1, 2))
    return Affine(offset, scale, np.array(at), tuple(names))


def _refusal(step: Any, name: str) -> str:
    rule = _RULE
    if name == "SimpleImputer":
        return f"{rule}, got SimpleImputer with missing_values, add_indicator or columns that were empty"
    if name in ("MinMaxScaler", "MaxAbsScaler"):
        return f"{rule}, got {name} with clip=True"
    if name in _LINEAR:
        return (
            f"{rule}, got {name}: a box of inputs is not a box of components; "
            "convert pipeline[-1] to certify in the components"
        )
    of = "" if library_of(step) == "sklearn" else f" of {library_of(step)}"
    return f"{rule} (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler), got {type(step).__name__}{of}"


def _array(value: Any, d: int, default: float) -> Float:
    return np.full(d, default) if value is None else np.asarray(value, dtype=np.float64)
