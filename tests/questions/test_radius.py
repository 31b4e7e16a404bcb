"""Certified radii and accuracies: proved below, refuted above, consistent with verdicts."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.likelihoods import Logit, OneVsRest, Probit, Softmax
from gpcert.questions import radius
from gpcert.questions.radius import RadiusSearch
from helpers.exact import CHOICES, Case, extreme_points, random_posterior, small_model
from helpers.oracle import examples
from judge import Truth

CASES = st.builds(Case, **{name: st.sampled_from(values) for name, values in CHOICES.items()})


def options(rng, d, scale):
    """Random features, domain half-width and units."""
    features = np.sort(rng.choice(d, rng.integers(1, d + 1), replace=False)) if rng.random() < 0.4 else None
    return {
        "features": features,
        "scale": 10.0 ** rng.uniform(-0.5, 0.5, d) * scale if rng.random() < 0.5 else None,
    }


@settings(max_examples=examples(60))
@given(CASES)
def test_the_bracket_is_true(case):
    """No point of the safe ball has another label; the counterexample is in the unsafe ball and is one."""
    rng = np.random.default_rng(case.seed)
    post = random_posterior(case, rng)
    l = np.broadcast_to(post.kernel.lengthscale, (case.d,))
    x = post.centres[rng.integers(post.n_centres)] + l * rng.standard_normal(case.d) * 0.1
    kw = options(rng, case.d, float(l.min()))
    largest = float(10.0 ** rng.uniform(-3, 1) * (1.0 if kw["scale"] is not None else l.min()))
    r = gc.certified_radius(post, x, max_radius=largest, max_nodes=20, max_seconds=5, **kw)
    exact, label = Truth(post), r.label
    assert 0.0 <= r.safe < r.unsafe or r.safe == r.unsafe == 0.0
    if r.counterexample is not None:
        assert gc.Ball(x, r.unsafe, **kw).contains(r.counterexample)
        assert exact.at_most(r.counterexample, label, 0.5)
        assert post.probability([r.counterexample])[0, label] == r.probability < 0.5
    else:
        assert r.unsafe == np.inf
    if r.safe > 0:
        ball = gc.Ball(x, r.safe, **kw)
        for z in (*extreme_points(post, ball, label, rng), x):
            assert not ball.contains(z) or exact.at_least(z, label, 0.5)
    if r.status == "converged" and np.isfinite(r.unsafe) and r.unsafe > 0:
        assert r.unsafe - r.safe <= 1.0001e-3 * r.unsafe


def test_small_models_converge_and_agree_with_verdicts():
    post, rng = small_model(n=15, mean=0.4), np.random.default_rng(3)
    X = rng.normal(size=(12, 2))
    found = gc.certified_radius(post, X, max_radius=2.0, rtol=1e-2)
    for x, r in zip(X, found, strict=True):
        assert r.status == ("converged" if np.isfinite(r.unsafe) else "radius limit")
        assert r.tests <= 4  # the attack's radius comes first: few proofs are needed
        if r.safe > 0:
            assert gc.certify(post, x, gc.Ball(x, 0.9 * r.safe)).status == "safe"
        if np.isfinite(r.unsafe):
            assert gc.certify(post, x, gc.Ball(x, 1.1 * r.unsafe)).status == "unsafe"
            assert r.unsafe - r.safe <= 1.001e-2 * r.unsafe


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0])
def test_radii_of_every_norm_are_ordered(norm):
    """Balls of a larger p contain those of a smaller one: radii are ordered the other way round."""
    post, X = small_model(n=15, mean=0.4), np.random.default_rng(5).normal(size=(5, 2))
    found = gc.certified_radius(post, X, norm=norm, max_radius=2.0, rtol=0.01)
    widest = gc.certified_radius(post, X, max_radius=2.0, rtol=0.01)
    for x, r, w in zip(X, found, widest, strict=True):
        assert w.safe < r.unsafe  # the ball of norm inf contains the other
        assert r.status == ("converged" if np.isfinite(r.unsafe) else "radius limit")
        if r.counterexample is not None:
            assert gc.Ball(x, r.unsafe, norm).contains(r.counterexample)
            assert np.linalg.norm(r.counterexample - x, norm) == pytest.approx(r.unsafe)


def test_finer_tolerance_narrows_the_bracket():
    post, x = small_model(), np.array([0.4, 0.3])
    brackets = [gc.certified_radius(post, x, max_radius=3.0, rtol=rtol) for rtol in (0.3, 0.03, 0.003)]
    widths = [b.unsafe - b.safe for b in brackets]
    assert np.isfinite(widths).all()
    assert widths == sorted(widths, reverse=True)
    for a in brackets:
        for b in brackets:
            assert a.safe < b.unsafe


def test_ties_and_points_beyond_the_threshold():
    post = gc.Posterior([[-1.0], [1.0]], [-1.0, 1.0], np.zeros((2, 2)), kernel=gc.RBF())
    tie = gc.certified_radius(post, [0.0])
    assert (tie.safe, tie.unsafe, tie.status) == (0.0, np.inf, "numerical limit")
    lost = gc.certified_radius(post, [0.1], threshold=0.9)
    assert (lost.safe, lost.unsafe) == (0.0, 0.0)
    assert (lost.counterexample == [0.1]).all()
    assert lost.status == "converged"


def test_a_bounded_domain_may_make_every_radius_safe():
    post = gc.Posterior([[-1.0], [1.0]], [-1.0, 1.0], np.zeros((2, 2)), kernel=gc.RBF())
    r = gc.certified_radius(post, [1.0], max_radius=np.inf, domain=(0.5, 2.0))
    assert (r.safe, r.unsafe, r.counterexample, r.status) == (np.inf, np.inf, None, "converged")
    near = gc.certified_radius(post, [1.0], max_radius=0.25)
    assert (near.safe, near.unsafe, near.status) == (0.25, np.inf, "radius limit")
    inside = gc.certified_radius(post, [1.0], max_radius=0.25, domain=(0.5, 2.0))
    assert (inside.safe, inside.unsafe, inside.status) == (0.25, np.inf, "radius limit")
    nothing = gc.certified_radius(post, [1.0], max_radius=0.0)
    assert (nothing.safe, nothing.unsafe, nothing.status) == (0.0, np.inf, "radius limit")


@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
def test_by_default_radii_reach_twice_as_far_as_the_farthest_centre(norm):
    """From -1 to 1 and as far again; farther away the label of a model with a prior mean never changes."""
    post = gc.Posterior([[-1.0], [1.0]], [-1.0, 1.0], np.zeros((2, 2)), kernel=gc.RBF())
    far = gc.certified_radius(post, [1.0], norm=norm, scale=0.5)  # the sign changes at 0, two units away
    assert far.max_radius == pytest.approx(8.0)
    assert (far.status, far.safe) == ("converged", pytest.approx(2.0, rel=2e-3))
    always = gc.Posterior([[-1.0], [1.0]], [0.1, 0.1], np.zeros((2, 2)), kernel=gc.RBF(), mean=1.0)
    r = gc.certified_radius(always, [[0.0], [2.0]], norm=norm)
    assert [a.safe for a in r] == [a.max_radius for a in r] == pytest.approx([2.0, 6.0])
    assert {a.status for a in r} == {"radius limit"}
    alone = gc.Posterior([[0.0]], [1.0], np.zeros((1, 1)), kernel=gc.RBF())
    assert gc.certified_radius(alone, [0.0], norm=norm).max_radius == 1.0
    huge = gc.Posterior([[-1e308], [1.0]], [-1.0, 1.0], np.zeros((2, 2)), kernel=gc.RBF())
    assert gc.certified_radius(huge, [1.0], norm=norm, max_nodes=2).max_radius == 1e300


def six_classes():
    """One-vs-rest of six clusters in four features, each with its own latent."""
    rng = np.random.default_rng(7)
    centres = np.repeat(rng.normal(size=(6, 4)), 5, axis=0) + 0.2 * rng.normal(size=(30, 4))
    own, R, link = np.repeat(np.eye(6), 5, axis=0), np.zeros((6, 30, 30)), OneVsRest(Probit())
    return gc.Posterior(centres, 1.5 * own - 0.4, R, kernel=gc.RBF(0.8), likelihood=link), centres[::10]


def test_a_label_that_holds_nearby_is_proved_to_within_three_verdicts():
    """Whatever stops the proof at the counterexample, small balls get their turn."""
    post, X = six_classes()
    first = []

    def progress(p):
        first.append((p.lower, p.upper))
        return p.lower > 0.0

    r = gc.certified_radius(post, X[0], max_radius=3.0, rtol=0.05, max_nodes=1, progress=progress)
    assert 0.0 < r.safe < r.unsafe < 3.0
    assert r.tests <= 4  # the verdict under way when the report came is counted
    assert all(high < 3.0 for _, high in first)


@pytest.fixture
def asked_in_a_hurry(monkeypatch):
    """The radii asked about by searches whose attack took a fifth of `max_seconds`, a million of them."""
    radii, run, decide = [], RadiusSearch.run, radius.decide

    def noted(post, factory, region, *question, **options):
        radii.append(region.radius)
        return decide(post, factory, region, *question, **options)

    monkeypatch.setattr(RadiusSearch, "run", lambda self, spent, *rest: run(self, 2e5, *rest))
    monkeypatch.setattr(radius, "decide", noted)
    return radii


@pytest.mark.parametrize("largest", [3.0, 1e-3])
def test_where_time_is_short_a_small_ball_is_the_first(largest, asked_in_a_hurry):
    """Then larger ones, to the same end; the largest that was asked for included."""
    post, X = six_classes()
    r = gc.certified_radius(post, X[0], max_radius=largest, rtol=0.05, max_seconds=1e6)
    first, *more = asked_in_a_hurry
    top = min(r.unsafe, largest)
    assert first < 0.07 * top
    assert np.all(np.diff(asked_in_a_hurry[:3]) > 0)
    assert more[-1] >= 0.9 * top or r.safe < 0.9 * top
    leisurely = gc.certified_radius(post, X[0], max_radius=largest, rtol=0.05)
    assert r.safe == pytest.approx(leisurely.safe, rel=0.3)
    if np.isinf(r.unsafe):
        assert (r.safe, r.status) == (largest, "radius limit")


def test_a_small_ball_is_proved_before_a_counterexample_is_verified(monkeypatch):
    """The attack takes a third of the time, and its answer more to look at than there is left."""
    time, nearest, refutes = [0.0], radius.nearest, radius.refutes

    def attacked(*asked, deadline):
        time[0] += 300.0
        return nearest(*asked)

    def looked_at(*asked):
        time[0] += 1e4
        return refutes(*asked)

    monkeypatch.setattr(radius, "now", lambda: time[0])
    monkeypatch.setattr(radius, "now", lambda: time[0])
    monkeypatch.setattr(radius, "nearest", attacked)
    monkeypatch.setattr(radius, "refutes", looked_at)
    post, X = six_classes()
    r = gc.certified_radius(post, X[0], max_radius=3.0, max_seconds=1e3)
    assert (r.status, r.tests) == ("time limit", 1)
    assert 0.0 < r.safe < 0.01 * r.unsafe < 0.03
    assert gc.certify(post, X[0], gc.Ball(X[0], r.safe)).status == "safe"


@pytest.mark.parametrize("likelihood", ["softmax", "probit"])
def test_counterexamples_that_come_nearer_step_by_step_do_not_use_up_the_verdicts(likelihood, monkeypatch):
    """Each verdict may find a counterexample just below the last: a small ball comes third all the same."""
    asked = []

    def blind(post, balls, *question, **options):
        asked.append(len(balls.X))
        return np.full(len(balls.X), np.inf), balls.X.copy()

    monkeypatch.setattr("gpcert.questions.radius.nearest", blind)
    rng = np.random.default_rng(3)
    X = np.repeat(rng.normal(size=(3, 2)), 6, axis=0) + 0.3 * rng.normal(size=(18, 2))
    clf = gc.GPClassifier(gc.RBF(1.0, 4.0), likelihood=likelihood, max_evals=0)
    post = clf.fit(X, np.repeat(np.arange(3), 6)).posterior_
    r = gc.certified_radius(post, X[0], max_radius=3.0, rtol=1e-4, progress=lambda p: p.lower > 0.0)
    assert len(asked) > 1
    assert 0.0 < r.safe < r.unsafe < 3.0
    assert r.tests <= 4  # the verdict under way when the report came is counted


def test_means_lead_to_counterexamples_of_softmax_and_decide_nothing():
    """A point where the means change their order is taken only if the probabilities do, too."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 3))
    post = (
        gc.GPClassifier(gc.RBF(1.2, 6.0), likelihood="softmax", max_evals=0)
        .fit(X, np.argmax(X @ rng.normal(size=(3, 4)), axis=1))
        .posterior_
    )
    for x in X[:6]:
        r = gc.certified_radius(post, x, max_radius=3.0, rtol=0.05, max_nodes=0)
        assert r.counterexample is not None
        p = post.probability(r.counterexample[None])[0]
        assert p[r.column] < np.delete(p, r.label).max()
        assert np.abs(r.counterexample - x).max() <= r.unsafe


