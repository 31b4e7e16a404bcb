"""The anytime branch and bound: searches that are asked for boxes and told results, and the one driver."""

from gpcert.search.frontier import Minimiser
from gpcert.search.recorder import OpenBox, Recorder, Why
from gpcert.search.run import Search, run, widest

__all__ = ["Minimiser", "OpenBox", "Recorder", "Search", "Why", "run", "widest"]
