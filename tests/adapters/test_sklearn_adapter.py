"""`from_sklearn`: the posterior is scikit-learn's predictor, in the pipeline's own units, or is refused."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pandas
import pytest
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import gpcert as gc
from helpers.foreign_regions import all_excluded, excluded

CENTRE, UNITS = np.array([5.0, -300.0, 7.0]), np.array([1.0, 100.0, 1e-3])
SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler(feature_range=(-2, 3)),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False, with_scaling=False),
]
KERNELS = [
    sk.RBF(1.2),
    4.0 * sk.RBF([1.0, 2.0, 3.0]),
    sk.RBF(1.0) * 4.0,
    2.0 * sk.Matern(1.5, nu=0.5),
    2.0 * sk.Matern([1.0, 2.0, 3.0], nu=1.5) + 0.5 * sk.RBF(2.0),
    3.0 * sk.Matern(1.5, nu=2.5) + sk.WhiteKernel(0.3),
    sk.Matern(1.5, nu=np.inf),
    5.0 * sk.RationalQuadratic(1.5, 0.7),
    3.0 * sk.RationalQuadratic(2.0) * sk.RBF(3.0),
    sk.ConstantKernel(2.0) * (sk.RBF(1.0) + 0.5 * sk.Matern(2.0, nu=1.5)),
    (sk.RBF(1.0) + sk.WhiteKernel(0.1)) * (sk.RBF(4.0) + sk.WhiteKernel(0.2)),
]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    Z = random.normal(size=(70, 3))
    two = np.where(Z[:, 0] * Z[:, 1] + 0.3 * random.normal(size=70) > 0, "yes", "no")
    return CENTRE + UNITS * Z, two, np.digitize(Z[:, 0] + Z[:, 1] ** 2, [0.0, 1.2]) * 10


def classifier(kernel: sk.Kernel | None = None, **options: object) -> GaussianProcessClassifier:
    return GaussianProcessClassifier(
        4.0 * sk.RBF(1.5) if kernel is None else kernel, optimizer=None, **options
    )


def deviation(post: gc.Posterior) -> float:
    return post.training["deviation"]["probability"]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_kernel_predicts_as_scikit_learn(data, kernel, classes):
    X, two, three = data
    model = make_pipeline(StandardScaler(), classifier(kernel)).fit(X, two if classes == 2 else three)
    post = gc.from_sklearn(model)
    points = CENTRE + UNITS * np.random.default_rng(1).normal(size=(200, 3)) * 2.0
    np.testing.assert_allclose(post.probability(points), model.predict_proba(points), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(post.classes, model.classes_)
    assert deviation(post) < 1e-11
    assert post.training["library"] == "scikit-learn"


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_every_scaler_is_folded_into_the_posterior(data, scaler):
    X, two, _ = data
    kernel = 4.0 * sk.RBF([1.0, 90.0, 1e-3]) if "Standard" not in str(scaler) else 4.0 * sk.RBF(1.3)
    model = make_pipeline("passthrough", scaler, FunctionTransformer(), classifier(kernel)).fit(X, two)
    post = gc.from_sklearn(model)
    np.testing.assert_allclose(post.centres, X, rtol=1e-12)
    np.testing.assert_allclose(post.probability(X), model.predict_proba(X), rtol=0, atol=1e-10)
    assert type(scaler).__name__ in post.training["scaling"]


def test_pipelines_nest_and_scalers_compose(data):
    X, two, _ = data
    model = make_pipeline(make_pipeline(MinMaxScaler(), StandardScaler()), RobustScaler(), classifier())
    post = gc.from_sklearn(model.fit(X, two))
    assert post.training["scaling"] == ["MinMaxScaler", "StandardScaler", "RobustScaler"]
    np.testing.assert_allclose(post.probability(X), model.predict_proba(X), rtol=0, atol=1e-10)


def test_targets(data):
    X, two, _ = data
    model = classifier(100.0 * sk.RBF(1.0)).fit(X / UNITS, two)
    library, exact = (gc.from_sklearn(model, target=target) for target in ("library", "exact"))
    assert isinstance(library.likelihood, gc.FiveErf)
    assert isinstance(exact.likelihood, gc.Logit)
    assert deviation(library) < 1e-11 < 1e-6 < deviation(exact) < 4.4e-4
    region = gc.Ball(X[0] / UNITS, 0.1)
    ranges = [gc.probability_range(post, region, max_nodes=4) for post in (library, exact)]
    assert "five error functions" in ranges[0].target
    assert ranges[1].target == "exact expectation of the logistic likelihood"
    with pytest.raises(gc.InvalidInputError, match="target must be 'library' or 'exact', got 'both'"):
        gc.from_sklearn(model, target="both")


def test_column_names_travel_and_nothing_warns(data):
    X, two, _ = data
    table = pandas.DataFrame(X, columns=["age", "income", "dose"])
    model = make_pipeline(StandardScaler(), classifier()).fit(table, two)
    post = gc.from_sklearn(model)
    assert post.feature_names == ("age", "income", "dose")


def test_a_posterior_of_scikit_learn_survives_its_file(data, tmp_path):
    X, two, three = data
    for y in (two, three):
        post = gc.from_sklearn(make_pipeline(StandardScaler(), classifier()).fit(X, y))
        gc.save(post, tmp_path / "model.safetensors")
        again = gc.load(tmp_path / "model.safetensors")
        assert again.likelihood == post.likelihood
        assert again.target == post.target
        assert dict(again.training) == dict(post.training)
        np.testing.assert_array_equal(again.probability(X), post.probability(X))


REFUSED = [
    (lambda: make_pipeline(StandardScaler(), PCA(2), classifier()), "got PCA: a box of inputs is not a box"),
    (lambda: make_pipeline(Normalizer(), classifier()), r"RobustScaler\), got Normalizer"),
    (lambda: make_pipeline(MinMaxScaler(clip=True), classifier()), "got MinMaxScaler with clip=True"),
    (lambda: make_pipeline(QuantileTransformer(n_quantiles=10), classifier()), "got QuantileTransformer"),
    (lambda: make_pipeline(FunctionTransformer(np.tanh), classifier()), "got FunctionTransformer"),
    (lambda: classifier(sk.DotProduct()), "kernel must be .* got DotProduct"),
    (lambda: classifier(sk.RBF() + 2.0), "kernel must not add a constant"),
    (lambda: classifier(sk.Matern(nu=0.7)), "got 'nu = 0.7'"),
    (lambda: classifier(sk.RBF() ** 2), "got Exponentiation"),
    (
        lambda: GaussianProcessRegressor(optimizer=None),
        "model must be a GaussianProcessClassifier .* got GaussianProcessRegressor",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_what_is_not_supported_is_named(data, make, sentence):
    X, two, _ = data
    model = make().fit((X - CENTRE) / UNITS, two if "Regressor" not in sentence else np.zeros(len(X)))
    with pytest.raises(gc.InvalidInputError, match=sentence):
        gc.from_sklearn(model)


def test_one_against_one_has_no_probabilities(data):
    X, _, three = data
    model = make_pipeline(StandardScaler(), classifier(multi_class="one_vs_one")).fit(X, three)
    with pytest.raises(gc.InvalidInputError, match=r"multi_class must be 'one_vs_rest' .* got 'one_vs_one'"):
        gc.from_sklearn(model)


def test_a_search_is_not_its_best_model(data):
    X, two, _ = data
    search = GridSearchCV(classifier(), {"max_iter_predict": [10]}, cv=2).fit(X, two)
    with pytest.raises(gc.InvalidInputError, match=r"its best_estimator_ may be.*got GridSearchCV"):
        gc.from_sklearn(search)
    gc.from_sklearn(search.best_estimator_)


def test_a_model_before_fit_is_one_sentence():
    with pytest.raises(gc.NotFittedError, match="model must be fitted"):
        gc.from_sklearn(classifier())


class Tripled(sk.RBF):
    """A user's own kernel, which no name tells."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return 3.0 * super().__call__(X, Y, eval_gradient)


