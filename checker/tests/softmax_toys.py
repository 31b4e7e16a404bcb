"""Small softmax models, correlated or not, and proofs that a class wins; no gpcert."""

from __future__ import annotations

import math
import random
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from flint import arb_mat

from gpcert_check.balls import read_region
from gpcert_check.leaves import Slice
from gpcert_check.softmax import Ahead
from making import Prover, Toy, box, hexed, leaf_for, sample


class SoftToy(Toy):
    """Three classes; correlated: R = W (I + K W)^-1 with W = size (diag(p) - p p^T) at every centre."""

    def __init__(self, seed: int, n: int = 3, D: int = 2, correlated: bool = True, size: float = 1.0) -> None:
        super().__init__(seed, n, D, classes=3, link={"name": "softmax"})
        rng = random.Random(seed + 1)
        self.correlated, self.stored_witness = correlated, not correlated
        self.alpha = [[rng.gauss(0, 0.8) for _ in range(n)] for _ in range(3)]
        if not correlated:
            self.W = [[size * w for w in W] for W in self.W]
            self.R = [self._inverse(W) for W in self.W]
        else:
            shares = [[rng.uniform(0.1, 1) for _ in range(3)] for _ in range(n)]
            factor = [size * 10 ** rng.uniform(-1, 1) for _ in range(n)]
            self.sites = [triangle([a * q / sum(p) for q in p]) for a, p in zip(factor, shares, strict=True)]
            self.R = self._blocks()

    def _blocks(self) -> list[list[list[float]]]:
        n, C = self.n, 3
        K = [[self.kernel(a, b) for b in self.X] for a in self.X]
        W = [[sum(x * y for x, y in zip(a, b, strict=False)) for a in g for b in g] for g in self.sites]
        N = n * C
        site = arb_mat(
            [
                [W[i][c * C + e] if i == j else 0 for e in range(C) for j in range(n)]
                for c in range(C)
                for i in range(n)
            ]
        )
        prior = arb_mat(
            [
                [K[i][j] if c == e else 0 for e in range(C) for j in range(n)]
                for c in range(C)
                for i in range(n)
            ]
        )
        one = arb_mat([[int(i == j) for j in range(N)] for i in range(N)])
        full = [[float(x.mid()) for x in row] for row in (site * (one + prior * site).inv()).tolist()]
        full = [[full[max(i, j)][min(i, j)] for j in range(N)] for i in range(N)]
        return [
            [row[e * n : (e + 1) * n] for row in full[c * n : (c + 1) * n]]
            for c in range(C)
            for e in range(C)
        ]

    def facts(self) -> list[Any]:
        if not self.correlated:
            return [None] * 3
        return [{"sites": [hexed([x for row in g for x in row]) for g in self.sites]}]

    def tensors(self) -> dict[str, tuple[list[int], list[float]]]:
        found = super().tensors()
        if self.correlated:
            found["precision"] = ([3, 3, self.n, self.n], found["precision"][1])
        return found

    def joint(self, x: list[float]) -> tuple[list[float], list[list[float]]]:
        """Means and covariances, not clipped, by formulas of the tests' own."""
        k = [self.kernel(row, x) for row in self.X]
        mean = [self.m0[c] + sum(a * b for a, b in zip(self.alpha[c], k, strict=True)) for c in range(3)]

        def explained(R: list[list[float]]) -> float:
            return sum(k[i] * R[i][j] * k[j] for i in range(self.n) for j in range(self.n))

        if not self.correlated:
            return mean, [
                [self.s2 - explained(self.R[c]) if c == e else 0.0 for e in range(3)] for c in range(3)
            ]
        return mean, [[(c == e) * self.s2 - explained(self.R[3 * c + e]) for e in range(3)] for c in range(3)]

    def truth(self, x: list[float]) -> list[float]:
        mean, S = self.joint(x)
        for c in range(3):
            S[c][c] = max(S[c][c], 0.0)
        return shares(mean, S)


