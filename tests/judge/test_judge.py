"""The judge itself: it finds nothing in true answers, and something in every answer with one number moved."""

from __future__ import annotations

import inspect
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import gpcert as gc
from gpcert import results
from gpcert.claims import Everywhere, Quantity
from gpcert.kernels import Kernel
from gpcert.results import Enclosure, VerdictStatus
from gpcert.settings import Settings
from helpers.exact import small_model
from helpers.oracle import examples
from judge.answers import came_back, inconsistencies
from judge.models import TWO, Model
from judge.queries import NOT_DRAWN, OPTIONS, Query
from judge.refute import Judge, complaints

STEP = 1e-4
X0 = np.array([0.3, -0.2])
BALL = gc.Ball(X0, 0.4, 2.0)
WIDE = gc.Ball(X0, 2.5, 2.0)


def found(post, answer):
    """What the judge has against an answer, for certain."""
    return complaints(post, [answer], np.random.default_rng(0))


def moved(e, lower=0.0, upper=0.0):
    return Enclosure(e.lower + lower, e.upper + upper)


def narrow(e):
    """An enclosure above the truth."""
    return Enclosure(e.upper + STEP, e.upper + STEP)


def wide(e):
    """An enclosure below the truth."""
    return Enclosure(e.lower - STEP, e.lower - STEP)


def ranges(post):
    r = gc.probability_range(post, BALL, tolerance=1e-7)
    yield (
        r,
        {
            "min.lower": replace(r, min=narrow(r.min)),
            "max.upper": replace(r, max=wide(r.max)),
            "min.upper": replace(r, min=moved(r.min, -1.0, -STEP)),
            "max.lower": replace(r, max=moved(r.max, STEP, 1.0)),
            "argmin": replace(r, argmin=r.argmin + 1.0),
            "argmax": replace(r, argmax=r.argmin),
            "label": replace(r, label=1 - r.label),
            "region": replace(r, region=WIDE),
            "tolerance": replace(r, about=replace(r.about, settings=Settings(1e-300))),
        },
    )


def latent_ranges(post):
    r = gc.latent_range(post, BALL, tolerance=1e-6)
    for name in ("mean", "variance"):
        e = getattr(r, name)
        yield (
            r,
            {
                "min.lower": replace(r, **{name: replace(e, min=narrow(e.min))}),
                "max.upper": replace(r, **{name: replace(e, max=wide(e.max))}),
                "min.upper": replace(r, **{name: replace(e, min=moved(e.min, -1.0, -STEP))}),
                "argmax": replace(r, **{name: replace(e, argmax=e.argmin)}),
                "tolerance": replace(r, about=replace(r.about, settings=Settings(1e-300))),
            },
        )


def verdicts(post):
    safe, unsafe = gc.certify(post, X0, gc.Ball(X0, 0.01)), gc.certify(post, X0, WIDE)
    assert (safe.status, unsafe.status) == ("safe", "unsafe")
    yield (
        safe,
        {
            "region": replace(safe, region=WIDE),
            "label": replace(safe, label=1 - safe.label),
            "threshold": replace(safe, threshold=0.999),
            "margin.lower": replace(safe, margin=Enclosure(0.999, 0.999)),
            "unsafe": replace(safe, status=VerdictStatus.UNSAFE),
        },
    )
    yield (
        unsafe,
        {
            "safe": replace(
                unsafe, status=VerdictStatus.SAFE, counterexample=None, margin=Enclosure(0.0, 0.4)
            ),
            "counterexample": replace(unsafe, counterexample=X0),
            "counterexample outside": replace(unsafe, region=gc.Ball(X0, 0.01)),
            "margin.upper": replace(unsafe, margin=Enclosure(-0.9, -0.9)),
            "margin.lower": replace(unsafe, margin=Enclosure(0.0, 0.1)),
            "no counterexample": replace(unsafe, counterexample=None),
        },
    )