def test_limits_leave_a_true_bracket():
    post, x = small_model(n=30, d=4), np.full(4, 0.3)
    best = gc.certified_radius(post, x, max_radius=2.0)
    for limits in ({"max_seconds": 0.0}, {"max_nodes": 0}, {"progress": lambda *_: True}):
        r = gc.certified_radius(post, x, max_radius=2.0, **limits)
        assert r.status != "converged"
        assert r.safe <= best.unsafe
        assert r.unsafe >= best.safe


@pytest.mark.parametrize("stop", ["True", "Ctrl-C"])
def test_stopped_in_a_batch_the_rest_is_not_asked(stop):
    """What was known stays, the point under way says what it knows, the others have their label only."""
    post = small_model(n=30, d=4)
    X = np.random.default_rng(5).normal(size=(6, 4))
    seen = []

    def progress(*report):
        seen.append(report)
        if len(seen) == 80:
            if stop == "Ctrl-C":
                raise KeyboardInterrupt
            return True
        return False

    radii = gc.certified_radius(post, X, max_radius=2.0, progress=progress, n_jobs=1)
    whole = gc.certified_radius(post, X, max_radius=2.0)
    begun = [r.status != "interrupted" for r in radii]
    first = begun.index(False)
    assert 0 < first < 5
    assert not any(begun[first:])
    assert len(seen) == 80
    for i, (r, best) in enumerate(zip(radii, whole, strict=True)):
        assert r.label == best.label
        assert r.safe <= best.unsafe
        assert r.unsafe >= best.safe
        assert (r.status == best.status) == (i < first)
        assert i <= first or (r.safe, r.unsafe, r.tests) == (0.0, np.inf, 0)
    seen.clear()
    X = np.random.default_rng(5).normal(size=(20, 4))
    verdicts = gc.certify(post, X, [gc.Ball(x, 0.6, 3) for x in X], 0.6, progress=progress, n_jobs=1)
    ended = [v.ended == "interrupted" for v in verdicts]
    assert ended.index(True) > 0
    assert all(ended[ended.index(True) :])
    assert len(seen) == 80
    for v, x in zip(verdicts, X, strict=True):
        assert v.label == post.probability([x])[0].argmax()


