"""The published method (AISTATS 2020), made sound: `probability_range(..., method="paper")`."""

from gpcert_paper.method.bound import PaperBound
from gpcert_paper.method.factory import PaperFactory

__all__ = ["PaperBound", "PaperFactory"]
