"""Ground truth for the tests of ranges: a stored posterior in ball arithmetic, and an adversary in floating point.

Nothing here is shared with `gpcert.bounds`: kernels, quadratic forms and links are written again, in python-flint.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from flint import acb, arb, arb_mat, ctx
from scipy.optimize import minimize
from scipy.special import expit

from gpcert.likelihoods import Probit
from gpcert.posterior import Posterior
from gpcert.regions import Region

PRECISIONS = (160, 640, 2560)  # bits: cancellation in models of condition 1e12 needs more than one


class Exact:
    """Mean, variance and probability of a two-class RBF posterior at a point of doubles (d,), as balls."""

    def __init__(self, post: Posterior) -> None:
        n, d = post.centres.shape
        self.post = post
        self._lengthscale = [arb(float(v)) for v in np.broadcast_to(post.kernel.lengthscale, (d,))]
        self._variance = arb(float(post.kernel.variance))
        self._precision = arb_mat(n, n, [arb(float(v)) for v in post.precision.ravel()])

    def latent(self, x: np.ndarray) -> tuple[arb, arb]:
        """Latent mean and (unclipped) latent variance at x (d,)."""
        point = [arb(float(v)) for v in x]
        k = []
        for row in self.post.centres.tolist():
            scaled = [(arb(c) - p) / s for c, p, s in zip(row, point, self._lengthscale, strict=True)]
            k.append(self._variance * (-sum((v * v for v in scaled), arb(0)) / 2).exp())
        mean = sum((arb(w) * v for w, v in zip(self.post.weights.tolist(), k, strict=True)), arb(self.post.mean))
        column = arb_mat(len(k), 1, k)
        return mean, self._variance - (column.transpose() * self._precision * column)[0, 0]

    def probability(self, x: np.ndarray, label: int) -> arb:
        """P(label) at x (d,), at the precision of the context."""
        mean, variance = self.latent(x)
        mean, variance = (mean if label == 1 else -mean), variance.nonnegative_part()
        if isinstance(self.post.likelihood, Probit):
            spread = 1 / arb(self.post.likelihood.scale) ** 2 + variance
            return (-mean / (2 * spread).sqrt()).erfc() / 2
        return logistic_normal(mean, variance)

    def at_most(self, x: np.ndarray, label: int, bound: float) -> bool:
        """Whether P(label) <= bound at x (d,), decided with certainty."""
        return bound >= 1.0 or self._decide(x, label, lambda p: (p <= bound, p > bound))

    def at_least(self, x: np.ndarray, label: int, bound: float) -> bool:
        """Whether P(label) >= bound at x (d,), decided with certainty."""
        return bound <= 0.0 or self._decide(x, label, lambda p: (p >= bound, p < bound))

    def _decide(self, x: np.ndarray, label: int, compare: Callable[[arb], tuple[bool, bool]]) -> bool:
        for _ in at_rising_precision():
            yes, no = compare(self.probability(x, label))
            if yes or no:
                return yes
        raise AssertionError(f"{PRECISIONS[-1]} bits do not decide the comparison at {x!r}")


def at_rising_precision() -> Iterator[int]:
    """Sets the context's precision to one of PRECISIONS after the other, and puts it back."""
    saved = ctx.prec
    try:
        for ctx.prec in PRECISIONS:
            yield ctx.prec
    finally:
        ctx.prec = saved


