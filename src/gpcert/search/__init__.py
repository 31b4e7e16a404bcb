"""The anytime branch and bound: one loop for every question."""

from gpcert.search.loop import Minimiser

__all__ = ["Minimiser"]
