"""Attacks: good points of a region, batched, for every norm: bounds robustness from above, proves nothing."""

from gpcert.attacks.grosse import gpfgs, gpjm
from gpcert.attacks.objectives import Careful, LatentMargin, LogOdds, Margin, Objective
from gpcert.attacks.pgd import nearest_counterexamples, pgd
from gpcert.attacks.sets import Sets, settle

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
