"""Models of other libraries as posteriors; no library is imported here, only models of it are read."""

from __future__ import annotations

from gpcert.adapters.gpflow import from_gpflow
from gpcert.adapters.gpy import from_gpy
from gpcert.adapters.gpytorch import from_gpytorch
from gpcert.adapters.models import export, posterior_of
from gpcert.adapters.replay import Replay, replay
from gpcert.adapters.scikit_learn import from_sklearn

__all__ = [
    "Replay",
    "export",
    "from_gpflow",
    "from_gpy",
    "from_gpytorch",
    "from_sklearn",
    "posterior_of",
    "replay",
]
