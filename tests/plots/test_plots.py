"""Pictures: figures of answers, drawn to a file, with what they must show; one clear sentence otherwise."""

import io
import runpy
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

import gpcert as gc
from helpers.exact import small_model
from helpers.steps import ASKED, LABELS, MANY, NEAR, SOFT, drawn

ROOT = Path(__file__).resolve().parents[2]
POST = small_model(n=15)
X = np.random.default_rng(0).normal(size=(6, 2))
RADII = np.array([0.0, 0.1, 0.2])
BOXES = gc.probability_range(POST, [gc.Box([0, 0], [1, 1])])
RANGES = gc.probability_range(POST, [gc.Ball(X[0], r) for r in RADII])


def ink(figure):
    """The share of pixels that are not white."""
    assert isinstance(figure, Figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=60)
    buffer.seek(0)
    return float((imread(buffer)[..., :3].min(axis=2) < 0.9).mean())


def line(figure, label):
    return next(each for each in figure.axes[0].lines if each.get_label() == label)


def shows_what_holds(figure, below, above, radii, low, high):
    """Curves and band at every radius: the truth lies in [low, high], and the curves on its two sides."""
    (path,) = figure.axes[0].collections[0].get_paths()
    band, below, above = (
        partial(drawn, each.vertices)
        for each in (path, line(figure, below).get_path(), line(figure, above).get_path())
    )
    for radius, least, most in zip(radii, low, high, strict=True):
        if least is None:
            assert band(radius) is below(radius) is above(radius) is None
            continue
        assert below(radius)[1] <= most + 1e-12
        assert above(radius)[0] >= least - 1e-12
        assert band(radius) == pytest.approx((below(radius)[0], above(radius)[1]))


@pytest.mark.parametrize("side", ["min", "max"])
def test_the_safety_curve_says_no_more_than_was_proved_at_any_radius(side):
    """A line through the values asked lies, between them, on the wrong side of the truth."""
    ranges = gc.probability_range(SOFT, [gc.Ball(NEAR[1], r) for r in ASKED], tolerance=1e-4)
    attacks = gc.attack(SOFT, [gc.Ball(NEAR[1], r) for r in ASKED], label="low")
    figure = gc.plots.safety_curve(ASKED, ranges, attacks, side=side)
    inside = MANY[ASKED[0] <= MANY]
    truth = [
        getattr(r, side)
        for r in gc.probability_range(SOFT, [gc.Ball(NEAR[1], r) for r in inside], tolerance=1e-4)
    ]
    assert np.ptp([t.lower for t in truth]) > 0.2
    ends = "proved lower end", "proved upper end"
    shows_what_holds(figure, *ends, inside, [t.lower for t in truth], [t.upper for t in truth])
    shows_what_holds(figure, *ends, [0.0, 0.09, 1.7], [None] * 3, [None] * 3)
    assert list(line(figure, ends[0]).get_ydata()) == [getattr(r, side).lower for r in ranges]
    assert list(line(figure, "attack").get_ydata()) == [a.probability for a in attacks]
    assert ink(figure) > 0.01


def test_the_accuracy_curve_says_no_more_than_was_proved_at_any_radius():
    e, often = (gc.evaluate(SOFT, NEAR, LABELS, radii) for radii in (ASKED, MANY))
    figure = gc.plots.accuracy_curve(e, title="five points")
    ends = "proved correct on the whole ball", "no counterexample found"
    assert len(set(often.certified)) > 3
    shows_what_holds(figure, *ends, MANY, often.certified, often.attacked)
    shows_what_holds(figure, *ends, [1.7], [None], [None])
    assert drawn(line(figure, ends[1]).get_path().vertices, 0.05)[0] == e.clean == 4 / 5
    assert line(figure, "clean accuracy").get_xydata().tolist() == [[0.0, 4 / 5]]
    assert "both features are off by up to the radius each" in figure.axes[0].get_xlabel().replace("\n", " ")
    assert ink(figure) > 0.01
    zero = gc.plots.accuracy_curve(gc.evaluate(SOFT, NEAR, LABELS, [0.0, 0.1]))
    assert line(zero, ends[0]).get_xdata().tolist() == [0.0, 0.1]


