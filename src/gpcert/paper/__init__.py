"""The published method (AISTATS 2020), made sound: `probability_range(..., method="paper")`."""

from gpcert.paper.bound import PaperBound
from gpcert.paper.factory import PaperFactory

__all__ = ["PaperBound", "PaperFactory"]