def logistic_normal(mean: arb, variance: arb) -> arb:
    """E 1 / (1 + e^-f) for f ~ N(mean, variance), relatively accurate in the tails.

    The integrand g is log-concave: with slope b = (log g)'(c) at any c, beyond Z deviations s of c its integral is
    at most g(c) e^(b^2 s^2 / 2) s sqrt(2 pi) erfc((Z - b s) / sqrt 2). Integrated is g / g(c) over c -+ Z s.
    """
    if not variance > 0:  # a ball around 0 (S is clipped there): |d E / d S| <= max |sigma''| / 2 < 1/20
        return 1 / (1 + (-mean).exp()) + arb(0, 1) * (variance / 20).upper()
    s = variance.sqrt()
    c = arb(_mode(float(mean), float(variance))).mid()
    for _ in range(6):  # Newton, quadratic near the mode; where it ends does not matter for the enclosure
        up, down = 1 / (1 + (-c).exp()), 1 / (1 + c.exp())
        c = (c + (down - (c - mean) / variance) / (up * down + 1 / variance)).mid()
    slope = abs(1 / (1 + c.exp()) - (c - mean) / variance) * s
    reach = arb(2 * ctx.prec).sqrt() + 2
    offset, top = (c - mean) / s, 1 / (1 + (-c).exp())

    def density(z: acb, _: bool) -> acb:
        f = c + s * z
        # sigma(f) / sigma(c), in the form whose exponential stays small
        ratio = (1 + (-c).exp()) / (1 + (-f).exp()) if f.real.mid() > 0 else (s * z).exp() * (1 + c.exp()) / (1 + f.exp())
        return ratio * (-z * (z + 2 * offset) / 2).exp()

    integral = acb.integral(density, acb(-reach), acb(reach), rel_tol=arb(2) ** (20 - ctx.prec)).real
    root = (2 * arb.pi()).sqrt()
    tail = (slope**2 / 2).exp() * root * ((reach - slope) / arb(2).sqrt()).erfc()
    return top * (-(offset**2) / 2).exp() * (integral + arb(0, 1) * tail.upper()) / root


def _mode(mean: float, variance: float) -> float:
    """The maximum of sigma(f) N(f; mean, variance), by bisection."""
    low, high = mean, mean + variance
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if expit(-middle) * variance > middle - mean else (low, middle)
    return low


def extreme_points(post: Posterior, region: Region, label: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Points of the region (d,) with small and with large P(label): sampling, then L-BFGS from the best few."""
    inner = region.inner_box()
    low, high = inner.lower, inner.upper
    d = len(low)
    inside = low + rng.random((160, d)) * (high - low)
    vertices = np.where(rng.random((96, d)) < 0.5, low, high)
    mixed = np.where(rng.random((64, d)) < 0.5, inside[:64], vertices[:64])
    centred = inner.centre + (inside[:64] - inner.centre) * 10.0 ** rng.uniform(-3, 0, (64, 1))
    data = post.centres[rng.permutation(post.n_centres)[:64]]
    X = np.clip(np.concatenate([inside, vertices, mixed, centred, data, [low, high, inner.centre]]), low, high)
    p = post.probability(X)[:, label]
    order = np.argsort(p, kind="stable")
    return tuple(
        _refine(post, low, high, label, sign, X[order[::sign][:3]]) for sign in (1, -1)
    )


def _refine(
    post: Posterior, low: np.ndarray, high: np.ndarray, label: int, sign: int, starts: np.ndarray
) -> np.ndarray:
    """The best point of the box found from the starts (m, d) for sign * P(label), by L-BFGS on the log-odds."""
    width = np.where(high > low, high - low, 1.0)

    def objective(y: np.ndarray) -> tuple[float, np.ndarray]:
        x = np.clip(low + y * width, low, high)[None]
        p = post.probability(x)[0]
        slope = post.probability_gradient(x)[0, label]
        spread = max(float(p[0] * p[1]), 1e-280)
        odds = math.log(max(p[label], 1e-290)) - math.log(max(p[1 - label], 1e-290))
        return sign * odds, sign * slope * width / spread

    found = [starts[0]]
    bounds = list(zip(np.zeros_like(low), (high - low) / width, strict=True))
    for start in starts:
        result = minimize(
            objective, (start - low) / width, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60}
        )
        found.append(np.clip(low + result.x * width, low, high))
    return found[int(np.argmin(sign * post.probability(np.array(found))[:, label]))]
