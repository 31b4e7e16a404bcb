"""Certified bounds of a posterior over one box; the search knows them only as `BoxBound`."""

from gpcert.bounds.box import BoxBound, Certified, LevelBound
from gpcert.bounds.domain import BoxShape, Domain, Shape
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.levels import link_of
from gpcert.bounds.lines import SideRanges, line_ranges
from gpcert.bounds.model import Model, model_of
from gpcert.bounds.rbf import RbfBound
from gpcert.bounds.slice import Slice, make_slice

__all__ = [
    "BoundFactory",
    "BoxBound",
    "BoxShape",
    "Certified",
    "Domain",
    "LevelBound",
    "Model",
    "RbfBound",
    "Shape",
    "SideRanges",
    "Slice",
    "line_ranges",
    "link_of",
    "make_slice",
    "model_of",
    "shape_of",
]
