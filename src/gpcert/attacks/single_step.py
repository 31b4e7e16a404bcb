"""GPFGS (Grosse et al.): one step of the full radius against the gradient of the latent mean."""

from __future__ import annotations

from gpcert.attacks.objectives import LatentMargin
from gpcert.attacks.sets import Sets
from gpcert.posterior import Posterior
from gpcert.validation import Float, Index


def gpfgs(post: Posterior, sets: Sets, labels: Index, X: Float) -> Float:
    """Points (m, d): for norm inf against the sign of the gradient at X (m, d), else the steepest step."""
    _, gradient = LatentMargin(post)(X, labels)
    return sets.points(sets.linear(gradient * sets.unit))