def triangle(weights: list[float]) -> list[list[float]]:
    """Lower triangular G with G G^T = diag(w) - w w^T / sum(w)."""
    total, n = sum(weights), len(weights)
    W = [[(i == j) * weights[i] - weights[i] * weights[j] / total for j in range(n)] for i in range(n)]
    G: list[list[float]] = []
    for i in range(n):
        row: list[float] = []
        for j in range(i):
            part = sum(a * b for a, b in zip(row, G[j], strict=False))
            row.append((W[i][j] - part) / G[j][j])
        row.append(math.sqrt(max(W[i][i] - sum(a * a for a in row), 0.0)) if i < n - 1 else 0.0)
        G.append(row)
    return G


_NODES = [0.4 * i for i in range(-15, 16)]
_WEIGHTS = [math.exp(-z * z / 2) for z in _NODES]


def shares(mean: list[float], S: list[list[float]]) -> list[float]:
    """E softmax of three latents by the trapezoid rule over the two differences with the last."""
    V = [[S[a][b] - S[a][2] - S[2][b] + S[2][2] for b in range(2)] for a in range(2)]
    first = math.sqrt(max(V[0][0], 0.0))
    cross = V[0][1] / first if first > 0 else 0.0
    second = math.sqrt(max(V[1][1] - cross * cross, 0.0))
    p = [0.0, 0.0, 0.0]
    for z, w in zip(_NODES, _WEIGHTS, strict=True):
        for y, v in zip(_NODES, _WEIGHTS, strict=True):
            a, b = mean[0] - mean[2] + first * z, mean[1] - mean[2] + cross * z + second * y
            top = max(a, b, 0.0)
            e = [math.exp(a - top), math.exp(b - top), math.exp(-top)]
            share = w * v / sum(e)
            p = [q + share * each for q, each in zip(p, e, strict=True)]
    return [q / sum(p) for q in p]


def shared(S: list[list[float]], c: int, j: int, k: int) -> float:
    """s_k = Cov(f_c - f_j, f_k - (f_c + f_j)/2)."""
    return S[c][k] - S[j][k] - (S[c][c] - S[j][j]) / 2


def wins(seed: int, region: dict[str, Any], correlated: bool) -> tuple[SoftToy, Prover, dict[str, Any], int]:
    """A toy whose means lie far enough apart, and a proof of one leaf that the best class wins."""
    toy = SoftToy(seed, correlated=correlated)
    exact = read_region(region, 2)
    middle = sample(exact, random.Random(0))
    label = max(range(3), key=lambda c: toy.joint(middle)[0][c])
    toy.m0[label] += 1.2
    prover = Prover(toy, Path(mkdtemp()) / "m.safetensors", toy.facts())
    lower, upper = ([end[j] for j in exact.moving] for end in (exact.lower, exact.upper))
    rivals: list[Any] = []
    for j in range(3):
        parts = []
        contrasts = prover.checker.subject._contrasts(label, j) if j != label else []
        for i, each in enumerate([*contrasts[:1], *(one.mirrored() for one in contrasts)]):
            level = Ahead("plane" if i else "mean")
            value, leaf = leaf_for(Slice(each, exact, 1), level, lower, upper, {})
            assert value > 0, (seed, j, value)
            parts.append(leaf)
        rivals.append(parts or None)
    return toy, prover, {"tree": [{"rivals": rivals}]}, label


def anchored(seed: int, correlated: bool) -> tuple[SoftToy, Prover, dict[str, Any], dict[str, Any], int]:
    """A region, and a proof whose rivals are all beaten by an integral at one reference (V15)."""
    region = box([0.09, 0.14], [0.1, 0.15])
    toy, prover, _, label = wins(seed, region, correlated)
    rivals = [None if c == label else {"ref": hexed([0.095, 0.145])} for c in range(3)]
    return toy, prover, region, {"tree": [{"rivals": rivals}]}, label
