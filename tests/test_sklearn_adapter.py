"""`from_sklearn`: the posterior is scikit-learn's predictor, in the pipeline's own units, or is refused."""

from __future__ import annotations

import re

import numpy as np
import pandas
import pytest
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
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


def excluded(model: object, post: gc.Posterior, label: int, seed: int) -> list[str]:
    """One random region: values of predict_proba outside the range by more than the recorded deviation."""
    random = np.random.default_rng(seed)
    x = post.centres[random.integers(len(post.centres))] + UNITS * random.normal(size=3) * 0.5
    radius = 10.0 ** random.uniform(-3.0, 0.3)
    region = gc.Ball(x, radius, scale=UNITS)
    r = gc.probability_range(post, region, label=label, max_nodes=6)
    box = region.inner_box()
    points = random.uniform(box.lower, box.upper, (50, 3))
    corners = np.where(random.random((20, 3)) < 0.5, box.lower, box.upper)
    worst = np.stack([p for p in (r.argmin, r.argmax) if p is not None])
    theirs = model.predict_proba(np.concatenate([worst, points, corners]))[:, label]
    allowed = deviation(post)
    found = []
    if not (r.lower - allowed <= theirs.min() and theirs.max() <= r.upper + allowed):
        found.append(f"seed {seed}: {theirs.min()} to {theirs.max()} outside {r}")
    if not (theirs[0] <= r.min.upper + allowed and theirs[1] >= r.max.lower - allowed):
        found.append(f"seed {seed}: the witnesses give {theirs[:2]}, not what {r} says")
    return found


def models(data) -> list[tuple[object, int]]:
    X, two, three = data
    return [
        (make_pipeline(StandardScaler(), classifier(9.0 * sk.RBF(1.2))).fit(X, two), 2),
        (make_pipeline(MinMaxScaler(), classifier(200.0 * sk.RBF([0.4, 0.3, 0.5]))).fit(X, two), 2),
        (make_pipeline(RobustScaler(), classifier(9.0 * sk.RBF(1.5))).fit(X, three), 3),
    ]


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("target", ["library", "exact"])
def test_ranges_contain_what_scikit_learn_predicts(data, which, target):
    model, classes = models(data)[which]
    post = gc.from_sklearn(model, target=target)
    count = 12 if classes == 2 else 4
    assert not [line for seed in range(count) for line in excluded(model, post, seed % classes, seed)]


@pytest.mark.full
def test_300_regions(data):
    """100 for each model, target="library"."""
    for which, (model, classes) in enumerate(models(data)):
        post = gc.from_sklearn(model)
        seeds = range(1000 * which, 1000 * which + 100)
        assert not [line for seed in seeds for line in excluded(model, post, seed % classes, seed)]
