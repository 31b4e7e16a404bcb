"""E softmax of correlated latents: independent parts, and few nodes for what is left.

f = m + B z + e, e independent N(0, d_j), z standard normal, B B^T + diag(d) the covariance up to common
shifts. g(z) = E softmax_c given z is a Gumbel integral. As int softmax_c(u) prod_j N(u_j; m_j + (B z)_j, d_j)
du it is entire in z. Column k of B may be shifted by a constant; lambda_k = min over c of sum_j (B_jk - c)^2
/ d_j.

**Trapezoidal rule.** |g(z + i b e_k)| <= e^(b^2 lambda_k / 2) g(z), the modulus of the densities. So along
z_k the relative error is at most 2 e^(b^2 (1 + lambda_k) / 2) / (e^(2 pi b / h) - 1), and 2 Phi(-T) for what
is cut. **Gauss.** The n-th derivative of g along z_k is an average of softmax_c - 1/2 times lambda_k^(n/2)
He_n of a standard normal, at most lambda_k^(n/2) sqrt(n!) / 2. The rule of n nodes is wrong by n! / (2n)!
times the derivative of order 2n, so by at most lambda_k^n n! / (2 sqrt((2n)!)). In both cases the integral
over z_k is a function of the other coordinates with the same bounds: errors add up, the relative ones as a
product.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from judge.doubles import UNIT
from judge.gumbel import independent

_NODES = 1500  # of all axes together
_GAUSS = 9


class Rule(NamedTuple):
    """Nodes, weights of sum about 1, and the error along an axis."""

    nodes: np.ndarray
    weights: np.ndarray
    error: float


def split(S: np.ndarray) -> np.ndarray:
    """d (C,) > 0, large, with S - diag(d) positive semidefinite on vectors of sum 0; an estimate.

    The maximum of sum_j log d_j + small log det(rest), by its gradient in log d.
    """
    C = len(S)
    basis = np.linalg.qr(np.eye(C)[:, :-1] - 1.0 / C)[0]
    inner = basis.T @ S @ basis
    start = 0.5 * max(float(np.linalg.eigvalsh(inner)[0]), 1e-12 * float(np.trace(inner)) + 1e-300)

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        d = np.exp(np.minimum(x, 500.0))
        rest = inner - basis.T @ (d[:, None] * basis)
        values, vectors = np.linalg.eigh(rest)
        if values[0] <= 0.0:
            return 1e10, np.zeros(C)
        inverse = basis @ (vectors / values) @ vectors.T @ basis.T
        return -float(x.sum() + 0.02 * np.log(values).sum()), 0.02 * d * np.diag(inverse) - 1.0

    found = minimize(
        objective, np.full(C, math.log(start)), jac=True, method="L-BFGS-B", options={"maxiter": 60}
    )
    return np.exp(found.x) if objective(found.x)[0] < 1e9 else np.full(C, start)


def spreads(B: np.ndarray, d: np.ndarray) -> np.ndarray:
    """lambda_k of every column, rounded up."""
    centre = (B / d[:, None]).sum(axis=0) / (1.0 / d).sum()
    return ((B - centre) ** 2 / d[:, None]).sum(axis=0) * (1.0 + 1e-10)


def mixture(mean: np.ndarray, d: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, float]:
    """E softmax (C,) for f = mean + B z + e, and a bound of the error of every entry."""
    rules = _rules(spreads(B, d))
    shifts, weights = np.zeros((1, len(d))), np.ones(1)
    for k, rule in enumerate(rules):
        shifts = (shifts[:, None] + np.multiply.outer(rule.nodes, B[:, k])).reshape(-1, len(d))
        weights = np.multiply.outer(weights, rule.weights).ravel()
    p, error = independent(mean + shifts, d)
    moved = (len(rules) + 3) * UNIT * float(np.abs(shifts).max() + np.abs(mean).max())
    total = math.prod(1.0 + rule.error for rule in rules) - 1.0
    return weights @ p, 1.01 * (total + (1.0 + total) * (error + moved + (len(weights) + 100) * UNIT))


def _rules(lambdas: np.ndarray) -> list[Rule]:
    """One node per axis to begin with; the axis that is worst gets more while the number allows it."""
    ladders = [[_gauss(n, v) for n in range(1, _GAUSS)] for v in lambdas.tolist()]
    for ladder, v in zip(ladders, lambdas.tolist(), strict=True):
        ladder.extend(_trapezoid(error, v) for error in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8))
    chosen = [ladder[0] for ladder in ladders]
    while True:
        worst = max(range(len(chosen)), key=lambda k: chosen[k].error)
        better = [r for r in ladders[worst] if r.error < 0.3 * chosen[worst].error]
        if not better or chosen[worst].error < 1e-9:
            return chosen
        new = min(better, key=lambda r: len(r.nodes))
        count = math.prod(len(r.nodes) for k, r in enumerate(chosen) if k != worst) * len(new.nodes)
        if count > _NODES:
            return chosen
        chosen[worst] = new


def _gauss(n: int, spread: float) -> Rule:
    z, w = np.polynomial.hermite_e.hermegauss(n)
    log = n * math.log(max(spread, 1e-300)) + math.lgamma(n + 1) - 0.5 * math.lgamma(2 * n + 1)
    return Rule(z, w / math.sqrt(2.0 * math.pi), min(0.5 * math.exp(min(log, 5.0)), 1.0) * 1.001 + 1e-12)


def _trapezoid(error: float, spread: float) -> Rule:
    digits = math.log(4.0 / error)
    b = math.sqrt(2.0 * digits / (1.0 + spread))
    h = math.pi * b / digits
    count = math.ceil(math.sqrt(2.0 * math.log(1.0 / error)) / h)
    z = h * np.arange(-count, count + 1)
    strip = 2.0 * math.exp(0.5 * b * b * (1.0 + spread)) / math.expm1(2.0 * math.pi * b / h)
    cut = math.erfc(h * count / math.sqrt(2.0))
    return Rule(z, h / math.sqrt(2.0 * math.pi) * np.exp(-0.5 * z * z), 1.001 * (strip + cut) + 1e-13)
