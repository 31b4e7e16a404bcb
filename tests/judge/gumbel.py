"""E softmax of independent Gaussian latents with any number of classes: one-dimensional integrals.

**Reduction.** Let G(x) = exp(-e^-x). With independent Gumbel g_j (distribution function G), given f,
P(f_c + g_c > f_j + g_j for all j != c) = softmax_c(f). With B_j(y) = P(f_j + g_j <= y) = E G(y - f_j),
conditioning on y = f_c + g_c gives E softmax_c = int B_c'(y) prod_{j != c} B_j(y) dy.

**Trapezoidal rule in y, step h.** For h sum F(kh) against int F, F analytic in |Im| <= a, the error is at
most (int |F(x + ia)| dx + int |F(x - ia)| dx) / (e^(2 pi a / h) - 1) (residues of 1 / (1 - e^(-2 pi i z/h))).
With Im x = eta < pi/2, kappa = cos eta, t = e^-x: |G| = e^(-kappa |t|) <= 1, |G'| <= |t| e^(-kappa |t|),
whose integral over the line is 1/kappa. Let y have the imaginary part eta + omega and move f_j in B_j(y) =
int G(y - f) N(f; m_j, v_j) df to f + i omega: |B_j(y)| <= e^(omega^2 / 2 v_j), and int |B_c'| <= e^(omega^2 /
2 v_c) / kappa. So the error is at most 2 e^(omega^2 sum_j 1/(2 v_j)) / kappa / (e^(2 pi a/h) - 1), a = eta +
omega (omega = 0 if some v_j is tiny): the number of nodes does not grow with a common scale.

**What is cut.** Below y_0 <= m_j - T s_j + A for some j, where G(A) is tiny: B_j <= G(A) + Phi(-T) there, and
for c = j sum h B_c' is at most (G(A) + Phi(-T)) (1 + 2 h sup B_c'), as G' increases up to 0. For c != j the
sum of h B_c' over any nodes is at most 1 + 2 h sup B_c' (variation). Above m_c + T s_c + R: e^-R + Phi(-T)
times the same. sup B_c' <= min(1/e, 0.4 / s_c).

**B and B'.** For s <= 2 the rule in z: sum_k w_k G(y - m - s z_k) with strip b, s b <= eta: error
2 e^(b^2/2) / (e^(2 pi b / step) - 1) for B, and, summed over the nodes in y, the same times
(1 + 2 h / e) / kappa for B'. For s > 2 the rule in g: B(y) = int G'(g) Phi((y - g - m) / s) dg with error
2 e^(eta^2 / 2 v) / kappa / (e^(2 pi eta / step) - 1), and the same times 1 + h / s for sums of B'.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from judge.doubles import NDTR, UNIT

_ETA = 1.3
_KAPPA = math.cos(_ETA)
_DIGITS = 34.0  # e^-34 = 2e-15: what every rule aims at
_DEVIATIONS = 8.0  # T: 2 Phi(-8) = 1.3e-15
_LEFT, _RIGHT = -3.6, 34.0  # A and R: G(A) = 1.3e-16, e^-R = 2e-15
_CUT = 1.3e-16 + 1.3e-15 + 2e-15
MOST = 30_000  # nodes in y
_FEW = 20  # from so many means on, B is tabulated

Law = tuple[np.ndarray, np.ndarray, float, np.ndarray]


def independent(mean: ArrayLike, variance: ArrayLike) -> tuple[np.ndarray, float]:
    """E softmax (..., C) for independent latents of variances (C,) at means (..., C), and its error.

    The means may be many: the latents of each row are summed on a grid of its own with a common step.
    """
    v = np.asarray(variance, dtype=float)
    m, s = np.atleast_2d(np.asarray(mean, dtype=float)), np.sqrt(v)
    low = np.max(m - _DEVIATIONS * s, axis=1) + _LEFT
    length = float(np.max(np.max(m + _DEVIATIONS * s, axis=1) + _RIGHT - low))
    step, strip = _step(v)
    if not length / step <= MOST:
        return _stieltjes(m[0], s) if len(m) == 1 else (np.full(m.shape, 0.5), 1.0)
    y = low[:, None] + step * np.arange(math.ceil(length / step) + 1)
    law = _distribution if len(m) < _FEW else _interpolated
    parts = [law((y - m[:, [c]]).ravel(), float(b), step)[:3] for c, b in enumerate(s)]
    B, slope = (np.array([part[k].reshape(y.shape) for part in parts]) for k in (0, 1))
    inner = max(p[2] for p in parts)
    p = np.stack(
        [step * (slope[c] * np.prod(np.delete(B, c, axis=0), axis=0)).sum(axis=1) for c in range(s.size)],
        axis=1,
    )
    variation = 1.0 + 2.0 * step * min(1.0 / math.e, 0.4 / max(float(s.min()), 1e-9))  # of h sum B_c'
    rounding = (y.shape[1] + 400 * (s.size + 1)) * UNIT + _input_rounding(np.abs(m).max(axis=0), s)
    error = strip + variation * (2.0 * _CUT + s.size * inner + rounding)
    return p.reshape(np.shape(mean)), float(error) * 1.01


def _step(variance: np.ndarray) -> tuple[float, float]:
    """The step in y and the error it makes: omega of the docstring maximises the step."""
    weight = float(np.sum(1.0 / np.maximum(variance, 1e-12)))
    omega = math.sqrt(2.0 * _DIGITS / weight) if variance.min() >= 1e-12 else 0.0
    growth = 0.5 * omega * omega * weight
    step = 2.0 * math.pi * (_ETA + omega) / (_DIGITS + growth + math.log(2.0 / _KAPPA))
    return step, 1.1 * math.exp(-_DIGITS)


def _distribution(y: np.ndarray, s: float, step: float) -> Law:
    """B(y), B'(y) for mean 0, a bound of the error of B and of that of B' summed with the step; B''(y)."""
    if s <= 2.0:
        b = min(math.sqrt(2.0 * _DIGITS), _ETA / max(s, 1e-9))
        h = 2.0 * math.pi * b / (_DIGITS + 0.5 * b * b + 2.0)
        count = math.ceil(_DEVIATIONS / h)
        z = h * np.arange(-count, count + 1)
        w = h / math.sqrt(2.0 * math.pi) * np.exp(-0.5 * z * z)
        error = 2.2 * math.exp(-_DIGITS - 2.0) * (1.0 + 2.0 * step / math.e) / _KAPPA + 2e-15 * (1.0 + step)
    else:
        h = 2.0 * math.pi * _ETA / (_DIGITS + 0.5 * (_ETA / s) ** 2 + 2.0)
        z = np.arange(_LEFT - 0.5, _RIGHT + 0.5, h)
        w = h * np.exp(-z - np.exp(-z))
        error = 2.2 * math.exp(-_DIGITS - 2.0) / _KAPPA * (1.0 + step / s) + (4e-15 + NDTR) * (1.0 + step / s)
    B, slope, curve = np.empty_like(y), np.empty_like(y), np.empty_like(y)
    for start in range(0, len(y), 2048):
        some = slice(start, start + 2048)
        if s <= 2.0:
            t = np.exp(np.minimum(-(y[some, None] - s * z), 700.0))
            G = np.exp(-t)
            G1 = t * G
            B[some], slope[some], curve[some] = G @ w, G1 @ w, (t * G1 - G1) @ w
        else:
            x = (y[some, None] - z) / s
            with np.errstate(over="ignore"):
                density = np.exp(-0.5 * x * x) / (s * math.sqrt(2.0 * math.pi))
            B[some], slope[some], curve[some] = ndtr(x) @ w, density @ w, (x * density) @ (-w / s)
    return B, slope, error, curve


def _interpolated(y: np.ndarray, s: float, step: float) -> tuple[np.ndarray, np.ndarray, float]:
    """As `_distribution` for very many y: cubic Hermite interpolation of B and of B' in a table of step e.

    Its error is e^4 / 384 times the fourth (fifth) derivative of B, that of G at most 17 (110), as G^(k) is a
    polynomial in t times e^-t and t^k e^-t <= (k/e)^k; or at most 0.56 / s^4 (1.2 / s^5), that of the normal
    law. That of B' is summed over the length of the table, beyond which B is 0 or 1 but for `_CUT`.
    """
    low, high = _LEFT - _DEVIATIONS * s, _RIGHT + _DEVIATIONS * s
    e = 0.01 * max(1.0, s)
    nodes = low + e * np.arange(math.ceil((high - low) / e) + 2)
    B, slope, error, curve = _distribution(nodes, s, step)
    place = np.clip((y - low) / e, 0.0, len(nodes) - 1.001)
    k = place.astype(int)
    u = place - k
    a, b, c, d = (1 + 2 * u) * (1 - u) ** 2, u * (1 - u) ** 2 * e, u * u * (3 - 2 * u), u * u * (u - 1) * e
    value = a * B[k] + b * slope[k] + c * B[k + 1] + d * slope[k + 1]
    change = a * slope[k] + b * curve[k] + c * slope[k + 1] + d * curve[k + 1]
    outside = (y < low) | (y > high)
    length = high - low + 2.0 * step
    cubic = e**4 * (17.0 + 110.0 * length) if s < 2.0 else (e / s) ** 4 * (0.56 + 1.2 * length / s)
    return value, np.where(outside, 0.0, change), error + 1.01 / 384.0 * cubic + 2.0 * _CUT + 1e-12


def _stieltjes(m: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, float]:
    """As `independent` for scales too different for one step: int prod B_j dB_c between sums over cells.

    The product increases, so its ends on each cell bound the integral; an error e of every B moves the sums
    by at most (C + 1) e (summation by parts).
    """
    q = np.linspace(-1.0, 1.0, 601)[1:-1]
    normal, gumbel = _DEVIATIONS * q * np.abs(q), -np.log(-np.log(0.5 + 0.5 * q))
    steps = np.concatenate([normal, gumbel])
    y = np.unique(
        np.concatenate([a + np.outer([1.0, b], steps).ravel() for a, b in np.stack([m, s], axis=1)])
    )
    parts = [_distribution(y - a, b, 0.0) for a, b in zip(m.tolist(), s.tolist(), strict=True)]
    B = np.array([np.concatenate([[0.0], np.maximum.accumulate(p[0]), [1.0]]) for p in parts])
    low, high = np.empty(m.size), np.empty(m.size)
    for c in range(m.size):
        others = np.prod(np.delete(B, c, axis=0), axis=0)
        low[c], high[c] = np.diff(B[c]) @ others[:-1], np.diff(B[c]) @ others[1:]
    error = (m.size + 1) * (max(p[2] for p in parts) + 800 * UNIT + _input_rounding(m, s)) + len(y) * UNIT
    return 0.5 * (low + high), float(0.5 * np.max(high - low) + error) * 1.01


def _input_rounding(m: np.ndarray, s: np.ndarray) -> float:
    """What rounding y, y - m and s z changes.

    It moves the argument of B_j and B_j' by less than 5 u size_j where these are not at their limits; |B'| <=
    min(1/e, 0.4 / s) and int |B''| is twice that.
    """
    size = 2.0 * np.abs(m) + 10.0 * s + 100.0
    each = 40.0 * UNIT * size * np.minimum(0.5, 0.4 / np.maximum(s, 1e-9))
    return float(each.sum() + 4.0 * each.max())
