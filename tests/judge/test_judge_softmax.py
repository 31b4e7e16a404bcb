"""The judge of softmax: every rule against another formula, and identities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import acb, arb

from gpcert.likelihoods import Softmax
from helpers.oracle import bits
from judge.gumbel import _stieltjes, independent
from judge.logistic import logistic_normal
from judge.mixture import mixture, split
from judge.softmax import factor, softmax


def balls(values):
    return [arb(float(v)) for v in values]


def random_covariance(rng, C, size):
    A = rng.standard_normal((C, C)) * size
    return A @ A.T / C


def judged(mean, cov, correlated=True):
    with bits(128):
        return softmax(balls(mean), [balls(row) for row in cov], correlated)


def gauss_hermite(mean, cov, nodes=60):
    """E softmax by a tensor rule of Gauss: another formula, right to rounding for moderate covariances."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    values, vectors = np.linalg.eigh(cov - cov[:, -1:] - cov[-1:] + cov[-1, -1])  # the last latent is 0
    B = vectors[:, 1:] * np.sqrt(np.maximum(values[1:], 0.0))
    Z = np.stack(np.meshgrid(*[z] * B.shape[1], indexing="ij")).reshape(B.shape[1], -1)
    W = math.prod(np.meshgrid(*[w / w.sum()] * B.shape[1], indexing="ij")).ravel()
    f = (mean - mean[-1])[:, None] + B @ Z
    e = np.exp(f - f.max(axis=0))
    return (e / e.sum(axis=0)) @ W


@pytest.mark.parametrize(("C", "size"), [(3, 0.05), (3, 1.0), (3, 3.0), (4, 0.3), (4, 1.5)])
def test_tensor_rule_against_gauss_hermite(C, size):
    rng = np.random.default_rng(C)
    for _ in range(2):
        mean, cov = rng.normal(size=C), random_covariance(rng, C, size)
        p = judged(mean, cov)
        assert max(v.rad() for v in p) < (1e-10 if C == 3 else 1e-8)
        q = gauss_hermite(mean, cov, 120 if C == 3 else 60)
        for value, other in zip(p, q.tolist(), strict=True):
            assert abs(value - arb(other)) < (1e-5 if size > 1 else 1e-9)


def test_three_classes_against_nested_integrals():
    """acb.integral inside acb.integral: rigorous, and nothing in common with the tensor rule."""
    mean, B = [0.3, -0.7, 0.0], [[1.1, 0.0], [-0.4, 0.8], [0.0, 0.0]]
    cov = np.array(B) @ np.array(B).T

    def options(accuracy):
        return {"abs_tol": arb(2) ** -accuracy, "rel_tol": arb(2) ** -accuracy, "eval_limit": 2000}

    def outer(z, _):
        def inner(w, _):
            f = [m + a * z + b * w for m, (a, b) in zip(mean, B, strict=True)]
            return (-w * w / 2).exp() / sum(((v - f[0]).exp() for v in f), acb(0))

        return (-z * z / 2).exp() * acb.integral(inner, -5, 5, **options(24))

    with bits(48):
        value = acb.integral(outer, -5, 5, **options(20)).real / (2 * arb.pi())
        cut = 2 * (5 / arb(2).sqrt()).erfc()
    assert value.rad() < 1e-5
    assert judged(mean, cov)[0].overlaps(value + arb(0, 1) * cut)


@pytest.mark.parametrize("C", [3, 4, 5, 9])
def test_independent_latents_two_ways(C):
    rng = np.random.default_rng(C)
    for size in (0.1, 2.0):
        mean, variance = rng.normal(size=C), size * rng.random(C)
        p = judged(mean, np.diag(variance), correlated=False)
        assert max(v.rad() for v in p) < 1e-10
        assert sum(p).overlaps(arb(1))
        if C < 6:
            for a, b in zip(p, judged(mean, np.diag(variance)), strict=True):
                assert a.overlaps(b)
                assert b.rad() < 1e-7
        q, error = _stieltjes(mean, np.sqrt(variance))
        assert (np.abs(q - [float(v.mid()) for v in p]) <= error + 1e-9).all()
        assert error < 2e-3


def test_scales_that_differ_give_true_balls():
    for variance in ([1e-20, 1e10, 1.0], [1e200, 1.0, 1e-5], [0.0, 0.0, 1e6], [1e30, 1e30, 1e30]):
        p, error = independent([0.0, 1.0, -1.0], variance)
        assert error < 5e-3
        assert abs(p.sum() - 1.0) <= 3 * error
    p, _ = independent([0.0, 0.0, 0.0], [1e30, 1e30, 1e30])
    assert np.abs(p - 1 / 3).max() < 1e-9


@pytest.mark.parametrize("C", [3, 4, 6, 10, 12])
def test_correlated_classes_sum_to_one_permute_and_shift(C):
    rng = np.random.default_rng(C)
    mean, cov = rng.normal(size=C), random_covariance(rng, C, 0.2) + np.diag(0.2 * rng.random(C))
    p = judged(mean, cov)
    assert sum(p).overlaps(arb(1))
    order = rng.permutation(C)
    for a, b in zip(judged(mean[order], cov[np.ix_(order, order)]), order, strict=True):
        assert a.overlaps(p[b])
    common = cov + 0.5  # the same shift of all latents
    for a, b in zip(judged(mean + 3.0, common), p, strict=True):
        assert a.overlaps(b)
    q = Softmax().expectation(mean[None], cov[None])[0]
    error = Softmax().expectation_error(mean[None], cov[None])[0]
    for value, other, slack in zip(p, q.tolist(), error.tolist(), strict=True):
        assert value.overlaps(arb(other, slack))


