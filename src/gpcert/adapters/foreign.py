"""A model read from another library, checked against that library's own prediction before it is certified."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from gpcert.errors import InvalidInputError
from gpcert.extras import version_of
from gpcert.kernels import Kernel
from gpcert.likelihoods import Likelihood
from gpcert.posterior import Posterior
from gpcert.posterior_columns import TRAINED
from gpcert.validation import Float, require

_CHECKED = 250  # points of each kind: centres, random near the centres, random far around them
_SEED = 20200611
_UNKNOWN = float(np.finfo(float).max)  # a deviation that is not a number, in a form that JSON has


@dataclass(frozen=True)
class Foreign:
    """What a reader has found: the parts of a posterior, and the library's own predictions.

    `latent(X)` gives mean and variance (m,), or (m, C) each; `probability(X)` gives (m, C), columns as in
    `classes`, or is None where the library samples; `labels(X)` gives the classes (m,) that the library
    predicts, or is None where it predicts probabilities only. `kernel`: one per latent. `centres` are in the
    units of X. `precise`: the library computes in float64. `credible`: its probability is no further from the
    exact expectation. `hint` ends the sentence of a refusal.
    """

    library: str
    model: object
    centres: ArrayLike
    weights: ArrayLike
    precision: ArrayLike
    kernel: Sequence[Kernel]
    likelihood: Likelihood
    target: str
    latent: Callable[[Float], Sequence[ArrayLike]]
    probability: Callable[[Float], ArrayLike] | None
    labels: Callable[[Float], ArrayLike] | None = None
    mean: ArrayLike = 0.0
    classes: ArrayLike | None = None
    feature_names: Sequence[str] | None = None
    precise: bool = True
    credible: float = np.inf
    hint: str = ""
    trained: bool = False  #: the centres are the training data, not inducing points
    record: Mapping[str, Any] = field(default_factory=dict)


def checked_posterior(foreign: Foreign, exact: bool, tolerance: float | None) -> Posterior:
    """The posterior of a foreign model, if it predicts what the library predicts.

    `exact`: the certified probability is the exact expectation, so that only the latents must agree; the
    distance to the library's probability is recorded. The tolerance for mean and variance is relative to
    the prior standard deviation and variance (and to the size of the mean).
    """
    limit = (1e-6 if foreign.precise else 5e-3) if tolerance is None else tolerance
    require(
        isinstance(limit, int | float | np.floating) and 0.0 < limit < np.inf,
        f"tolerance must be > 0, got {tolerance!r}",
    )
    post = _posterior(foreign, {})
    points = check_points(post.centres)
    deviation = _deviations(foreign, post, points)
    ruling = ("mean", "variance") if exact or foreign.probability is None else ("probability",)
    worst = max(ruling, key=lambda name: deviation[name] / _scale(post, name))
    if deviation[worst] == _UNKNOWN:
        raise InvalidInputError(
            f"model must predict finite numbers, but the {worst} is not finite at one of {len(points)} points"
        )
    if not deviation[worst] <= limit * _scale(post, worst):
        others = ", ".join(f"{name} {value:.2g}" for name, value in deviation.items() if name != worst)
        raise InvalidInputError(
            f"model must predict as {foreign.library} does, to {limit:g}, but its {worst} differs by "
            f"{deviation[worst]:.2g} ({others}; largest over {len(points)} points){foreign.hint}"
        )
    if exact and deviation.get("probability", 0.0) > foreign.credible:
        raise InvalidInputError(
            f"model must predict as {foreign.library} does, within {foreign.credible:g} of the exact "
            f"expectation, but its probability differs by {deviation['probability']:.2g}"
        )
    _check_labels(foreign, post, points, 2.0 * max(float(limit), deviation.get("probability", 0.0)))
    return _posterior(foreign, {"deviation": deviation | {"points": len(points)}, "tolerance": float(limit)})


def _check_labels(foreign: Foreign, post: Posterior, X: Float, tie: float) -> None:
    """A certificate is about the class of the largest probability: it must be what the library predicts.

    `tie`: where the two largest are nearer than this, either may be.
    """
    if foreign.labels is None or post.classes is None:
        return
    p = post.probability(X)
    second, largest = np.sort(p, axis=1)[:, -2:].T
    expected = post.classes[p.argmax(axis=1)].tolist()
    said = np.asarray(foreign.labels(X)).tolist()
    wrong = [i for i in np.flatnonzero(largest - second > tie).tolist() if said[i] != expected[i]]
    if wrong:
        i = wrong[0]
        raise InvalidInputError(
            f"model must predict the class of its largest probability, but predict says {said[i]!r} where "
            f"P({expected[i]!r}) is {largest[i]:.3g} (at {len(wrong)} of {len(X)} points)"
        )


def check_points(centres: Float) -> Float:
    """Where a model is compared: centres, uniform points of their box widened by a half, and beyond."""
    random = np.random.default_rng(_SEED)
    chosen = random.permutation(len(centres))[:_CHECKED]
    low, high = centres.min(axis=0), centres.max(axis=0)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    half = np.where(half > 0, half, 1.0)
    near, far = (
        middle + reach * half * random.uniform(-1.0, 1.0, (_CHECKED, centres.shape[1]))
        for reach in (1.5, 4.0)
    )
    # Around single centres: in many features uniform points are far from all data.
    step = 0.1 * half * random.standard_normal((len(chosen), centres.shape[1]))
    return np.concatenate([centres[chosen], centres[chosen] + step, near, far])


def _posterior(foreign: Foreign, found: Mapping[str, Any]) -> Posterior:
    kernels = list(foreign.kernel)
    shared = all(kernel == kernels[0] for kernel in kernels)
    record = {
        "library": foreign.library,
        "version": version_of(foreign.library) or "unknown",
        "model": type(foreign.model).__name__,
        "target": foreign.target,
        "centres": TRAINED if foreign.trained else "inducing points",
        **foreign.record,
        **found,
    }
    return Posterior(
        foreign.centres,
        foreign.weights,
        foreign.precision,
        kernel=kernels[0] if shared else kernels,
        likelihood=foreign.likelihood,
        mean=foreign.mean,
        classes=foreign.classes,
        feature_names=foreign.feature_names,
        training=record,
    )


def _deviations(foreign: Foreign, post: Posterior, X: Float) -> dict[str, float]:
    """The largest distance of mean, variance and probability from the library's, by name; NaN is infinite."""
    mean, variance = post.latent(X)
    if variance.ndim == 3:
        diagonal = np.arange(variance.shape[1])
        variance = variance[:, diagonal, diagonal]
    their_mean, their_variance = (np.asarray(a, dtype=np.float64) for a in foreign.latent(X))
    found = {
        "mean": _largest(mean - their_mean.reshape(mean.shape)),
        # Libraries differ in where they clip; so do not compare below 0.
        "variance": _largest(variance - np.maximum(their_variance.reshape(variance.shape), 0.0)),
    }
    if foreign.probability is not None:
        theirs = np.asarray(foreign.probability(X), dtype=np.float64)
        found["probability"] = _largest(post.probability(X) - theirs)
    return found


