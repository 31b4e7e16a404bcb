"""Answers of the engine and of the search never contradict each other: `scripts/engine_against_search.py`."""

from __future__ import annotations

from collections import Counter

import pytest

from helpers.batches import FAMILIES, asked_both_ways
from helpers.oracle import examples

TURNS = {"two classes": 5, "many features": 1, "several classes": 3, "two classes again": 0, "predictors": 2}


@pytest.mark.parametrize("name", [name for name in FAMILIES if TURNS.get(name)])
def test_what_is_said_in_a_batch_is_not_denied_alone(name):
    total, seed = Counter(), 1000
    while total["models"] < examples(TURNS[name]):
        count, found = asked_both_ways(name, seed, 8, 16)
        assert found == [], seed
        total, seed = total + count, seed + 1
    assert total["decided in both"] + total["ranges at the root"] > 0
