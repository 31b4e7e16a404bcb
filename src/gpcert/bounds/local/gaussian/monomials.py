"""Products of two and three coordinates, each once: the columns k v v and k v v v of few features."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np

from gpcert.validation import Float, Index

#: Up to this many features the orders two and three ride along in the product with the precision.
COLUMN_DIMENSIONS = 3


@lru_cache(maxsize=8)
def _indices(d: int, order: int) -> tuple[Index, Index]:
    """The monomials (m, order) of d coordinates, and the table from index tuples to monomials."""
    monomials = list(combinations_with_replacement(range(d), order))
    table = np.empty((d,) * order, dtype=np.intp)
    for where in np.ndindex(table.shape):
        table[where] = monomials.index(tuple(sorted(where)))
    return np.array(monomials, dtype=np.intp), table


def monomial_rows(kv: Float, v: Float) -> Float:
    """k v_a v_b, then k v_a v_b v_c, for a <= b <= c: (m, n)."""
    d = v.shape[1]
    second, third = (_indices(d, order)[0] for order in (2, 3))
    pairs = kv[:, second[:, 0]] * v[:, second[:, 1]]
    triples = kv[:, third[:, 0]] * v[:, third[:, 1]] * v[:, third[:, 2]]
    return np.concatenate([pairs, triples], axis=1).T


def partial_traces(gram: Float, metric: Float) -> tuple[Float, Float]:
    """C2, C3: N2 and N3 (d, d) from the Gram matrix (m, m) of the monomial rows in the precision."""
    d = len(metric)
    second, third = (_indices(d, order)[1] for order in (2, 3))
    m = d * (d + 1) // 2
    N2, N3 = np.zeros((d, d)), np.zeros((d, d))
    for c in range(d):
        N2 += gram[np.ix_(second[:, c], second[:, c])] / metric[c]
        for e in range(d):
            index = m + third[:, c, e]
            N3 += gram[np.ix_(index, index)] / (metric[c] * metric[e])
    return N2, N3
