"""What is true of a toy, in ball arithmetic by formulas of the tests' own, at points of doubles."""

from __future__ import annotations

from typing import Any

from flint import acb, arb

from making import COEFFICIENTS, LAMBDAS, Toy, expectation


def exact_latent(toy: Toy, x: list[float], c: int = 0) -> tuple[arb, arb]:
    """Mean and clipped variance, term by term."""
    k = []
    for row in toy.X:
        square = arb(0)
        for a, b, s in zip(row, x, toy.scale, strict=True):
            step = (arb(a) - arb(b)) / arb(s)
            square += step * step
        k.append(arb(toy.s2) * (-square / 2).exp())
    mean, explained = arb(toy.m0[c]), arb(0)
    for i in range(toy.n):
        mean += arb(toy.alpha[c][i]) * k[i]
        for j in range(toy.n):
            explained += k[i] * arb(toy.R[c][i][j]) * k[j]
    variance = arb(toy.s2) - explained
    return mean, variance.max(arb(0))


def exact_expectation(link: dict[str, Any], mean: arb, variance: arb) -> arb:
    """E sigma(f): erf of the probit and of scikit-learn's formula, an integral of the logistic."""
    if link["name"] == "floored":
        floor = arb(float.fromhex(link["floor"]))
        return floor + (1 - 2 * floor) * exact_expectation(link["link"], mean, variance)
    if link["name"] == "five_erf":
        terms = zip(COEFFICIENTS, LAMBDAS, strict=True)
        scaled = [(c, arb(a) * mean / (1 + 2 * arb(a) * arb(a) * variance).sqrt()) for c, a in terms]
        return sum((arb(c) * (1 + z.erf()) / 2 for c, z in scaled), arb(0))
    if link["name"] == "probit":
        z = mean / (arb(1) / arb(float.fromhex(link["scale"])) ** 2 + variance).sqrt()
        return (1 + (z / arb(2).sqrt()).erf()) / 2
    m, root = acb(mean), acb(variance.sqrt())

    def integrand(z: Any, _: bool) -> Any:
        return (-z * z / 2).exp() / (1 + (-(m + root * z)).exp())

    return acb.integral(integrand, -14, 14).real / (2 * arb.pi()).sqrt()


def exact_probabilities(toy: Toy, x: list[float]) -> list[arb]:
    """All P(c)."""
    link = toy.likelihood["link"] if toy.C > 1 else toy.likelihood
    p = [exact_expectation(link, *exact_latent(toy, x, c)) for c in range(toy.C)]
    if toy.C == 1:
        return [1 - p[0], p[0]]
    total = sum(p, arb(0))
    return [each / total for each in p]


def needed_mean(link: dict[str, Any], p: float, variance: float) -> float:
    """m_p(S) in floats, by bisection: right to 1e-9."""
    low, high = -60.0, 60.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if expectation(link, middle, variance) < p else (low, middle)
    return high


def psi_told(link: dict[str, Any], p: float, S: float, top: float, flat: bool = False) -> dict[str, Any]:
    """A line or a root a little above m_p(S) on all variances up to `top`; `flat`: a number."""
    grid = [1.001 * top * i / 40 for i in range(41)] + [S]
    m, step = [needed_mean(link, p, x) for x in grid], 1e-3
    slope = 0.0 if flat else (needed_mean(link, p, S + step) - m[-1]) / step
    steep, rate = max(0.0, -2 * slope * (2 + S) ** 0.5), max(0.0, slope)
    over = [y - rate * x + steep * (2 + x) ** 0.5 for x, y in zip(grid, m, strict=True)]
    a, touch = max(over) + 1e-6, grid[over.index(max(over))]
    numbers = [a, steep, 2.0, touch] if steep else [a, rate, touch]
    return {"root" if steep else "line": [x.hex() for x in numbers]}
