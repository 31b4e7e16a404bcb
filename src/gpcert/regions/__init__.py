"""Regions of inputs, exact sets given by stored doubles, and the points of them that local searches need."""

from gpcert.regions.batch import (
    BallBatch,
    Hulls,
    Regions,
    ball_batch,
    extent,
    half_axes,
    hulls,
    hulls_of,
    one_unit,
)
from gpcert.regions.points import lowest, nearest
from gpcert.regions.sets import Ball, Box, Norm, Region, region_from_dict

__all__ = [
    "Ball",
    "BallBatch",
    "Box",
    "Hulls",
    "Norm",
    "Region",
    "Regions",
    "ball_batch",
    "extent",
    "half_axes",
    "hulls",
    "hulls_of",
    "lowest",
    "nearest",
    "one_unit",
    "region_from_dict",
]
