"""Numbers in section 5.2: how far the Laplace and EP posteriors are from Hamiltonian Monte Carlo.

At a test point let F be the distribution of the latent under HMC (draws of the training latents, each with
its Gaussian conditional) and G the Gaussian of the approximation. The distance is the 2-Wasserstein distance
of F and G, the root mean square difference of their quantiles, in standard deviations of F; averaged over
test points.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from gpcert.estimator import GPClassifier
from gpcert.posterior import Posterior
from gpcert.validation import Float
from gpcert_paper.reproduce.draw import BLUE, ORANGE, boxes
from gpcert_paper.reproduce.dynamic_hmc import dynamic_sample
from gpcert_paper.reproduce.hmc import Chains, sample
from gpcert_paper.reproduce.job import Job, Table
from gpcert_paper.reproduce.models import (
    Recipe,
    chosen_points,
    data_of,
    kernel_of,
    posterior_of,
)
from gpcert_paper.reproduce.page import Claim, Findings, new_figure, paragraphs, save

__all__ = ["posterior_quality"]

_DATA = {"synthetic2d": ("1.04", "0.14"), "spam": ("0.35", "0.32"), "mnist38": ("0.52", "0.32")}
_TITLES = {"synthetic2d": "Synthetic2D", "spam": "SPAM", "mnist38": "MNIST38"}
_INFERENCES = ("laplace", "ep")
_NAMES = {"laplace": "Laplace", "ep": "EP"}
_EVALUATIONS = 40
_CHAINS = 4
#: Warm-up and draws per chain. SPAM's classes overlap: its paths meet ten times as many walls.
_ITERATIONS = {"synthetic2d": (200, 2000), "spam": (100, 600), "mnist38": (200, 1000)}
#: The same for the second sampler, which mixes at Laplace's hyperparameters only.
_CHECKED = {"synthetic2d": (200, 1000), "spam": (100, 400), "mnist38": (100, 600)}
_QUANTILES = (np.arange(2000) + 0.5) / 2000
_KEYS = ("data", "trained_by", "inference", "point")
_NUMBERS = ("distance", "absolute", "probability", "hmc_mean", "hmc_sd", "mean", "sd")


_DIFFERENCES = ("largest_difference_of_means", "largest_difference_of_sds")
_HEAD = ("data", "hyperparameters by", "approximation", "distance", "absolute W2", "mean |difference of P|")
_RUN_HEAD = ("data", "hyperparameters by", "R-hat", "ESS", "CPU s")
_CHECK_HEAD = ("data", "R-hat", "ESS", "CPU s", "largest difference of means, in sd", "of sd, relative")

Counts = tuple[int, int]
Sampler = Callable[[Posterior, Float, Float, int, int, int], Chains]


class Drawn(NamedTuple):
    """What one sampling run had and gave."""

    points: list[int]
    post: Posterior
    chains: Chains
    seconds: float


#: Chains with a larger R-hat have not mixed: nothing is concluded from them.
_MIXED = 1.01
_NOTES = """
Distance: 2-Wasserstein between the latent's distribution under HMC and under the approximation, in standard
deviations of the former, mean over 50 random test points. The paper does not define its distance.

40 evaluations; hyperparameters are fixed during sampling, as the approximations have them.

Sampler: exact HMC for a Gaussian cut off by walls (Pakman and Paninski 2014), 4 chains. R-hat (largest) and
effective sample size (the smallest, of means and of squared deviations) over the test points by ArviZ.

The second sampler, a check, is Mici's dynamic HMC (no-U-turn) at Laplace's hyperparameters. At EP's, with
kernel variances in the millions, the likelihood is too steep for it: it does not mix.
"""


def posterior_quality(job: Job) -> Findings:
    """Both approximations against HMC, at the hyperparameters that either of them chose."""
    table = job.table("distances", _KEYS, _NUMBERS)
    runs = job.table("chains", ("data", "trained_by"), ("rhat", "ess", "cpu_seconds"))
    checks = job.table("second_sampler", ("data",), ("rhat", "ess", "cpu_seconds", *_DIFFERENCES))
    wanted = [(data, trained) for data in _DATA for trained in _INFERENCES]
    for data, trained in job.steps(runs.missing(wanted), "HMC"):
        _compare(job, table, runs, str(data), str(trained))
    for (data,) in job.steps(checks.missing([(data,) for data in _DATA]), "second sampler"):
        _check(job, table, checks, str(data))
    _draw(job, table)
    return Findings(
        "Quality of the posteriors (section 5.2)",
        _claims(table, runs),
        [("distances", "Distance to HMC at each test point, in standard deviations, own hyperparameters.")],
        paragraphs(_NOTES),
        [
            ("Mean distances", _HEAD, _summary(table)),
            ("Chains", _RUN_HEAD, _formatted(runs)),
            ("The second sampler", _CHECK_HEAD, _formatted(checks)),
        ],
    )


def _drawn(job: Job, name: str, trained: str, sampler: Sampler, iterations: Mapping[str, Counts]) -> Drawn:
    """The test points, the model that gave the hyperparameters, the chains, and their CPU seconds."""
    data = data_of(name)
    points = chosen_points(job, data)
    post = posterior_of(job, Recipe(name, trained, _EVALUATIONS))
    y = np.where(data.y_train[: post.n_centres] == post.labels[1], 1.0, -1.0)
    start = time.process_time()
    warm_up, draws = job.choose(iterations[name], (40, 40))
    chains = sampler(post, y, data.X_test[points], _CHAINS, warm_up, draws)
    return Drawn(points, post, chains, time.process_time() - start)


def _compare(job: Job, table: Table, runs: Table, name: str, trained: str) -> None:
    points, post, chains, seconds = _drawn(job, name, trained, sample, _ITERATIONS)
    for inference in _INFERENCES:
        model = post if inference == trained else _refitted(post, name, inference)
        mean, variance = model.latent(data_of(name).X_test[points])
        for j, i in enumerate(points):
            found = _distance(chains, j, float(mean[j]), float(variance[j]) ** 0.5)
            table.add(name, trained, inference, i, *found)
    runs.add(name, trained, chains.rhat, chains.ess, seconds)


def _check(job: Job, table: Table, checks: Table, name: str) -> None:
    """The second sampler's means and standard deviations beside the first's, at Laplace's hyperparameters."""
    _, _, chains, seconds = _drawn(job, name, "laplace", dynamic_sample, _CHECKED)
    first = {"data": name, "trained_by": "laplace", "inference": "laplace"}
    mean, sd = (np.array(table.column(column, **first)) for column in ("hmc_mean", "hmc_sd"))
    shift = np.abs(chains.means.mean(axis=(0, 1)) - mean) / sd
    spread = np.hypot(chains.means.std(axis=(0, 1)), np.sqrt(chains.variance))
    differences = float(shift.max()), float(np.abs(spread / sd - 1.0).max())
    checks.add(name, chains.rhat, chains.ess, seconds, *differences)


