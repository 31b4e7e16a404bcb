"""Trained models, each kept as a file, so that experiments share them and a later run finds them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from gpcert.datasets import Dataset, load
from gpcert.estimator import GPClassifier
from gpcert.kernels import RBF
from gpcert.model_file import load as load_model
from gpcert.model_file import save as save_model
from gpcert.posterior import Posterior
from gpcert_paper.reproduce.job import Job

__all__ = ["START", "Recipe", "chosen_points", "data_of", "kernel_of", "posterior_of"]

#: GPML's habit: all logarithms of hyperparameters 0.
START = RBF(1.0, 1.0)
#: Training points of the quick run.
_QUICK = 150
_QUICK_EVALUATIONS = 10


@dataclass(frozen=True)
class Recipe:
    """How a model is trained; `ard`: one lengthscale per feature; `size`: training points, None: all."""

    data: str
    inference: str = "laplace"
    evaluations: int = 20
    ard: bool = False
    likelihood: str = "probit"
    size: int | None = None

    @property
    def name(self) -> str:
        """A file name."""
        kind = "ard" if self.ard else "iso"
        return f"{self.data}-{self.likelihood}-{self.inference}-{self.evaluations}-{kind}-{self.size}"


@lru_cache(maxsize=4)
def data_of(name: str) -> Dataset:
    """A shipped data set with the paper's split."""
    return load(name)


def posterior_of(job: Job, recipe: Recipe) -> Posterior:
    """The trained model, from its file if there is one."""
    most = len(data_of(recipe.data).X_train)
    size = min(recipe.size or most, job.choose(most, _QUICK))
    evaluations = min(recipe.evaluations, job.choose(recipe.evaluations, _QUICK_EVALUATIONS))
    actual = replace(recipe, size=size, evaluations=evaluations)
    path = job.models / f"{actual.name}.safetensors"
    if not path.exists():
        job.models.mkdir(parents=True, exist_ok=True)
        save_model(_trained(actual), path)
    return _read(path)


def _trained(recipe: Recipe) -> Posterior:
    data = data_of(recipe.data)
    kernel = START
    if recipe.ard:
        kernel = RBF(np.full(data.X_train.shape[1], np.sqrt(data.X_train.shape[1]) / 2.0), 1.0)
    model = GPClassifier(
        kernel, likelihood=recipe.likelihood, inference=recipe.inference, max_evals=recipe.evaluations
    )
    return model.fit(data.X_train[: recipe.size], data.y_train[: recipe.size]).posterior_


@lru_cache(maxsize=8)
def _read(path: Path) -> Posterior:
    """One object per file: what bounds verify of a posterior once is then shared by all queries."""
    return load_model(path)


def kernel_of(post: Posterior) -> RBF:
    """The kernel of a model trained here."""
    assert isinstance(post.kernel, RBF)
    return post.kernel


def chosen_points(job: Job, data: Dataset, count: int = 50) -> list[int]:
    """Indices of randomly selected test points, the same for every model; fewer in the quick run."""
    order = np.random.default_rng(0).permutation(len(data.X_test))
    return [int(i) for i in order[: job.choose(count, 4)]]
