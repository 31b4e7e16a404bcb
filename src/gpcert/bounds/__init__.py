"""Certified bounds of a posterior over one box; the search knows them only as `BoxBound`."""

from gpcert.bounds.batched.cells import CellExtremes, bound_cells, sweepable
from gpcert.bounds.batched.lines import SideRanges, line_ranges
from gpcert.bounds.factory import BoundFactory, check_certifiable, shape_of
from gpcert.bounds.facts.classes import ClassModel, class_model_of
from gpcert.bounds.facts.model import Model, model_of
from gpcert.bounds.geometry.ball import BallDomain, BallShape
from gpcert.bounds.geometry.ball_newton import multipliers as ellipsoid_multipliers
from gpcert.bounds.geometry.ball_quadratic import descended
from gpcert.bounds.geometry.box_quadratic import curvature, settled_faces
from gpcert.bounds.geometry.domain import BoxDomain, BoxShape, Domain, Shape, scaled_box
from gpcert.bounds.interface import BoxBound, BoxQuery, Certified, OneByOne
from gpcert.bounds.levels.logistic import LogitCurves, LogitLevel, root_below
from gpcert.bounds.levels.registry import curves_of
from gpcert.bounds.local.enclosures import mean_between
from gpcert.bounds.local.gaussian.slice import Slice, make_slice
from gpcert.bounds.local.gaussian.sums import Covariances, KernelSum
from gpcert.bounds.local.radial.slice import RadialSlice, make_radial_slice
from gpcert.bounds.one.gaussian import RbfBound
from gpcert.bounds.one.left import Left
from gpcert.bounds.one.level import LevelBound
from gpcert.bounds.several.joint import JointLabel
from gpcert.bounds.several.one_vs_rest import OneVsRestBound, smallest_point
from gpcert.bounds.several.shares import JointShare

__all__ = [
    "BallDomain",
    "BallShape",
    "BoundFactory",
    "BoxBound",
    "BoxDomain",
    "BoxQuery",
    "BoxShape",
    "CellExtremes",
    "Certified",
    "ClassModel",
    "Covariances",
    "Domain",
    "JointLabel",
    "JointShare",
    "KernelSum",
    "Left",
    "LevelBound",
    "LogitCurves",
    "LogitLevel",
    "Model",
    "OneByOne",
    "OneVsRestBound",
    "RadialSlice",
    "RbfBound",
    "Shape",
    "SideRanges",
    "Slice",
    "bound_cells",
    "check_certifiable",
    "class_model_of",
    "curvature",
    "curves_of",
    "descended",
    "ellipsoid_multipliers",
    "line_ranges",
    "make_radial_slice",
    "make_slice",
    "mean_between",
    "model_of",
    "root_below",
    "scaled_box",
    "settled_faces",
    "shape_of",
    "smallest_point",
    "sweepable",
]
