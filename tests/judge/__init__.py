"""The one judge of truth: probabilities, membership, extremes along a line; exact or in balls."""

from judge.decide import above, at_least, at_most, at_rising_precision, below
from judge.line import extremes
from judge.regions import inside, points
from judge.truth import Truth

__all__ = [
    "Truth",
    "above",
    "at_least",
    "at_most",
    "at_rising_precision",
    "below",
    "extremes",
    "inside",
    "points",
]
