"""`from_gpflow` against GPflow itself, in GPflow's own environment: task `adapters` of environments.toml."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow import kernels as k
from gpflow.likelihoods import Bernoulli, MultiClass, Softmax
from gpflow.models import GPR, SVGP, VGP, VGPOpperArchambeau

import gpcert as gc
from helpers.foreign_questions import ask_everything, see_changes
from helpers.foreign_regions import all_excluded

random = np.random.default_rng(0)
X = random.normal(size=(50, 2))
Y = (X[:, :1] * X[:, 1:] + 0.3 * random.normal(size=(50, 1)) > 0).astype(float)
UNITS = np.ones(2)

MODELS = {
    "vgp": lambda kernel: VGP((X, Y), kernel, Bernoulli()),
    "opper": lambda kernel: VGPOpperArchambeau((X, Y), kernel, Bernoulli()),
    "svgp": lambda kernel: SVGP(kernel, Bernoulli(), X[:15].copy()),
    "diagonal": lambda kernel: SVGP(kernel, Bernoulli(), X[:15].copy(), q_diag=True),
    "unwhitened": lambda kernel: SVGP(
        kernel, Bernoulli(), X[:15].copy(), whiten=False, mean_function=gpflow.functions.Constant(0.3)
    ),
}
KERNELS = {
    "rbf": lambda: k.SquaredExponential(2.0, [1.0, 2.0]),
    "sum": lambda: k.Matern32() + k.RationalQuadratic() + k.White(0.1),
    "product": lambda: k.Exponential() * k.Matern52(),
}


def trained(model, labels=Y, steps=25):
    loss = model.training_loss_closure((X, labels)) if isinstance(model, SVGP) else model.training_loss
    gpflow.optimizers.Scipy().minimize(loss, model.trainable_variables, options={"maxiter": steps})
    return model


def predict(model):
    def probabilities(points):
        p = model.predict_y(points)[0].numpy()
        return np.concatenate([1.0 - p, p], axis=1)

    return probabilities


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", KERNELS)
def test_every_model_predicts_as_gpflow(kind, name):
    model = trained(MODELS[kind](KERNELS[name]()))
    post = gc.from_gpflow(model)
    points = 2.0 * np.random.default_rng(1).normal(size=(100, 2))
    np.testing.assert_allclose(post.probability(points), predict(model)(points), rtol=0, atol=1e-7)
    assert post.training["deviation"]["probability"] < 1e-7
    assert post.likelihood == gc.Floored(gc.Probit(), 1e-3)
    exact = gc.from_gpflow(model, target="exact")
    assert exact.likelihood == gc.Probit()
    assert 1e-5 < exact.training["deviation"]["probability"] < 1.001e-3


def test_the_sigmoid_is_refused_where_twenty_points_do_not_suffice():
    model = trained(SVGP(k.SquaredExponential(), Bernoulli(invlink=tf.sigmoid), X[:15].copy()))
    with pytest.raises(gc.InvalidInputError, match=r"probability differs by .* target='exact' certifies"):
        gc.from_gpflow(model, tolerance=1e-9)
    post = gc.from_gpflow(model, target="exact")
    assert post.likelihood == gc.Logit()
    assert post.training["deviation"]["mean"] < 1e-8


@pytest.mark.parametrize("separate", [False, True])
def test_softmax_is_certified_as_the_exact_expectation(separate):
    labels = np.digitize(X[:, :1], [-0.4, 0.5])
    kernel, inducing = k.SquaredExponential(), X[:15].copy()
    if separate:
        kernel = k.SeparateIndependent([k.SquaredExponential(1.0 + c) for c in range(3)])
        points = [gpflow.inducing_variables.InducingPoints(X[c : c + 12].copy()) for c in range(3)]
        inducing = gpflow.inducing_variables.SeparateIndependentInducingVariables(points)
    model = trained(SVGP(kernel, Softmax(3), inducing, num_latent_gps=3), labels, steps=15)
    post = gc.from_gpflow(model)
    assert post.target == "exact expectation of the softmax likelihood, which GPflow samples"
    assert post.training["deviation"]["mean"] < 1e-8
    answer = gc.probability_range(post, gc.Ball(X[0], 0.05), 1, max_nodes=200)
    assert answer.status == "converged"
    p = post.probability(X[0] + random.uniform(-0.05, 0.05, (200, 2)))[:, 1]
    assert answer.lower <= p.min() + 1e-9
    assert p.max() - 1e-9 <= answer.upper
    model.likelihood.num_monte_carlo_points = 20000
    np.testing.assert_allclose(post.probability(X[:10]), model.predict_y(X[:10])[0], rtol=0, atol=0.02)


def test_what_is_not_supported_is_named():
    rbf = k.SquaredExponential
    refused = [
        (GPR((X, Y), rbf()), "model must be a GPflow VGP, SVGP or VGPOpperArchambeau, got GPR"),
        (VGP((X, Y), k.Linear(), Bernoulli()), "kernel must be .* got Linear"),
        (VGP((X, Y), rbf() + k.Constant(), Bernoulli()), "kernel must not add a constant"),
        (VGP((X, Y), rbf(active_dims=[0]), Bernoulli()), r"all 2 features, got 'active_dims \[0\]'"),
        (
            VGP((X, Y), rbf(), Bernoulli(invlink=tf.exp)),
            "invlink must be inv_probit or tf.sigmoid, got 'exp'",
        ),
        (
            VGP((X, Y), rbf(), Bernoulli(), mean_function=gpflow.functions.Linear(np.ones((2, 1)))),
            "mean_function must be Zero or Constant, got Linear",
        ),
        (
            SVGP(rbf(), MultiClass(3), X[:15].copy(), num_latent_gps=3),
            r"likelihood must be Bernoulli or Softmax, the certified ones, got 'MultiClass \(RobustMax\)'",
        ),
    ]
    for model, sentence in refused:
        with pytest.raises(gc.InvalidInputError, match=sentence):
            gc.from_gpflow(model)


def test_the_exporter_runs_in_this_environment(tmp_path):
    assert np.__version__.startswith("1."), "GPflow needs numpy < 2: this is the other environment"
    model = trained(MODELS["svgp"](KERNELS["rbf"]()))
    gc.export(model, tmp_path / "model.safetensors")
    post = gc.load(tmp_path / "model.safetensors")
    np.testing.assert_allclose(post.probability(X), predict(model)(X), rtol=0, atol=1e-8)


def test_300_regions():
    models = [trained(MODELS[kind](KERNELS["rbf"]())) for kind in MODELS]
    models.append(trained(MODELS["svgp"](KERNELS["product"]())))
    assert not all_excluded([(predict(model), gc.from_gpflow(model)) for model in models], 300, UNITS)


def test_a_model_is_asked_as_it_is_and_again_after_it_was_changed():
    model = trained(MODELS["svgp"](k.SquaredExponential()), steps=5)
    ask_everything(model, predict(model), X)

    def another_kernel():
        model.kernel = k.Matern52(model.kernel.variance, model.kernel.lengthscales)

    changes = {
        "trained": lambda: trained(model, steps=2),
        "by hand": lambda: model.kernel.lengthscales.assign(2.0),
        "kernel": another_kernel,
    }
    see_changes(model, predict(model), X, changes)
