"""E softmax for Gaussian latents given as balls: which rule, and what separates its input from the balls.

Gradients and second derivatives of p_c = softmax_c in the latents, with p the vector of probabilities:
    grad p_c = p_c (e_c - p),    Hess p_c = p_c ((e_c - p)(e_c - p)^T - diag(p) + p p^T).

**Means.** The entries of grad p_c have the absolute sum 2 p_c (1 - p_c) <= 1/2, and each is at most 1/4:
means that are off by at most e_c move E p_c by at most max e / 2 and at most sum e / 4. In total variation a
mean off by e is worth 0.4 e / s for an independent latent.

**Covariances.** Along a segment of covariances the derivative of E p_c is E <Hess p_c, change> / 2. With the
spectral norm |E| of the change of the centred covariance, |e_c - p|^2 <= 2 (1 - p_c)^2 and tr(diag(p) - p
p^T) <= 1 - p_c^2, it is at most |E| p_c (2 (1 - p_c)^2 + 1 - p_c^2) / 2 < 0.32 |E|. So small eigenvalues may
be left out, and B B^T need not be the covariance exactly: 0.32 times the Frobenius norm of the difference is
added. For independent latents: sum_c |change_c| / (12 sqrt 3) (then p_c (1 - p_c) |1 - 2 p_c| / 2 each), or,
in total variation, half the relative change of the variance: int |z^2 - 1| phi / 4 < 1/4 times it.

**The covariance that is meant** (docs/maths/multiclass.md, M4): Sigma + diag(t) + delta I, t_c = max(0,
-Sigma_cc), delta >= 0 the least for which differences of latents have a covariance. Let S be the centred
Sigma + diag(t), P the centring, delta' a double, r = |S + delta' P - B B^T|_F in balls: S >= -(delta' + r) P,
so delta <= delta' + r; and -delta is at most every Rayleigh quotient of S. If the smallest eigenvalue of
B B^T exceeds r (by 1e-9 of the size, against the rounding of LAPACK), delta = 0. It is that of all classes,
improbable ones included.

**Improbable classes.** p_j <= e^(f_j - f_i), so E p_j <= e^(-D/2) + P(f_j - f_i > -D/2) for D = m_i - m_j,
the second at most e^(-D^2 / 8V), V the variance of f_j - f_i. Without class j every other probability grows
by at most E p_j.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from flint import arb, arb_mat

from judge.doubles import around, nearest, upper
from judge.gumbel import independent
from judge.logistic import logistic_normal
from judge.mixture import mixture, split
from judge.tensor import Axis, axis, tensor

Matrix = Sequence[Sequence[arb]]

_NEGLIGIBLE = arb(2) ** -60
_WORK = 10_000_000  # nodes times classes of a tensor rule
_GOOD = 1e-8  # an error with which no other rule is tried
_ERRORS = (1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


def softmax(mean: Sequence[arb], covariance: Matrix, correlated: bool) -> list[arb]:
    """E softmax of every class, for the unclipped covariance (C, C) of the latents."""
    C = len(mean)
    S = [[covariance[i][j].max(arb(0)) if i == j else covariance[i][j] for j in range(C)] for i in range(C)]
    if not all(v.is_finite() for v in (*mean, *(v for row in S for v in row))):
        return [arb(0.5, 0.5)] * C
    if correlated and C > 2:  # of two the logistic integral clips the variance itself
        delta = _least_raise(S)
        S = [[v + delta if i == j else v for j, v in enumerate(row)] for i, row in enumerate(S)]
    kept, dropped = _probable(mean, S)
    p = dict.fromkeys(range(C), arb(0).union(dropped.upper()))
    values = _rule([mean[c] for c in kept], [[S[i][j] for j in kept] for i in kept], correlated)
    for c, value in zip(kept, values, strict=True):
        low = value.lower() - dropped
        p[c] = low.max(arb(0)).union(value.upper().min(arb(1)))
    return [p[c] for c in range(C)]


def _probable(mean: Sequence[arb], S: Matrix) -> tuple[list[int], arb]:
    """The classes that are not negligible, and a bound of the probability of all others together."""
    top = max(range(len(mean)), key=lambda c: mean[c].mid())
    kept, dropped = [], arb(0)
    for c, m in enumerate(mean):
        D, V = mean[top] - m, (S[c][c] + S[top][top] - 2 * S[c][top]).upper()
        small = (-D / 2).exp() + ((-D * D / (8 * V)).exp() if V > 0 else arb(0)) if D > 80 else arb(1)
        if c != top and small < _NEGLIGIBLE:
            dropped += small
        else:
            kept.append(c)
    return kept, dropped


def _rule(mean: list[arb], S: Matrix, correlated: bool) -> list[arb]:
    C = len(mean)
    if C == 1:
        return [arb(1)]
    if C == 2:
        variance = S[0][0] + S[1][1] - 2 * S[0][1]
        return [logistic_normal(mean[c] - mean[1 - c], variance) for c in range(2)]
    shift = max(mean, key=lambda m: m.mid()).mid()
    m, off = zip(*(nearest(v - shift) for v in mean), strict=True)
    if not correlated:
        return _independent(m, off, [S[c][c] for c in range(C)])
    return _correlated(np.array(m), S, 0.5 * max(off))


def _independent(m: Sequence[float], off: Sequence[float], variances: list[arb]) -> list[arb]:
    v, radius = zip(*(nearest(v) for v in variances), strict=True)
    s = [math.sqrt(max(value, 0.0)) for value in v]
    apart = sum(min(0.25 * a, 0.41 * a / b if b > 0 else math.inf) for a, b in zip(off, s, strict=True))
    moved = min(0.5 * max(off), apart)
    for b, value in zip(radius, v, strict=True):
        moved += min(0.0482 * b, 0.26 * b / (value - b) if value > b else math.inf)
    p, error = independent(m, v)
    return [around(value, error + 1.01 * moved) for value in p.tolist()]


def centred(S: Matrix) -> list[list[arb]]:
    """P S P."""
    C = len(S)
    rows = [sum(row, arb(0)) / C for row in S]
    mean = sum(rows, arb(0)) / C
    return [[S[i][j] - rows[i] - rows[j] + mean for j in range(C)] for i in range(C)]


def _least_raise(S: Matrix) -> arb:
    """delta of the docstring, for the clipped covariance S."""
    S, C = centred(S), len(S)
    values, vectors = _eigen(S)
    raised = max(0.0, -float(values[0]))
    lifted = centred([[arb(raised) if i == j else arb(0) for j in range(C)] for i in range(C)])
    rest = [[S[i][j] + lifted[i][j] for j in range(C)] for i in range(C)]
    r = _distance(rest, vectors * np.sqrt(np.maximum(values + raised, 0.0)))
    if r < arb(float(values[0]) - 1e-9 * float(np.abs(values).max())):
        return arb(0)
    u = [arb(v) for v in vectors[:, 0].tolist()]
    u = [v - sum(u, arb(0)) / C for v in u]
    quotient = sum(u[i] * S[i][j] * u[j] for i in range(C) for j in range(C)) / sum(v * v for v in u)
    return (-quotient).lower().max(arb(0)).union(arb(raised) + r)


def factor(S: Matrix, d: np.ndarray) -> tuple[np.ndarray, float]:
    """B (C, r), columns in falling size, and at least |B B^T + P diag(d) P - P S P|_F."""
    C = range(len(S))
    rest = centred([[S[i][j] - arb(d[i]) if i == j else S[i][j] for j in C] for i in C])
    values, vectors = _eigen(rest)
    B = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1]
    return B, upper(_distance(rest, B))


def _distance(S: Matrix, B: np.ndarray) -> arb:
    """At least |S - B B^T|_F."""
    product = arb_mat(B.tolist()) * arb_mat(B.T.tolist())
    entries = ((v - product[i, j]).abs_upper() for i, row in enumerate(S) for j, v in enumerate(row))
    return sum((v * v for v in entries), arb(0)).sqrt().upper()


def _eigen(S: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of a centred matrix in doubles, without the vector 1."""
    A = np.array([[nearest(v)[0] for v in row] for row in S])
    values, vectors = np.linalg.eigh(0.5 * (A + A.T) + np.abs(A).sum() / len(A))  # 1 gets the largest
    return values[:-1], vectors[:, :-1]


