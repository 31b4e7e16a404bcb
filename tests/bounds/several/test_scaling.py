"""The scale of a covariance apart (T7), squares of several forms, functionals from Y1: above the truth."""

from __future__ import annotations

import numpy as np
from flint import arb, arb_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.bounds.several.tangents.anchor import Shifts
from gpcert.bounds.several.tangents.tangent import chord, height, penalty
from helpers.oracle import examples

SEEDS = st.integers(0, 10**6)


@given(seed=SEEDS, N=st.integers(1, 5), tilt=st.floats(-3.0, 3.0))
@settings(max_examples=examples(60), deadline=None)
def test_the_penalty_lies_below_its_line_and_its_shape(seed, N, tilt):
    """pen(E) <= height + slope e + kappa(nu / (1 + low)) |E - e I|^2 / (1 + low)^2, in balls."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, N)) * 10.0 ** rng.uniform(-3, 0)
    E = 0.3 * (A + A.T) / max(1.0, np.abs(np.linalg.eigvalsh(A + A.T)).max())
    E += rng.uniform(-0.4, 2.0) * np.eye(N)
    e = float(np.trace(E)) / N
    low, high = e - rng.uniform(0, 0.3) * (1 + e), e + rng.uniform(0, 0.5)
    nu = -float(np.linalg.eigvalsh(E - e * np.eye(N))[0]) + 1e-9
    assert nu / (1 + low) < 0.95
    slope = chord(N, low, high) + tilt
    exact = [[arb(v) for v in row] for row in E.tolist()]
    trace = sum((exact[i][i] for i in range(N)), arb(0))
    mean = trace / N
    whole = arb_mat(N, N, [exact[i][j] + (1 if i == j else 0) for i in range(N) for j in range(N)])
    pen = (trace - whole.det().log()) / 2
    square = sum(((exact[i][j] - (mean if i == j else 0)) ** 2 for i in range(N) for j in range(N)), arb(0))
    weight = arb(penalty(nu / (1 + low))) / (1 + arb(low)) ** 2
    above = arb(height(N, low, high, slope)) + arb(slope) * mean + weight * square
    assert bool(pen <= above)


@given(seed=SEEDS)
@settings(max_examples=examples(40), deadline=None)
def test_squares_of_several_forms(seed):
    """sum_n weight_n (linear + form + rest)^2 <= loss on the box, at corners and inside, in balls."""
    rng = np.random.default_rng(seed)
    N, d = rng.integers(1, 5), rng.integers(1, 6)
    reach = 10.0 ** rng.uniform(-2, 0, d)
    hessian = rng.standard_normal((N, d, d)) * 10.0 ** rng.uniform(-2, 2)
    hessian += hessian.transpose(0, 2, 1)
    constant, gradient = rng.standard_normal(N) * 10.0 ** rng.uniform(-3, 0), rng.standard_normal((N, d))
    rest, weight = np.abs(rng.standard_normal(N)) * 0.01, rng.random(N)
    shifts = Shifts(reach, constant, gradient, hessian, rest, 0.0)
    loss, most = shifts.square(weight), shifts.largest()
    for inside in (1.0, rng.random(d)):
        u = reach * np.where(rng.random(d) < 0.5, -1.0, 1.0) * inside
        exact = [arb(float(v)) for v in u]
        values = [
            arb(float(constant[n]))
            + sum((arb(float(g)) * v for g, v in zip(gradient[n], exact, strict=True)), arb(0))
            + _form(hessian[n], exact) / 2
            for n in range(N)
        ]
        values = [v + arb(float(r)) * (1 if v > 0 else -1) for v, r in zip(values, rest, strict=True)]
        total = sum((arb(float(w)) * v * v for w, v in zip(weight, values, strict=True)), arb(0))
        above = arb(loss.constant) + _form(loss.matrix, exact)
        above += sum((arb(float(g)) * v for g, v in zip(loss.gradient, exact, strict=True)), arb(0))
        assert bool(total <= above)
        assert bool(sum((v * v for v in values), arb(0)) <= arb(most) ** 2)
        bends = [abs(_form(H, exact)) / 2 for H in hessian]
        assert all(bool(b <= arb(float(m))) for b, m in zip(bends, shifts.bends, strict=True))


def _form(matrix, x):
    pairs = ((i, j) for i in range(len(x)) for j in range(len(x)))
    return sum((arb(float(matrix[i, j])) * x[i] * x[j] for i, j in pairs), arb(0))
