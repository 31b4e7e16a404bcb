"""Settings shared by all tests: GPCERT_SOAK multiplies the number of examples of every property, GPCERT_THIN
divides it (the run on the lowest versions asks whether they do, not whether the mathematics holds).

Without them the examples are the same on every run, so that a commit is judged by its own changes; the soak
run draws new ones.
"""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

from helpers.oracle import examples

settings.register_profile(
    "gpcert",
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="GPCERT_SOAK" not in os.environ,
)
settings.load_profile("gpcert")

# Shells start background jobs with Ctrl-C ignored, which gpcert respects; tests of it are no such jobs.
signal.signal(signal.SIGINT, signal.default_int_handler)
