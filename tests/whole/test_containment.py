"""No random query, however it is stopped, ever answers with a false bound; judged in ball arithmetic.

The run of every question is `python scripts/soak.py`; GPCERT_SOAK multiplies the counts here.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.kernels import RBF
from gpcert.likelihoods import Logit, Probit
from gpcert.posterior import Posterior
from gpcert.questions.ranges import probability_range
from gpcert.regions import Box
from gpcert.results import Enclosure
from gpcert.settings import Settings
from helpers.exact import CHOICES, Case, ask, falsehoods, random_posterior, random_region, refute
from helpers.oracle import examples
from judge import Truth

DEFINITE = [kind for kind in CHOICES["precision"] if kind != "indefinite"]


def cases(**fixed):
    """Random cases, some of their fields drawn from fewer values."""
    choices = CHOICES | {name: (value,) if isinstance(value, str) else value for name, value in fixed.items()}
    return st.builds(Case, **{name: st.sampled_from(values) for name, values in choices.items()})


@settings(max_examples=examples(150))
@given(cases(precision=DEFINITE))
def test_bounds_hold_for_semidefinite_precisions(case):
    assert falsehoods(case) == []


@settings(max_examples=examples(40))
@given(cases(precision="indefinite"))
def test_bounds_hold_for_indefinite_precisions(case):
    assert falsehoods(case) == []


@settings(max_examples=examples(40))
@given(cases(precision=DEFINITE, shape=("point", "thin"), tolerance=(1e-9, 1e-15), n=(1, 2, 3), d=(1, 2, 3)))
def test_bounds_hold_where_little_moves(case):
    assert falsehoods(case) == []


@settings(max_examples=examples(20))
@given(cases(precision=DEFINITE, n=(30, 80), d=(25, 30, 60), width=(0.1, 0.5, 1.0), tolerance=(0.02, 1e-3)))
def test_bounds_hold_with_many_moving_features(case):
    assert falsehoods(case) == []


@pytest.mark.parametrize("seed", range(examples(200)))
def test_bounds_hold_with_many_local_minima(seed):
    """One feature, several valleys, P < 1/2: the first local search often errs; every stop must be true."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    X = rng.uniform(-3, 3, (n, 1))
    variance = 10.0 ** rng.uniform(0, 3)
    kernel = RBF(1.0, variance)
    R = np.linalg.inv(kernel(X) + np.eye(n) * variance * 10.0 ** rng.uniform(-6, -1))
    weights = rng.standard_normal(n) * 10.0 ** rng.uniform(-2, 1) / variance**0.5
    mean = -(10.0 ** rng.uniform(-1, 1)) * variance**0.5 * 0.3
    post = Posterior(
        X, weights, 0.5 * (R + R.T), kernel=kernel, mean=mean, likelihood=(Probit(), Logit())[seed % 2]
    )
    lower = rng.uniform(-3, 3, 1)
    region = Box(lower, lower + 10.0 ** rng.uniform(-1, 0.5))
    line = np.linspace(region.lower, region.upper, 1001)
    p = post.probability(line)[:, 1]
    for nodes in (1, 3, 7, 20):
        answer = probability_range(post, region, tolerance=1e-4, max_nodes=nodes)
        if answer.lower > p.min() or answer.upper < p.max():  # suspected: let ball arithmetic decide
            exact = Truth(post)
            assert exact.at_least(line[p.argmin()], 1, answer.lower), (nodes, answer, p.min())
            assert exact.at_most(line[p.argmax()], 1, answer.upper), (nodes, answer, p.max())


SIMPLE = Case(
    n=5,
    d=2,
    link="probit",
    precision="laplace",
    layout="normal",
    shape="box",
    place="data",
    width=0.5,
    label=1,
    tolerance=0.02,
    stop="nodes",
    seed=1,
)


@pytest.mark.parametrize("link", CHOICES["link"])
@pytest.mark.parametrize("label", [0, 1])
def test_the_judge_agrees_with_the_predictor(link, label):
    case = replace(SIMPLE, link=link, label=label, n=30, d=5)
    rng = np.random.default_rng(case.seed)
    post = random_posterior(case, rng)
    for x in post.centres[:10] * 1.1:
        p = float(post.probability([x])[0, label])
        assert Truth(post).at_least(x, label, p - 1e-9)
        assert Truth(post).at_most(x, label, p + 1e-9)
        assert Truth(post).at_least(x, label, p + 1e-9) is False
        assert Truth(post).at_most(x, label, p - 1e-9) is False


@pytest.mark.parametrize("link", CHOICES["link"])
@pytest.mark.parametrize("label", [0, 1])
def test_the_judge_refutes_false_answers(link, label):
    """Each end moved inward by 1e-6, or a witness moved outside, is noticed."""
    case = replace(SIMPLE, link=link, label=label, tolerance=1e-9)
    rng = np.random.default_rng(case.seed)
    post = random_posterior(case, rng)
    region = random_region(case, post, rng)
    answer = ask(case, post, region, rng)
    assert refute(post, region, answer, rng) == []
    low, high = answer.min, answer.max
    step = 1e-6
    false = [
        replace(answer, min=Enclosure(low.upper + step, low.upper + step)),
        replace(answer, max=Enclosure(high.lower - step, high.lower - step)),
        replace(answer, min=Enclosure(low.lower, low.upper - step)),
        replace(answer, max=Enclosure(high.lower + step, high.upper)),
        replace(answer, argmin=answer.argmin + 10.0),
        replace(answer, about=replace(answer.about, settings=Settings(1e-300))),
    ]
    for wrong in false:
        assert refute(post, region, wrong, rng) != []
