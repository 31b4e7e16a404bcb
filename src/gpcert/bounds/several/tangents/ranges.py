"""The tangent of softmax over a box for any kernel: from certified ranges of functionals alone (T6).

Where no expansion of all classes around a reference is at hand, the convex part (docs/maths/multiclass.md)
is bounded by a constant: of second order in the box, so that the search converges all the same.
"""

from __future__ import annotations

import math

import numpy as np

from gpcert.bounds.facts.classes import ClassModel
from gpcert.bounds.local.forms import FunctionalBound
from gpcert.bounds.several.tangents.anchor import SLACK, Anchor
from gpcert.bounds.several.tangents.functionals import View
from gpcert.bounds.several.tangents.tangent import SLACK_W, penalty, second, weighted, whitening
from gpcert.rounding import symmetric
from gpcert.validation import Float

#: Rounding of the sums below, relative to their sizes.
_ROUNDING = 1e-12


def largest_by_ranges(
    model: ClassModel, view: View, anchor: Anchor, beta: Float
) -> tuple[float, FunctionalBound] | None:
    """A bound of log sum_i beta_i p_i over the view's domain, and the functional that gave it.

    None where nothing is proved.
    """
    D = model.contrasts
    W = whitening(D @ anchor.covariance @ D.T)
    if W is None:
        return None
    root: Float = np.asarray(np.linalg.inv(W), dtype=np.float64)
    A = W @ D
    changes = _changes(view, anchor, A)
    if changes is None:
        return None
    rho, shrunk = changes
    eta = _moved(view, anchor, A)
    a, B, weights, total = weighted(anchor, beta, float(np.linalg.norm(root, 2)), eta, rho)
    if not math.isfinite(total):
        return None
    mean_a, mean_B = weights @ a, np.tensordot(weights, B, 1)
    loss = penalty(shrunk) * SLACK_W**2 * rho * rho * SLACK
    apart = _apart(view, anchor, D, a - mean_a, B - mean_B, weights)
    bound = view.smallest(*_functional(anchor, D, -mean_a, -mean_B))
    return math.log(total) - bound.latent + loss + apart, bound


def _functional(anchor: Anchor, D: Float, a: Float, B: Float) -> tuple[Float, Float, float]:
    """a.(D m) + <B, D Sigma D^T> less its value at the anchor."""
    first, bent = D.T @ a, D.T @ B @ D
    bent = symmetric(bent)
    return first, bent, float(first @ anchor.mean) + float(np.vdot(bent, anchor.covariance))


def _changes(view: View, anchor: Anchor, A: Float) -> tuple[float, float] | None:
    """sup |E|_F, and nu < 0.95 with E >= -nu I, for the whitened change E of the covariance on the domain.

    Diagonal entries count only where they fall (as in `tangent`).
    """
    N = len(A)
    size, falls = np.zeros((N, N)), np.zeros((N, N))
    for i in range(N):
        for j in range(i + 1):
            B = 0.5 * (np.outer(A[i], A[j]) + np.outer(A[j], A[i]))
            low, high = view.range(B, float(np.vdot(B, anchor.covariance)))
            size[i, j] = size[j, i] = falls[i, j] = falls[j, i] = max(-low, high)
            if i == j:
                falls[i, i] = -low
            if not math.isfinite(size[i, j]):
                return None
    shrunk = float(np.linalg.norm(falls, 2)) * SLACK * SLACK_W
    return (float(np.linalg.norm(size)) * SLACK * SLACK_W, shrunk) if shrunk < 0.95 else None


def _moved(view: View, anchor: Anchor, A: Float) -> float:
    """sup of the norm of the whitened change of the means."""
    none = np.zeros((A.shape[1], A.shape[1]))
    sizes = [
        -float(
            np.min([view.smallest(s * row, none, s * float(row @ anchor.mean)).latent for s in (1.0, -1.0)])
        )
        for row in A
    ]
    size = float(np.linalg.norm(np.maximum(sizes, 0.0))) * SLACK * SLACK_W
    return size if size == size else np.inf


def _apart(view: View, anchor: Anchor, D: Float, a: Float, B: Float, weights: Float) -> float:
    """sup of log sum_i w_i e^{s_i}, s_i = a_i.(D m) + <B_i, D Sigma D^T> less its value at the anchor.

    `a` (C, C-1), `B` (C, C-1, C-1): of weighted mean 0, so that the sum is at most half of sum_i w_i psi_i
    s_i^2 (T2); or each e^{s_i} at its own largest.
    """
    used = np.flatnonzero(weights)
    if len(used) < 2:
        return 0.0
    low, high = np.zeros(len(used)), np.zeros(len(used))
    for n, i in enumerate(used):
        low[n] = view.smallest(*_functional(anchor, D, a[i], B[i])).latent
        high[n] = -view.smallest(*_functional(anchor, D, -a[i], -B[i])).latent
    w = weights[used]
    size = np.maximum(np.abs(low), np.abs(high))
    squares = 0.5 * float((w * second(high)) @ size**2) + _ROUNDING * float(w @ size)
    largest = float(high.max())
    each = largest + math.log(float(w @ np.exp(high - largest))) if math.isfinite(largest) else math.inf
    apart = min(squares, each) if math.isfinite(squares) else each
    return apart * SLACK + _ROUNDING if math.isfinite(apart) else math.inf
