"""Certified bounds of a posterior over one box; the search knows them only as `BoxBound`."""

from gpcert.bounds.batched.cells import CellExtremes, bound_cells, sweepable
from gpcert.bounds.batched.lines import SideRanges, line_ranges
from gpcert.bounds.factory import BoundFactory, check_certifiable, shape_of
from gpcert.bounds.facts.model import Model, model_of
from gpcert.bounds.geometry.domain import BoxShape, Domain, Shape
from gpcert.bounds.interface import BoxBound, BoxQuery, Certified, OneByOne
from gpcert.bounds.levels.registry import curves_of
from gpcert.bounds.local.gaussian.slice import Slice, make_slice
from gpcert.bounds.local.radial.slice import make_radial_slice
from gpcert.bounds.one.gaussian import RbfBound
from gpcert.bounds.one.level import LevelBound

__all__ = [
    "BoundFactory",
    "BoxBound",
    "BoxQuery",
    "BoxShape",
    "CellExtremes",
    "Certified",
    "Domain",
    "LevelBound",
    "Model",
    "OneByOne",
    "RbfBound",
    "Shape",
    "SideRanges",
    "Slice",
    "bound_cells",
    "check_certifiable",
    "curves_of",
    "line_ranges",
    "make_radial_slice",
    "make_slice",
    "model_of",
    "shape_of",
    "sweepable",
]
