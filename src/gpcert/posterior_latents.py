"""Latent moments of a posterior at points, and their gradients: the formulas of `posterior`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from gpcert.validation import Float

if TYPE_CHECKING:
    from gpcert.posterior import Posterior


def latent_moments(post: Posterior, X: Float) -> tuple[Float, Float]:
    """Mean (m,) or (m, C) and variance (m,) or covariance (m, C, C) at points X (m, d)."""
    if post.weights.ndim == 1:
        k = post.kernels[0](X, post.anchors)
        explained = np.einsum("mi,mi->m", k @ post.precision, k)
        return post.mean + k @ post.weights, np.maximum(0.0, post.kernels[0].prior_variance - explained)
    k = _kernel_blocks(post, X)
    mean = post.mean + np.einsum("cmi,ic->mc", k, post.weights)
    covariance = np.zeros((len(X), post.n_latents, post.n_latents))
    for c, e, R in _precision_blocks(post):
        covariance[:, c, e] = -np.einsum("mi,mi->m", k[c] @ R, k[e])
        covariance[:, e, c] = covariance[:, c, e]
    for c, kernel in enumerate(post.kernels):
        covariance[:, c, c] = np.maximum(0.0, kernel.prior_variance + covariance[:, c, c])
    return mean, covariance


def latent_gradients(post: Posterior, X: Float) -> tuple[Float, Float]:
    """Their derivatives in x, one axis (d,) more."""
    Z = post.anchors
    if post.weights.ndim == 1:
        kernel = post.kernels[0]
        k = kernel(X, Z)
        B = k @ post.precision
        flat = kernel.prior_variance - np.einsum("mi,mi->m", B, k) <= 0.0
        B *= -2.0
        B[flat] = 0.0
        weights = np.broadcast_to(post.weights, k.shape)
        return kernel.input_gradient(X, Z, weights), kernel.input_gradient(X, Z, B)
    k = _kernel_blocks(post, X)
    shape = (len(X), post.n_latents, post.n_latents, post.n_features)
    dmean, dcovariance = np.zeros(shape[:2] + shape[3:]), np.zeros(shape)
    for c, kernel in enumerate(post.kernels):
        weights = np.broadcast_to(post.weights[:, c], k[c].shape)
        dmean[:, c] = kernel.input_gradient(X, Z, weights)
    for c, e, R in _precision_blocks(post):
        left = post.kernels[c].input_gradient(X, Z, -(k[e] @ R.T))
        right = left if c == e else post.kernels[e].input_gradient(X, Z, -(k[c] @ R))
        dcovariance[:, c, e] = dcovariance[:, e, c] = left + right
        if c == e:
            flat = post.kernels[c].prior_variance - np.einsum("mi,mi->m", k[c] @ R, k[c]) <= 0.0
            dcovariance[flat, c, c] = 0.0
    return dmean, dcovariance


def _kernel_blocks(post: Posterior, X: Float) -> Float:
    """k_c(X, centres) for every latent (C, m, n); a shared kernel is evaluated once."""
    if not isinstance(post.kernel, tuple):
        k = post.kernel(X, post.anchors)
        return np.broadcast_to(k, (post.n_latents, *k.shape))
    return np.stack([kernel(X, post.anchors) for kernel in post.kernel])


def _precision_blocks(post: Posterior) -> Iterator[tuple[int, int, Float]]:
    """(c, e, precision_ce (n, n)) for c <= e, of independent latents c = e only."""
    for c in range(post.n_latents):
        if post.precision.ndim == 3:
            yield c, c, post.precision[c]
        else:
            yield from ((c, e, post.precision[c, e]) for e in range(c, post.n_latents))
