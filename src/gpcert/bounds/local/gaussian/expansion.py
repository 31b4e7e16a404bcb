"""The posterior around a reference point of a box: exact coefficients, bounded tails, counted rounding.

With x = reference + l * d (d scaled, in the box [low, high] around 0), r = |d|^2 / 2, a_i = d.v_i and
k_i(x) = e^{-r} k_i e^{a_i} (docs/maths/bounds.md, section 3):

    e^r  mu(x)         = M(d) = sum_i alpha_i k_i e^{a_i},
    e^2r k(x)^T R k(x) = q(d) = |V (k + kappa(d))|^2,   kappa_i = k_i (e^{a_i} - 1).

`Expansion` holds the Taylor coefficients of M and q to second order and bounds of everything beyond. A tail
is a `Tail(value, form)`: at d it is at most value * sum_j form_j d_j^2, and that sum is at most 1 on the
box. So every remainder vanishes at the reference, and the bound is exact there. Names follow the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.local.forms import negative_part
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.local.gaussian.sums import Covariances, Head, KernelSum
from gpcert.rounding import TINY, UNIT, sqrt_up, sum_up, symmetric, tail_norm_up
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


class Tail(NamedTuple):
    """A remainder: at most value * sum_j form_j d_j^2 in absolute value on the box; form (d,)."""

    value: float
    form: Float


@dataclass(frozen=True, eq=False)
class Expansion(Covariances):
    """Coefficients and tails at one reference; n centres, d moving features (docs/maths/bounds.md, X1-X4)."""

    kv: Float  #: (n, d)
    r: Float  #: R k (n,)
    Y: Float  #: R (k v) (n, d)
    J: Float  #: (k v)^T R (k v) (d, d)
    J_size: Float  #: the same with positive + negative part: |V kappa_1|^2
    q_size: float  #: likewise, of q0: |V k|^2
    gram: Float  #: <V ., V .> of the monomials k v v, k v v v (m, m); (0, 0) for more than a few features

    @cached_property
    def metric(self) -> Float:
        """L^2 (d,) from the centres as they are seen from the reference: no Gram matrix is made in it."""
        return self.domain.metric(np.sqrt(np.einsum("ij,ij->j", self.v, self.v) / len(self.k)))

    @cached_property
    def M(self) -> Head:
        """M0, M1 and M2."""
        return KernelSum(self, self.slice.weights, 0.0).head

    @cached_property
    def q(self) -> Head:
        """q0, q1 and q2: what is linear in kappa, without its factor 2."""
        return KernelSum(self, self.r, 0.0).head

    @cached_property
    def error_M(self) -> float:
        """X4: rounding of the coefficients of M to third order, as a bound over the box."""
        return sum_up(np.abs(self.slice.weights) * self.rough * self.unit) * 1.01

    @cached_property
    def error_q(self) -> float:
        """X4: the same for q."""
        return 2.02 * self.error_r * self.weighted(self.rough)

    @cached_property
    def error_r(self) -> float:
        """The W^(1/2)-norm of the error of R k: enters the tails of q."""
        return self.weighted(self.rough * self.unit)

    @property
    def S(self) -> float:
        """The latent variance at the reference, computed."""
        return self.slice.model.prior - self.q.value

    @cached_property
    def isotropic(self) -> Float:
        """The form |d|^2 / s^2 (d,)."""
        return np.full(len(self.metric), 1.0 / max(self.s * self.s, TINY))

    @cached_property
    def M2_negative(self) -> Float:
        """P (d, d), PSD, with M2 + P PSD (X7)."""
        return negative_part(self.M.hessian, self.metric, self.domain.reach)

    def weighted(self, y: Float) -> float:
        """F2: an upper bound of |V y| for |entries| <= y (n,)."""
        return self.slice.model.weighted(y)

    @cached_property
    def powers(self) -> list[Float]:
        """k_i e^{sup |a_i|} norm_i^p / p! for p = 0..5, (n,) each: X2."""
        powers = [self.grown]
        for p in range(1, 6):
            powers.append(powers[-1] * self.norm * (1.0 / p))
        return powers

    def tail_M(self, order: int) -> Tail:
        """|M_{>= order}|, order >= 2: by absolute values (X2), or by the norm of the mean (X3)."""
        plain = Tail(sum_up(np.abs(self.slice.weights) * self.powers[order]), self.elliptic)
        model = self.slice.model
        smooth = model.mean_norm * sqrt_up(model.variance) * tail_norm_up(order, self.s) * (1.0 + 8 * UNIT)
        return plain if plain.value <= smooth else Tail(smooth, self.isotropic)

    def tail_q(self, order: int) -> Tail:
        """The part of q linear in kappa_{>= order}, without its factor 2: by absolute values (X2), or by
        |V k| |V kappa_{>= order}| (X3). R k changes sign from centre to centre unless R is smooth.
        """
        power = self.powers[order]
        plain = Tail(sum_up(np.abs(self.r) * power) + self.error_r * self.weighted(power), self.elliptic)
        rest = self.tail_V(order)
        smooth = sqrt_up(max(self.q_size, 0.0) + self.error_q) * rest.value * (1.0 + 8 * UNIT)
        return plain if plain.value <= smooth else Tail(smooth, rest.form)

    def tail_V(self, order: int) -> Tail:
        """X3: |V kappa_{>= order}| <= value * sqrt(form), from order two on value * form: the smaller of F2
        (rows) and F3 (contraction).
        """
        rows = Tail(self.weighted(self.powers[order]), self.elliptic)
        model = self.slice.model
        smooth = sqrt_up(model.contraction * model.variance) * tail_norm_up(order, self.s) * (1.0 + 8 * UNIT)
        return rows if rows.value <= smooth else Tail(smooth, self.isotropic)


def expand(slice_: Slice, domain: Domain, reference: Float) -> Expansion:
    """X1-X4 at `reference` (d,), raw units, for the displacements in `domain`."""
    d = slice_.points.shape[1]
    v, k, relative = slice_.kernel(reference)
    kv = k[:, None] * v
    parts = slice_.model.parts
    # The parts are symmetric; rows times a matrix is the faster of the two products for few columns.
    rows = [k[None], kv.T, monomial_rows(kv, v)] if d <= COLUMN_DIMENSIONS else [k[None], kv.T]
    stacked = np.concatenate(rows)
    product = size = stacked @ parts.positive
    if parts.negative is not None:
        taken = stacked @ parts.negative
        product, size = product - taken, product + taken
    r, Y = product[0], np.ascontiguousarray(product[1 : d + 1].T)
    J = J_size = symmetric(kv.T @ Y)
    if parts.negative is not None:
        J_size = symmetric(size[1 : d + 1] @ kv)
    high = stacked[d + 1 :]
    gram, q_size = symmetric(high @ size[d + 1 :].T), float(size[0] @ k)
    return Expansion(slice_, domain, v, k, relative, kv, r, Y, J, J_size, q_size, gram)