def test_subclasses_and_tampered_models_are_refused(data):
    X, two, _ = data
    Z = (X - CENTRE) / UNITS
    with pytest.raises(gc.InvalidInputError, match="got Tripled"):
        gc.from_sklearn(classifier(Tripled(1.0)).fit(Z, two))
    model = classifier().fit(Z, two)
    predict = model.predict_proba
    model.predict_proba = lambda points: predict(np.asarray(points) + 0.01)
    sentence = (
        r"model must predict as scikit-learn does, to 1e-06, but its probability differs by 0\.0\d+ \(mean"
    )
    with pytest.raises(gc.InvalidInputError, match=sentence):
        gc.from_sklearn(model)
    assert deviation(gc.from_sklearn(model, tolerance=0.1)) > 1e-4
    with pytest.raises(gc.InvalidInputError, match=re.escape("tolerance must be > 0, got -1")):
        gc.from_sklearn(model, tolerance=-1)


def swap_classes(model):
    model.classes_ = model.classes_[::-1]


def swap_labels(model):
    model.base_estimator_.classes_ = model.base_estimator_.classes_[::-1]


def one_label_for_all(model):
    model.predict = lambda points: np.full(len(points), model.classes_[0])


@pytest.mark.parametrize("target", ["library", "exact"])
@pytest.mark.parametrize(
    ("several", "tamper"),
    [
        (False, swap_classes),
        (False, swap_labels),
        (False, one_label_for_all),
        (True, swap_classes),
        (True, swap_labels),
        (True, one_label_for_all),
    ],
)
def test_a_model_that_predicts_another_class_than_its_largest_probability_is_refused(
    data, several, tamper, target
):
    """Its probabilities are untouched: only the labels tell."""
    X, two, three = data
    model = classifier().fit(X, three if several else two)
    before = model.predict_proba(X)
    gc.from_sklearn(model, target=target)
    tamper(model)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    sentence = (
        r"model must predict the class of its largest probability, but predict says .+ where P\(.+\) is"
    )
    with pytest.raises(gc.InvalidInputError, match=sentence):
        gc.from_sklearn(model, target=target)
    with pytest.raises(gc.InvalidInputError, match=sentence):
        gc.from_sklearn(make_pipeline(model), target=target)


