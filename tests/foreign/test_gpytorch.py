"""`from_gpytorch` against GPyTorch itself: task `adapters` of environments.toml."""

from __future__ import annotations

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import LinearKernel, MaternKernel, RBFKernel, RQKernel, ScaleKernel
from gpytorch.likelihoods import BernoulliLikelihood, DirichletClassificationLikelihood, SoftmaxLikelihood
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    DeltaVariationalDistribution,
    IndependentMultitaskVariationalStrategy,
    MeanFieldVariationalDistribution,
    UnwhitenedVariationalStrategy,
    VariationalStrategy,
)

import gpcert as gc
from helpers.foreign_questions import ask_everything, see_changes
from helpers.foreign_regions import all_excluded, excluded

random = np.random.default_rng(0)
X = random.normal(size=(60, 2))
Y = (X[:, 0] * X[:, 1] + 0.3 * random.normal(size=60) > 0).astype(float)
UNITS = np.ones(2)


class Classifier(gpytorch.models.ApproximateGP):
    def __init__(
        self,
        strategy=VariationalStrategy,
        distribution=CholeskyVariationalDistribution,
        kernel=None,
        classes=1,
        mean=None,
        dtype=torch.float64,
    ):
        batch = torch.Size([classes]) if classes > 1 else torch.Size()
        Z = torch.as_tensor(X[:20], dtype=dtype)
        Z = Z.repeat(classes, 1, 1) if classes > 1 else Z
        inner = strategy(self, Z, distribution(20, batch_shape=batch), learn_inducing_locations=True)
        if classes > 1:
            inner = IndependentMultitaskVariationalStrategy(inner, num_tasks=classes)
        super().__init__(inner)
        self.mean_module = gpytorch.means.ConstantMean(batch_shape=batch) if mean is None else mean
        own = ScaleKernel(RBFKernel(batch_shape=batch, ard_num_dims=2), batch_shape=batch)
        self.covar_module = own if kernel is None else kernel
        self.to(dtype)

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def trained(model, likelihood=None, labels=Y, steps=40):
    torch.manual_seed(0)
    dtype = next(model.parameters()).dtype
    likelihood = BernoulliLikelihood() if likelihood is None else likelihood
    points = torch.as_tensor(X, dtype=dtype)
    target = torch.as_tensor(labels) if labels.dtype == np.int64 else torch.as_tensor(labels, dtype=dtype)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    model.train()
    for _ in range(steps):
        optimiser.zero_grad()
        loss = -objective(model(points), target)
        loss.sum().backward()
        optimiser.step()
    return model.eval()


def predict(model):
    def probabilities(points):
        dtype = next(model.parameters()).dtype
        with torch.no_grad():
            p = BernoulliLikelihood()(model(torch.as_tensor(points, dtype=dtype))).probs.double().numpy()
        return np.stack([1.0 - p, p], axis=1)

    return probabilities


def composite():
    return ScaleKernel(MaternKernel(nu=1.5)) + ScaleKernel(RQKernel() * MaternKernel(nu=2.5))