def test_ties_are_unknown_everywhere():
    post = gc.Posterior([[-1.0], [1.0]], [-1.0, 1.0], np.zeros((2, 2)), kernel=gc.RBF())
    r = gc.certified_radius(post, [0.0])
    assert (r.safe, r.unsafe, r.status) == (0.0, np.inf, "numerical limit")
    e = gc.evaluate(post, [[0.0], [0.5]], [0, 1], [0.1, 1.0])
    assert e.verdicts.tolist() == [["unknown", "unknown"], ["safe", "unsafe"]]


def test_robustness_encloses_the_differences():
    post, rng = small_model(n=15), np.random.default_rng(0)
    X = rng.normal(size=(10, 2))
    regions = [gc.Ball(x, 0.3) for x in X]
    plain = gc.robustness(post, regions, tolerance=1e-3)
    pointed = gc.robustness(post, regions, x=X, tolerance=1e-3)
    for x, region, a, b in zip(X, regions, plain, pointed, strict=True):
        box = region.inner_box()
        Z = box.lower + rng.random((400, 2)) * (box.upper - box.lower)
        p, at = post.probability(Z)[:, 1], post.probability([x])[0, 1]
        assert 0 <= a.lower <= a.upper <= 1
        assert p.max() - p.min() <= a.upper
        assert np.abs(p - at).max() <= b.upper
        assert b.lower <= a.upper  # from one point no further than from end to end
        assert b.upper <= a.upper + 1e-9
        assert a.upper - a.lower <= 2.1e-3
        assert b.upper - b.lower <= 2.1e-3
    still = gc.robustness(post, gc.Ball(X[0], 0.0), x=X[0])
    assert still.lower == 0.0
    assert still.upper < 1e-9


