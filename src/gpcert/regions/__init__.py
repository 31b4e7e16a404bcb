"""Regions of inputs, exact sets given by stored doubles, and the points of them that local searches need."""

from gpcert.regions.batch import (
    Alike,
    Columns,
    Regions,
    alike,
    columns_of,
    extent,
    half_axes,
    hulls,
    one_unit,
)
from gpcert.regions.points import lowest, nearest
from gpcert.regions.sets import Ball, Box, Norm, Region, region_from_dict

__all__ = [
    "Alike",
    "Ball",
    "Box",
    "Columns",
    "Norm",
    "Region",
    "Regions",
    "alike",
    "columns_of",
    "extent",
    "half_axes",
    "hulls",
    "lowest",
    "nearest",
    "one_unit",
    "region_from_dict",
]