def _refitted(post: Posterior, name: str, inference: str) -> Posterior:
    """The other approximation with the same kernel."""
    data, n = data_of(name), post.n_centres
    return (
        GPClassifier(kernel_of(post), inference=inference, max_evals=0)
        .fit(data.X_train[:n], data.y_train[:n])
        .posterior_
    )


def _distance(chains: Chains, j: int, mean: float, sd: float) -> tuple[float, ...]:
    means, spread = chains.means[:, :, j].ravel(), float(chains.variance[j]) ** 0.5
    # Quantiles of the mixture from a stratified sample of each draw's conditional.
    noise = ndtri((np.arange(16) + 0.5) / 16)
    sample_ = np.add.outer(means, spread * noise).ravel()
    hmc_mean, hmc_sd = float(means.mean()), float(np.hypot(means.std(), spread))
    quantiles = np.quantile(sample_, _QUANTILES)
    w2 = float(np.sqrt(np.mean((quantiles - mean - sd * ndtri(_QUANTILES)) ** 2)))
    p_hmc = float(ndtr(means / np.hypot(1.0, spread)).mean())
    p = float(ndtr(mean / np.hypot(1.0, sd)))
    return w2 / hmc_sd, w2, abs(p - p_hmc), hmc_mean, hmc_sd, mean, sd


def _draw(job: Job, table: Table) -> None:
    figure = new_figure(9.0, 3.4)
    for ax, name in zip(figure.subplots(1, len(_DATA)), _DATA, strict=True):
        samples = [table.column("distance", data=name, trained_by=i, inference=i) for i in _INFERENCES]
        for place, sample_, colour in zip((1.0, 2.0), samples, (ORANGE, BLUE), strict=True):
            boxes(ax, [np.array(sample_)], np.array([place]), 0.5, colour)
        ax.set_xticks([1, 2], list(_NAMES.values()))
        ax.set(title=_TITLES[name], ylabel="distance to HMC", ylim=(0, None))
    save(figure, job.folder, "distances")


def _mean(table: Table, column: str, name: str, trained: str, inference: str) -> float:
    return float(np.mean(table.column(column, data=name, trained_by=trained, inference=inference)))


def _summary(table: Table) -> list[list[str]]:
    return [
        [
            name,
            trained,
            inference,
            *(f"{_mean(table, c, name, trained, inference):.3f}" for c in _NUMBERS[:3]),
        ]
        for name in _DATA
        for trained in _INFERENCES
        for inference in _INFERENCES
    ]


def _formatted(runs: Table) -> list[list[str]]:
    return [
        [cell if isinstance(cell, str) else f"{cell:.4g}" for cell in (row[name] for name in runs.columns)]
        for row in runs.rows
    ]


def _claims(table: Table, runs: Table) -> list[Claim]:
    claims = []
    for name, (laplace, ep) in _DATA.items():
        ours: Float = np.array([_mean(table, "distance", name, i, i) for i in _INFERENCES])
        same = [f"{_mean(table, 'distance', name, 'ep', i):.2f}" for i in _INFERENCES]
        claims.append(
            Claim(
                f"{_TITLES[name]}: distance to HMC, Laplace and EP",
                f"{laplace}, {ep}",
                f"{ours[0]:.2f}, {ours[1]:.2f}",
                bool(ours[1] < ours[0]) if max(runs.column("rhat", data=name)) < _MIXED else None,
                f"compared: which is closer. At EP's hyperparameters {', '.join(same)}. R-hat at most "
                f"{max(runs.column('rhat', data=name)):.3f}, effective draws at least "
                f"{min(runs.column('ess', data=name)):.0f}",
            )
        )
    return claims
