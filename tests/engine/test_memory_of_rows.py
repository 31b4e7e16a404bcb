"""What a row takes of the memory, by which batches are cut into parts."""

from __future__ import annotations

import tracemalloc

import numpy as np

from gpcert.engine.backend import Backend
from gpcert.engine.quadratic import MATRICES, Choices, minima

CPU = Backend()


def test_rows_take_no_more_memory_than_is_reckoned_with():
    """A device that runs out of it has no answer. Needs that J6 misses and the best diagonals reach."""
    rng, N, d = np.random.default_rng(0), 16, 48
    A = rng.standard_normal((N, d, d)) * 0.5 / d**0.5
    g, ends = 0.05 * rng.standard_normal((N, d)), np.full((N, d), 0.5)
    H = A + A.transpose(0, 2, 1)
    y = Choices(CPU, *(each.astype(np.float32) for each in (g, H, -ends, ends))).local_minimiser()[0]
    need = 1.35 * np.einsum("ij,ij->i", g + 0.5 * np.einsum("ijk,ik->ij", H, y), y)
    proved = []
    for best in (False, True):
        tracemalloc.start()
        proved.append(int((minima(CPU, g, H, -ends, ends, need, 2, best).value >= need).sum()))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak + H.nbytes <= MATRICES[best] * H.nbytes
    assert proved[0] < proved[1]
