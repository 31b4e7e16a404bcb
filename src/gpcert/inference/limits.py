"""Where hyper-parameters may go: bounds on theta, by default wide multiples of the data's own scale."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

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
