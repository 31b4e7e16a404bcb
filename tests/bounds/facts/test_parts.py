"""F1 where the shifts that make parts definite exceed their entries: defects in rational numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.bounds.facts.definite import verified_parts
from helpers.oracle import examples, is_psd, rational


@settings(max_examples=examples(200))
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 6))
def test_the_defect_covers_shifts_that_nearly_cancel(seed, n):
    """Two parts of one trace have nearly equal shifts: their difference is no measure of their roundings."""
    rng = np.random.default_rng(seed)
    positive, negative = (np.diag(10.0 ** rng.uniform(-30, 0, n)) for _ in range(2))
    negative *= positive.trace() / negative.trace()
    parts = verified_parts(positive, negative)
    assert parts.negative is not None
    assert is_psd(parts.positive)
    assert is_psd(parts.negative)
    for j in range(n):
        shifted = rational(parts.positive[j, j]) - rational(parts.negative[j, j])
        given_ = rational(positive[j, j]) - rational(negative[j, j])
        assert abs(shifted - given_) <= rational(parts.defect[j])
