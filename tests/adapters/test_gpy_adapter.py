"""`from_gpy` against GPy itself. Needs the `gpy` extra."""

from __future__ import annotations

import numpy as np
import pytest

import gpcert as gc
from helpers.foreign_questions import ask_everything, see_changes
from helpers.foreign_regions import all_excluded

pytestmark = [
    pytest.mark.full,
    pytest.mark.filterwarnings("default"),  # GPy's own warnings are not ours
]

UNITS = np.ones(2)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(50, 2))
    return X, (X[:, :1] * X[:, 1:] + 0.3 * random.normal(size=(50, 1)) > 0).astype(float)


def kernels():
    from GPy.kern import RBF, Exponential, Matern32, Matern52, RatQuad, White

    return {
        "rbf": RBF(2, 2.0, 1.3),
        "sum": RBF(2, 2.0, [1.0, 2.0], ARD=True) + Matern32(2) + White(2, 0.1),
        "product": RatQuad(2, power=3.0) * Matern52(2),
        "exponential": Exponential(2, 1.5, 2.0),
    }


def build(kind, data, kernel):
    import GPy

    X, Y = data
    if kind == "laplace":
        method = GPy.inference.latent_function_inference.Laplace()
        return GPy.models.GPClassification(X, Y, kernel=kernel, inference_method=method)
    if kind == "sparse":
        return GPy.models.SparseGPClassification(X, Y, kernel=kernel, Z=X[:15].copy())
    if kind == "svgp":
        model = GPy.core.SVGP(X, Y, X[:15].copy(), kernel, GPy.likelihoods.Bernoulli())
        model.optimize(max_iters=30)
        return model
    return GPy.models.GPClassification(X, Y, kernel=kernel)


def predict(model):
    def probabilities(points):
        p = model.predict(points)[0]
        return np.concatenate([1.0 - p, p], axis=1)

    return probabilities


@pytest.mark.parametrize("kind", ["ep", "laplace", "sparse", "svgp"])
@pytest.mark.parametrize("name", ["rbf", "sum", "product", "exponential"])
def test_every_model_predicts_as_gpy(data, kind, name):
    model = build(kind, data, kernels()[name])
    post = gc.from_gpy(model)
    points = 2.0 * np.random.default_rng(1).normal(size=(100, 2))
    np.testing.assert_allclose(post.probability(points), predict(model)(points), rtol=0, atol=1e-7)
    assert post.training["deviation"]["probability"] < 1e-7
    assert post.target.startswith("GPy's predict")
    assert post.classes.tolist() == [0, 1]


def test_what_is_not_supported_is_named(data):
    import GPy

    X, Y = data
    heaviside = GPy.models.GPClassification(X, Y)
    heaviside.likelihood.gp_link = GPy.likelihoods.link_functions.Heaviside()
    mean = GPy.mappings.Constant(2, 1, 0.3)
    build_classifier = GPy.models.GPClassification
    refused = [
        (GPy.models.GPRegression(X, Y), "model must be a GPy model of type .* got GPRegression"),
        (build_classifier(X, Y, kernel=GPy.kern.Linear(2)), "kernel must be .* got Linear"),
        (
            build_classifier(X, Y, kernel=GPy.kern.RBF(2) + GPy.kern.Bias(2)),
            "kernel must not add a constant",
        ),
        (build_classifier(X, Y, kernel=GPy.kern.RBF(1, active_dims=[1])), r"all 2 features .* got .*\[1\]"),
        (build_classifier(X, Y, mean_function=mean), "mean_function must be None, got Constant"),
        (heaviside, "likelihood must be Bernoulli with the Probit link, got Heaviside"),
    ]
    for model, sentence in refused:
        with pytest.raises(gc.InvalidInputError, match=sentence):
            gc.from_gpy(model)


def test_300_regions(data):
    kinds = [("ep", "rbf"), ("laplace", "rbf"), ("sparse", "rbf"), ("svgp", "rbf"), ("ep", "product")]
    models = [build(kind, data, kernels()[name]) for kind, name in kinds]
    assert not all_excluded([(predict(model), gc.from_gpy(model)) for model in models], 300, UNITS)


def test_a_model_is_asked_as_it_is_and_again_after_it_was_changed(data):
    import GPy

    model = build("ep", data, kernels()["rbf"])
    ask_everything(model, predict(model), data[0])

    def set_by_hand():
        model.kern.lengthscale = 2.0

    def another_inference():
        model.inference_method = GPy.inference.latent_function_inference.Laplace()
        model.parameters_changed()

    changes = {
        "by hand": set_by_hand,
        "optimised": lambda: model.optimize(max_iters=3),
        "inference": another_inference,
    }
    see_changes(model, predict(model), data[0], changes)
