"""Quadratics of tests: matrices of every kind, and their exact values."""

from __future__ import annotations

import numpy as np
from flint import fmpq

from helpers.oracle import rational


def symmetric(A):
    """The matrix with the lower triangle of A mirrored: symmetric as doubles."""
    return np.tril(A) + np.tril(A, -1).T


def matrix(rng, kind, n):
    A = rng.standard_normal((n, n))
    u = rng.standard_normal((n, max(1, n // 3)))
    s = 10.0 ** rng.uniform(-6, 6, n)
    return symmetric(
        {
            "psd": A @ A.T,
            "indefinite": A + A.T,
            "low rank": u @ u.T,
            "negative": -u @ u.T,
            "diagonal": np.diag(A[0] * s),
            "badly scaled": (A + A.T) * np.outer(s, s),
            "zero": np.zeros((n, n)),
        }[kind]
    )


def exact(g, H, d):
    """g.d + d^T H d / 2 as a rational number."""
    d = [rational(v) for v in d]
    rows = [sum((rational(h) * v for h, v in zip(row, d, strict=True)), fmpq(0)) for row in H]
    return sum(((rational(a) + r / 2) * v for a, r, v in zip(g, rows, d, strict=True)), fmpq(0))
