"""Pictures: figures of answers, drawn to a file, with what they must show; one clear sentence otherwise."""

import io
import runpy
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

import gpcert as gc
from helpers.exact import small_model

ROOT = Path(__file__).resolve().parents[2]
POST = small_model(n=15)
X = np.random.default_rng(0).normal(size=(6, 2))
RADII = np.array([0.0, 0.1, 0.2])
BALLS = [gc.Ball(X[0], r) for r in RADII]


def ink(figure):
    """The share of pixels that are not white."""
    assert isinstance(figure, Figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=60)
    buffer.seek(0)
    return float((imread(buffer)[..., :3].min(axis=2) < 0.9).mean())


def line(figure, label):
    return next(each for each in figure.axes[0].lines if each.get_label() == label)


def test_the_safety_curve_shows_the_bounds_and_the_attacks():
    ranges, attacks = gc.probability_range(POST, BALLS), gc.attack(POST, BALLS, label=1)
    for side in ("min", "max"):
        figure = gc.plots.safety_curve(RADII, ranges, attacks, side=side)
        assert list(line(figure, "proved lower end").get_ydata()) == [getattr(r, side).lower for r in ranges]
        assert list(line(figure, "attack").get_ydata()) == [a.probability for a in attacks]
        assert ink(figure) > 0.01


def test_the_accuracy_curve_shows_both_accuracies():
    e = gc.evaluate(POST, X, POST.predict(X), RADII)
    figure = gc.plots.accuracy_curve(e, title="six points")
    assert (line(figure, "proved correct on the whole ball").get_ydata() == e.certified).all()
    assert (line(figure, "no counterexample found").get_ydata() == e.attacked).all()
    assert ink(figure) > 0.01


def test_the_gap_is_drawn_from_the_steps_of_a_search():
    trace = gc.plots.Trace()
    answer = gc.probability_range(POST, gc.Ball(X[0], 0.5), tolerance=1e-3, progress=trace)
    assert len(trace.steps) > 2
    figure = gc.plots.gap_over_time(trace, answer)
    assert list(line(figure, "proved lower end").get_ydata()) == [step.lower for step in trace.steps]
    assert ink(figure) > 0.01


def test_boxes_contour_and_arrows_draw():
    groups = {"near": gc.robustness(POST, [gc.Ball(x, 0.1) for x in X])}
    assert ink(gc.plots.robustness_boxes(groups)) > 0.01
    ball = gc.Ball(X[0], 0.4)
    figure = gc.plots.contour(POST, ball, gc.probability_range(POST, ball))
    assert {"region"} <= {text.get_text() for text in figure.axes[0].get_legend().get_texts()}
    for norm in (1, 2, 3, 0):
        region = gc.Ball(X[0], 1 if norm == 0 else 0.4, norm, domain=(-5, 5))
        assert ink(gc.plots.contour(POST, region)) > 0.3
    assert ink(gc.plots.arrows(POST, X, gc.explain(POST, X, 0.2))) > 0.3


def test_explanations_as_image_and_as_bars():
    post = small_model(d=6)
    e = gc.explain(post, np.zeros(6), 0.2)
    assert ink(gc.plots.heat_map(e, (2, 3))) > 0.05
    assert len(gc.plots.heat_map(e, (2, 3), np.zeros(6)).axes) == 3  # image, map, colour bar
    figure = gc.plots.feature_bars(e, top=4)
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    order = np.argsort(-np.abs(e.value[0]))[:4]
    assert labels == [f"feature {j}" for j in order[::-1]]


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: gc.plots.safety_curve(RADII, []), "ranges"),
        (lambda: gc.plots.safety_curve(RADII, [], side="middle"), "side"),
        (lambda: gc.plots.gap_over_time(gc.plots.Trace()), "trace"),
        (lambda: gc.plots.robustness_boxes({}), "groups"),
        (lambda: gc.plots.contour(small_model(d=3)), "post"),
        (lambda: gc.plots.heat_map(gc.explain(POST, X[0], 0.1), (3, 3)), "shape"),
        (lambda: gc.plots.arrows(POST, X[:2], gc.explain(POST, X, 0.1)), "X"),
    ],
)
def test_one_clear_sentence_names_what_is_wrong(call, names):
    with pytest.raises(gc.InvalidInputError, match=rf"^[^\n]*\b{names}\b[^\n]* must [^\n]*, got [^\n]*$"):
        call()


@pytest.mark.full
def test_the_pictures_of_the_documents_are_what_their_script_draws(tmp_path):
    drawn = runpy.run_path(str(ROOT / "docs" / "images" / "draw_questions.py"))["main"](tmp_path)
    shown = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
    for path in drawn:
        stored = ROOT / "docs" / "images" / path.name
        assert f"(images/{path.name})" in shown
        assert stored.stat().st_size < 60_000
        if path.name != "gap.png":  # shows times
            assert np.mean(np.abs(imread(stored) - imread(path)) > 0.1) < 0.05


def test_a_notebook_shows_a_figure_without_a_magic_command_and_a_plane_takes_any_model() -> None:
    """IPython asks for `_repr_png_`; the picture is the one that is saved."""
    data = gc.datasets.load("synthetic2d")
    clf = gc.GPClassifier(gc.RBF(1.0), max_evals=0).fit(data.X_train[:30], data.y_train[:30])
    ball = gc.Ball(data.X_test[0], 0.1)
    shown = imread(io.BytesIO(gc.plots.contour(clf, ball)._repr_png_()))
    file = io.BytesIO()
    gc.plots.contour(clf, ball).savefig(file, dpi=100)  # a figure of its own: each drawing moves the layout
    file.seek(0)
    np.testing.assert_array_equal(shown, imread(file))
    with pytest.raises(gc.InvalidInputError, match="post must be a Posterior"):
        gc.plots.contour(ball)