def radii(post):
    r = gc.certified_radius(post, X0, 2.0, max_radius=3.0)
    assert 0 < r.safe < r.unsafe < np.inf
    yield (
        r,
        {
            "safe": replace(r, safe=1.05 * r.unsafe, unsafe=1.1 * r.unsafe),
            "unsafe": replace(r, unsafe=0.99 * r.unsafe),
            "counterexample": replace(r, counterexample=X0),
            "no counterexample": replace(r, counterexample=None),
            "label": replace(r, label=1 - r.label),
            "order": replace(r, safe=r.unsafe),
            "centre": replace(r, ball=gc.Ball(X0 + 0.3, 0.0, 2.0)),
            "norm": replace(r, ball=gc.Ball(X0, 0.0), safe=1.2 * r.safe, unsafe=np.inf, counterexample=None),
        },
    )


def robustnesses(post):
    for x in (None, X0):
        r = gc.robustness(post, BALL, 1, x, tolerance=1e-6)
        yield (
            r,
            {
                "lower": replace(r, lower=r.upper + STEP, upper=r.upper + STEP),
                "upper": replace(r, lower=0.0, upper=r.lower - STEP),
                "order": replace(r, lower=r.upper, upper=r.lower - 1e-9),
            },
        )


def explanations(post):
    e = gc.explain(post, [X0, X0 + 0.5], 0.3, tolerance=1e-6)
    for each in (e, e.mean()):
        yield (
            each,
            {
                "lower": replace(
                    each, lower=each.upper + STEP, upper=each.upper + STEP, value=each.upper + STEP
                ),
                "upper": replace(
                    each, lower=each.lower - STEP, upper=each.lower - STEP, value=each.lower - STEP
                ),
                "sign": replace(each, sign=-each.sign),
                "label": replace(each, label=0),
                "value": replace(each, value=each.upper + 1.0),
                "radius": replace(each, balls=tuple(gc.Ball(ball.x, 0.1) for ball in each.balls)),
            },
        )


def evaluations(post):
    X = np.concatenate([[X0], post.centres[:4]])
    y = post.probability(X).argmax(axis=1)
    t = gc.evaluate(post, X, y, [0.05, 0.5, 2.5])
    assert t.certified[0] > 0
    assert t.attacked[-1] < 1
    i = int(np.flatnonzero(np.isfinite(t.unsafe))[0])
    rows = np.arange(len(y)) == i
    yield (
        t,
        {
            "certified": replace(t, certified=np.minimum(t.certified + 0.2, 1.0)),
            "attacked": replace(t, attacked=np.maximum(t.attacked - 0.2, 0.0)),
            "safe": replace(t, safe=np.where(rows, 2.5, t.safe)),
            "unsafe": replace(t, unsafe=np.where(rows, 0.0, t.unsafe)),
            "verdicts": replace(t, verdicts=np.full_like(t.verdicts, "safe")),
            "counterexamples": replace(t, counterexamples=np.where(rows[:, None], X, t.counterexamples)),
            "none": replace(t, counterexamples=np.full_like(X, np.nan)),
            "labels": replace(t, labels=1 - t.labels),
            "all certified": replace(
                t,
                certified=np.ones(3),
                attacked=np.ones(3),
                safe=np.full(len(y), 2.5),
                unsafe=np.full(len(y), np.inf),
                verdicts=np.full_like(t.verdicts, "safe"),
                counterexamples=np.full_like(X, np.nan),
            ),
            "all lost": replace(
                t,
                certified=np.zeros(3),
                attacked=np.zeros(3),
                safe=np.full(len(y), np.nan),
                unsafe=np.full(len(y), 0.05),
                verdicts=np.full_like(t.verdicts, "unsafe"),
                counterexamples=X,
            ),
        },
    )


def attacks(post):
    a = gc.attack(post, BALL)
    yield a, {"x": replace(a, x=X0 + 0.4), "region": replace(a, region=gc.Ball(X0, 0.001))}


TAMPERED = (ranges, latent_ranges, verdicts, radii, robustnesses, explanations, evaluations, attacks)


