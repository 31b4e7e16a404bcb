"""What a posterior must satisfy, one function per constructor argument; each failure is one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpcert.errors import InvalidInputError
from gpcert.kernels import Kernel
from gpcert.likelihoods import BinaryLikelihood, Likelihood, OneVsRest, likelihood_from
from gpcert.validation import Float, as_floats, freeze, require

_ASYMMETRY = 1e-10  # relative to the largest entry; inverses computed in float64 stay far below it


def checked_weights(value: ArrayLike, n: int) -> Float:
    """Weights (n,) or (n, C), C >= 2."""
    weights = as_floats("weights", value)
    valid = weights.shape == (n,) or (weights.ndim == 2 and weights.shape[0] == n and weights.shape[1] >= 2)
    require(
        valid, f"weights must have shape ({n},), or ({n}, C) with C >= 2, as centres, got {weights.shape}"
    )
    return weights


def checked_precision(value: ArrayLike, n: int, C: int | None) -> Float:
    """Precision (n, n), (C, C, n, n) or (C, n, n), symmetrised; asymmetry beyond rounding is an error."""
    precision = as_floats("precision", value)
    shapes = [(n, n)] if C is None else [(C, C, n, n), (C, n, n)]
    rule = " or ".join(map(str, shapes))
    require(precision.shape in shapes, f"precision must have shape {rule}, as weights, got {precision.shape}")
    transposed = precision.transpose(1, 0, 3, 2) if precision.ndim == 4 else np.swapaxes(precision, -1, -2)
    with np.errstate(over="ignore"):
        asymmetry = np.abs(precision - transposed)
    worst = tuple(int(i) for i in np.unravel_index(asymmetry.argmax(), asymmetry.shape))
    if asymmetry[worst] > _ASYMMETRY * np.abs(precision).max():
        raise InvalidInputError(
            f"precision must be symmetric, got {precision[worst]} at {list(worst)} "
            f"and {transposed[worst]} at its mirror image"
        )
    if asymmetry[worst] == 0.0:
        return precision
    return np.asarray(0.5 * precision + 0.5 * transposed)


def checked_likelihood(value: Any, C: int | None, correlated: bool) -> Likelihood | None:
    """The likelihood object, of the kind that the shapes of weights and precision ask for."""
    if value is None:
        return None
    likelihood = likelihood_from(value)
    if C is None:
        require(
            isinstance(likelihood, BinaryLikelihood),
            f"likelihood must be a two-class one for weights of shape (n,), got {likelihood!r}",
        )
        return likelihood
    require(
        not isinstance(likelihood, BinaryLikelihood),
        f"likelihood must be softmax or one-vs-rest for weights of shape (n, C), got {likelihood!r}",
    )
    require(
        not (correlated and isinstance(likelihood, OneVsRest)),
        "precision must have shape (C, n, n) for a one-vs-rest likelihood, got (C, C, n, n)",
    )
    return likelihood


def checked_kernel(value: Any, C: int | None, d: int) -> Kernel | tuple[Kernel, ...]:
    """One kernel of d features, or a tuple of C."""
    single = isinstance(value, Kernel)
    kernels = (value,) if single else tuple(value) if isinstance(value, list | tuple) else ()
    for kernel in kernels:
        require(isinstance(kernel, Kernel), f"kernel must be one of gpcert, got {kernel!r}")
        require(
            kernel.n_features in (None, d),
            f"kernel must have one lengthscale or {d}, as centres have features, got {kernel.n_features}",
        )
        require(
            0.0 < kernel.prior_variance < np.inf,
            f"kernel must have a prior variance that is a double > 0, got {kernel.prior_variance}",
        )
    require(
        single or (C is not None and len(kernels) == C),
        f"kernel must be one kernel of gpcert{'' if C is None else f' or a sequence of {C}'}, got {value!r}",
    )
    return kernels[0] if single else kernels


def checked_mean(value: ArrayLike, C: int | None) -> float | Float:
    """A number, or an array (C,)."""
    mean = as_floats("mean", value)
    require(
        mean.ndim == 0 or (C is not None and mean.shape == (C,)),
        f"mean must be a number{'' if C is None else f' or {C} of them'}, got shape {mean.shape}",
    )
    return float(mean) if mean.ndim == 0 else freeze(mean)


def checked_classes(value: Any, count: int) -> NDArray[Any] | None:
    """Distinct labels, numbers or strings, read-only; None for regression (count 0)."""
    if count == 0:
        require(value is None, f"classes must be None for regression, got {value!r}")
        return None
    given = np.arange(count) if value is None else value
    labels = np.array(given, dtype=object)
    require(labels.shape == (count,), f"classes must be {count} labels, got shape {labels.shape}")
    if all(isinstance(label, str) for label in labels):
        classes = np.array(labels.tolist(), dtype=np.str_)  # of the shortest dtype, so that stores agree
    else:
        numbers = all(isinstance(label, Real | np.bool_) for label in labels)
        require(numbers, f"classes must be all numbers or all strings, got {labels.tolist()!r}")
        classes = np.array(given)
        if classes.dtype == object:
            classes = np.array(labels.tolist())
        require(
            classes.dtype.kind in "biu" or classes.dtype in (np.float16, np.float32, np.float64),
            f"classes must be float64 or narrower, got {classes.dtype}",
        )
        require(bool(np.isfinite(classes).all()), f"classes must be finite, got {labels.tolist()!r}")
    require(len(np.unique(classes)) == count, f"classes must be distinct, got {labels.tolist()!r}")
    classes.setflags(write=False)
    return classes


def checked_factors(value: Any, site_shape: tuple[int, ...]) -> Mapping[str, Float]:
    """Named read-only arrays; a site precision has the given shape."""
    factors = {}
    for name, array in dict(value or {}).items():
        require(
            isinstance(name, str) and name.isidentifier(),
            f"factors must be named by identifiers, got {name!r}",
        )
        factors[name] = freeze(as_floats(f"factors[{name!r}]", array))
    site = factors.get("site_precision")
    if site is not None:
        require(
            site.shape == site_shape and bool((site >= 0).all()),
            f"factors['site_precision'] must be >= 0 of shape {site_shape}, got shape {site.shape}"
            f" with smallest entry {site.min(initial=np.inf)}",
        )
    return MappingProxyType(factors)


def checked_training(value: Any) -> Mapping[str, Any]:
    """A copy that JSON reproduces exactly."""
    try:
        record = json.loads(json.dumps(dict(value or {}), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"training must be a JSON-able mapping, got {error}") from None
    return MappingProxyType(record)


def described(
    kernel: Kernel | tuple[Kernel, ...],
    likelihood: Likelihood | None,
    mean: float | Float,
    classes: NDArray[Any] | None,
    feature_names: tuple[str, ...] | None,
) -> dict[str, Any]:
    """What was checked here as JSON-able data; doubles in hexadecimal."""
    return {
        "kernel": kernel.to_dict() if isinstance(kernel, Kernel) else [k.to_dict() for k in kernel],
        "likelihood": None if likelihood is None else likelihood.to_dict(),
        "mean": mean.hex() if isinstance(mean, float) else [float(m).hex() for m in mean],
        "classes": None if classes is None else _described_classes(classes),
        "feature_names": feature_names,
    }


def _described_classes(classes: NDArray[Any]) -> dict[str, Any]:
    labels = classes.tolist()
    if classes.dtype.kind == "U":
        return {"dtype": "str", "labels": labels}
    exact = [label.hex() for label in labels] if classes.dtype.kind == "f" else labels
    return {"dtype": classes.dtype.name, "labels": exact}