def _largest(difference: Float) -> float:
    worst = float(np.abs(difference).max())
    return worst if np.isfinite(worst) else _UNKNOWN


def _scale(post: Posterior, name: str) -> float:
    """What a deviation is measured against."""
    prior = max(kernel.prior_variance for kernel in post.kernels)
    if name == "probability":
        return 1.0
    return prior if name == "variance" else float(np.sqrt(prior)) + float(np.abs(post.mean).max())


def checked_target(target: str) -> bool:
    """Whether the exact expectation is asked for; "library" or "exact"."""
    known = isinstance(target, str) and target in ("library", "exact")
    require(known, f"target must be 'library' or 'exact', got {target!r}")
    return target == "exact"


def library_of(value: object) -> str:
    """The top package that defines the type of a value: "sklearn", "GPy", "gpytorch", "gpflow", ..."""
    return type(value).__module__.partition(".")[0]


def named(value: object, library: str) -> str:
    """The name of a type that `library` itself defines, "" for any other: a subclass may do anything."""
    return type(value).__name__ if library_of(value) == library else ""


def two_columns(p: ArrayLike) -> Float:
    """(m, 2) from the probability of the second class (m, 1)."""
    return np.concatenate([1.0 - np.asarray(p), p], axis=1)


def refuse(parameter: str, rule: str, value: object) -> NoReturn:
    """One sentence naming what is not supported."""
    shown = type(value).__name__ if not isinstance(value, str) else repr(value)
    raise InvalidInputError(f"{parameter} must be {rule}, got {shown}")