def _correlated(mean: np.ndarray, S: Matrix, moved: float) -> list[arb]:
    """The tensor rule where it is good, else the better of it and the mixture."""
    C = len(mean)
    B, defect = factor(S, np.zeros(C))
    if not moved + 0.32 * defect < 1.0:
        return [arb(0.5, 0.5)] * C
    plan = _plan(B)
    loss = plan[0] + 0.32 * defect
    rule: tuple[np.ndarray, float] | None = None
    if loss > _GOOD:
        d = split(np.array([[nearest(v)[0] for v in row] for row in centred(S)]))
        columns, other = factor(S, d)
        p, error = mixture(mean, d, columns)
        if not error + 0.32 * other > loss:
            rule, defect = (p, error), other
    if rule is None and plan[1]:
        p, error = tensor(mean, np.ascontiguousarray(B[:, : len(plan[1])]), plan[1])
        rule = p, error + _left_out(B, len(plan[1]))
    if rule is None:
        return [arb(0.5, 0.5)] * C
    return [around(value, 1.01 * (rule[1] + moved + 0.32 * defect)) for value in rule[0].tolist()]


def _plan(B: np.ndarray) -> tuple[float, list[Axis]]:
    """The axes of the tensor rule with the smallest error that the work allows, and that error."""
    best: tuple[float, list[Axis]] = 1.0, []
    for rank in range(1, B.shape[1] + 1):
        for error in _ERRORS:
            axes = [axis(float(np.ptp(column)), error) for column in B[:, :rank].T]
            expected = _left_out(B, rank) + sum(a.error for a in axes)
            if len(B) * math.prod(2 * a.count + 1 for a in axes) <= _WORK:
                if expected < 0.5 * best[0]:
                    best = expected, axes
                break
    return best


def _left_out(B: np.ndarray, rank: int) -> float:
    """What the columns from `rank` on, the largest first, are worth."""
    return 0.33 * float(np.sum(B[:, rank] ** 2)) if rank < B.shape[1] else 0.0