@pytest.mark.parametrize("answers", TAMPERED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("likelihood", ["probit", "logit"])
def test_the_judge_passes_true_answers_and_catches_false_ones(answers, likelihood):
    post = small_model(likelihood=likelihood)
    for answer, false in answers(post):
        assert found(post, answer) == []
        for name, wrong in false.items():
            assert found(post, wrong), name


def test_every_answer_type_is_tampered_with():
    post = small_model()
    seen = {type(answer) for answers in TAMPERED for answer, _ in answers(post)}
    public = {getattr(results, name) for name in results.__all__}
    assert {t for t in public if hasattr(t, "claims")} - seen == {results.Answer}


def test_the_soak_draws_every_question():
    homes = {name: getattr(getattr(gc, name), "__module__", "") for name in gc.__all__}
    public = {name for name, home in homes.items() if home.startswith("gpcert.questions.")}
    assert set(OPTIONS) | set(NOT_DRAWN) == public - {"balls"}  # which makes regions


@pytest.mark.parametrize("question", OPTIONS)
def test_the_soak_draws_every_option(question):
    """Each parameter of the signature takes at least two values in the queries of the soak."""
    signature = inspect.signature(getattr(gc, question))
    seen = defaultdict(set)

    def ask(*args, **kwargs):
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            seen[name].add(repr(value))
        return []

    def left():
        return (
            set(signature.parameters) - {"post"} - {name for name, values in seen.items() if len(values) > 1}
        )

    with mock.patch.object(gc, question, ask), mock.patch.object(gc, "probability_range", ask):
        for number in range(400):
            query = Query.pick(number, question)
            query = replace(query, model=replace(query.model, n=min(query.model.n, 3)))
            try:
                query.ask(Path(f"proofs-{number}"))
            except AttributeError:  # `explain` takes the mean of what it is given
                continue
            if not left():
                break
    assert not left()


def test_the_soak_draws_every_kernel_likelihood_and_region():
    kinds, made = set(), set()
    for number in range(400):
        query = Query.pick(number)
        post = replace(query.model, n=2, d=2).posterior()
        link = getattr(post.likelihood, "link", None)
        for kernel in post.kernels:
            parts = [kernel]
            while parts:
                part = parts.pop()
                made.add(type(part).__name__)
                parts.extend(getattr(part, "parts", ()))
        kinds |= {type(post.likelihood).__name__, type(link).__name__}
    public = {name: getattr(gc, name) for name in gc.__all__ if inspect.isclass(getattr(gc, name))}
    assert made >= {name for name, c in public.items() if issubclass(c, Kernel)}
    assert kinds >= {name for name, c in public.items() if c.__module__.startswith("gpcert.likelihoods")}
    assert {Query.pick(i).model.kind for i in range(400)} >= set(TWO)


def test_claims_about_regions_that_are_gone_judge_no_others():
    """Python gives the address of a region that nobody holds to the next one: its points stay its own."""
    post = small_model()
    judge = Judge(post, np.random.default_rng(0))
    quantity = Quantity("probability", 1, 0.5)
    for x in np.random.default_rng(1).uniform(-1, 1, (20, 2)):
        p = float(post.probability(x[None])[0, 1])
        judge.judge([Everywhere(quantity, gc.Box(x, x), p - 1e-6, p + 1e-6)])
    assert judge.false == []
    for i, x in enumerate(np.random.default_rng(2).uniform(-1, 1, (20, 2)), 1):
        p = float(post.probability(x[None])[0, 1])
        judge.judge([Everywhere(quantity, gc.Box(x, x), p + 1e-6, np.inf)])
        assert len(judge.false) == i


@pytest.mark.parametrize("question", OPTIONS)
def test_no_answer_is_false(question):
    """A short soak; the long one is scripts/soak.py."""
    asked = decided = 0
    for number in range(examples(25)):
        query = Query.pick(10**6 + number, question)
        query = replace(query, batch="list" if query.batch == "processes" else query.batch)
        post, answers = query.ask()
        judge = Judge(post, np.random.default_rng(number))
        for answer in map(came_back, answers):
            assert inconsistencies(answer) == [], str(query)
            judge.judge(answer.claims())
        assert judge.false == [], str(query)
        asked += 1
        decided += not judge.undecided
    assert decided >= 0.8 * asked


def test_models_of_all_magnitudes_are_finite():
    for units, size, push in ((290, 290, 200), (-290, -290, -200), (290, -290, 200), (-290, 290, 200)):
        post = Model(units=units, size=size, push=push, n=4).posterior()
        assert np.isfinite(post.weights).all()
        assert np.isfinite(post.precision).all()