@pytest.fixture(scope="module")
def evaluation():
    data = gc.datasets.load("synthetic2d")
    post = gc.GPClassifier(max_evals=8).fit(data.X_train[:150], data.y_train[:150]).posterior_
    radii = np.array([0.0, 0.1, 0.3, 0.6, 1.0])
    return post, data, radii, gc.evaluate(post, data.X_test[:40], data.y_test[:40], radii)


def test_accuracies_bracket_the_truth(evaluation):
    post, data, radii, e = evaluation
    X, y = data.X_test[:40], data.y_test[:40]
    assert e.clean == np.mean(post.predict(X) == y)
    assert (e.certified <= e.attacked).all()
    assert (e.certified <= e.clean).all()
    assert (np.diff(e.certified) <= 0).all()
    assert (np.diff(e.attacked) <= 0).all()
    assert e.gap.max() <= 0.05
    for i, x in enumerate(X):
        for j, r in enumerate(radii):
            if e.verdicts[i, j] != "unknown":
                status = gc.certify(post, x, gc.Ball(x, r)).status
                assert status in (e.verdicts[i, j], "unknown")
        assert not e.safe[i] >= e.unsafe[i]


def test_counterexamples_lie_in_the_smallest_ball_that_is_lost(evaluation):
    post, data, _, e = evaluation
    exact, X = Truth(post), data.X_test[:40]
    assert e.counterexamples.shape == X.shape
    for x, z, r, label in zip(X, e.counterexamples, e.unsafe, e.labels, strict=True):
        assert np.isnan(z).all() == (r == np.inf)
        if r < np.inf:
            assert gc.Ball(x, r).contains(z)
            assert exact.at_most(z, post.classes.tolist().index(label), np.nextafter(0.5, 0.0))


