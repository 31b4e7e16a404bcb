"""The published method (AISTATS 2020), made sound: `probability_range(..., method="paper")`."""

from gpcert_experiments.paper.bound import PaperBound
from gpcert_experiments.paper.factory import PaperFactory

__all__ = ["PaperBound", "PaperFactory"]
