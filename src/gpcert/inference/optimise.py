"""Maximising a function of log parameters with a hard budget of evaluations, best-so-far at any time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from gpcert.errors import InvalidInputError
from gpcert.kernels import Kernel
from gpcert.validation import Float, as_floats, require

Bounds = Mapping[str, ArrayLike]
"""Parameter name, full ("terms[0].variance") or bare ("variance"), to its (lowest, highest) value."""

_LENGTHSCALE = (1e-3, 1e3)  # times the spread of the points
# Where classes separate, the likelihood rises for ever with the variance, ever more slowly (-variance^-1/2).
# Beyond this there are digits to lose and next to nothing to gain: 1e-5 of the value on MNIST 3/8 with EP.
_VARIANCE = (1e-4, 3e6)
_ALPHA = (1e-3, 1e3)


def log_bounds(kernel: Kernel, X: Float, bounds: Bounds | None = None) -> Float:
    """Bounds of theta (p, 2) for training on X (n, d).

    `bounds` replaces defaults by name; the kernel must lie inside what is given. Defaults contain the kernel.
    """
    given = {name: _checked(name, value) for name, value in dict(bounds or {}).items()}
    names = kernel.parameter_names
    for name in given:
        known = sorted({*names, *map(_kind, names)})
        require(
            name in known, f"bounds must name parameters of the kernel ({', '.join(known)}), got {name!r}"
        )
    rows = []
    for name, theta in zip(names, kernel.theta, strict=True):
        exact = given.get(name, given.get(_kind(name)))
        if exact is None:
            low, high = np.log(_default(name, X))
            rows.append((min(low, theta), max(high, theta)))
            continue
        low, high = np.log(exact)
        # A parameter given as its own bound may be off by the rounding of the logarithm.
        require(
            low - 1e-12 <= theta <= high + 1e-12,
            f"bounds must contain the kernel's parameters, got {name}={np.exp(theta):.6g}"
            f" outside [{exact[0]:.6g}, {exact[1]:.6g}]",
        )
        rows.append((low, high))
    return np.array(rows)


def _kind(name: str) -> str:
    """lengthscale, variance or alpha: terms[0].lengthscale[3] -> lengthscale."""
    return name.rsplit(".", 1)[-1].split("[", 1)[0]


def _default(name: str, X: Float) -> Float:
    kind = _kind(name)
    if kind == "variance":
        return np.array(_VARIANCE)
    if kind == "alpha":
        return np.array(_ALPHA)
    # Half ranges: halves first, so that no finite data overflow.
    spread = 0.5 * X.max(axis=0) - 0.5 * X.min(axis=0)
    if name.endswith("]"):
        scale = float(spread[int(name.rsplit("[", 1)[1][:-1])])
    else:
        widest = float(spread.max())
        scale = widest * float(np.linalg.norm(spread / widest)) if widest > 0.0 else 0.0
    if not scale > 0.0:
        scale = 1.0  # a constant feature: any lengthscale is as good as any other
    return np.array(_LENGTHSCALE) * min(max(scale, 1e-290), 1e290)


def _checked(name: str, value: ArrayLike) -> Float:
    pair = as_floats(f"bounds[{name!r}]", value)
    require(
        pair.shape == (2,) and 0.0 < pair[0] <= pair[1],
        f"bounds[{name!r}] must be (lowest, highest) with 0 < lowest <= highest, got {pair.tolist()}",
    )
    return pair


Progress = Callable[[int, float, Float], object]
"""Called after each evaluation with (evaluations so far, value, theta); returning True stops."""

_RESTART_RADIUS = 3.0  # restarts are drawn within a factor of e^3 of the start, inside the bounds
_VALUE_TOLERANCE = 1e-11
_GRADIENT_TOLERANCE = 1e-6


class Valued(Protocol):
    """What is maximised: anything with a value and its gradient (p,)."""

    @property
    def value(self) -> float:
        """The number to maximise."""

    @property
    def gradient(self) -> Float:
        """Its gradient in theta (p,)."""


E_ = TypeVar("E_", bound=Valued)


@dataclass(frozen=True)
class Optimum(Generic[E_]):
    """The best evaluation seen, and how it was found.

    `theta` (p,); `trace`: the value of every evaluation in order; `converged`: a start ended because neither
    value nor gradient left anything to gain, not because the budget was spent.
    """

    best: E_
    theta: Float
    trace: tuple[float, ...]
    converged: bool


class _Stop(Exception):
    """Ends one start: its budget is spent, or the caller wants no more."""


@dataclass
class _Ascent(Generic[E_]):
    """Counts evaluations, remembers the best, and hands L-BFGS a function to minimise."""

    evaluate: Callable[[Float], E_]
    progress: Progress | None
    trace: list[float] = field(default_factory=list)
    best: tuple[E_, Float] | None = None
    stopped: bool = False

    def run(self, theta: Float, bounds: Float, budget: int) -> bool:
        """One start with at most `budget` evaluations; True if it converged."""
        limit = len(self.trace) + budget
        scale = 0.0

        def objective(theta: Float) -> tuple[float, Float]:
            nonlocal scale
            if self.stopped or len(self.trace) >= limit:
                raise _Stop
            value, gradient = self._evaluate(theta)
            if not scale:
                # L-BFGS-B's first step is the gradient itself: make it a factor of e in the parameters.
                scale = 1.0 / max(1.0, float(np.linalg.norm(gradient)))
            return -scale * value, -scale * gradient

        try:
            result = minimize(
                objective,
                theta,
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={"ftol": _VALUE_TOLERANCE, "gtol": _GRADIENT_TOLERANCE, "maxiter": budget},
            )
        except _Stop:
            return False
        return bool(result.success)

    def _evaluate(self, theta: Float) -> tuple[float, Float]:
        theta = np.array(theta, dtype=np.float64)
        try:
            evaluation = self.evaluate(theta)
        except InvalidInputError:
            if self.best is None:
                raise
            raise _Stop from None  # parameters that float64 cannot handle: keep what is known
        self.trace.append(evaluation.value)
        if self.best is None or evaluation.value > self.best[0].value:
            self.best = evaluation, theta
        if self.progress is not None and self.progress(len(self.trace), evaluation.value, theta) is True:
            self.stopped = True
        return evaluation.value, evaluation.gradient


def maximise(
    evaluate: Callable[[Float], E_],
    theta: Float,
    bounds: Float,
    max_evals: int,
    *,
    n_restarts: int = 0,
    random: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Optimum[E_]:
    """Maximise from theta (p,) inside bounds (p, 2) with at most max_evals >= 1 evaluations in all.

    Restarts share the budget: every start may use what is left divided by the starts to come, so that one
    that converges early leaves more to the others.
    """
    search = _Ascent(evaluate, progress)
    generator = random if random is not None else np.random.default_rng(0)
    low = np.maximum(bounds[:, 0], theta - _RESTART_RADIUS)
    high = np.minimum(bounds[:, 1], theta + _RESTART_RADIUS)
    converged = False
    start = theta
    for left in range(n_restarts + 1, 0, -1):
        budget = (max_evals - len(search.trace)) // left
        if search.stopped or (budget == 0 and search.best is not None):
            break
        converged |= search.run(start, bounds, max(budget, 1))
        start = generator.uniform(low, high)
    assert search.best is not None  # the first evaluation either succeeds or raises
    return Optimum(search.best[0], search.best[1], tuple(search.trace), converged)
