"""Classes of one-vs-rest compared at the same point (V9'), and what it rests on."""

from __future__ import annotations

import random
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from flint import acb, arb, fmpq

import joint_parts
from fuzz import LOGIT
from gpcert_check import joint
from gpcert_check.balls import read_region
from gpcert_check.claims import Claim
from gpcert_check.joint import prove_jointly, weights
from gpcert_check.logit import SLOPE, mean_of
from gpcert_check.model import Latent
from gpcert_check.planes import Probit
from gpcert_check.reading import Reject
from joint_cases import joint_complaints
from making import box, hexed
from truth import needed_mean

PARTS = [
    (joint_parts.sum_complaints, 400),
    (joint_parts.least_complaints, 200),
    (joint_parts.rate_complaints, 80),
    (joint_parts.spread_complaints, 300),
    (joint_complaints, 20),
]


@pytest.mark.parametrize(("complaints", "seeds"), PARTS, ids=lambda each: getattr(each, "__name__", ""))
def test_no_bound_of_classes_lies_beyond_what_it_bounds(complaints: Any, seeds: int) -> None:
    assert next((c for seed in range(seeds) for c in complaints(seed)), None) is None


def _order(
    t: float, other: float, value: float, mean: float, away: float, own: float | None = None, more: Any = None
) -> bool:
    """Two classes of constant means `mean` and 0.4 on [0, away]: whether the first is ahead by `value`;
    `own`: what the leaf says that it proves; `more`: hints of every class.
    """
    kernel = {"type": "rbf", "lengthscale": (1.0).hex(), "variance": (4.0).hex()}
    latents = [Latent([[0.0]], kernel, [0.0], [0.125], m) for m in (mean, 0.4)]
    for latent in latents:
        latent.verify([0.25])  # K + 1/W = 8
    several = SimpleNamespace(
        latents=latents, classes=2, link=Probit({"name": "probit", "scale": (1.0).hex()})
    )
    region = read_region(box([0.0], [away]), 1)
    hint = {"D": hexed([0.0]), "y": hexed([0.0])}
    parts = [{"t": x.hex()} | ({"tau": (0.0).hex()} if x > 0 else {}) for x in (t, other)]
    data = {
        "ref": hexed([0.0]),
        "classes": [part | (more or {}) for part in parts],
        "programmes": [hint, hint],
    }
    value_told = {} if own is None else {"value": own.hex()}
    leaf = ([Fraction(0)], [Fraction(away)], {"joint": [data], **value_told})
    try:
        prove_jointly(several, region, Claim("margin", 0, 1, False, value), [leaf])
    except Reject:
        return False
    return True


def test_an_order_needs_both_ends_one_t_and_a_margin_of_at_most_0() -> None:
    """V9' (c): of constant means and equal variances the larger one is ahead, but not by any margin."""
    assert _order(0.0, 0.0, 0.0, 0.5, 0.01)
    assert _order(0.0, -0.0, -0.1, 0.5, 0.01)
    assert not _order(0.0, 0.0, 0.0, 0.3, 0.01)
    assert not _order(-0.1, -0.1, 0.0, 0.3, 0.01)  # two levels that say nothing of each other
    assert not _order(0.0, 0.0, 0.05, 0.5, 0.01)  # true is about 0.03
    assert not _order(0.0, 0.0, 0.0, 0.45, 0.8)  # A_c/A_j may be larger than 0.45/0.4, for all that is known


@pytest.mark.full
def test_no_sum_of_classes_lies_below_its_quadratic_with_more_seeds() -> None:
    assert [c for seed in range(1_000, 1_200) for c in joint_complaints(seed)] == []


def test_a_leaf_may_prove_more_than_is_claimed_and_never_less() -> None:
    assert _order(0.0, 0.0, -0.1, 0.5, 0.01, own=0.0)
    assert not _order(0.0, 0.0, 0.05, 0.5, 0.01, own=0.0)  # true is about 0.03


def test_forms_of_classes_count_as_work(monkeypatch: pytest.MonkeyPatch) -> None:
    spent: list[int] = []
    monkeypatch.setattr(joint, "spend", spent.append)
    assert _order(0.0, 0.0, 0.0, 0.5, 0.01)
    assert not _order(
        0.0, 0.0, 0.0, 0.5, 0.01, more={"forms": {"own": True}}
    )  # of which nothing else is told
    assert spent[0] < spent[1]