def test_ties_may_have_either_label():
    """Symmetric data: the latent mean is 0 up to rounding on the whole line between the classes."""
    X = np.array([[-1.0, 0.0], [1.0, 0.0], [-1.0, 1.0], [1.0, 1.0]])
    model = classifier().fit(X, ["a", "b", "a", "b"])
    line = np.column_stack([np.zeros(20), np.linspace(-1.0, 2.0, 20)])
    assert np.abs(model.predict_proba(line) - 0.5).max() < 1e-8
    predict = model.predict
    model.predict = lambda points: np.where(
        np.abs(model.predict_proba(points)[:, 0] - 0.5) < 1e-7, "a", predict(points)
    )
    assert gc.from_sklearn(model).n_classes == 2


def models(data) -> list[GaussianProcessClassifier]:
    X, two, three = data
    matern = 4.0 * sk.Matern([1.0, 2.0, 1.5], nu=1.5) + sk.RBF(2.0)
    return [
        make_pipeline(StandardScaler(), classifier(9.0 * sk.RBF(1.2))).fit(X, two),
        make_pipeline(MinMaxScaler(), classifier(200.0 * sk.RBF([0.4, 0.3, 0.5]))).fit(X, two),
        make_pipeline(RobustScaler(), classifier(9.0 * sk.RBF(1.5))).fit(X, three),
        make_pipeline(StandardScaler(), classifier(matern)).fit(X, two),
        make_pipeline(StandardScaler(), classifier(4.0 * sk.RationalQuadratic(1.5))).fit(X, two),
    ]


