"""Settings shared by all tests: GPCERT_SOAK multiplies the number of examples of every property."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from oracle import examples

settings.register_profile(
    "gpcert", max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gpcert")
