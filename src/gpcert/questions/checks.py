"""What every question checks before any work: the model, the label, regions, limits; one sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from gpcert.bounds import check_certifiable
from gpcert.errors import InvalidInputError
from gpcert.posterior import Posterior
from gpcert.regions import Ball, Box, Region
from gpcert.results import About, CertifiedRadius, LatentRange, ProbabilityRange, Status
from gpcert.running import Listener, Running
from gpcert.settings import Settings
from gpcert.validation import Float, Index, as_matrix, as_vector, require, shown

__all__ = [
    "about",
    "check_classifier",
    "check_count",
    "check_label",
    "check_method",
    "check_model",
    "check_number",
    "check_region",
    "check_seed",
    "check_shape",
    "check_threshold",
    "checked_labels",
    "checked_points",
    "checked_regions",
    "checked_running",
    "checked_settings",
    "frozen",
    "interrupted",
    "listed_regions",
]


def checked_settings(tolerance: float, max_seconds: float | None, max_nodes: int | None) -> Settings:
    """The limits that all questions have in common."""
    check_number("tolerance", tolerance, least=0.0, strict=True)
    for name, value in (("max_seconds", max_seconds), ("max_nodes", max_nodes)):
        if value is not None:
            check_number(name, value, least=0.0, strict=False)
    return Settings(float(tolerance), *(np.inf if v is None else float(v) for v in (max_seconds, max_nodes)))


def checked_running(progress: Listener | bool | None, n_jobs: int | None) -> Running:
    """How the question runs."""
    known = progress is None or isinstance(progress, bool) or callable(progress)
    require(known, f"progress must be True or a function, got {progress!r}")
    whole = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    require(
        n_jobs is None or (whole and n_jobs != 0),
        f"n_jobs must be a whole number, not 0, got {shown(n_jobs)}",
    )
    return Running(progress, None if n_jobs is None else int(n_jobs))


def about(post: Posterior, settings: Settings) -> About:
    """What the answers to a question record of the model and the settings."""
    return About(post.target, post.digest, settings)


def interrupted(answer: ProbabilityRange | CertifiedRadius | LatentRange) -> bool:
    """Whether Ctrl-C, or somebody told of progress, ended the search."""
    return answer.status is Status.INTERRUPTED


def check_classifier(post: Posterior) -> None:
    """A posterior with probabilities."""
    require(isinstance(post, Posterior), f"post must be a Posterior, got {type(post).__name__}")
    if post.likelihood is None:
        raise InvalidInputError("post must have a likelihood for probabilities, got a regression posterior")


def check_model(post: Posterior) -> None:
    """A posterior whose probabilities can be certified."""
    check_classifier(post)
    check_certifiable(post)


def check_label(post: Posterior, label: int) -> None:
    """A class index: a column of `post.probability`."""
    count = post.n_classes
    rule = "0 or 1" if count == 2 else f"0 to {count - 1}"
    require(
        isinstance(label, int | np.integer) and not isinstance(label, bool) and 0 <= label < count,
        f"label must be a class index, {rule}, got {shown(label)}",
    )


def check_threshold(post: Posterior, threshold: float) -> None:
    """A probability strictly between 0 and 1; several classes are compared with each other, not with it."""
    check_number("threshold", threshold, least=0.0, strict=True)
    require(float(threshold) < 1.0, f"threshold must be < 1, got {threshold}")
    if post.n_classes > 2:
        require(threshold == 0.5, f"threshold must be 0.5 with several classes, got {threshold}")


def check_method(method: str, *known: str) -> None:
    """One of the known names."""
    names = " or ".join(repr(name) for name in known)
    require(isinstance(method, str) and method in known, f"method must be {names}, got {shown(method)}")


def check_number(name: str, value: object, least: float, strict: bool) -> None:
    """One real number above (or at) `least`; NaN is not."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    rule = f"must be {'>' if strict else '>='} {least:g}"
    require(number, f"{name} {rule}, got {shown(value)}")
    assert isinstance(value, int | float | np.integer | np.floating)
    try:
        double = float(value)
    except OverflowError:
        raise InvalidInputError(f"{name} must be a double, got {shown(value)[:60]}") from None
    require(bool(double > least if strict else double >= least), f"{name} {rule}, got {value}")


def check_count(name: str, value: object) -> None:
    """A whole number of at least one."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    require(whole and cast(int, value) >= 1, f"{name} must be a whole number >= 1, got {shown(value)}")


def frozen(features: Sequence[int] | None) -> Sequence[int] | None:
    """What several balls share must not be used up by the first of them (an iterator); checked by `Ball`."""
    return tuple(features) if isinstance(features, Iterable) else features


def check_seed(seed: object) -> None:
    """A whole number that starts a random generator."""
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    require(whole and cast(int, seed) >= 0, f"seed must be a whole number >= 0, got {shown(seed)}")


def checked_regions(post: Posterior, region: Region | Sequence[Region]) -> tuple[list[Region], bool]:
    """The regions as a list, each checked, and whether a single one was given."""
    regions, single = listed_regions(region)
    for each in regions:
        check_region(post, each)
    return regions, single


def listed_regions(region: Region | Sequence[Region]) -> tuple[list[Region], bool]:
    """The regions as a list, and whether a single one was given."""
    if isinstance(region, Box | Ball):
        return [region], True
    try:
        return list(region), False
    except TypeError:
        raise InvalidInputError(
            f"region must be a Box, a Ball or a sequence of them, got {region!r}"
        ) from None


def checked_points(post: Posterior, x: ArrayLike | None, regions: Sequence[Region], single: bool) -> Float:
    """One point (m, d) per region, in it; None: its centre. A single region takes a single point (d,)."""
    if x is None:
        return np.stack([region.centre for region in regions]) if regions else np.empty((0, post.n_features))
    points = as_vector("x", x, post.n_features)[None] if single else as_matrix("x", x, post.n_features)
    require(
        len(points) == len(regions), f"x must hold one point per region, {len(regions)}, got {len(points)}"
    )
    for i, (point, region) in enumerate(zip(points, regions, strict=True)):
        where = "" if single else f" of index {i}"
        require(region.contains(point), f"x must lie in the region, got a point{where} outside")
    return points


def checked_labels(post: Posterior, label: int | Sequence[int] | None, X: Float) -> Index:
    """One class index per point X (m, d); None: the label the model gives it."""
    if label is None:
        return np.asarray(post.probability(X).argmax(axis=1))
    labels = [label] * len(X) if isinstance(label, int | np.integer | str | float) else list(label)
    require(len(labels) == len(X), f"label must hold one class index per region, {len(X)}, got {len(labels)}")
    for each in labels:
        check_label(post, each)
    return np.array(labels, dtype=np.intp)


def check_shape(post: Posterior, region: object) -> None:
    """A region of the posterior's features."""
    require(isinstance(region, Box | Ball), f"region must be a Box or a Ball, got {type(region).__name__}")
    assert isinstance(region, Box | Ball)
    require(
        region.n_features == post.n_features,
        f"region must have {post.n_features} features, got {region.n_features}",
    )


def check_region(post: Posterior, region: object) -> None:
    """A region of the posterior's features that can be certified."""
    check_shape(post, region)
