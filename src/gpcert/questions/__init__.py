"""The public questions: one module each, all on the same certified bounds and the same search."""

from __future__ import annotations

from gpcert.questions.attack import attack
from gpcert.questions.certify import certify
from gpcert.questions.evaluate import evaluate
from gpcert.questions.explain import explain
from gpcert.questions.latent import latent_range
from gpcert.questions.radius import certified_radius
from gpcert.questions.ranges import probability_range
from gpcert.questions.robustness import robustness
from gpcert.questions.score import certified_score
from gpcert.questions.table import certify_table

__all__ = [
    "attack",
    "certified_radius",
    "certified_score",
    "certify",
    "certify_table",
    "evaluate",
    "explain",
    "latent_range",
    "probability_range",
    "robustness",
]