def test_ranges_contain_what_scikit_learn_predicts(data):
    converted = [(model.predict_proba, gc.from_sklearn(model)) for model in models(data)]
    assert not all_excluded(converted, 24, UNITS, nodes=4)


def test_exact_ranges_contain_it_up_to_the_gap_between_the_formulas(data):
    """4.4e-4 for two classes; what is recorded is only the largest gap at the points compared."""
    for seed, model in enumerate(models(data)[:2] * 4):
        post = gc.from_sklearn(model, target="exact")
        assert not excluded(model.predict_proba, post, seed, UNITS, 4.4e-4, nodes=4)


@pytest.mark.full
def test_300_regions(data):
    converted = [(model.predict_proba, gc.from_sklearn(model)) for model in models(data)]
    assert not all_excluded(converted, 300, UNITS)


def test_the_test_of_containment_can_fail(data):
    """A predictor that is off by more than is recorded is seen."""
    model = models(data)[0]
    post = gc.from_sklearn(model)
    assert all_excluded([(lambda X: np.roll(model.predict_proba(X), 1, axis=1), post)], 6, UNITS)


# Replaying results, and the light exporter.


def test_replay_puts_witnesses_through_the_users_model(data):
    X, two, _ = data
    model = make_pipeline(StandardScaler(), classifier()).fit(X, two)
    post = gc.from_sklearn(model)
    r = gc.probability_range(post, gc.Ball(X[3], 0.5, scale=UNITS), label=post.classes[0], max_nodes=10)
    told = gc.replay(r, model.predict_proba)
    assert told.names == ("argmin", "argmax")
    assert told.deviation <= deviation(post) + 1e-9
    assert "your model says" in str(told)
    np.testing.assert_array_equal(told.changed, model.predict(told.points) != model.classes_[0])
    column = gc.replay(r, lambda points: model.predict_proba(points)[:, 1])
    np.testing.assert_allclose(column.reported, told.reported, atol=1e-12)
    verdict = gc.certify(post, X[3], gc.Ball(X[3], 3.0, scale=UNITS), max_nodes=200)
    assert verdict.status == "unsafe"
    assert verdict.target == post.target
    told = gc.replay(verdict, model.predict_proba)
    assert told.names == ("counterexample",)
    assert told.changed == (True,)
    assert model.predict(verdict.counterexample[None])[0] != verdict.label


def test_float32_pipelines_record_what_their_scalers_round():
    """scikit-learn's scalers compute in float32 on float32 points: far from the origin that is felt."""
    rng = np.random.default_rng(0)
    near = (rng.normal(size=(30, 2)) * 3 + [5, 20]).astype(np.float32)
    y = ((near[:, 0] - 5) * (near[:, 1] - 20) > 0).astype(int)

    def fitted(X):
        return make_pipeline(MinMaxScaler(), classifier(100.0 * sk.RBF(0.3))).fit(X, y)

    model = fitted(near)
    post = gc.from_sklearn(model)
    recorded = post.training["float32 deviation"]
    assert np.abs(post.probability(near.astype(float)) - model.predict_proba(near)).max() <= recorded + 1e-9
    far = near + np.array([0.0, 1e6], dtype=np.float32)
    with pytest.raises(gc.InvalidInputError, match="fit it on float64 points"):
        gc.from_sklearn(fitted(far), tolerance=1e-4)
    assert "float32 deviation" not in gc.from_sklearn(fitted(near.astype(float))).training


