"""E sigma(f), sigma(f) = 1 / (1 + e^-f), for f ~ N(m, v), in balls and relatively accurate in the tails.

A(m, v) = E sigma(f) increases with m, and by the heat equation dA/dv = E sigma''(f) / 2 has the sign of -m
(sigma'' is odd and negative on the right, the density is larger on the side of m). So the extremes over a
rectangle of (m, v) are attained at two of its corners. |dA/dm| <= A and |dA/dv| <= A / 2, as |sigma'| and
|sigma''| are at most sigma: over a small rectangle one value and a factor do.
"""

from __future__ import annotations

import math

from flint import acb, arb, ctx

_SMALL = arb(2) ** -30
_TRAPEZOID = 400  # variances to which the trapezoidal rule is cheaper than adaptive integration


def logistic_normal(mean: arb, variance: arb) -> arb:
    """E sigma(f) for f ~ N(mean, variance), over all of the balls; a negative variance counts as 0."""
    if not (mean.is_finite() and variance.is_finite()):
        return arb(0.5, 0.5)
    low, high = variance.lower().max(arb(0)), variance.upper().max(arb(0))
    spread = mean.rad() + (high - low) / 2
    if spread < _SMALL:  # relative to the smaller of A and 1 - A, so that both keep their digits
        m = mean.mid()
        tail = _lower_tail(-abs(m), variance.mid().max(arb(0))) * (arb(0, 1) * spread).exp()
        return 1 - tail if m > 0 else tail
    a, b = mean.lower(), mean.upper()
    return _value(a, low if a < 0 else high).union(_value(b, high if b < 0 else low))


def _value(m: arb, v: arb) -> arb:
    return 1 - _lower_tail(-m, v) if m > 0 else _lower_tail(m, v)


def _lower_tail(m: arb, v: arb) -> arb:
    """A(m, v) for numbers m <= 0, v >= 0, by sigma(f) = e^f sigma(-f): A(m) = e^(m + v/2) (1 - A(m + v))."""
    if v == 0:
        return m.exp() / (1 + m.exp())
    if v < 4:
        return (m + v / 2).exp() * _narrow(-m - v, v)
    return _wide(m, v)


def _narrow(m: arb, v: arb) -> arb:
    """A(m, v) for m >= -v / 2 or v < 4 by the trapezoidal rule, step h, nodes |z| <= T.

    sigma(m + s z) phi(z) is analytic in |Im z| < b while s b < pi, where |sigma(x + i y)| <= sigma(x) / cos(y
    / 2) and |phi(x + i b)| = e^(b^2/2) phi(x): a relative error of at most 2 e^(b^2/2) / cos(s b / 2) / (e^(2
    pi b / h) - 1). What is cut is less than 2 Phi(-T) in the integral and, as phi decreases, in the sum; T is
    chosen against A >= e^(-v/2) / 4.
    """
    s, bits = v.sqrt(), (ctx.prec + 8) * math.log(2)
    b = min(math.sqrt(2 * bits), 0.9 * math.pi / max(float(s), 1e-3))
    step = arb(2 * math.pi * b / (bits + b * b / 2)).mid()
    count = math.ceil(math.sqrt(2 * bits + float(v)) / float(step))
    right = left = (-m).exp()
    total, down = 1 / (1 + right), (-s * step).exp()
    for k in range(1, count + 1):  # e^-f at the nodes k and -k
        right, left = right * down, left / down
        total += (-((step * k) ** 2) / 2).exp() * (1 / (1 + right) + 1 / (1 + left))
    total *= step / (2 * arb.pi()).sqrt()
    strip = 2 * (arb(b) ** 2 / 2).exp() / (s * b / 2).cos() / ((2 * arb.pi() * b / step).exp() - 1)
    cut = (step * count / arb(2).sqrt()).erfc()
    return total / (1 + arb(0, 1) * strip.upper()) + arb(0, 1) * 2 * cut.upper()


def _wide(m: arb, v: arb, inner: bool = False) -> arb:
    """A(m, v) for v >= 4 and m <= v / 2: shifted by v until m >= -v / 2; an inner tail may be negligible."""
    if m >= -v / 2:
        return _narrow(m, v) if v < _TRAPEZOID else _central(m, v)
    factor = (m + v / 2).exp()
    if inner and factor < arb(2) ** -ctx.prec:
        return arb(0).union(factor.upper())
    return factor * (_wide(-m - v, v) if m > -v else 1 - _wide(m + v, v, inner=True))


def _central(m: arb, v: arb) -> arb:
    """A(m, v) for |m| <= v / 2, v >= 4, as a step and what is left of it.

    A = Phi(m / s) - 2 N(0; m, v) int_0^inf sigma(-f) e^(-f^2 / 2v) sinh(f m / v) df, because sigma less the
    step is odd. The integrand is at most e^(-f/2) / 2 in modulus, so beyond F there is less than e^(-F/2).
    """
    slope, reach = m / v, arb(2 * (ctx.prec + 16))

    def rest(f: acb, _: bool) -> acb:
        return (-f * f / (2 * v)).exp() * (f * slope).sinh() / (1 + f.exp())

    integral = acb.integral(rest, acb(0), acb(reach)).real + arb(0, 1) * (-reach / 2).exp()
    density = (-m * slope / 2).exp() / (2 * arb.pi() * v).sqrt()
    return (-m / (2 * v).sqrt()).erfc() / 2 - 2 * density * integral