def test_a_claim_is_a_weighted_sum() -> None:
    """In rationals: the sum of weights times p_j is >= 0 exactly where the claim holds."""
    rng = random.Random(1)
    for _ in range(200):
        C = rng.randint(2, 4)
        p = [Fraction(rng.randint(1, 50), 64) for _ in range(C)]
        label, rival = rng.sample(range(C), 2)
        margin, sense = rng.random() < 0.5, rng.choice([1, -1])
        value = rng.randint(-64, 64) / 64
        found = weights(Claim("", label, sense, False, value), rival if margin else None, C)
        total = sum(
            (w * arb(fmpq(a.numerator, a.denominator)) for w, a in zip(found, p, strict=True)), arb(0)
        )
        true = p[label] / sum(p) - (p[rival] / sum(p) if margin else 0)
        assert (total >= 0) == (sense * (true - Fraction(value)) >= 0)


def test_the_constants_of_the_logistic() -> None:
    """|sigma''| <= 1/(6 sqrt 3), |sigma'''| <= 1/8, in balls over short intervals; the first is attained."""
    e = arb(2) + arb(3).sqrt()  # sigma'' is largest in size where e^u = 2 + sqrt 3
    sigma = 1 / (1 + 1 / e)
    assert abs(abs(sigma * (1 - sigma) * (1 - 2 * sigma)) - joint._STEEPEST) < arb(10) ** -25
    for i in range(-400, 400):
        u = arb(i, 1) / 20 + arb(1) / 40
        s = 1 / (1 + (-u).exp())
        assert s * (1 - s) * (1 - 6 * s * (1 - s)) >= arb(-1) / 8 - arb(3) / 100
        third = s * (1 - s) * (1 - 6 * s * (1 - s))
        assert third <= arb(1) / 8 + arb(3) / 100


@pytest.mark.parametrize("p", [0.03, 0.3, 0.5, 0.8, 0.999])
def test_the_rate_of_a_logistic_level_changes_slowly(p: float) -> None:
    """V9' (b): along the level's curve E sigma' moves by at most _CHANGE for each unit of the variance."""
    spots = [0.0, 0.05, 0.3, 1.0, 4.0]
    means = [needed_mean(LOGIT, p, S) for S in spots]
    rates = [mean_of(SLOPE, arb(m), arb(S)) for m, S in zip(means, spots, strict=True)]
    for i in range(len(spots)):
        for j in range(i):
            step = spots[i] - spots[j]
            assert abs(rates[i] - rates[j]) <= joint._CHANGE * step + 1e-7
            assert abs(means[i] - means[j]) <= step / 2 + 1e-7


def test_a_rate_that_is_none_is_refused() -> None:
    """V9' (b): the ends must enclose the level's curve, in this order."""
    kernel = {"type": "rbf", "lengthscale": (1.0).hex(), "variance": (1.0).hex()}
    latent = Latent([[0.0]], kernel, [0.0], [0.5], 0.0)
    latent.verify([1.0])
    one = joint_parts._class(random.Random(1), 1, [1.0], SimpleNamespace(p=0.7), latent)
    m = needed_mean(LOGIT, 0.7, 0.5)
    one.point.leaf["rate"] = hexed([0.5, m - 1e-6, m + 1e-6])
    assert one.rate().slope > 0
    for wrong in ([0.5, m - 0.4, m - 0.3], [0.5, m + 0.3, m + 0.4], [0.5, m + 0.1, m - 0.1], [-0.5, m, m]):
        one.point.leaf["rate"] = hexed(wrong)
        with pytest.raises(Reject, match="V9'"):
            one.rate()


def test_where_the_normal_density_is_steepest() -> None:
    """At least z density(z), at points of all kinds of intervals, and attained."""
    for low, high in ((-3, -1), (-1, 0), (-1, 0.5), (0.2, 0.9), (0.5, 2), (1.5, 3), (-4, 4)):
        steepest = joint._steepest(arb(low), arb(high))
        values = []
        for i in range(101):
            z = low + (arb(high) - low) * i / 100
            values.append(z * (-z * z / 2).exp() / (2 * arb.pi()).sqrt())
        assert all(value <= steepest + arb(10) ** -25 for value in values)
        assert any(steepest <= value.max(arb(0)) + 1e-3 for value in values)


def test_the_density_is_that_of_the_normal_law() -> None:
    whole = acb.integral(lambda z, _: (-z * z / 2).exp() / (2 * acb.pi()).sqrt(), -12, 12)
    assert abs(whole.real - 1) < 1e-20
    assert joint._density(arb(0)).overlaps(1 / (2 * arb.pi()).sqrt())
