"""The anytime branch and bound: searches that are asked for boxes and told results, and the one driver."""

from gpcert.search.frontier import Minimiser
from gpcert.search.recorder import Recorder, Why
from gpcert.search.run import Limits, Progress, Search, run, wants_to_stop, widest

__all__ = ["Limits", "Minimiser", "Progress", "Recorder", "Search", "Why", "run", "wants_to_stop", "widest"]
