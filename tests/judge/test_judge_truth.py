"""The judge is judged: every rule against another formula, identities, and the definition itself."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from flint import arb, ctx
from scipy.integrate import quad
from scipy.special import expit, ndtr

import gpcert as gc
from gpcert.likelihoods import FiveErf, Floored, Link, Logit, OneVsRest, Probit, Softmax
from gpcert.posterior import Posterior
from helpers.oracle import bits
from judge import Truth, above, at_least, at_most, below
from judge.doubles import NDTR, UNIT, nearest
from judge.kernels import covariance
from judge.links import expectation
from judge.logistic import logistic_normal

KERNELS = (
    gc.RBF(0.7, 2.0),
    gc.Matern12(0.5, 1.5),
    gc.Matern32([0.5, 0.9], 1.5),
    gc.Matern52(0.6, 3.0),
    gc.RationalQuadratic(0.7, 2.0, alpha=0.3),
    gc.RBF([0.5, 2.0], 1.0) + gc.Matern32(0.8, 0.5) * gc.RationalQuadratic(1.5, 1.1, alpha=4.0),
)


# What is assumed of the machine.


def test_exp_and_ndtr_are_as_assumed():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-700, 0, 2000), -(10.0 ** rng.uniform(-8, 2, 1000))])
    for v, e in zip(x.tolist(), np.exp(x).tolist(), strict=True):
        assert abs(arb(v).exp() - arb(e)) < arb(8 * UNIT * e + 1e-300)
    z = np.concatenate([rng.uniform(-10, 10, 3000), rng.uniform(-40, 40, 500)])
    for v, p in zip(z.tolist(), ndtr(z).tolist(), strict=True):
        assert abs((-arb(v) / arb(2).sqrt()).erfc() / 2 - arb(p)) < NDTR


# Two classes.


@pytest.mark.parametrize("variance", [1e-6, 0.1, 1.0, 3.9, 4.1, 50.0, 399.0, 401.0, 1e4])
def test_logistic_normal_is_the_integral(variance):
    s = math.sqrt(variance)
    with bits(128):
        for mean in (-30.0, -variance, -0.6 * variance, -2.0, -1e-3, 0.0, 0.7, 25.0):
            p = logistic_normal(arb(mean), arb(variance))
            points = sorted({float(np.clip(-mean / s + c / s, -9, 9)) for c in (-8, 0, 8)})
            value, _ = quad(
                lambda z, m=mean: expit(m + s * z) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi),
                -12,
                12,
                points=points,
                limit=500,
                epsabs=1e-13,
            )
            assert p.rel_accuracy_bits() > 60
            assert abs(p - arb(value)) < 1e-10
            assert abs(p + logistic_normal(-arb(mean), arb(variance)) - 1) < 1e-30
            shifted = (arb(mean) + arb(variance) / 2).exp() * logistic_normal(
                -arb(mean) - arb(variance), arb(variance)
            )
            assert abs(shifted / p - 1) < 1e-15  # sigma(f) = e^f sigma(-f): relatively, in the tails too


def test_logistic_normal_covers_its_balls():
    rng = np.random.default_rng(1)
    with bits(128):
        for _ in range(20):
            mean, variance = arb(rng.normal() * 3, rng.random()), arb(2 * rng.random(), rng.random())
            p = logistic_normal(mean, variance)
            for a, b in itertools.product((-1, 0.3, 1), repeat=2):
                m, v = mean.mid() + a * mean.rad(), (variance.mid() + b * variance.rad()).max(arb(0))
                value = logistic_normal(m.mid(), v.mid())
                assert p.lower() <= value.upper() + 1e-9
                assert value.lower() - 1e-9 <= p.upper()
        for m, v in itertools.product((-1e300, -1e8, 0.0, 1e150, 1e300), (0.0, 1e-300, 1.0, 1e300)):
            p = logistic_normal(arb(m), arb(v))
            assert p.is_finite()
            assert p > -1e-9
            assert p < 1 + 1e-9
            assert p.rad() < 1e-20


LINKS = (
    Probit(),
    Probit(0.3),
    Logit(),
    FiveErf(),
    Floored(Probit(), 0.01),
    Floored(Logit(), 0.2),
    Link(expit, lambda a, b: (expit(a) * (1 - 1e-15), expit(b) * (1 + 1e-15)), "logistic"),
    Link(lambda f: 1.0 * (f > 0.3), lambda a, b: (1.0 * (a > 0.3), 1.0 * (b > 0.3)), "step"),
)


@pytest.mark.parametrize("link", LINKS, ids=repr)
def test_links_against_the_predictor(link):
    rng = np.random.default_rng(2)
    loose = 1.1e-5 if isinstance(link, Link) else 1e-10
    with bits(128):
        for m, v in [*(rng.normal(size=(6, 2)) ** 2 * [2, 4] - [2, 0]), (0.4, 0.0), (-3.0, 1e6), (1e4, 1.0)]:
            p = [expectation(link, arb(m), arb(v), label) for label in (0, 1)]
            assert abs(p[1] - arb(float(link.expectation(m, v)))) < loose + 1e-5 * isinstance(link, Link)
            assert (p[0] + p[1]).overlaps(arb(1))
            wide = expectation(link, arb(m, 0.1), arb(v, 0.1 * v), 1)
            assert wide.lower() <= p[1].upper()
            assert p[1].lower() <= wide.upper()


# Posteriors.


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_and_latents_against_the_predictor(kernel):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((6, 2))
    R = np.linalg.inv(kernel(X) + np.eye(6))
    post = Posterior(X, rng.standard_normal(6), 0.5 * (R + R.T), kernel=kernel, mean=0.3)
    truth = Truth(post)
    for x in [*rng.standard_normal((4, 2)), X[0]]:
        mean, variance = post.latent(x[None])
        assert abs(truth.mean(x) - arb(float(mean[0]))) < 1e-9
        assert abs(truth.variance(x) - arb(float(variance[0]))) < 1e-9
        wide = [arb(x[0], 0.05), arb(x[1])]
        for t in np.linspace(-0.05, 0.05, 7):
            at = [x[0] + t, x[1]]
            for f in (truth.mean, truth.variance, lambda z: truth.probability(z, 1)):
                assert f(wide).overlaps(f(at))
        assert truth.mean(wide).rad() < 2.0


def test_kernels_at_extreme_parameters():
    for kernel in (
        gc.RationalQuadratic(1.0, 1.0, alpha=1e-300),
        gc.RationalQuadratic(1.0, 1.0, alpha=1e300),
        gc.RBF(1e-300, 1e300),
        gc.Matern52(1e300, 1e-300),
    ):
        with bits(128):
            k = covariance(kernel, [arb(0.5), arb(-2.0)])
            assert k.is_finite()
            assert k <= arb(kernel.prior_variance) * (1 + arb(2) ** -60)
    with bits(128):
        k = covariance(gc.RationalQuadratic(1.0, 1.0, alpha=1e300), [arb(1.0)])
        assert abs(k - (-arb(0.5)).exp()) < 1e-30


def several(likelihood, correlated=False, C=3, kernels=None):
    rng = np.random.default_rng(6)
    n, kernel = 5, gc.RBF(1.0, 2.0)
    X = rng.standard_normal((n, 2))
    parts = kernels or [kernel] * C
    R = np.stack([np.linalg.inv(k(X) + np.diag(rng.uniform(0.3, 2, n))) for k in parts])
    R = 0.5 * (R + R.transpose(0, 2, 1))
    if correlated:
        mix = np.linalg.qr(rng.standard_normal((C, C)))[0]
        R = 0.5 * np.einsum("ca,ea,aij->ceij", mix, mix, R)
    mean = rng.normal(size=C)
    return Posterior(
        X, rng.standard_normal((n, C)), R, kernel=kernels or kernel, likelihood=likelihood, mean=mean
    )


MODELS = (
    *(several(OneVsRest(link)) for link in (Probit(), Logit(), FiveErf())),
    several(Softmax()),
    several(Softmax(), C=2),
    several(Softmax(), C=6),
    several(Softmax(), kernels=[gc.RBF(1.0, 2.0), gc.Matern32(0.7), gc.RBF(2.0, 0.5)]),
    several(Softmax(), correlated=True),
    several(Softmax(), correlated=True, C=2),
    several(Softmax(), correlated=True, C=4),
)


@pytest.mark.parametrize("post", MODELS, ids=repr)
def test_several_classes_against_the_predictor(post):
    truth = Truth(post)
    with bits(128):
        for x in np.random.default_rng(7).standard_normal((3, 2)):
            q = post.probability(x[None])[0]
            slack = 2e-5 if post.precision.ndim == 4 and post.n_classes > 3 else 1e-6
            for c, value in enumerate(truth.probabilities(x)):
                assert abs(value - arb(float(q[c]))) < slack
                assert truth.probability(x, c).overlaps(value)
            margin = q[0] - (0.5 if len(q) == 2 else q[1:].max())
            assert abs(truth.margin(x, 0) - arb(float(margin))) < 2 * slack
            mean, cov = post.latent(x[None])
            for c, row in enumerate(truth.covariance(x)):
                assert abs(truth.mean(x, c) - arb(float(mean[0, c]))) < 1e-9
                assert abs(truth.clipped(x, c) - arb(float(cov[0, c, c]))) < 1e-9
                assert all(abs(v - arb(float(w))) < 1e-9 for v, w in zip(row, cov[0, c], strict=True))


# Decisions.


def test_decisions_are_positive():
    third = lambda: arb(1) / 3  # noqa: E731
    assert at_least(third, 0.333) is True
    assert at_least(third, 0.334) is False
    assert at_most(third, 0.333) is False
    assert above(third, arb(1) / 3) is None  # equal, and no precision can tell
    assert below(lambda: arb(0.5), 0.5) is False
    assert at_least(lambda: arb(0.5), 0.5) is True
    assert at_least(lambda: arb(0).union(arb(1)), 0.5) is None
    assert at_least(lambda: 1 / arb(0), 0.5) is None
    before = ctx.prec
    at_least(third, 0.333)
    assert ctx.prec == before
    middle, error = nearest(arb(1) / 3)
    assert error < 1e-16
    assert middle == 1 / 3
