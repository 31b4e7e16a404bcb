"""Labels of several classes in a batch (docs/maths/batches.md, J16), in ball arithmetic and against single
answers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flint import arb

import gpcert as gc
from gpcert.engine.backend import Backend
from gpcert.engine.boxes import boxes
from gpcert.engine.facts import facts_of
from gpcert.engine.labels import Labelled, classes_of, kept_labels, knows_labels
from gpcert.engine.root import sums_of, values_of
from gpcert.engine.rows import Rows
from gpcert.engine.values import amplitudes, points
from gpcert.questions import rooted
from gpcert.settings import Settings
from helpers.batches import contradictions
from helpers.oracle import BITS, bits, examples
from judge import Truth
from judge.models import Model

CPU = Backend()


def models(seed, count, kernels=("rbf", "rbf", "matern52", "rational quadratic", "matern32")):
    """Softmax posteriors with correlated and with independent latents, definite or not."""
    rng = np.random.default_rng(seed)
    found = 0
    while found < count:
        post = Model(
            kind=("softmax", "independent")[found % 3 == 2],
            kernel=str(rng.choice(kernels)),
            precision=str(rng.choice(["laplace", "laplace", "zero", "indefinite"])),
            layout=str(rng.choice(["normal", "ard", "offset"])),
            n=int(rng.integers(2, 9)),
            d=int(rng.integers(1, 4)),
            classes=int(rng.integers(3, 5)),
            seed=int(rng.integers(10**6)),
        ).posterior()
        if knows_labels(post):
            found += 1
            yield rng, post


def labelled(rng, post, N=5):
    """Rows around centres of a model, some features of which move."""
    D = post.n_features
    features = np.sort(rng.choice(D, int(rng.integers(1, D + 1)), replace=False))
    facts = facts_of(post, features, CPU)
    scale = np.broadcast_to(post.kernel.lengthscale, (D,))
    x = post.centres[rng.integers(post.n_centres, size=N)] + 0.5 * scale * rng.standard_normal((N, D))
    half = scale * 10.0 ** rng.uniform(-4, -0.3, (N, 1))
    low, high = (x - half)[:, features], (x + half)[:, features]
    rest = x[:, facts.rest]
    rows = Rows(low, high, low, high, rest, np.zeros(N))
    labels = rng.integers(post.n_classes, size=N)
    with np.errstate(all="ignore"):
        at = points(facts, x[:, features], amplitudes(facts, rest))
    return x, features, Labelled(classes_of(post, facts), rows, at, x[:, features], labels)


def test_the_planes_lie_below_the_functionals_of_theorem_4_on_the_whole_row():
    tight = 0
    for rng, post in models(1, examples(18)):
        x, features, batch = labelled(rng, post)
        C, truth = post.n_classes, Truth(post)
        j, k = (batch.labels + 1) % C, (batch.labels + 2) % C
        lift = batch.classes.model.lift
        for other in (None, k):
            with np.errstate(all="ignore"):
                where = boxes(batch.at.facts, batch.rows, batch.start)
                sums = sums_of(batch.at, where, batch.plane(j, other))
                found = sums.latent(values_of(sums, 2, False))
            with bits(BITS):
                for row in np.flatnonzero(found > -np.inf).tolist():
                    c, a, b = int(batch.labels[row]), int(j[row]), int(k[row])
                    for share in (0.0, 1.0, float(rng.random())):
                        z, low, high = x[row].copy(), batch.rows.lower[row], batch.rows.upper[row]
                        side = np.where(rng.random(len(features)) < 0.5, low, high)
                        z[features] = np.clip(z[features] + share * (side - z[features]), low, high)
                        value = truth.mean(z, c) - truth.mean(z, a)
                        if other is not None:
                            S = truth.covariance(z)
                            shared = S[c][b] - S[a][b] - (S[c][c] - S[a][a]) / 2
                            value -= shared + arb(float(lift)) / 2
                        assert value >= arb(float(found[row]))
                        tight += bool(value < arb(float(found[row])) + 0.05)
    assert tight > 20 * examples(18) / 3  # and they say something


def test_verdicts_of_batches_and_of_single_questions_do_not_contradict_each_other():
    safe = 0
    for rng, post in models(2, examples(3), kernels=("rbf", "matern52")):
        scale = np.broadcast_to(post.kernel.lengthscale, (post.n_features,))
        X = post.centres[rng.integers(post.n_centres, size=18)]
        X = X + 0.3 * scale * rng.standard_normal(X.shape)
        norm = float(rng.choice([np.inf, 2.0]))
        regions = gc.balls(X, 10.0 ** rng.uniform(-4, -1, 18) * scale.min(), norm)
        batch = gc.certify(post, regions, max_nodes=1, n_jobs=1)
        alone = [gc.certify(post, region, max_nodes=1) for region in list(regions)[::6]]
        assert contradictions(list(batch)[::6], alone) == []
        safe += sum(verdict.status == "safe" for verdict in batch)
        for verdict in list(batch)[:6]:
            if verdict.status == "safe":
                box = verdict.region.box()
                step = verdict.region.radius * rng.uniform(-1, 1, (6, X.shape[1])) / X.shape[1] ** 0.5
                inside = np.clip(verdict.region.centre + step, box.lower, box.upper)
                assert (post.probability(inside).argmax(axis=1) == verdict.label).all()
    assert safe > 8 * examples(3)


def test_most_of_an_easy_batch_is_settled_at_the_root_and_other_models_are_left_alone():
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.standard_normal((15, 3)) + 4.0 * np.eye(3)[c] for c in range(3)])
    y = np.repeat([0, 1, 2], 15)
    post = gc.GPClassifier(gc.RBF(2.0, 4.0), likelihood="softmax", max_evals=0).fit(X, y).posterior_
    labels = post.probability(X).argmax(axis=1)
    (found,) = rooted.decisions(post, gc.balls(X, 0.05), labels, 0.5, Settings(0.02), "cpu")
    assert (found.lower[0] > 0.5).mean() > 0.8
    assert (found.upper == 1.0).all()
    rest = gc.GPClassifier(gc.Matern12(2.0, 4.0), likelihood="softmax", max_evals=0).fit(X, y).posterior_
    assert list(rooted.decisions(rest, gc.balls(X, 0.05), labels, 0.5, Settings(0.02), "cpu")) == []
    assert list(rooted.ranges(post, gc.balls(X, 0.05), np.ones(len(X)), Settings(0.02), "cpu")) == []


def test_a_class_that_loses_somewhere_is_never_kept():
    """Labels that the model does not give: no row may say that they win."""
    for rng, post in models(4, examples(6)):
        x, _, batch = labelled(rng, post)
        with np.errstate(all="ignore"):
            kept = batch.kept()
            shown = post.probability(x).argmax(axis=1)
        assert not (kept & (shown != batch.labels)).any()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_is_never_certain(bad):
    rng, post = next(iter(models(5, 1)))
    _, _, batch = labelled(rng, post)
    wrong = replace(batch.at, k=batch.at.k * bad)
    with np.errstate(all="ignore"):
        assert not Labelled(batch.classes, batch.rows, wrong, batch.start, batch.labels).kept().any()


def test_labels_that_are_lost_at_the_witness_are_lost_there():
    """J22, for any labels: there another class is more probable, and it is a point of the row."""
    lost = told = 0
    for rng, post in models(7, examples(12)):
        x, features, batch = labelled(rng, post, N=8)
        rows, truth = replace(batch.rows, sign=batch.labels.astype(float)), Truth(post)
        found = kept_labels(batch.at.facts, batch.classes, rows)
        margin = post.probability(x)
        told += int((margin.argmax(axis=1) != batch.labels).sum())
        for row in np.flatnonzero(found.upper < 0.5):
            lost += 1
            inside = (rows.lower[row] <= found.witness[row]) & (found.witness[row] <= rows.upper[row])
            point = x[row].copy()
            point[features] = found.witness[row]
            assert inside.all()
            assert found.lower[row] == 0.0
            with bits(BITS):
                assert truth.margin(point, int(batch.labels[row])) < 0
    assert lost > 0.5 * told


def test_unsafe_labels_of_a_batch_need_no_search():
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.standard_normal((15, 3)) + 4.0 * np.eye(3)[c] for c in range(3)])
    y = np.repeat([0, 1, 2], 15)
    clf = gc.GPClassifier(gc.RBF(2.0, 4.0), max_evals=0, likelihood="softmax").fit(X, y)
    post = clf.posterior_
    labels = post.probability(X).argmax(axis=1)
    (wrong,) = rooted.decisions(post, gc.balls(X, 0.05), (labels + 1) % 3, 0.5, Settings(0.02), "cpu")
    assert (wrong.upper < 0.5).mean() > 0.9
    found = list(gc.certify(post, X, gc.balls(X, 6.0), n_jobs=1))
    assert {str(each.status) for each in found} == {"unsafe"}
    points = np.stack([each.counterexample for each in found])
    assert (post.probability(points).argmax(axis=1) != labels).all()
    assert (np.abs(points - X) <= 6.0).all()


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_rival_with_the_larger_mean_need_not_be_more_probable(share):
    """J22: class 0 has the largest mean, class 1 the largest variance, and the larger probability: only the
    functionals with s_k tell. Latents alone, and correlated ones.
    """
    variance, n = 6.0, 4
    known = 0.95 / variance * np.diag([1.0, 0.0, 1.0, 1.0])
    known[0, 2] = known[2, 0] = -share / variance
    blocks = known[:, :, None, None] if share else np.diagonal(known)[:, None, None]
    weights, mean = np.zeros((1, n)), [0.05, 0.0, -0.5, -0.5]
    kernel = gc.RBF(1.0, variance)
    post = gc.Posterior([[0.0]], weights, blocks, kernel=kernel, likelihood="softmax", mean=mean)
    labels, regions = np.ones(16, dtype=np.intp), gc.balls(np.zeros((16, 1)), 1e-3)
    (found,) = rooted.decisions(post, regions, labels, 0.5, Settings(0.02), "cpu")
    with bits(BITS):
        assert Truth(post).margin(np.zeros(1), 1) > 0
    assert (found.upper == 1.0).all()
    (rest,) = rooted.decisions(post, regions, 2 * labels, 0.5, Settings(0.02), "cpu")
    assert (rest.upper < 0.5).all()  # and where the variances are alike, it does
