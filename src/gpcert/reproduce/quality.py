"""Numbers in section 5.2: how far the Laplace and EP posteriors are from Hamiltonian Monte Carlo.

At a test point let F be the distribution of the latent under HMC (draws of the training latents, each with
its Gaussian conditional) and G the Gaussian of the approximation. The distance is the 2-Wasserstein distance
of F and G, the root mean square difference of their quantiles, in standard deviations of F; averaged over
test points.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.special import ndtr, ndtri

from gpcert.estimator import GPClassifier
from gpcert.posterior import Posterior
from gpcert.reproduce.draw import BLUE, ORANGE
from gpcert.reproduce.hmc import Chains, sample
from gpcert.reproduce.job import Job, Table
from gpcert.reproduce.models import Recipe, chosen_points, class_of, data_of, kernel_of, posterior_of
from gpcert.reproduce.page import Claim, Findings, new_figure, paragraphs, save
from gpcert.validation import Float

__all__ = ["posterior_quality"]

_DATA = {"synthetic2d": ("1.04", "0.14"), "spam": ("0.35", "0.32"), "mnist38": ("0.52", "0.32")}
_INFERENCES = ("laplace", "ep")
_NAMES = {"laplace": "Laplace", "ep": "EP"}
_EVALUATIONS = 40
#: Warm-up and draws per chain. Synthetic2D is separable: its latents are large, skewed, and mix slowly.
_ITERATIONS = {"synthetic2d": (500, 1500), "spam": (150, 300), "mnist38": (150, 300)}
_QUANTILES = (np.arange(2000) + 0.5) / 2000
_KEYS = ("data", "trained_by", "inference", "point")
_NUMBERS = ("distance", "absolute", "probability", "hmc_mean", "hmc_sd", "mean", "sd")


#: Chains with a larger R-hat have not mixed: nothing is concluded from them.
_MIXED = 1.1
_NOTES = """
Distance: 2-Wasserstein between the latent's distribution under HMC and under the approximation, in standard
deviations of the former, mean over 50 random test points. The paper does not define its distance.

40 evaluations; hyperparameters are fixed during sampling, as the approximations have them.

Sampler: Mici, dynamic HMC (no-U-turn), 4 chains; R-hat and effective sample size by ArviZ.
"""


def posterior_quality(job: Job) -> Findings:
    """Both approximations against HMC, at the hyperparameters that either of them chose."""
    table = job.table("distances", _KEYS, _NUMBERS)
    runs = job.table("chains", ("data", "trained_by"), ("rhat", "ess", "acceptance", "cpu_seconds"))
    wanted = [(data, trained) for data in _DATA for trained in _INFERENCES]
    for data, trained in job.steps(runs.missing(wanted), "HMC"):
        _compare(job, table, runs, str(data), str(trained))
    _draw(job, table)
    head = [
        "data",
        "hyperparameters by",
        "approximation",
        "distance",
        "absolute W2",
        "mean |difference of P|",
    ]
    return Findings(
        "Quality of the posteriors (section 5.2)",
        _claims(table, runs),
        [
            (
                "distances",
                "Distance to HMC at each test point, in standard deviations, own hyperparameters.",
            )
        ],
        paragraphs(_NOTES),
        [
            ("Mean distances", head, _summary(table)),
            (
                "Chains",
                ["data", "hyperparameters by", "largest R-hat", "smallest ESS", "acceptance", "CPU s"],
                [
                    [
                        str(r["data"]),
                        str(r["trained_by"]),
                        *(f"{float(r[c]):.4g}" for c in ("rhat", "ess", "acceptance", "cpu_seconds")),
                    ]
                    for r in runs.rows
                ],
            ),
        ],
    )


def _compare(job: Job, table: Table, runs: Table, name: str, trained: str) -> None:
    data = data_of(name)
    points = chosen_points(job, data)
    X = data.X_test[points]
    post = posterior_of(job, Recipe(name, trained, _EVALUATIONS))
    y = np.where(data.y_train[: post.n_centres] == class_of(post, 1), 1.0, -1.0)
    start = time.process_time()
    warm_up, draws = job.choose(_ITERATIONS[name], (40, 40))
    chains = sample(post, y, X, chains=4, warm_up=warm_up, draws=draws)
    seconds = time.process_time() - start
    for inference in _INFERENCES:
        model = post if inference == trained else _refitted(post, name, inference)
        mean, variance = model.latent(X)
        for j, i in enumerate(points):
            table.add(
                name, trained, inference, i, *_distance(chains, j, float(mean[j]), float(variance[j]) ** 0.5)
            )
    runs.add(name, trained, float(chains.rhat.max()), float(chains.ess.min()), chains.acceptance, seconds)


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
        boxes = ax.boxplot(samples, patch_artist=True, widths=0.5)
        for box, colour in zip(boxes["boxes"], (ORANGE, BLUE), strict=True):
            box.set(facecolor=colour, alpha=0.7)
        ax.set_xticks([1, 2], list(_NAMES.values()))
        ax.set(title=name, ylabel="distance to HMC", ylim=(0, None))
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


def _claims(table: Table, runs: Table) -> list[Claim]:
    claims = []
    for name, (laplace, ep) in _DATA.items():
        ours: Float = np.array([_mean(table, "distance", name, i, i) for i in _INFERENCES])
        same = [f"{_mean(table, 'distance', name, 'ep', i):.2f}" for i in _INFERENCES]
        claims.append(
            Claim(
                f"{name}: distance to HMC, Laplace and EP",
                f"{laplace}, {ep}",
                f"{ours[0]:.2f}, {ours[1]:.2f}",
                bool(ours[1] < ours[0]) if max(runs.column("rhat", data=name)) < _MIXED else None,
                f"compared: which is closer. At EP's hyperparameters {', '.join(same)}. R-hat at most "
                f"{max(runs.column('rhat', data=name)):.2f}, effective draws at least "
                f"{min(runs.column('ess', data=name)):.0f}",
            )
        )
    return claims
