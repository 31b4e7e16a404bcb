"""What every question checks before any work: the model, the label, regions, limits; one sentence each."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from gpcert.bounds.factory import check_certifiable
from gpcert.classes import Label, position, positions
from gpcert.errors import ImpossibleInputsWarning, InvalidInputError, UnitsWarning
from gpcert.posterior import Posterior
from gpcert.posterior_columns import TrainingColumns, unlike_training
from gpcert.regions import BallBatch, Region, Regions, extent, one_unit
from gpcert.results import About, CertifiedRadius, LatentRange, ProbabilityRange, Status
from gpcert.running import Listener, Running
from gpcert.settings import DEVICES, Settings
from gpcert.tables import ends, matrix, row, same_rows, units
from gpcert.validation import Float, Index, as_floats, as_vector, no_truth, require, shown

if TYPE_CHECKING:
    from gpcert.proofs.prover import Prover
    from gpcert.store import Store

#: Where answers are kept: nowhere, in the store at a path, in a `gc.Store`.
Kept: TypeAlias = "Store | str | os.PathLike[str] | None"
#: Deviations that differ by more are of different units.
_UNLIKE = 100.0
_LOOKED = 1000  # regions, for inputs unlike any in training


def checked_settings(tolerance: float, max_seconds: float | None, max_nodes: int | None) -> Settings:
    """The limits that all questions have in common."""
    check_number("tolerance", tolerance, least=0.0, strict=True)
    for name, value in (("max_seconds", max_seconds), ("max_nodes", max_nodes)):
        if value is not None:
            check_number(name, value, least=0.0, strict=False)
    return Settings(float(tolerance), *(np.inf if v is None else float(v) for v in (max_seconds, max_nodes)))


def checked_running(
    progress: Listener | bool | None,
    n_jobs: int | None,
    store: Kept = None,
    *posts: Posterior,
    what: str = "",
    prover: Prover | None = None,
) -> Running:
    """How the question runs, and where the answers about these models, to be proved, are kept."""
    known = progress is None or isinstance(progress, bool) or callable(progress)
    require(known, f"progress must be True or a function, got {progress!r}")
    whole = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    require(
        n_jobs is None or (whole and n_jobs != 0),
        f"n_jobs must be a whole number, not 0, got {shown(n_jobs)}",
    )
    running = Running(progress, None if n_jobs is None else int(n_jobs))
    if store is None:
        return running
    from gpcert.store import keeping

    return replace(running, keeper=keeping(store, posts, what, None if prover is None else prover.served))


def checked_prover(
    post: Posterior,
    proof: str | os.PathLike[str] | None,
    regions: Sequence[Region],
    batch: bool,
    ids: Sequence[Any] | None = None,
    X: Float | None = None,
) -> Prover | None:
    """Who proves the answers, as `proofs.prover.checked_prover`; None: nobody."""
    if proof is None:
        return None
    from gpcert.proofs.prover import checked_prover  # imports what proofs need, and few questions do

    return checked_prover(post, proof, regions, batch, ids, X)


def about(post: Posterior, settings: Settings) -> About:
    """What the answers to a question record of the model and the settings."""
    return About(post.target, post.digest, post.labels, settings, features=post.feature_names)


def interrupted(answer: ProbabilityRange | CertifiedRadius | LatentRange) -> bool:
    """Whether Ctrl-C, or a progress function, ended the search or the export of its proof."""
    return Status.INTERRUPTED in (answer.status, getattr(answer, "unproved", None))


def check_classifier(post: Posterior) -> None:
    """A posterior with probabilities."""
    if post.likelihood is None:
        raise InvalidInputError("post must have a likelihood for probabilities, got a regression posterior")


def check_model(post: Posterior) -> None:
    """A posterior whose probabilities can be certified."""
    check_classifier(post)
    check_certifiable(post)


def class_indices(post: Posterior, y: Any, m: int, what: str = "y") -> Index:
    """Class indices (m,) of class values y (m,)."""
    try:
        labels = np.asarray(y)
    except ValueError:
        raise InvalidInputError(f"{what} must hold one label per point, got {shown(y)[:60]}") from None
    require(labels.shape == (m,), f"{what} must hold one label per point, {m}, got shape {labels.shape}")
    return np.array(positions(post.labels, labels.tolist(), f"each label of {what}"), dtype=np.intp)


def checked_radii(radii: Any) -> Float:
    """Increasing radii (k,), at least one; one number is one radius."""
    values = as_vector("radii", np.atleast_1d(as_floats("radii", no_truth("radii", radii))))
    require(values.size > 0, "radii must hold at least one radius, got none")
    require(bool((values >= 0).all()), f"radii must be >= 0, got {values.min()}")
    require(bool((np.diff(values) > 0).all()), f"radii must increase, got {values.tolist()[:6]}")
    return values


def training_columns(post: Posterior, what: str) -> TrainingColumns:
    """What the training data of the model show; `what` is asked for that needs them."""
    found = post.training_columns
    if found is None:
        has = post.training.get("centres", "centres that may be any points")
        raise InvalidInputError(f"{what} needs a model that holds its training data, got {has}")
    return found


def limits_and_units(
    known: Callable[[str], TrainingColumns],
    domain: Any,
    scale: Any,
    names: Sequence[str] | None,
    d: int,
    moving: Sequence[int] | None,
) -> tuple[Any, Float | None]:
    """Domain and units of balls, of which "data" and "std" are about the training data that are known."""
    data, std = "domain='data'", "scale='std'"
    limits = ends(domain, names, d, lambda: known(data).possible())
    return limits, units(scale, names, d, moving, lambda: known(std).units(moving, names, std))


def warn_of_units(post: Posterior, moving: Sequence[int] | None, domain: Any, level: int = 5) -> None:
    """Say that one radius for columns of very different units is hardly meant; `level`: to the caller."""
    if message := units_apart(post, moving, domain, "scale='std'"):
        warnings.warn(message, UnitsWarning, stacklevel=level)


def units_apart(post: Posterior, moving: Sequence[int] | None, domain: Any, option: str) -> str:
    """The sentence about columns whose deviations differ by more than 100 times, "" where none do, or where
    one domain (low, high) for all columns says that they have one unit: pixels.
    """
    names, chosen = post.feature_names, range(post.n_features) if moving is None else moving
    if names is None or one_unit(domain):  # of an array nobody chose units
        return ""
    known = post.training_columns
    spread = {} if known is None else {j: s for j in chosen if 0 < (s := float(known.spread[j])) < np.inf}
    if not spread:
        return ""
    least, most = min(spread, key=lambda j: spread[j]), max(spread, key=lambda j: spread[j])
    if spread[most] <= _UNLIKE * spread[least]:
        return ""
    return (
        f"one radius for all columns, of which {names[least]!r} varies by {spread[least]:.3g} in training "
        f"and {names[most]!r} by {spread[most]:.3g}: {option} counts in standard deviations"
    )


def warn_of_impossible(post: Posterior, regions: Sequence[Region] | BallBatch, level: int = 5) -> None:
    """Say that regions hold inputs unlike any in training, which proofs and counterexamples are about, too.

    Silent where columns have no names, as in arrays, whose numbers are made more often than measured, and
    where one domain for all says what they are: pixels. Of regions one by one the first are looked at.
    """
    known, names = post.training_columns, post.feature_names
    some = regions if isinstance(regions, BallBatch) else regions[:_LOOKED]
    if known is None or names is None or not len(some):
        return
    first = some.kind if isinstance(some, BallBatch) else some[0]
    if one_unit(getattr(first, "domain", None)):
        return
    x = some.x if isinstance(some, BallBatch) else np.stack([each.centre for each in some])
    ends = extent(some)
    if message := unlike_training(known.unlike(*ends, x), names):
        keeps = "domain='data' keeps to their ends, " if known.left(*ends) else ""
        message = f"{message}: {keeps}features= lets columns stand still"
        warnings.warn(message, ImpossibleInputsWarning, stacklevel=level)


def check_threshold(post: Posterior, threshold: float) -> None:
    """A probability strictly between 0 and 1; several classes are compared with each other, not with it."""
    check_level(threshold)
    if post.n_classes > 2:
        require(threshold == 0.5, f"threshold must be 0.5 with several classes, got {threshold}")


def check_level(threshold: float) -> None:
    """A probability strictly between 0 and 1."""
    check_number("threshold", threshold, least=0.0, strict=True)
    require(float(threshold) < 1.0, f"threshold must be < 1, got {threshold}")


def check_device(device: object) -> None:
    """Where batches run: a name; whether there is such a device is seen when it is used."""
    known = isinstance(device, str) and device in DEVICES
    require(known, f"device must be {', '.join(map(repr, DEVICES))}, got {shown(device)}")


def check_method(method: str, *known: str, more: str = "") -> None:
    """One of the known names; `more` ends the sentence."""
    names = " or ".join(repr(name) for name in known)
    found = isinstance(method, str) and method in known
    require(found, f"method must be {names}, got {shown(method)}{more}")


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


def checked_points(post: Posterior, x: Any, regions: Regions) -> Float:
    """One point (m, d) per region, in it; None: its centre. A single region takes a single point (d,)."""
    if x is None:
        return regions.points if regions else np.empty((0, post.n_features))
    read = row if regions.single else matrix
    points = np.atleast_2d(read("x", x, post.feature_names, post.n_features))
    same_rows("x", x, regions.ids, "the regions")
    require(
        len(points) == len(regions), f"x must hold one point per region, {len(regions)}, got {len(points)}"
    )
    for i in np.flatnonzero((points != regions.points).any(axis=1)).tolist():  # centres are inside
        where = "" if regions.single else f" of index {i}"
        require(regions[i].contains(points[i]), f"x must lie in the region, got a point{where} outside")
    return points


def checked_labels(post: Posterior, label: Label | Sequence[Label] | None, regions: Regions) -> Index:
    """One class index (m,) for each of m regions, of one label or a sequence of them."""
    m = len(regions)
    if isinstance(label, str | bytes) or not isinstance(label, Iterable):
        return np.full(m, position(post.labels, label), dtype=np.intp)
    same_rows("label", label, regions.ids, "the regions")
    labels = list(label)
    require(len(labels) == m, f"label must be one class, or one for each of {m} regions, got {len(labels)}")
    return np.array(positions(post.labels, labels), dtype=np.intp)
