"""Covariance functions: stationary kernels as profiles of squared distance, their sums and products."""

from __future__ import annotations

from gpcert.kernels.base import Anchors, Gram, Kernel
from gpcert.kernels.compose import Group, Product, Radial, Sum, exact_float, kernel_from_dict, radial_terms
from gpcert.kernels.stationary import (
    RBF,
    Matern12,
    Matern32,
    Matern52,
    Profile,
    RationalQuadratic,
    Stationary,
)

__all__ = [
    "RBF",
    "Anchors",
    "Gram",
    "Group",
    "Kernel",
    "Matern12",
    "Matern32",
    "Matern52",
    "Product",
    "Profile",
    "Radial",
    "RationalQuadratic",
    "Stationary",
    "Sum",
    "exact_float",
    "kernel_from_dict",
    "radial_terms",
]
