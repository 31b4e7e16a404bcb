"""`probability_range` from outside: the truth is contained, at any moment, at the edges, and when stopped."""

from __future__ import annotations

import itertools
import math
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from exact import CHOICES, Case, Exact, falsehoods, refute
from oracle import examples

CASES = st.builds(
    Case,
    **{
        name: st.integers(0, 2**30) if name == "seed" else st.sampled_from(list(values))
        for name, values in CHOICES.items()
    },
)


@settings(max_examples=examples(250))
@given(CASES)
def test_the_answer_cannot_be_refuted(case):
    assert falsehoods(case) == []


def small_model(n=12, d=2, likelihood="probit", seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + offset
    kernel = gc.RBF(0.8, 4.0)
    R = np.linalg.inv(kernel(X) + np.diag(10.0 ** rng.uniform(-1, 1, n)))
    weights = rng.standard_normal(n)
    return gc.Posterior(X, weights, 0.5 * (R + R.T), kernel=kernel, likelihood=likelihood)


HARD = gc.Box([-1.5, -1.5], [1.5, 1.5])


def test_reports_never_loosen_and_the_answer_is_the_last_of_them():
    reports = []
    answer = gc.probability_range(
        small_model(), HARD, tolerance=1e-3, progress=lambda *report: reports.append(report)
    )
    lower, upper, nodes, seconds = (np.array(column) for column in zip(*reports, strict=True))
    for values in (lower, -upper, nodes, seconds):
        assert (np.diff(values) >= 0).all()
    assert answer.lower >= lower[-1]
    assert answer.upper <= upper[-1] + 1e-15
    assert answer.status == "converged"
    assert answer.min.width <= 1e-3
    assert answer.max.width <= 1e-3
    assert len(reports) > 5


@pytest.mark.parametrize(
    ("limit", "status"),
    [
        ({"max_nodes": 0}, "node limit"),
        ({"max_nodes": 3}, "node limit"),
        ({"max_seconds": 0.0}, "time limit"),
        ({"progress": lambda *_: True}, "interrupted"),
    ],
)
def test_a_stopped_search_is_true_and_says_why(limit, status):
    post = small_model()
    answer = gc.probability_range(post, HARD, tolerance=1e-4, **limit)
    assert answer.status == status
    assert refute(post, HARD, answer, np.random.default_rng(0)) == []


def test_ctrl_c_keeps_what_is_known_and_the_rest_is_trivial():
    post = small_model()
    calls = 0

    def interrupt(*_):
        nonlocal calls
        calls += 1
        if calls == 12:
            raise KeyboardInterrupt

    regions = [gc.Box([0.0, 0.0], [0.1, 0.1]), HARD, HARD]
    easy, hard, never = gc.probability_range(post, regions, tolerance=1e-3, progress=interrupt)
    assert easy.status == "converged"
    assert hard.status == never.status == "interrupted"
    assert hard.lower > 0
    assert refute(post, HARD, hard, np.random.default_rng(0)) == []
    assert (never.min.lower, never.min.upper, never.max.lower, never.max.upper) == (0, 1, 0, 1)
    assert never.argmin is None


SLOW = """
import numpy as np, gpcert as gc
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 8))
kernel = gc.RBF(0.7, 9.0)
R = np.linalg.inv(kernel(X) + np.eye(60))
post = gc.Posterior(X, rng.standard_normal(60), 0.5 * (R + R.T), kernel=kernel)
print("ready", flush=True)
answer = gc.probability_range(post, gc.Box(-np.ones(8), np.ones(8)), tolerance=1e-6)
print(answer.status, answer.lower, answer.upper, flush=True)
"""


def test_a_real_signal_ends_a_long_search_with_an_answer():
    process = subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    status, lower, upper = output.split()
    assert (process.returncode, status) == (0, "interrupted")
    assert 0 <= float(lower) <= float(upper) <= 1


def test_batches_answer_in_order_and_repeats_are_identical():
    post = small_model(n=20, d=3)
    rng = np.random.default_rng(1)
    regions = [gc.Ball(rng.standard_normal(3), r, features=[0, 2]) for r in (0.0, 0.05, 0.2, 0.4)] * 2
    together = gc.probability_range(post, regions, label=0)
    again = gc.probability_range(post, regions, label=0)
    for region, one, other in zip(regions, together, again, strict=True):
        alone = gc.probability_range(post, region, label=0)
        assert (one.min, one.max) == (other.min, other.max)
        for a, b in ((one.min, alone.min), (one.max, alone.max)):
            assert abs(a.lower - b.lower) <= 1e-9
            assert abs(a.upper - b.upper) <= 1e-9


def test_nested_regions_and_the_two_labels_agree():
    post = small_model(likelihood="logit")
    answers = gc.probability_range(post, [gc.Ball([0.2, -0.3], r) for r in (0.0, 0.1, 0.3, 0.6, 1.0)])
    for inner, outer in itertools.pairwise(answers):
        assert outer.min.lower <= inner.min.upper
        assert outer.max.upper >= inner.max.lower
    one, other = (gc.probability_range(post, HARD, label=label, tolerance=1e-4) for label in (1, 0))
    assert one.min.lower <= 1 - other.max.lower + 1e-15
    assert one.min.upper >= 1 - other.max.upper - 1e-15


def test_tight_tolerances_end_at_rounding_not_never():
    post = small_model()
    answer = gc.probability_range(post, gc.Ball([0.2, -0.3], 0.05), tolerance=1e-15, max_seconds=60)
    assert answer.status == "numerical limit"
    assert answer.min.width < 1e-9
    assert answer.max.width < 1e-9


# The seven ways in which a referee broke the prototype's floating point (research notes, section 7).


@pytest.mark.parametrize("seed", range(12))
def test_trap_1_a_cubic_that_cancels_is_not_curvature(seed):
    rng = np.random.default_rng(seed)
    d, w = 25, 0.2
    points, weights, height = [], [], 0.0
    for _ in range(int(rng.integers(1, 4))):
        a, p = rng.uniform(0.2, 1.2), rng.uniform(2.0, 12.0)
        height += 4 * p * math.exp(-a * a) * math.sinh(a * w) ** 2
        for x, y, sign in ((1, 1, 1), (-1, -1, 1), (1, -1, -1), (-1, 1, -1)):
            points.append((x * a, y * a))
            weights.append(sign * p)
    points.append((0.0, 0.0))
    weights.append(0.5 * height)
    X = np.zeros((len(points), d))
    X[:, [0, 7]] = points
    post = gc.Posterior(X, weights, np.zeros((len(X), len(X))), kernel=gc.RBF())
    half = np.full(d, 1e-4)
    half[[0, 7]] = w
    region = gc.Box(-half, half)
    answer = gc.probability_range(post, region, max_nodes=40)
    corner = np.zeros(d)
    corner[[0, 7]] = w, -w
    assert Exact(post).at_least(corner, 1, answer.min.lower)


@pytest.mark.parametrize("offset", [1e2, 1e3, 1e5, 1e7])
def test_trap_2_data_far_from_the_origin(offset):
    post = small_model(n=6, d=1, offset=offset, seed=3)
    region = gc.Box([offset - 1.0], [offset + 1.0])
    answer = gc.probability_range(post, region, tolerance=1e-3)
    assert answer.status == "converged"
    assert refute(post, region, answer, np.random.default_rng(0)) == []


def test_trap_3_the_inner_end_is_attained_inside_the_region():
    post = small_model()
    region = gc.Ball([0.1, 0.7], 0.1, scale=[0.3, 3.0], domain=([0.1, -9.0], 9.0))
    answer = gc.probability_range(post, region)
    exact = Exact(post)
    assert region.contains(answer.argmin)
    assert region.contains(answer.argmax)
    assert exact.at_most(answer.argmin, 1, answer.min.upper)
    assert exact.at_least(answer.argmax, 1, answer.max.lower)


def test_trap_4_time_stamps_in_nanoseconds():
    T = 1763193600.0e9
    X = np.array([[T], [T + 2560.0], [T + 4096.0]])
    kernel = gc.RBF(3e3)
    R = np.linalg.inv(kernel(X) + np.eye(3))
    post = gc.Posterior(X, [2.0, -1.0, 1.0], 0.5 * (R + R.T), kernel=kernel)
    region = gc.Box([T - 4096.0], [T + 4096.0])
    answer = gc.probability_range(post, region)
    assert refute(post, region, answer, np.random.default_rng(0)) == []


@pytest.mark.parametrize(
    ("weights", "precision", "variance", "box"),
    [
        ([1e160, -1e160], 0.25, 1.0, (0.3, 0.5)),
        ([1e300, 1e300], 0.25, 1.0, (0.3, 0.5)),
        ([1.0, -1.0], 0.25, 1.0, (-1e3, 1e3)),
        ([1.0, -1.0], 0.25, 1.0, (1e3, 1e3 + 1)),
        ([1.0, -1.0], 0.25, 1e9, (1e3, 1e3 + 1)),
        ([1.0, -1.0], 0.0, 1e12, (-0.1, 0.1)),
        ([1.0, -1.0], 100.0, 1.0, (-0.3, 0.5)),
        ([-1.0, 0.5], 1.5, 1.0, (-0.3, 0.5)),
        ([1.0, -1.0], -10.0, 1.0, (-1.0, 1.0)),
        ([0.0, 0.0], 0.25, 1.0, (-0.5, 0.5)),
        ([1e-170, -1e-170], 0.25, 1.0, (-1e-3, 1e-3)),
        ([1.0, 1.0], 0.25, 1e-6, (-0.1, 0.1)),
        ([100.0, 100.0], 0.25, 1.0, (-0.3, 0.5)),
        ([1.0, -1.0], 0.25, 1.0, (0.3, 0.3 + 1e-16)),
        ([1.0, -1.0], 0.25, 1.0, (0.0, 5e-324)),
    ],
)
@pytest.mark.parametrize("likelihood", ["probit", "logit"])
def test_traps_5_to_7_extremes_give_true_bounds(weights, precision, variance, box, likelihood):
    post = gc.Posterior(
        [[0.0], [1.0]], weights, precision * np.eye(2), kernel=gc.RBF(1.0, variance), likelihood=likelihood
    )
    region = gc.Box([box[0]], [box[1]])
    answer = gc.probability_range(post, region, tolerance=1e-3, max_nodes=200)
    assert refute(post, region, answer, np.random.default_rng(0)) == []


def test_one_sentence_for_what_is_wrong():
    post = small_model()
    region = gc.Ball([0.0, 0.0], 0.1)
    matern = gc.Posterior([[0.0]], [1.0], [[0.1]], kernel=gc.Matern32())
    regression = gc.Posterior([[0.0]], [1.0], [[0.1]], kernel=gc.RBF(), likelihood=None)
    wrong = {
        "region must have 2 features, got 1": lambda: gc.probability_range(post, gc.Box([0.0], [1.0])),
        "label must be a class index, 0 or 1, got 2": lambda: gc.probability_range(post, region, label=2),
        "label must be a class index, 0 or 1, got 'spam'": lambda: gc.probability_range(post, region, "spam"),
        "tolerance must be > 0, got 0.0": lambda: gc.probability_range(post, region, tolerance=0.0),
        "tolerance must be > 0, got nan": lambda: gc.probability_range(post, region, tolerance=math.nan),
        "max_nodes must be >= 0, got -1": lambda: gc.probability_range(post, region, max_nodes=-1),
        "method must be 'auto', got 'fast'": lambda: gc.probability_range(post, region, method="fast"),
        "region must be a Box or a Ball, got float": lambda: gc.probability_range(post, [0.5]),
        "region must have norm inf or be a Box, got norm 2.0": lambda: gc.probability_range(
            post, gc.Ball([0.0, 0.0], 0.1, norm=2)
        ),
        "post must have the RBF kernel": lambda: gc.probability_range(matern, gc.Ball([0.0], 0.1)),
        "post must have a likelihood": lambda: gc.probability_range(regression, gc.Ball([0.0], 0.1)),
    }
    for sentence, call in wrong.items():
        with pytest.raises(gc.InvalidInputError) as error:
            call()
        assert str(error.value).startswith(sentence)
        assert "\n" not in str(error.value)