def cancelling(likelihood, classes):
    """Weights of 1e18 whose sum is 8, all at one centre: the latent mean is positive, and computed is noise.

    So P(1) > 1/2 everywhere; with several classes the first always wins, as the others' means are -1.
    """
    rng = np.random.default_rng(3)
    w = np.round(rng.normal(size=20) * 1e18 / 4096) * 4096
    w = np.append(w, float(-sum(Fraction(v) for v in w)))
    w = np.append(w, 8.0)
    assert sum(Fraction(v) for v in w) == 8
    centres, n = np.zeros((22, 1)), 22
    if classes == 2:
        return gc.Posterior(centres, w, np.zeros((n, n)), kernel=gc.RBF(), likelihood=likelihood)
    weights, mean = np.stack([w, 0.0 * w, 0.0 * w], axis=1), [0.0, -1.0, -1.0]
    R = np.zeros((classes, n, n))
    return gc.Posterior(centres, weights, R, kernel=gc.RBF(), likelihood=likelihood, mean=mean)


@pytest.mark.parametrize(
    ("likelihood", "classes"),
    [("probit", 2), ("logit", 2), (OneVsRest(Probit()), 3), (OneVsRest(Logit()), 3), (Softmax(), 3)],
)
def test_what_the_predictor_alone_calls_a_counterexample_is_none(likelihood, classes):
    post, winner = cancelling(likelihood, classes), 1 if classes == 2 else 0
    X = np.linspace(0.2, 0.4, 12)[:, None]
    labels = post.probability(X).argmax(axis=1)
    assert set(labels) >= {0, 1}  # the truth: `winner` at every x
    e = gc.evaluate(post, X, np.full(len(X), winner), radii=[0.05], max_nodes=1)
    assert (e.attacked == 1.0).all()
    assert np.isnan(e.counterexamples[labels == winner]).all()
    for x in X[labels == winner][:1]:
        assert gc.certify(post, x, gc.Ball(x, 0.1), max_nodes=1).status != "unsafe"
        assert gc.certified_radius(post, x, max_radius=0.1, max_nodes=1).unsafe == np.inf


@pytest.mark.parametrize("norm", [0.0, 1.0, 1.5, 2000.0, np.inf])
def test_a_region_of_one_point_is_safe_at_every_radius(norm):
    """Nothing may move, or the domain is the point: one proof at x answers for all radii."""
    post, x = small_model(), np.array([0.4, 0.3])
    where = ({"features": [], "domain": (-1.0, 1.0)}, {"domain": (x, x)})
    for options in where:
        r = gc.certified_radius(post, x, norm=norm, max_radius=np.inf, **options)
        assert (r.safe, r.unsafe, r.status) == (np.inf, np.inf, "converged")
    if norm > 0:  # without a domain as well, and by default up to any radius
        for given, safe in ((None, np.inf), (np.inf, np.inf), (2.0, 2.0)):
            r = gc.certified_radius(post, x, norm=norm, max_radius=given, features=[])
            assert (r.safe, r.unsafe, r.status) == (safe, np.inf, "converged")
            assert gc.CertifiedRadius.from_dict(r.to_dict()) == r
    r = gc.certified_radius(post, x, norm=norm, max_radius=0.0, domain=(-1.0, 1.0))
    assert (r.safe, r.unsafe, r.status) == (0.0, np.inf, "radius limit")
    assert gc.certified_radius(post, x, norm=norm, max_radius=1.5, domain=(-1.0, 1.0)).safe >= 0.0


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_robustness_of_an_interrupted_call_is_true(stop):
    """Regions after the stop are not asked, nor are their points: what is known of the range is used."""
    post, X, calls = small_model(n=15), np.random.default_rng(0).normal(size=(4, 2)), []
    regions = [gc.Ball(x, 0.3) for x in X]
    part = gc.robustness(post, regions, x=X, progress=lambda *_: calls.append(1) or len(calls) >= stop)
    best = gc.robustness(post, regions, x=X)
    assert part[-1].upper == 1.0
    for a, b in zip(part, best, strict=True):
        assert a.lower <= b.upper
        assert b.lower <= a.upper


