"""Expectations of softmax by other rules than the package's."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from flint import acb, arb


def line_reference(mean, direction) -> list[arb]:
    """Balls around E softmax_c(mean + direction z), z standard normal: one rigorous integral each.

    Integrated over |z| <= 14; what is outside is below 1e-43.
    """
    tolerance = arb(2) ** -70
    reach = max(abs(d) for d in direction) * 14
    pieces = int(reach / 4) + 1

    def integrand(c: int):
        def value(z: acb, _: bool) -> acb:
            ratio = acb(0)
            for m, d in zip(mean, direction, strict=True):
                ratio += (acb(m) - acb(mean[c]) + (acb(d) - acb(direction[c])) * z).exp()
            return (-z * z / 2).exp() / ratio / (2 * acb.pi()).sqrt()

        return value

    edges = [acb(14) * (2 * i - pieces) / pieces for i in range(pieces + 1)]
    balls = []
    for c in range(len(mean)):
        total = acb(0)
        for a, b in pairwise(edges):
            total += acb.integral(integrand(c), a, b, rel_tol=tolerance, abs_tol=tolerance)
        balls.append(total.real)
    return balls


def grid_reference(mean, cov, step=0.2):
    """A slow tensor trapezoid rule in all C - 1 differences, C = 3 or 4; no proof, other factor and step."""
    classes = len(mean)
    difference = np.hstack([np.eye(classes - 1), -np.ones((classes - 1, 1))])
    values, vectors = np.linalg.eigh(difference @ cov @ difference.T)
    factor = vectors * np.sqrt(np.maximum(values, 0))
    z = step * np.arange(-int(7 / step), int(7 / step) + 1)
    nodes = np.stack([axis.ravel() for axis in np.meshgrid(*[z] * (classes - 1), indexing="ij")], axis=1)
    weights = np.exp(-0.5 * (nodes**2).sum(axis=1))
    f = np.hstack([nodes @ factor.T, np.zeros((len(nodes), 1))]) + mean
    p = np.exp(f - f.max(axis=1, keepdims=True))
    return weights @ (p / p.sum(axis=1, keepdims=True)) / weights.sum()


def assert_encloses(p, error, balls):
    for c, ball in enumerate(balls):
        assert ball.is_finite()
        assert float(abs(arb(float(p[c])) - ball).upper()) <= error[c]
