"""Guaranteed ranges of a Gaussian-process classifier's probability over regions of inputs.

Names are imported when first used, so that `import gpcert` and `gpcert --help` cost next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpcert.version import __version__ as __version__

if TYPE_CHECKING:
    from gpcert import datasets as datasets, plots as plots, testing as testing
    from gpcert.adapters.models import export as export
    from gpcert.adapters.gpflow import from_gpflow as from_gpflow
    from gpcert.adapters.gpy import from_gpy as from_gpy
    from gpcert.adapters.gpytorch import from_gpytorch as from_gpytorch
    from gpcert.adapters.models import posterior_of as posterior_of
    from gpcert.adapters.replay import Replay as Replay, replay as replay
    from gpcert.adapters.scikit_learn import from_sklearn as from_sklearn
    from gpcert.answers import Answers as Answers, load_answers as load_answers, report as report
    from gpcert.errors import (
        ContradictionWarning as ContradictionWarning,
        GpcertError as GpcertError,
        ImpossibleInputsWarning as ImpossibleInputsWarning,
        InvalidInputError as InvalidInputError,
        ModelFileError as ModelFileError,
        NotFittedError as NotFittedError,
        StoreError as StoreError,
        UnitsWarning as UnitsWarning,
    )
    from gpcert.estimator import GPClassifier as GPClassifier
    from gpcert.kernels import (
        RBF as RBF,
        Matern12 as Matern12,
        Matern32 as Matern32,
        Matern52 as Matern52,
        Product as Product,
        RationalQuadratic as RationalQuadratic,
        Sum as Sum,
    )
    from gpcert.likelihoods import (
        FiveErf as FiveErf,
        Floored as Floored,
        Link as Link,
        Logit as Logit,
        OneVsRest as OneVsRest,
        Probit as Probit,
        Softmax as Softmax,
    )
    from gpcert.model_file import load as load, save as save
    from gpcert.posterior import Posterior as Posterior
    from gpcert.questions.attack import attack as attack
    from gpcert.questions.certify import certify as certify
    from gpcert.questions.evaluate import evaluate as evaluate
    from gpcert.questions.explain import explain as explain
    from gpcert.questions.latent import latent_range as latent_range
    from gpcert.questions.radius import certified_radius as certified_radius
    from gpcert.questions.ranges import probability_range as probability_range
    from gpcert.questions.ranges import robustness as robustness
    from gpcert.questions.evaluate import certified_score as certified_score
    from gpcert.questions.certify import certify_table as certify_table
    from gpcert.records import save_answers as save_answers
    from gpcert.questions.balls import balls as balls
    from gpcert.regions import Ball as Ball, Box as Box
    from gpcert.results import (
        Attack as Attack,
        CertifiedRadius as CertifiedRadius,
        Enclosure as Enclosure,
        Evaluation as Evaluation,
        Explanation as Explanation,
        Extremes as Extremes,
        LatentRange as LatentRange,
        ProbabilityRange as ProbabilityRange,
        Robustness as Robustness,
        Status as Status,
        Verdict as Verdict,
        VerdictStatus as VerdictStatus,
    )
    from gpcert.store import Store as Store

#: Module -> the public names that live there; type checkers see them above.
_NAMES = {
    "adapters.models": "export posterior_of",
    "adapters.gpflow": "from_gpflow",
    "adapters.gpy": "from_gpy",
    "adapters.gpytorch": "from_gpytorch",
    "adapters.replay": "Replay replay",
    "adapters.scikit_learn": "from_sklearn",
    "answers": "Answers load_answers report",
    "errors": "ContradictionWarning GpcertError ImpossibleInputsWarning InvalidInputError ModelFileError "
    "NotFittedError StoreError UnitsWarning",
    "estimator": "GPClassifier",
    "kernels": "RBF Matern12 Matern32 Matern52 Product RationalQuadratic Sum",
    "likelihoods": "FiveErf Floored Link Logit OneVsRest Probit Softmax",
    "model_file": "load save",
    "posterior": "Posterior",
    "questions.attack": "attack",
    "questions.certify": "certify certify_table",
    "questions.balls": "balls",
    "questions.evaluate": "evaluate certified_score",
    "questions.explain": "explain",
    "questions.latent": "latent_range",
    "questions.radius": "certified_radius",
    "questions.ranges": "probability_range robustness",
    "records": "save_answers",
    "regions": "Ball Box",
    "results": "Attack CertifiedRadius Enclosure Evaluation Explanation Extremes LatentRange "
    "ProbabilityRange Robustness Status Verdict VerdictStatus",
    "store": "Store",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = [*_MODULE_OF, "datasets", "plots", "testing"]


def __getattr__(name: str) -> Any:
    if name in ("datasets", "plots", "testing"):
        return import_module(f"gpcert.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'gpcert' has no attribute {name!r}")
    value = getattr(import_module(f"gpcert.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
