"""The smallest and the largest probability over a region: `probability_range`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from gpcert.bounds import RbfBound, Slice, link_of, make_slice, model_of
from gpcert.errors import InvalidInputError
from gpcert.kernels import RBF
from gpcert.likelihoods import BinaryLikelihood, Logit, Probit
from gpcert.posterior import Posterior
from gpcert.regions import Ball, Box, Region
from gpcert.results import Enclosure, ProbabilityRange, Status
from gpcert.search import Minimiser
from gpcert.validation import Float, Mask, require

__all__ = ["Progress", "probability_range"]

#: Called after every step with (lower, upper, nodes, seconds); returning True stops the search.
Progress = Callable[[float, float, int, float], object]


@dataclass(frozen=True)
class _Limits:
    """When to stop, and whom to tell."""

    tolerance: float
    deadline: float
    max_nodes: float
    progress: Progress | None


@overload
def probability_range(
    post: Posterior,
    region: Region,
    label: int = 1,
    method: str = "auto",
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Progress | None = None,
) -> ProbabilityRange: ...


@overload
def probability_range(
    post: Posterior,
    region: Sequence[Region],
    label: int = 1,
    method: str = "auto",
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Progress | None = None,
) -> list[ProbabilityRange]: ...


def probability_range(
    post: Posterior,
    region: Region | Sequence[Region],
    label: int = 1,
    method: str = "auto",
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Progress | None = None,
) -> ProbabilityRange | list[ProbabilityRange]:
    """Enclosures of min and max of P(label) over a region, or over each region of a sequence.

    Both ends of both enclosures are true however the search ended; `status` says how. `tolerance`: width at
    which an enclosure counts as converged. `max_seconds`, `max_nodes`: limits per region. `progress(lower,
    upper, nodes, seconds)`: P(label) stays in [lower, upper] on the region; returning True stops. Ctrl-C
    returns what is known (regions not started: [0, 1]); a second one raises.
    """
    _check_model(post, label, method)
    _check_number("tolerance", tolerance, least=0.0, strict=True)
    for name, value in (("max_seconds", max_seconds), ("max_nodes", max_nodes)):
        if value is not None:
            _check_number(name, value, least=0.0, strict=False)
    require(progress is None or callable(progress), f"progress must be a function, got {progress!r}")
    single = isinstance(region, Box | Ball)
    regions = [region] if isinstance(region, Box | Ball) else _several(region)
    for r in regions:
        _check_region(post, r)
    slices = _Slices(post)
    queries = [_Query(r, int(label)) for r in regions]
    try:
        for query in queries:
            deadline = np.inf if max_seconds is None else time.perf_counter() + max_seconds
            most = np.inf if max_nodes is None else max_nodes
            query.run(slices, _Limits(tolerance, deadline, most, progress))
    except KeyboardInterrupt:
        pass  # what is known is returned; a query that did not end says so itself
    answers = [query.answer(method, tolerance) for query in queries]
    return answers[0] if single else answers


def _check_model(post: Posterior, label: int, method: str) -> None:
    require(isinstance(post, Posterior), f"post must be a Posterior, got {type(post).__name__}")
    if post.likelihood is None:
        raise InvalidInputError("post must have a likelihood for probabilities, got a regression posterior")
    name = getattr(post.likelihood, "name", type(post.likelihood).__name__)
    require(
        isinstance(post.likelihood, Probit | Logit),
        f"post must have the probit or logit likelihood and two classes, got {name!r}",
    )
    require(isinstance(post.kernel, RBF), f"post must have the RBF kernel, got {post.kernel!r}")
    require(
        isinstance(label, int | np.integer) and not isinstance(label, bool) and 0 <= label < 2,
        f"label must be a class index, 0 or 1, got {label!r}",
    )
    require(method in ("auto",), f"method must be 'auto', got {method!r}")


def _check_number(name: str, value: object, least: float, strict: bool) -> None:
    """One real number above (or at) `least`; NaN is not."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    rule = f"must be {'>' if strict else '>='} {least:g}"
    require(number, f"{name} {rule}, got {value!r}")
    assert isinstance(value, int | float | np.integer | np.floating)
    require(bool(value > least if strict else value >= least), f"{name} {rule}, got {value}")


def _several(regions: Sequence[Region]) -> list[Region]:
    try:
        return list(regions)
    except TypeError:
        raise InvalidInputError(
            f"region must be a Box, a Ball or a sequence of them, got {regions!r}"
        ) from None


def _check_region(post: Posterior, region: object) -> None:
    require(isinstance(region, Box | Ball), f"region must be a Box or a Ball, got {type(region).__name__}")
    assert isinstance(region, Box | Ball)
    require(
        region.n_features == post.n_features,
        f"region must have {post.n_features} features, got {region.n_features}",
    )
    if isinstance(region, Ball):
        require(region.norm == np.inf, f"region must have norm inf or be a Box, got norm {region.norm}")


