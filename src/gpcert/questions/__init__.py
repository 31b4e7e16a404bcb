"""The public questions: one module each, all on the same certified bounds and the same search."""

from __future__ import annotations

from gpcert.questions.attack import attack
from gpcert.questions.certify import certify
from gpcert.questions.ranges import probability_range

__all__ = ["attack", "certify", "probability_range"]