def test_a_curve_of_one_radius_is_a_point():
    figure = gc.plots.safety_curve([0.1], gc.probability_range(POST, [gc.Ball(X[0], 0.1)]))
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
    figure = gc.plots.robustness_boxes(groups)
    assert ink(figure) > 0.01
    assert figure.axes[0].get_ylabel() == "delta = max P - min P"
    at = {"near": [gc.robustness(POST, gc.Ball(X[0], 0.1), x=X[0])]}
    assert gc.plots.robustness_boxes(at).axes[0].get_ylabel() == "delta = largest |P - P(x)|"
    with pytest.raises(gc.InvalidInputError, match="all with a point x or all without"):
        gc.plots.robustness_boxes(groups | {"at": at["near"]})
    ball = gc.Ball(X[0], 0.4)
    figure = gc.plots.contour(POST, ball, gc.probability_range(POST, ball))
    assert {"region"} <= {text.get_text() for text in figure.axes[0].get_legend().get_texts()}
    for norm in (1, 2, 3, 0):
        region = gc.Ball(X[0], 1 if norm == 0 else 0.4, norm, domain=(-5, 5))
        assert ink(gc.plots.contour(POST, region)) > 0.3
    figure = gc.plots.arrows(POST, X, gc.explain(POST, X, 0.2, label=0))
    assert ink(figure) > 0.3
    assert figure.axes[1].get_ylabel() == "P(class 0); dashed: 1/2"  # what the arrows are about
    title = figure.axes[0].get_title().replace("\n", " ")
    assert "influence on P(class 0) of one feature off by up to 0.2" in title


def test_explanations_as_image_and_as_bars():
    post = small_model(d=6)
    e = gc.explain(post, np.zeros(6), 0.2)
    assert ink(gc.plots.heat_map(e, (2, 3))) > 0.05
    assert len(gc.plots.heat_map(e, (2, 3), np.zeros(6)).axes) == 3  # image, map, colour bar
    figure = gc.plots.feature_bars(e, top=4)
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert figure.axes[0].get_xlabel() == "influence on P(class 1) of one feature off by up to 0.2"
    scaled = gc.plots.feature_bars(gc.explain(post, np.zeros(6), 0.2, scale=0.5))
    assert scaled.axes[0].get_xlabel().endswith("one feature off by up to 0.2 times the scale (0.5)")
    limited = gc.plots.feature_bars(gc.explain(post, np.zeros(6), 0.2, domain=(0, 1)))
    assert limited.axes[0].get_xlabel().endswith("off by up to 0.2, staying between 0 and 1")
    order = np.argsort(-np.abs(e.value[0]))[:4]
    assert labels == [f"feature {j}" for j in order[::-1]]


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: gc.plots.safety_curve(RADII, []), "ranges"),
        (
            lambda: gc.plots.safety_curve([0.1], [gc.probability_range(POST, [gc.Ball(X[0], 0.1)])]),
            "ranges",
        ),
        (lambda: gc.plots.safety_curve(RADII, [], side="middle"), "side"),
        (lambda: gc.plots.safety_curve(2 * RADII, RANGES), "ranges"),
        (lambda: gc.plots.safety_curve(RADII[::-1], RANGES[::-1]), "ranges"),
        (lambda: gc.plots.safety_curve([1.0], BOXES), "ranges"),
        (lambda: gc.plots.gap_over_time(gc.plots.Trace()), "trace"),
        (lambda: gc.plots.robustness_boxes({}), "groups"),
        (lambda: gc.plots.contour(small_model(d=3)), "post"),
        (lambda: gc.plots.contour(POST, answer=RANGES[0], label=0), "label"),
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
