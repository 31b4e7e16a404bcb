"""Certified bounds of a posterior over one box; the search knows them only as `BoxBound`."""

from gpcert.bounds.box import BoxBound, Certified, LevelBound
from gpcert.bounds.cells import CellExtremes, bound_cells, sweepable
from gpcert.bounds.domain import BoxShape, Domain, Shape
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.lines import SideRanges, line_ranges
from gpcert.bounds.links import link_of
from gpcert.bounds.model import Model, model_of
from gpcert.bounds.radial_slice import make_radial_slice
from gpcert.bounds.rbf import RbfBound
from gpcert.bounds.slice import Slice, make_slice

__all__ = [
    "BoundFactory",
    "BoxBound",
    "BoxShape",
    "CellExtremes",
    "Certified",
    "Domain",
    "LevelBound",
    "Model",
    "RbfBound",
    "Shape",
    "SideRanges",
    "Slice",
    "bound_cells",
    "line_ranges",
    "link_of",
    "make_radial_slice",
    "make_slice",
    "model_of",
    "shape_of",
    "sweepable",
]
