"""Attacks: good points of a region, batched, for every norm: bounds robustness from above, proves nothing."""

from gpcert.attacks.boundary import nearest_counterexamples
from gpcert.attacks.objectives import Careful, LatentMargin, LogOdds, Margin, Objective
from gpcert.attacks.pgd import pgd
from gpcert.attacks.saliency import gpjm
from gpcert.attacks.sets import Sets, settle
from gpcert.attacks.single_step import gpfgs

__all__ = [
    "Careful",
    "LatentMargin",
    "LogOdds",
    "Margin",
    "Objective",
    "Sets",
    "gpfgs",
    "gpjm",
    "nearest_counterexamples",
    "pgd",
    "settle",
]
