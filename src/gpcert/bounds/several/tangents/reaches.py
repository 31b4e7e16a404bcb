"""How far means and covariances of classes go on a small set, any kernel (docs/maths/multiclass.md, Y2).

What moves is k_x - k_xh in the RKHS of the kernel, whose norm and that of its second order are known whatever
the posterior is (K6): a bound by first orders and norms costs no expansion per functional.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.bounds.facts.classes import ClassModel
from gpcert.bounds.geometry.differences import difference
from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.local.radial.plane import away
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.bounds.several.tangents.expansion import Latents
from gpcert.rounding import TINY, UNIT, gamma
from gpcert.validation import Float

#: For what is computed from the terms of a bound, all non-negative.
_OUTWARD = 1.0 + 1e-6


@dataclass(frozen=True, eq=False)
class Reaches:
    """Of one set around one reference; crude and cheap."""

    model: ClassModel
    latents: Latents  #: at the reference
    reach: Float  #: sup |d| (d,)
    slopes: Float  #: d k_i / d d_j at the reference (n, d)
    blur: Float  #: their error (n, d)
    amplitude: Float  #: at least the largest k_i (n,)
    first: float  #: sup |k_x - k_xh| in the RKHS
    second: float  #: the same of its part beyond first order; inf where the kernel is not smooth
    product_error: Float  #: of each of `latents.products` against any k_x - k_xh (P,)

    def least_mean(self, a: Float) -> float:
        """A lower bound of a.m."""
        here, size = self.latents, np.abs(a)
        b = self.model.weights @ a
        moved = float(self._along(b[None])[0]) + float(size.sum()) * here.mean_error
        rounding = float((np.abs(self.model.weights) @ size) @ self.amplitude)
        rounding += float(size @ np.abs(here.mean))
        return float(a @ here.mean) - moved * _OUTWARD - gamma(2 * len(a) + 8) * rounding

    def largest(self, B: Float) -> Float:
        """sup <B, Sigma> for each of several symmetric B (K, C, C): (K,)."""
        model, here = self.model, self.latents
        weights = model.folded(B)
        value = np.tensordot(B, here.covariance, 2)
        values = np.linalg.eigvalsh(B)
        plus, minus = np.maximum(values, 0.0).sum(axis=1), np.maximum(-values, 0.0).sum(axis=1)
        hidden = model.defect * len(model.centres) * model.variance
        square = plus * (model.contraction_negative + hidden) + minus * (model.contraction_positive + hidden)
        moved = 2.0 * self._along(weights @ here.products) + square * self.first**2
        rounding = np.abs(weights) @ (2.0 * self.product_error + here.covariance_error)
        return np.asarray(value + 1e-9 * np.abs(value) + (moved + rounding) * _OUTWARD + TINY)

    @np.errstate(all="ignore")  # 0 times inf is one of two bounds, and the other counts
    def _along(self, b: Float) -> Float:
        """sup |sum_i b_i (k_i(x) - k_i)| for each row of b (K, n): (K,)."""
        G, entry = self.model.unit_gram
        size = np.abs(b)
        total = size.sum(axis=1)
        unit = b / np.maximum(total, TINY)[:, None]
        squares = np.einsum("ki,ki->k", unit @ G, unit) + entry + gamma(2 * len(G) + 8)
        norm = total * np.sqrt(np.maximum(squares, 0.0) * self.model.variance) * _OUTWARD
        straight = np.abs(b @ self.slopes) @ self.reach + (size @ self.blur) @ self.reach
        return np.asarray(np.fmin(straight + norm * self.second, norm * self.first))


@np.errstate(all="ignore")  # overflow and NaN say nothing: what is compared with them is not proved
def reaches_of(
    model: ClassModel, slice_: RadialSlice, domain: Domain, start: Float, latents: Latents
) -> Reaches:
    """Over a set seen from `start` (d,), where the latents are `latents`."""
    first = float(np.sqrt(2.0 * away(slice_, domain) * model.variance)) * _OUTWARD
    k, relative = slice_.values(start)
    slopes, blur = _slopes(slice_, start)
    unit = (k + slice_.tiny) * (relative + gamma(len(k) + len(model.pairs) + 20))
    wrong = np.sqrt((model.rows * unit**2).sum(axis=1) * (model.rows * slice_.amplitude**2).sum(axis=1))
    return Reaches(
        model=model,
        latents=latents,
        reach=domain.reach,
        slopes=slopes,
        blur=blur,
        amplitude=slice_.amplitude,
        first=first if first < np.inf else np.inf,
        second=_beyond(slice_, domain),
        product_error=wrong * _OUTWARD + TINY,
    )


def _slopes(slice_: RadialSlice, x: Float) -> tuple[Float, Float]:
    """Derivatives of every k_i in scaled displacements at x (d,) and their errors, (n, d) each."""
    moved = difference(slice_.points, x)
    v = moved / slice_.lengthscale
    total, worst = np.zeros(v.shape), np.zeros(len(v))
    for term in slice_.terms:
        z = [group.distance(moved, v) for group in term]
        parts = [group.phi.derivatives(each, 1) for group, each in zip(term, z, strict=True)]
        relative = sum((slice_.relative(g, each) for g, each in zip(term, z, strict=True)), 16 * UNIT)
        for i, group in enumerate(term):
            others = np.prod([part[0] for j, part in enumerate(parts) if j != i], axis=0)
            # Of one sign for a centre and a feature, so that relative errors do not grow in the sum.
            total -= (parts[i][1] * others)[:, None] * v * group.rho
        worst = np.maximum(worst, relative)
    unit = worst + gamma(len(v) + 20) + 8 * UNIT * (1 + len(slice_.terms))
    return total, np.abs(total) * unit[:, None] + slice_.tiny * (1.0 + np.abs(v))


def _beyond(slice_: RadialSlice, domain: Domain) -> float:
    """K6: sup |g_2| for a sum of profiles; inf for products, and where phi''(0) is."""
    square = 0.0
    for term in slice_.terms:
        curves = [abs(float(group.phi.derivatives(np.zeros(1), 2)[2][0])) for group in term]
        if len(term) > 1 or not curves[0] < np.inf:
            return np.inf
        square += 0.75 * curves[0] * domain.norm(term[0].rho) ** 4
    return float(np.sqrt(square)) * _OUTWARD
