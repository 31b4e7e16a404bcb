"""scikit-learn pipelines: the affine steps before the classifier as one map x -> (x - offset)/scale.

Distances after the map are distances before it with every lengthscale multiplied by the feature's scale, so
the map is folded into centres and lengthscales, and regions stay in the units of the pipeline's input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.adapters.foreign import library_of, named
from gpcert.errors import InvalidInputError, NotFittedError
from gpcert.validation import Float

_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
_LINEAR = ("PCA", "IncrementalPCA", "TruncatedSVD", "FactorAnalysis", "FastICA", "KernelPCA", "NMF")


@dataclass(frozen=True)
class Affine:
    """x -> (x - offset)/scale, feature by feature; `steps` names what it was made of."""

    offset: Float  #: (d,)
    scale: Float  #: (d,), never 0
    steps: tuple[str, ...] = ()

    def after(self, offset: Float, scale: Float, step: str) -> Affine:
        """This map, then z -> (z - offset)/scale."""
        return Affine(self.offset + self.scale * offset, self.scale * scale, (*self.steps, step))

    def inverse(self, Z: Float) -> Float:
        """The points whose images are Z (m, d)."""
        return np.asarray(Z * self.scale + self.offset)


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


def affine_of(steps: list[Any], n_features: int) -> Affine:
    """The steps as one map; a step that is not affine feature by feature is refused by name."""
    total = Affine(np.zeros(n_features), np.ones(n_features))
    for step in steps:
        if step is None or (isinstance(step, str) and step == "passthrough"):
            continue
        offset, scale = _one(step, n_features)
        total = total.after(offset, scale, type(step).__name__)
    return total


def _one(step: Any, d: int) -> tuple[Float, Float]:
    """(offset, scale) of one step."""
    name = named(step, "sklearn")
    if name in _SCALERS:
        fitted = getattr(step, "n_features_in_", None)
        if fitted is None:
            raise NotFittedError(f"model must be fitted, got a {name} before fit")
        if fitted != d:
            raise InvalidInputError(f"pipeline steps must have {d} features, got a {name} of {fitted}")
    if name == "StandardScaler":
        return _array(step.mean_ if step.with_mean else None, d, 0.0), _array(step.scale_, d, 1.0)
    if name == "MinMaxScaler" and not step.clip:
        scale = 1.0 / _array(step.scale_, d, 1.0)
        return -_array(step.min_, d, 0.0) * scale, scale
    if name == "MaxAbsScaler" and not getattr(step, "clip", False):
        return np.zeros(d), _array(step.scale_, d, 1.0)
    if name == "RobustScaler":
        centre = step.center_ if step.with_centering else None
        return _array(centre, d, 0.0), _array(step.scale_ if step.with_scaling else None, d, 1.0)
    if name == "FunctionTransformer" and step.func is None:
        return np.zeros(d), np.ones(d)
    raise InvalidInputError(_refusal(step, name))


def _refusal(step: Any, name: str) -> str:
    rule = "pipeline steps before the classifier must be affine feature by feature"
    if name in ("MinMaxScaler", "MaxAbsScaler"):
        return f"{rule}, got {name} with clip=True"
    if name in _LINEAR:
        return (
            f"{rule}, got {name}: a box of inputs is not a box of components; "
            "convert pipeline[-1] to certify in the components"
        )
    return f"{rule} (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler), got {_full_name(step)}"


def _full_name(step: Any) -> str:
    return type(step).__name__ + ("" if library_of(step) == "sklearn" else f" of {library_of(step)}")


def _array(value: Any, d: int, default: float) -> Float:
    return np.full(d, default) if value is None else np.asarray(value, dtype=np.float64)