@pytest.mark.parametrize(("C", "size"), [(3, 1.0), (4, 0.4), (4, 2.0), (5, 1.0)])
def test_mixture_against_the_tensor_rule(C, size):
    rng = np.random.default_rng(C)
    mean, cov = rng.normal(size=C), random_covariance(rng, C, size) + np.diag(0.3 * size * rng.random(C))
    d = split(cov)
    assert (d > 0).all()
    with bits(128):
        B, defect = factor([balls(row) for row in cov], d)
        p, error = mixture(mean, d, B)
    assert error + defect < 5e-3
    for value, other in zip(p.tolist(), judged(mean, cov), strict=True):
        assert other.rad() < 1e-6
        assert abs(other - arb(value)) < error + defect + 1e-6


def test_many_means_are_interpolated():
    mean = np.random.default_rng(8).normal(size=(25, 4)) * 3
    for variance in ([0.01, 0.5, 3.0, 30.0], [20.0, 50.0, 9.0, 1e4], [0.0, 1e-8, 1.0, 1.0]):
        p, error = independent(mean, variance)
        assert error < 1e-5
        for row, m in zip(p, mean, strict=True):
            q, other = independent(m, variance)
            assert (np.abs(row - q) <= error + other).all()


def test_two_classes_are_the_logit_of_the_difference():
    rng = np.random.default_rng(3)
    mean, cov = rng.normal(size=2), random_covariance(rng, 2, 2.0)
    with bits(128):
        variance = arb(cov[0, 0]) + arb(cov[1, 1]) - 2 * arb(cov[0, 1])
        expected = logistic_normal(arb(mean[1]) - arb(mean[0]), variance)
    assert judged(mean, cov)[1].overlaps(expected)
    assert judged(mean, cov)[1].rad() < 1e-30


def test_covariances_that_are_none_are_raised_by_the_least_multiple_of_the_identity():
    """M4 of the mathematics: clip the diagonal, then raise until differences have a covariance."""
    cov = np.array([[1.0, 1.4, 0.2], [1.4, 1.0, -0.1], [0.2, -0.1, -0.05]])
    mean = np.array([0.4, 0.0, -0.3])
    clipped = cov + np.diag([0.0, 0.0, 0.05])
    basis = np.linalg.qr(np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]]))[0]
    lowest = np.linalg.eigvalsh(basis.T @ clipped @ basis)[0]
    assert lowest < -0.1
    q = gauss_hermite(mean, clipped - lowest * np.eye(3), 120)
    for value, other in zip(judged(mean, cov), q.tolist(), strict=True):
        assert abs(value - arb(other)) < 1e-9


def test_an_improbable_class_still_raises_the_others():
    """delta is that of all classes: here only differences from the last, improbable one have no variance."""
    cov = np.array([[1.0, 0.3, 0.0, 2.0], [0.3, 1.0, 0.1, 0.0], [0.0, 0.1, 1.0, 0.0], [2.0, 0.0, 0.0, 1.0]])
    mean = np.array([0.4, 0.0, -0.3, -900.0])
    basis = np.linalg.qr(np.eye(4)[:, :3] - 0.25)[0]
    lowest = np.linalg.eigvalsh(basis.T @ cov @ basis)[0]
    assert lowest < -0.5
    q = gauss_hermite(mean[:3], cov[:3, :3] - lowest * np.eye(3), 120)
    p = judged(mean, cov)
    for value, other in zip(p, q.tolist(), strict=False):
        assert abs(value - arb(other)) < 1e-9
    two = judged(mean[[0, 3]], cov[np.ix_([0, 3], [0, 3])])
    assert two[0].overlaps(arb(1))


def test_improbable_and_enormous_classes():
    for mean in ([0.0, 1e5, -1e300, 1e5], [1e300, -1e300, 0.0, 5.0]):
        p = judged(mean, np.eye(4))
        assert sum(p).overlaps(arb(1))
        assert max(v.rad() for v in p) < 1e-9
    p = judged([0.0, 1.0, 2.0], 1e200 * random_covariance(np.random.default_rng(0), 3, 1.0))
    assert all(v.overlaps(arb(0.5, 0.5)) for v in p)


def test_balls_of_means_and_covariances_are_covered():
    rng = np.random.default_rng(4)
    mean, cov = rng.normal(size=3), random_covariance(rng, 3, 1.0) + 0.5 * np.eye(3)
    for correlated, S in ((True, cov), (False, np.diag(np.diag(cov)))):
        with bits(128):
            off = [[arb(v, 0.01 if v else 0.0) for v in row] for row in S.tolist()]
            wide = softmax([arb(v, 0.02) for v in mean.tolist()], off, correlated)
        for _ in range(20):
            E = np.triu(rng.uniform(-0.01, 0.01, (3, 3)) * (S != 0))
            moved = judged(mean + rng.uniform(-0.02, 0.02, 3), S + E + np.triu(E, 1).T, correlated)
            for a, b in zip(wide, moved, strict=True):
                assert a.lower() <= b.lower()
                assert b.upper() <= a.upper()