@pytest.mark.parametrize("strategy", [VariationalStrategy, UnwhitenedVariationalStrategy])
@pytest.mark.parametrize("spread", [CholeskyVariationalDistribution, MeanFieldVariationalDistribution])
@pytest.mark.parametrize("kernel", [None, composite, lambda: MaternKernel(nu=0.5)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_every_model_predicts_as_gpytorch(strategy, spread, kernel, dtype):
    model = Classifier(strategy, spread, None if kernel is None else kernel(), dtype=dtype)
    trained(model, steps=15)
    post = gc.from_gpytorch(model, BernoulliLikelihood())
    limit = 1e-8 if dtype == torch.float64 else 5e-3
    assert post.training["deviation"]["probability"] < limit
    assert post.training["float"].startswith("float64" if dtype == torch.float64 else "float32")
    points = 2.0 * np.random.default_rng(1).normal(size=(100, 2))
    np.testing.assert_allclose(post.probability(points), predict(model)(points), rtol=0, atol=limit)


def test_a_point_mass_and_the_default_likelihood():
    model = trained(Classifier(distribution=DeltaVariationalDistribution))
    assert gc.from_gpytorch(model).training["deviation"]["probability"] < 1e-9
    model.train()
    gc.from_gpytorch(model)
    assert model.training, "the model's mode is put back"


def test_softmax_is_certified_as_the_exact_expectation():
    labels = np.digitize(X[:, 0], [-0.4, 0.5])
    likelihood = SoftmaxLikelihood(num_classes=3, mixing_weights=False)
    model = trained(Classifier(classes=3), likelihood, labels)
    post = gc.from_gpytorch(model, likelihood)
    assert post.target == "exact expectation of the softmax likelihood, which GPyTorch samples"
    assert post.training["deviation"]["mean"] < 1e-9
    with torch.no_grad(), gpytorch.settings.num_likelihood_samples(20000):
        sampled = likelihood(model(torch.as_tensor(X[:10]))).probs.mean(0).numpy()
    np.testing.assert_allclose(post.probability(X[:10]), sampled, rtol=0, atol=0.02)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("kernel", ["each", "shared", "matern"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_softmax_converges_and_contains_the_expectation(classes, kernel, dtype):
    """A kernel for each class is GPyTorch's own example; precisions are indefinite throughout."""
    shared = {"each": None, "shared": ScaleKernel(RBFKernel()), "matern": ScaleKernel(MaternKernel(nu=1.5))}
    labels = np.digitize(X[:, 0], np.linspace(-0.8, 0.8, classes + 1)[1:-1])
    likelihood = SoftmaxLikelihood(num_classes=classes, mixing_weights=False)
    model = trained(Classifier(classes=classes, kernel=shared[kernel], dtype=dtype), likelihood, labels)
    post = gc.from_gpytorch(model, likelihood)
    assert min(np.linalg.eigvalsh(R)[0] for R in post.precision) < 0.0
    for seed in range(4):
        centre = np.random.default_rng(seed).normal(size=2)
        r = gc.probability_range(post, gc.Ball(centre, 0.05), label=seed % classes, max_nodes=200)
        assert r.status == "converged"
        points = centre + np.random.default_rng(seed).uniform(-0.05, 0.05, (200, 2))
        p = post.probability(points)[:, seed % classes]
        assert r.lower <= p.min() + 1e-9
        assert p.max() - 1e-9 <= r.upper
        few = torch.as_tensor(points[:10], dtype=dtype)  # as many as classes would be taken for classes
        with torch.no_grad(), gpytorch.settings.num_likelihood_samples(4000):
            sampled = likelihood(model(few)).probs.mean(0).double().numpy()
        assert np.abs(sampled[:, seed % classes] - p[:10]).max() < 0.05


def test_a_model_that_was_never_called():
    """GPyTorch draws its variational parameters at the first call: read after it."""
    for model in (Classifier(), Classifier().train(), Classifier(UnwhitenedVariationalStrategy)):
        assert gc.from_gpytorch(model).training["deviation"]["probability"] < 1e-9


class Warped(Classifier):
    """A deep kernel: the covariance module is not the whole story."""

    def forward(self, x):
        return super().forward(torch.tanh(x))


def test_what_is_not_supported_is_named_or_found_out():
    mixing = SoftmaxLikelihood(num_features=3, num_classes=3)
    refused = [
        (
            lambda: gc.from_gpytorch(Classifier(kernel=LinearKernel())),
            "covar_module must be .* got LinearKernel",
        ),
        (
            lambda: gc.from_gpytorch(Classifier(mean=gpytorch.means.LinearMean(2))),
            "mean_module must be ConstantMean or ZeroMean, got LinearMean",
        ),
        (
            lambda: gc.from_gpytorch(Classifier(kernel=RBFKernel(active_dims=[1]))),
            r"all 2 features, got 'active_dims \[1\]'",
        ),
        (
            lambda: gc.from_gpytorch(Classifier(classes=3), mixing),
            "mixing_weights=False, got 'mixing weights'",
        ),
        (
            lambda: gc.from_gpytorch(Classifier(), DirichletClassificationLikelihood(torch.tensor([0, 1]))),
            "BernoulliLikelihood .* got DirichletClassificationLikelihood",
        ),
        (lambda: gc.from_gpytorch(Classifier(classes=3)), "SoftmaxLikelihood for 3 latent"),
        (lambda: gc.from_gpytorch(Classifier(dtype=torch.float16)), "float64 or float32, got float16"),
        (lambda: gc.from_gpytorch(torch.nn.Linear(2, 1)), "model must be an ApproximateGP"),
        (lambda: gc.from_gpytorch(trained(Warped())), "model must predict as gpytorch does, .* differs by"),
    ]
    for question, sentence in refused:
        with pytest.raises(gc.InvalidInputError, match=sentence):
            question()


def test_300_regions():
    models = [
        trained(Classifier()),
        trained(Classifier(UnwhitenedVariationalStrategy)),
        trained(Classifier(distribution=MeanFieldVariationalDistribution)),
        trained(Classifier(kernel=composite())),
    ]
    converted = [(predict(model), gc.from_gpytorch(model)) for model in models]
    assert not all_excluded(converted, 300, UNITS)


def test_float32_within_ten_times_the_gap_recorded():
    """float32 noise at other points than those compared may exceed the largest seen there."""
    model = trained(Classifier(dtype=torch.float32))
    post = gc.from_gpytorch(model)
    allowed = 10.0 * post.training["deviation"]["probability"]
    assert not [line for seed in range(30) for line in excluded(predict(model), post, seed, UNITS, allowed)]


def test_a_model_is_asked_as_it_is_and_again_after_it_was_changed():
    model = trained(Classifier(kernel=ScaleKernel(MaternKernel(nu=2.5))), steps=15)
    ask_everything(model, predict(model), X)
    kernel = model.covar_module

    def change(of, name, value):
        def now():
            model.train()  # GPyTorch itself keeps what it has computed until then
            setattr(of, name, value)
            model.eval()

        return now

    same = RBFKernel().double()
    changes = {
        "trained": lambda: trained(model, steps=3),
        "nu": change(kernel.base_kernel, "nu", 1.5),
        "lengthscale": change(kernel.base_kernel, "lengthscale", 2.0),
        "mean": change(model.mean_module, "constant", 0.5),
        "kernel": change(kernel, "base_kernel", same),
    }
    see_changes(model, predict(model), X, changes)
    before = gc.posterior_of(model)
    assert gc.posterior_of(model.train()) is before


def test_tensors_are_regions_too():
    model = trained(Classifier(), steps=5)
    rows = torch.tensor(X[:3], requires_grad=True)
    verdicts = gc.certify(model, gc.balls(rows, torch.full((3,), 0.1, requires_grad=True)))
    assert [v.region.x.tolist() for v in verdicts] == X[:3].tolist()
