"""Tangents anchored anywhere: convex upper bounds of log sum_i beta_i p_i as functions of the latents z.

By Theorem 3 (docs/maths/multiclass.md) every anchor, a mean and a covariance of the differences of latents,
whether some input has them or not, gives a bound that holds everywhere and is exact at the anchor (T4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpcert.bounds.several.cells.image import INVERSE, Coordinates
from gpcert.bounds.several.tangents.anchor import anchor_at
from gpcert.bounds.several.tangents.tangent import weighted, whitening
from gpcert.rounding import symmetric
from gpcert.validation import Float

#: Eigenvalues of the relative change of V stay above -1 by this much.
_POSITIVE = 1e-6


@dataclass(frozen=True, eq=False)
class AnchoredTangent:
    """log sum_i beta_i p_i <= log sum_i e^{logs_i + slopes_i . (z - anchor)} + pen(z), called T4."""

    coordinates: Coordinates
    anchor: Float  #: z of the anchor (n,)
    logs: Float  #: (m,), one per class with beta_i > 0
    slopes: Float  #: (m, n)
    whitened: Float  #: (N, N): W_a L; the change of V relative to the anchor is whitened E whitened^T
    blur: float  #: rounding of anchor and whitening, per unit

    def __call__(self, z: Float) -> Float:
        """At z (m, n), rounded up; inf where V is not safely positive definite."""
        step = z - self.anchor
        E = self.whitened @ self.coordinates.changed(step) @ self.whitened.T
        values = np.linalg.eigvalsh(0.5 * (E + E.transpose(0, 2, 1)))
        size = np.abs(E).sum(axis=(1, 2))
        safe = values[:, 0] > -1.0 + _POSITIVE + 1e-9 * size
        v = np.where(safe[:, None], values, 0.0)
        exponents = self.logs + step @ self.slopes.T
        largest = exponents.max(axis=1)
        with np.errstate(invalid="ignore"):
            total = largest + np.log(np.exp(exponents - largest[:, None]).sum(axis=1))
        bound = total + 0.5 * (v - np.log1p(v)).sum(axis=1)
        moved = np.abs(step) @ (1.0 + np.abs(self.slopes).max(axis=0)) + size * (1.0 + size)
        # Near -1 the logarithm magnifies errors of an eigenvalue by at most 1 / _POSITIVE.
        steep = 1.0 / np.where(safe, 1.0 + values[:, 0], 1.0)
        bound = bound + self.blur * (1.0 + moved) * steep + 1e-13 * (1.0 + np.abs(bound))
        return np.where(safe & np.isfinite(bound), bound, np.inf)


def anchored(coordinates: Coordinates, beta: Float, z: Float, widths: Float) -> AnchoredTangent | None:
    """The tangent anchored at z (n,), for points that differ from it by at most `widths` (n,) per coordinate.

    Three classes. None where no rule applies.
    """
    N = len(coordinates.mean)
    L = coordinates.L
    mean = coordinates.mean + L @ z[:N]
    V = coordinates.V + L @ coordinates.changed(z[None])[0] @ L.T
    V = symmetric(V)
    W = whitening(V) if np.isfinite(V).all() and np.isfinite(mean).all() else None
    if W is None:
        return None
    # Latents with these differences: the last is 0 but for what all share, which makes them definite.
    embedded = np.zeros((N + 1, N + 1))
    embedded[:N, :N] = V
    embedded += float(np.trace(V)) / N
    at = anchor_at(np.append(mean, 0.0), embedded, True)
    if at is None:
        return None
    size = coordinates.size
    eta, rho = (float(np.linalg.norm(part)) * (1.0 + 1e-6) for part in (widths[:N], widths[N:]))
    a, B, weights, total = weighted(at, beta, size, eta, rho)
    if not (math.isfinite(total) and total > 0):
        return None
    used = weights > 0
    bent = np.einsum("pa,ipq,qb->iab", L, B[used], L, optimize=True)
    slopes = np.concatenate(
        [a[used] @ L, np.einsum("iab,mab->im", bent, coordinates.basis, optimize=True)], axis=1
    )
    whitened = W @ L
    condition = 1.0 + float(np.linalg.norm(W)) ** 2 * float(np.linalg.norm(V))
    scale = 1.0 + size * size + float(np.abs(coordinates.mean).max())
    blur = 8.0 * INVERSE + 1e-14 * condition * scale
    return AnchoredTangent(coordinates, z, np.log(weights[used]) + math.log(total), slopes, whitened, blur)
