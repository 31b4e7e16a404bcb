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
    answers: list[ProbabilityRange] = []
    slices = _Slices(post)
    interrupted = False
    for r in regions:
        limits = _Limits(
            tolerance,
            np.inf if max_seconds is None else time.perf_counter() + max_seconds,
            np.inf if max_nodes is None else max_nodes,
            progress,
        )
        query = _Query(post, slices, r, label, limits)
        if not interrupted:
            try:
                query.run()
            except KeyboardInterrupt:
                interrupted = True
                query.status = Status.INTERRUPTED
        else:
            query.status = Status.INTERRUPTED
        answers.append(query.answer(method))
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
    """Slices of one posterior by moving features and standing values: a batch shares them, Gram matrix
    included.
    """

    def __init__(self, post: Posterior) -> None:
        self._model = model_of(post)
        self._last: dict[bytes, Slice] = {}

    def get(self, x: Float, moving: Mask) -> Slice:
        key = moving.tobytes() + x[~moving].tobytes()
        slice_ = self._last.get(key)
        if slice_ is None:
            slice_ = make_slice(self._model, x, np.flatnonzero(moving))
            if len(self._last) >= 4:
                self._last.pop(next(iter(self._last)))
            self._last[key] = slice_
        return slice_


class _Query:
    """One region: the search for the minimum and, on the other class, for the maximum."""

    def __init__(self, post: Posterior, slices: _Slices, region: Region, label: int, limits: _Limits) -> None:
        outer, inner = region.box(), region.inner_box()
        moving = outer.lower < outer.upper
        self._fixed = inner.lower
        self._moving = moving
        self._limits = limits
        self._label = label
        self._start = time.perf_counter()
        self.status = Status.CONVERGED
        assert isinstance(post.likelihood, BinaryLikelihood)
        link = link_of(post.likelihood)
        slice_ = slices.get(inner.lower, moving)
        ends = (outer.lower[moving], outer.upper[moving], inner.lower[moving], inner.upper[moving])
        positive, negative = (Minimiser(RbfBound(s, link), *ends) for s in (slice_, slice_.flipped()))
        # The minimum of P(label), and 1 - its maximum = the minimum of the other class's probability.
        self._sides = (positive, negative) if label == 1 else (negative, positive)

    def run(self) -> None:
        """Both searches, one after the other, each with what is left of the limits."""
        low, high = self._sides
        with np.errstate(all="ignore"):
            for side in self._sides:
                side.start()
                if self._report():
                    return
            while True:
                active = [
                    s for s in (low, high) if not s.exhausted and s.upper - s.lower > self._limits.tolerance
                ]
                if not active:
                    break
                reason = self._out_of_limits()
                if reason is not None:
                    self.status = reason
                    return
                max(active, key=lambda s: s.upper - s.lower).step(self._limits.tolerance)
                if self._report():
                    return

    def _out_of_limits(self) -> Status | None:
        if time.perf_counter() >= self._limits.deadline:
            return Status.TIME
        return Status.NODES if self._nodes() >= self._limits.max_nodes else None

    def _report(self) -> bool:
        """Tell the callback; True if it asks to stop."""
        if self._limits.progress is None:
            return False
        low, high = self._sides
        seconds = time.perf_counter() - self._start
        if self._limits.progress(low.lower, 1.0 - high.lower, self._nodes(), seconds) is True:
            self.status = Status.INTERRUPTED
            return True
        return False

    def _nodes(self) -> int:
        return sum(side.nodes for side in self._sides)

    def answer(self, method: str) -> ProbabilityRange:
        """The enclosures as they stand."""
        low, high = self._sides
        smallest = Enclosure(low.lower, low.upper)
        # 1 - x of doubles in [0, 1] rounds to nearest: one ulp outward keeps both ends true.
        largest = Enclosure(_complement(high.upper, -1), _complement(high.lower, 1))
        return ProbabilityRange(
            min=smallest,
            max=largest,
            argmin=self._point(low.witness),
            argmax=self._point(high.witness),
            status=self._final_status(max(smallest.width, largest.width)),
            nodes=self._nodes(),
            seconds=time.perf_counter() - self._start,
            label=self._label,
            tolerance=self._limits.tolerance,
            method=method,
        )

    def _final_status(self, width: float) -> Status:
        """A search that ran out of boxes has converged only if the enclosures as reported are narrow enough."""
        if self.status is not Status.CONVERGED or width <= self._limits.tolerance:
            return self.status
        return Status.MEMORY if any(side.coarsened for side in self._sides) else Status.NUMERICAL

    def _point(self, witness: Float | None) -> Float | None:
        if witness is None:
            return None
        point = self._fixed.copy()
        point[self._moving] = witness
        return point


def _complement(p: float, direction: int) -> float:
    """1 - p rounded outward unless exact."""
    value = 1.0 - p
    if 1.0 - value == p and value >= 0.5:  # Sterbenz: exact
        return value
    return float(np.clip(np.nextafter(value, direction * np.inf), 0.0, 1.0)) if 0.0 < p < 1.0 else value
