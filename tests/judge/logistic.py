"""E 1 / (1 + e^-f) for Gaussian f, in balls."""

from __future__ import annotations

from flint import acb, arb, ctx
from scipy.special import expit


def logistic_normal(mean: arb, variance: arb) -> arb:
    """E 1 / (1 + e^-f) for f ~ N(mean, variance), relatively accurate in the tails.

    The integrand g is log-concave: with slope b = (log g)'(c) at any c, its integral beyond Z deviations s
    of c is at most g(c) e^(b^2 s^2 / 2) s sqrt(2 pi) erfc((Z - b s) / sqrt 2). Inside, g / g(c) is summed.
    """
    if not variance > 0:  # a ball around 0 (S is clipped there): |d E / d S| <= max |sigma''| / 2 < 1/20
        return 1 / (1 + (-mean).exp()) + arb(0, 1) * (variance / 20).upper()
    if abs(mean) > 10_000 * (1 + variance):  # sigma(f) <= e^f
        tail = (variance / 2 - abs(mean)).exp().upper() * arb(0.5, 0.5)
        return tail if mean < 0 else 1 - tail
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
        ratio = (
            (1 + (-c).exp()) / (1 + (-f).exp())
            if f.real.mid() > 0
            else (s * z).exp() * (1 + c.exp()) / (1 + f.exp())
        )
        return ratio * (-z * (z + 2 * offset) / 2).exp()

    integral = acb.integral(density, acb(-reach), acb(reach), rel_tol=arb(2) ** (20 - ctx.prec)).real
    root = (2 * arb.pi()).sqrt()
    tail = (slope * slope / 2).exp() * root * ((reach - slope) / arb(2).sqrt()).erfc()
    return top * (-offset * offset / 2).exp() * (integral + arb(0, 1) * tail.upper()) / root


def _mode(mean: float, variance: float) -> float:
    """The maximum of sigma(f) N(f; mean, variance), by bisection."""
    low, high = mean, mean + variance
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if expit(-middle) * variance > middle - mean else (low, middle)
    return low