def test_pipelines_inside_pipelines(data):
    X, two, _ = data
    inner = make_pipeline(MinMaxScaler(), classifier(sk.RBF(0.5)))
    for steps in ([StandardScaler(), inner], [inner]):
        model = make_pipeline(*steps).fit(X, two)
        for target in ("library", "exact"):
            post = gc.from_sklearn(model, target=target)
            assert post.training["deviation"]["mean"] < 1e-8


def test_what_cannot_be_read_is_one_sentence(data):
    X, two, _ = data
    gpc = classifier().fit(X, two)
    with pytest.raises(gc.NotFittedError, match="got a StandardScaler before fit"):
        gc.from_sklearn(make_pipeline(StandardScaler(), gpc))
    wrong = MinMaxScaler().fit(np.eye(X.shape[1] + 1))
    with pytest.raises(gc.InvalidInputError, match="features, got a MinMaxScaler of"):
        gc.from_sklearn(make_pipeline(StandardScaler().fit(X), wrong, gpc))
    with pytest.raises(gc.InvalidInputError, match="target must be 'library' or 'exact'"):
        gc.from_sklearn(gpc, target=np.array(["library"]))
    gpc.predict_proba = lambda Z: np.full((len(Z), 2), 0.5)
    with pytest.raises(gc.InvalidInputError, match="probability differs by"):
        gc.from_sklearn(gpc, target="exact")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda X: np.zeros(len(X), dtype=int), "labels"),
        (lambda X: np.array(["a"] * len(X)), "got ndarray"),
        (lambda X: (np.zeros((len(X), 1)), None), "got tuple"),
        (lambda X: np.full((len(X), 2), 0.9), "of sum 1"),
    ],
)
def test_replay_refuses_what_is_no_probability(data, answer, told):
    X, two, _ = data
    found = gc.attack(gc.from_sklearn(classifier().fit(X, two)), gc.Ball(X[0], 0.1))
    with pytest.raises(gc.InvalidInputError, match=told):
        gc.replay(found, answer)


def test_replay_without_a_point_and_with_bad_arguments(data):
    X, two, _ = data
    model = make_pipeline(StandardScaler(), classifier()).fit(X, two)
    post = gc.from_sklearn(model)
    verdict = gc.certify(post, X[3], gc.Ball(X[3], 1e-4, scale=UNITS))
    assert verdict.status == "safe"
    assert str(gc.replay(verdict, model.predict_proba)) == "nothing to replay: the result holds no point"
    r = gc.probability_range(post, gc.Ball(X[3], 0.5, scale=UNITS), max_nodes=1)
    for result, predict, sentence in [
        (r, 3, "predict must be a function"),
        ("r", model.predict_proba, "result must be a range, verdict, radius or attack, got str"),
        (r, lambda points: np.zeros((7, 2)), "predict must return probabilities, k rows of C"),
        (r, lambda points: np.full((1, 2), 7.0), r"predict must return probabilities in \[0, 1\]"),
    ]:
        with pytest.raises(gc.InvalidInputError, match=sentence):
            gc.replay(result, predict)


def test_the_exporter_writes_what_load_reads_and_needs_no_ball_arithmetic(tmp_path):
    path = tmp_path / "model.safetensors"
    code = f"""
import sys
sys.modules["flint"] = None  # importing it would now fail
import numpy as np, gpcert as gc
from sklearn.gaussian_process import GaussianProcessClassifier
X = np.random.default_rng(0).normal(size=(30, 2))
model = GaussianProcessClassifier().fit(X, X[:, 0] > 0)
gc.export(model, {str(path)!r}, target="exact")
assert not [m for m in sys.modules if m.startswith(("gpcert.bounds", "gpcert.search", "gpcert.questions"))]
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
    post = gc.load(path)
    assert isinstance(post.likelihood, gc.Logit)
    assert post.training["library"] == "scikit-learn"
    with pytest.raises(
        gc.InvalidInputError, match=r"model must be a model of scikit-learn, GPy, .* got list"
    ):
        gc.export([], path)
