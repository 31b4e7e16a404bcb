"""Guaranteed ranges of a Gaussian-process classifier's probability over regions of inputs.

Names are imported when first used, so that `import gpcert` and `gpcert --help` cost next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpcert.version import __version__ as __version__

if TYPE_CHECKING:
    from gpcert import datasets, plots
    from gpcert.adapters import Replay, export, from_gpflow, from_gpy, from_gpytorch, from_sklearn, replay
    from gpcert.errors import GpcertError, InvalidInputError, ModelFileError, NotFittedError
    from gpcert.estimator import GPClassifier
    from gpcert.kernels import RBF, Matern12, Matern32, Matern52, Product, RationalQuadratic, Sum
    from gpcert.likelihoods import FiveErf, Floored, Link, Logit, OneVsRest, Probit, Softmax
    from gpcert.posterior import Posterior
    from gpcert.questions import (
        attack,
        certified_radius,
        certify,
        compare_with_lime,
        evaluate,
        explain,
        latent_range,
        probability_range,
        robustness,
    )
    from gpcert.records import load_answers, save_answers
    from gpcert.regions import Ball, Box
    from gpcert.results import (
        Attack,
        CertifiedRadius,
        Enclosure,
        Evaluation,
        Explanation,
        Extremes,
        LatentRange,
        LimeComparison,
        ProbabilityRange,
        Robustness,
        Status,
        Verdict,
        VerdictStatus,
    )
    from gpcert.store import load, save

__all__ = [
    "RBF",
    "Attack",
    "Ball",
    "Box",
    "CertifiedRadius",
    "Enclosure",
    "Evaluation",
    "Explanation",
    "Extremes",
    "FiveErf",
    "Floored",
    "GPClassifier",
    "GpcertError",
    "InvalidInputError",
    "LatentRange",
    "LimeComparison",
    "Link",
    "Logit",
    "Matern12",
    "Matern32",
    "Matern52",
    "ModelFileError",
    "NotFittedError",
    "OneVsRest",
    "Posterior",
    "ProbabilityRange",
    "Probit",
    "Product",
    "RationalQuadratic",
    "Replay",
    "Robustness",
    "Softmax",
    "Status",
    "Sum",
    "Verdict",
    "VerdictStatus",
    "attack",
    "certified_radius",
    "certify",
    "compare_with_lime",
    "datasets",
    "evaluate",
    "explain",
    "export",
    "from_gpflow",
    "from_gpy",
    "from_gpytorch",
    "from_sklearn",
    "latent_range",
    "load",
    "load_answers",
    "plots",
    "probability_range",
    "replay",
    "robustness",
    "save",
    "save_answers",
]

_HOME = {
    "adapters": ("Replay", "export", "from_gpflow", "from_gpy", "from_gpytorch", "from_sklearn", "replay"),
    "errors": ("GpcertError", "InvalidInputError", "ModelFileError", "NotFittedError"),
    "estimator": ("GPClassifier",),
    "kernels": ("RBF", "Matern12", "Matern32", "Matern52", "Product", "RationalQuadratic", "Sum"),
    "likelihoods": ("FiveErf", "Floored", "Link", "Logit", "OneVsRest", "Probit", "Softmax"),
    "posterior": ("Posterior",),
    "questions": (
        "attack",
        "certified_radius",
        "certify",
        "compare_with_lime",
        "evaluate",
        "explain",
        "latent_range",
        "probability_range",
        "robustness",
    ),
    "records": ("load_answers", "save_answers"),
    "regions": ("Ball", "Box"),
    "results": (
        "Attack",
        "CertifiedRadius",
        "Enclosure",
        "Evaluation",
        "Explanation",
        "Extremes",
        "LatentRange",
        "LimeComparison",
        "ProbabilityRange",
        "Robustness",
        "Status",
        "Verdict",
        "VerdictStatus",
    ),
    "store": ("load", "save"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in ("datasets", "plots"):
        return import_module(f"gpcert.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'gpcert' has no attribute {name!r}")
    value = getattr(import_module(f"gpcert.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