def test_the_table_has_a_row_per_radius(evaluation):
    *_, radii, e = evaluation
    table = e.table()
    assert set(table) == {"radius", "certified", "attacked", "gap"}
    assert (table["radius"] == radii).all()
    frame = e.to_pandas()
    assert list(frame["certified"]) == list(e.certified)
    assert len(e.points()["safe"]) == 40


def test_an_evaluation_stopped_early_is_still_a_bracket(evaluation):
    post, data, radii, full = evaluation
    stopped = gc.evaluate(post, data.X_test[:40], data.y_test[:40], radii, progress=lambda *_: True)
    assert (stopped.certified <= full.attacked).all()
    X = np.concatenate([data.X_test[:40]] * 4)  # more than are asked at once
    y = np.concatenate([data.y_test[:40]] * 4)
    part = gc.evaluate(post, X, y, radii, progress=lambda *_: True)
    assert (part.certified <= full.attacked).all()
    assert (part.attacked >= full.certified).all()
    assert "unknown" in part.verdicts


POINT = np.array([0.25, -0.125])


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"x": [0.0]}, "x"),
        ({"rtol": 0.0}, "rtol"),
        ({"rtol": np.nan}, "rtol"),
        ({"max_radius": -1.0}, "max_radius"),
        ({"max_radius": np.inf}, "max_radius"),
        ({"max_radius": "1"}, "max_radius"),
        ({"threshold": 1.0}, "threshold"),
        ({"features": [5]}, "features"),
        ({"domain": (1.0, 2.0)}, "x"),
        ({"scale": 0.0}, "scale"),
        ({"norm": 0.5}, "norm"),
        ({"post": 1}, "post"),
    ],
)
def test_radius_says_what_is_wrong(arguments, names):
    given_ = {"post": small_model(), "x": POINT} | arguments
    with pytest.raises(gc.InvalidInputError, match=rf"^[^\n]*\b{names}\b[^\n]* must [^\n]*, got [^\n]*$"):
        gc.certified_radius(**given_)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"y": [0]}, "y"),
        ({"y": [0, 7]}, "y"),
        ({"radii": []}, "radii"),
        ({"radii": [0.2, 0.1]}, "radii"),
        ({"radii": [-0.1]}, "radii"),
        ({"radii": [np.nan]}, "radii"),
        ({"X": np.zeros((2, 3))}, "X"),
        ({"norm": 0.5}, "norm"),
    ],
)
def test_evaluate_says_what_is_wrong(arguments, names):
    given_ = {"post": small_model(), "X": np.zeros((2, 2)), "y": [0, 1], "radii": [0.1]} | arguments
    with pytest.raises(gc.InvalidInputError, match=rf"^[^\n]*\b{names}\b[^\n]* must [^\n]*, got [^\n]*$"):
        gc.evaluate(**given_)


def test_what_a_batch_has_decided_counts_after_the_limit(monkeypatch):
    post, run = small_model(n=20, d=2), RadiusSearch.run
    monkeypatch.setattr(
        RadiusSearch, "run", lambda search, spent, *rest: run(search, spent + 1e6, *rest)
    )  # time is up
    X = np.random.default_rng(1).uniform(-1.0, 1.0, (40, 2))
    found = gc.certified_radius(post, X, max_radius=0.1, rtol=0.2, max_seconds=1e3, n_jobs=1)
    truth = Truth(post)
    assert sum(r.safe > 0.0 for r in found) > 30
    for r in found:
        ball = gc.Ball(r.ball.x, r.safe)
        for z in extreme_points(post, ball, r.label, np.random.default_rng(2)):
            assert r.safe == 0.0 or truth.at_least(z, r.label, 0.5)
