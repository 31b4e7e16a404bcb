"""Parity with GPML, the MATLAB toolbox of the paper: 34 cases, and its optima after 20 evaluations.

`data/gpml.npz` holds GPML's numbers: DATASET.X, .y, .Xtest, and DATASET_INFERENCE_LIKELIHOOD_KERNEL.FIELD
with hyp_cov (where it was evaluated), nlZ, dnlZ_cov, alpha, sW, and at Xtest fmu, fs2, p; opt_nlZ: after its
search.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpcert as gc
from gpcert.inference.train import METHODS, marginal_likelihood

ORACLE = dict(np.load(Path(__file__).parents[1] / "data" / "gpml.npz"))
CASES = sorted(key.removesuffix(".nlZ") for key in ORACLE if key.endswith(".nlZ"))
OPTIMA = sorted(key.removesuffix(".opt_nlZ") for key in ORACLE if key.endswith(".opt_nlZ"))

# (log marginal likelihood relative, its gradient, latent mean and variance, probability). GPML replaces the
# logistic by a mixture, so that its logit numbers are no better than the second and fourth lines.
TOLERANCES = {
    ("laplace", "probit"): (1e-6, 1e-4, 1e-5, 1e-6),
    ("laplace", "logit"): (1e-6, 1e-4, 1e-5, 3e-4),
    ("ep", "probit"): (1e-5, 1e-4, 1e-4, 1e-5),
    ("ep", "logit"): (5e-4, None, 3e-3, 3e-4),
}


def field(case: str, name: str) -> np.ndarray:
    return ORACLE[f"{case}.{name}"]


def kernel_of(case: str) -> gc.RBF | gc.Matern32 | gc.Matern52 | gc.RationalQuadratic:
    """GPML has the log of the signal's standard deviation where theta has the log of its variance."""
    name, hyper = case.split("_")[3], field(case, "hyp_cov")
    if name == "rq":
        return gc.RationalQuadratic(np.exp(hyper[0]), np.exp(2 * hyper[1]), np.exp(hyper[2]))
    lengthscale = np.exp(hyper[:-1]) if name == "seard" else np.exp(hyper[0])
    kind = {"seiso": gc.RBF, "seard": gc.RBF, "mat3": gc.Matern32, "mat5": gc.Matern52}[name]
    return kind(lengthscale, np.exp(2 * hyper[-1]))


def gradient_of(case: str) -> np.ndarray:
    """GPML's gradient as one of the log marginal likelihood in theta."""
    gradient = -field(case, "dnlZ_cov")
    gradient[-2 if case.endswith("_rq") else -1] /= 2
    return gradient


def test_there_are_34_cases_and_6_optima() -> None:
    assert len(CASES) == 34
    assert len(OPTIMA) == 6


@pytest.mark.parametrize("case", CASES)
def test_parity(case: str) -> None:
    dataset, inference, likelihood, _ = case.split("_")
    X, y, X_test = (ORACLE[f"{dataset}.{part}"] for part in ("X", "y", "Xtest"))
    value_rtol, gradient_atol, latent_atol, p_atol = TOLERANCES[inference, likelihood]
    kernel = kernel_of(case)
    model = gc.GPClassifier(kernel, likelihood, inference, max_evals=0).fit(X, y)

    assert model.converged_
    assert model.kernel_ == kernel
    np.testing.assert_allclose(-model.log_marginal_likelihood_, field(case, "nlZ"), rtol=value_rtol)
    mean, variance = model.posterior_.latent(X_test)
    np.testing.assert_allclose(mean, field(case, "fmu"), rtol=0, atol=latent_atol)
    np.testing.assert_allclose(variance, field(case, "fs2"), rtol=0, atol=latent_atol)
    np.testing.assert_allclose(model.predict_proba(X_test)[:, 1], field(case, "p"), rtol=0, atol=p_atol)
    if gradient_atol is not None:
        link = model.posterior_.likelihood
        evaluation = marginal_likelihood(X, y, kernel, link, METHODS[inference])(kernel)
        np.testing.assert_allclose(evaluation.gradient, gradient_of(case), rtol=0, atol=gradient_atol)
        weights, sites = model.posterior_.weights, model.posterior_.factors["site_precision"]
        np.testing.assert_allclose(weights, field(case, "alpha"), rtol=0, atol=1e-4)
        np.testing.assert_allclose(sites, field(case, "sW") ** 2, rtol=0, atol=1e-4)


@pytest.mark.parametrize("case", OPTIMA)
def test_optimum_in_20_evaluations(case: str) -> None:
    dataset, inference, likelihood, _ = case.split("_")
    X, y = ORACLE[f"{dataset}.X"], ORACLE[f"{dataset}.y"]
    model = gc.GPClassifier(kernel_of(case), likelihood, inference, max_evals=20).fit(X, y)
    assert model.n_evals_ <= 20
    assert -model.log_marginal_likelihood_ <= float(field(case, "opt_nlZ")) * (1 + 1e-6)