class _Slices:
    """Slices of one posterior by moving features and standing values, shared by a batch."""

    def __init__(self, post: Posterior) -> None:
        self._post = post
        self._last: dict[bytes, Slice] = {}

    def bounds(self, x: Float, moving: Mask) -> tuple[RbfBound, RbfBound]:
        """Bounds of P(1) and of P(0) on the slice through x (d,) along the moving features (d,)."""
        assert isinstance(self._post.likelihood, BinaryLikelihood)
        link = link_of(self._post.likelihood)
        key = moving.tobytes() + x[~moving].tobytes()
        slice_ = self._last.get(key)
        if slice_ is None:
            slice_ = make_slice(model_of(self._post), x, np.flatnonzero(moving))
            if len(self._last) >= 4:
                self._last.pop(next(iter(self._last)))
            self._last[key] = slice_
        return RbfBound(slice_, link), RbfBound(slice_.flipped(), link)


class _Query:
    """One region: the search for the minimum of P(label) and, on the other class, for its maximum."""

    def __init__(self, region: Region, label: int) -> None:
        self._region = region
        self._label = label
        self._inner = region.inner_box()
        self._moving: Mask = np.zeros(region.n_features, dtype=bool)
        self._sides: tuple[Minimiser, Minimiser] | None = None  # None: not started
        self._seconds = 0.0
        self._status = Status.INTERRUPTED  # until the search ends in another way

    def run(self, slices: _Slices, limits: _Limits) -> None:
        """Both searches, always the wider one next, within the limits."""
        start = time.perf_counter()
        try:
            with np.errstate(all="ignore"):
                self._status = self._search(slices, limits, start)
        finally:
            self._seconds = time.perf_counter() - start

    def _search(self, slices: _Slices, limits: _Limits, start: float) -> Status:
        outer, inner = self._region.box(), self._inner
        moving = self._moving = outer.lower < outer.upper
        ends = (outer.lower[moving], outer.upper[moving], inner.lower[moving], inner.upper[moving])
        one, zero = (Minimiser(bound, *ends) for bound in slices.bounds(inner.lower, moving))
        # The minimum of P(label), and 1 - its maximum = the minimum of the other class's probability.
        sides = self._sides = (one, zero) if self._label == 1 else (zero, one)
        for side in sides:
            side.start()
            if self._told_to_stop(limits, sides, start):
                return Status.INTERRUPTED
        while True:
            active = [s for s in sides if not s.exhausted and s.upper - s.lower > limits.tolerance]
            if not active:
                return Status.CONVERGED
            if time.perf_counter() >= limits.deadline:
                return Status.TIME
            if sum(side.nodes for side in sides) >= limits.max_nodes:
                return Status.NODES
            max(active, key=lambda s: s.upper - s.lower).step(limits.tolerance)
            if self._told_to_stop(limits, sides, start):
                return Status.INTERRUPTED

    def _told_to_stop(self, limits: _Limits, sides: tuple[Minimiser, Minimiser], start: float) -> bool:
        """Tell the callback where the search stands; True if it asks to stop."""
        if limits.progress is None:
            return False
        low, high = sides
        upper = _complement(high.lower, 1)
        stop = limits.progress(low.lower, upper, low.nodes + high.nodes, time.perf_counter() - start)
        return isinstance(stop, bool | np.bool_) and bool(stop)

    def answer(self, method: str, tolerance: float) -> ProbabilityRange:
        """The enclosures as they stand."""
        smallest = largest = Enclosure(0.0, 1.0)
        argmin = argmax = None
        nodes = 0
        if self._sides is not None:
            low, high = self._sides
            smallest = Enclosure(low.lower, low.upper)
            # 1 - x of doubles in [0, 1] rounds to nearest: one ulp outward keeps both ends true.
            largest = Enclosure(_complement(high.upper, -1), _complement(high.lower, 1))
            argmin, argmax = self._point(low.witness), self._point(high.witness)
            nodes = low.nodes + high.nodes
        return ProbabilityRange(
            min=smallest,
            max=largest,
            argmin=argmin,
            argmax=argmax,
            status=self._final_status(max(smallest.width, largest.width), tolerance),
            nodes=nodes,
            seconds=self._seconds,
            label=self._label,
            tolerance=tolerance,
            method=method,
        )

    def _final_status(self, width: float, tolerance: float) -> Status:
        """A search that ran out of boxes has converged only if what it reports is narrow enough."""
        if self._status is not Status.CONVERGED or width <= tolerance:
            return self._status
        assert self._sides is not None
        return Status.MEMORY if any(side.coarsened for side in self._sides) else Status.NUMERICAL

    def _point(self, witness: Float | None) -> Float | None:
        if witness is None:
            return None
        point = self._inner.lower.copy()
        point[self._moving] = witness
        return point


def _complement(p: float, direction: int) -> float:
    """1 - p rounded outward unless exact."""
    value = 1.0 - p
    if 1.0 - value == p and value >= 0.5:  # Sterbenz: exact
        return value
    return float(np.clip(np.nextafter(value, direction * np.inf), 0.0, 1.0)) if 0.0 < p < 1.0 else value
