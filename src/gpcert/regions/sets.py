"""Regions of inputs: exact sets given by stored doubles.

`Ball(x, radius, norm, ...)` is the set of all z with |(z - x) / scale|_p <= radius, only `features` moving,
inside `domain`. `box()` gives the smallest box of doubles that contains the set, rounded outward; `contains`
decides membership in rational arithmetic, so a witness is in the region as a real number, not to within a
tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gpcert.errors import InvalidInputError
from gpcert.pictures import changes
from gpcert.regions.lengths import add, length_at_most, length_up, round_down, round_up
from gpcert.regions.points import length, nearest
from gpcert.schema import Point, Record, optional, read
from gpcert.tables import ends, named_row, order, positions, row, units
from gpcert.validation import (
    Float,
    Mask,
    as_doubles,
    as_floats,
    as_names,
    freeze,
    no_truth,
    positive,
    require,
    shown,
)

Norm: TypeAlias = float | Literal["inf"]

#: Relative distance from the sphere at which membership is certain without exact arithmetic, and half axes,
#: raw units, whose quotients have full precision.
_MARGIN = 1e-11
_NORMAL = 1e-280, 1e290


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Box(Record):
    """The set of all z with lower <= z <= upper.

    Ends may coincide: a feature of zero width stands still. Immutable.

    Parameters
    ----------
    lower : array of shape (d,), mapping or row of a table
        The lower ends.
    upper : array of shape (d,), mapping or row of a table
        The upper ends, >= `lower`.
    names : sequence of str (d), optional
        Names of the features; None: those that the ends bring. A question puts the features in its model's
        order.

    Attributes
    ----------
    centre : array of shape (d,)
        A double inside the box, near its middle.
    n_features : int
        d.

    Examples
    --------
    >>> box = gc.Box({"age": 40, "bmi": 20}, {"age": 50, "bmi": 30})
    >>> box.contains([45, 30]), box.names
    (True, ('age', 'bmi'))
    """

    lower: Point
    upper: Point
    names: tuple[str, ...] | None = optional()

    # What else is asked of any region.
    norm: ClassVar[float] = math.inf
    radius: ClassVar[None] = None
    scale: ClassVar[None] = None

    def __init__(self, lower: ArrayLike, upper: ArrayLike, names: Sequence[str] | None = None) -> None:
        low, names = named_row("lower", lower, names)
        high, names = named_row("upper", upper, names)
        require(high.size == low.size, f"upper must have length {low.size}, got {high.size}")
        require(low.size > 0, "lower must have at least one feature, got none")
        bad = np.flatnonzero(low > high)
        if bad.size:
            j = int(bad[0])
            raise InvalidInputError(f"lower must be <= upper, got {low[j]} > {high[j]} at feature {j}")
        object.__setattr__(self, "lower", freeze(low))
        object.__setattr__(self, "upper", freeze(high))
        object.__setattr__(self, "names", as_names("names", names, low.size))

    def ordered(self, names: Sequence[str] | None) -> Box:
        """The same set with its features in the order of these names, which it does not keep."""
        if self.names is None:
            return self
        at = slice(None) if names is None else order("region", self.names, names)
        return Box(self.lower[at], self.upper[at])

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.lower.size)

    @property
    def centre(self) -> Float:
        """A double inside the box, near its middle (d,)."""
        middle = 0.5 * self.lower + 0.5 * self.upper
        return np.asarray(np.clip(middle, self.lower, self.upper))

    def box(self) -> Box:
        """The box itself.

        Returns
        -------
        Box
            As every region has one.
        """
        return self

    def inner_box(self) -> Box:
        """The box itself."""
        return self

    def project(self, z: Float) -> Float:
        """The point of the box nearest to z (d,)."""
        return np.clip(z, self.lower, self.upper)

    def contains(self, z: ArrayLike) -> bool:
        """Whether a point lies in the box; comparisons of doubles are exact.

        Parameters
        ----------
        z : array of shape (d,) or row of a table
            The point.

        Returns
        -------
        bool
            True if it does.
        """
        point = row("z", z, self.names, self.n_features)
        return bool((self.lower <= point).all() and (point <= self.upper).all())


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Ball(Record):
    """The set of all z with |(z - x) / scale|_p <= radius, only `features` moving, inside `domain`.

    Exactly this set of real numbers, for the stored doubles: bounds enclose it, witnesses lie in it.
    Immutable.

    Parameters
    ----------
    x : array of shape (d,), mapping or row of a table
        The centre, itself a point of the region.
    radius : float
        How far, >= 0; with norm 0 how many features may move, a whole number.
    norm : float or "inf"
        p: inf, any p >= 1, or 0 (at most `radius` features move, anywhere in the domain, which must be
        given).
    features : sequence, optional
        Features that move: positions, a mask or names; None: all.
    domain : pair (low, high) or mapping, optional
        Where inputs are valid: numbers, arrays (d,) or by name, None for an open end; the ball is cut there;
        None: everywhere.
    scale : float, array of shape (d,) or mapping, optional
        Units of the radius, > 0: one number, one for each feature, or by name; None: 1.
    names : sequence of str (d), optional
        Names of the features; None: those that x brings. A question puts the features in its model's order.

    Attributes
    ----------
    centre : array of shape (d,)
        The point x.
    n_features : int
        d.

    Examples
    --------
    >>> ball = gc.Ball({"age": 40, "bmi": 25}, 1.0, scale={"age": 2.0}, features=["age"])
    >>> ball.contains([42.0, 25.0]), ball.contains([40.0, 25.5])
    (True, False)
    """

    x: Point
    radius: float
    norm: float
    features: tuple[int, ...] | None
    domain: tuple[Annotated[Float, "d"], Annotated[Float, "d"]] | None
    scale: Point | None
    names: tuple[str, ...] | None = optional()

    def __init__(
        self,
        x: ArrayLike,
        radius: float,
        norm: Norm = np.inf,
        features: Sequence[int | str] | None = None,
        domain: Any = None,
        scale: Any = None,
        names: Sequence[str] | None = None,
    ) -> None:
        centre, names = named_row("x", x, names)
        d = centre.size
        require(d > 0, "x must have at least one feature, got none")
        set_ = object.__setattr__
        set_(self, "x", freeze(centre))
        set_(self, "norm", _norm(norm))
        set_(self, "radius", _radius(radius, self.norm))
        set_(self, "features", positions(features, names, d))
        set_(self, "domain", _domain(ends(domain, names, d), centre))
        unit = units(scale, names, d, self.features)
        set_(self, "scale", None if unit is None else freeze(_broadcast("scale", positive("scale", unit), d)))
        set_(self, "names", as_names("names", names, d))
        bounded = self.norm != 0 or self.domain is not None
        require(bounded, "domain must be given with norm=0, got None")

    def _repr_html_(self) -> str:
        return changes(self.x, self.names) + super()._repr_html_()

    def ordered(self, names: Sequence[str] | None) -> Ball:
        """The same set with its features in the order of these names, which it does not keep."""
        if self.names is None:
            return self
        at = list(range(self.n_features)) if names is None else order("region", self.names, names)
        features = None if self.features is None else [k for k, j in enumerate(at) if j in self.features]
        domain = None if self.domain is None else (self.domain[0][at], self.domain[1][at])
        scale = None if self.scale is None else self.scale[at]
        return Ball(self.x[at], self.radius, self.norm, features, domain, scale)

    def moved(self, x: Float, radius: float) -> Ball:
        """The ball of the same kind around another point (d,), read-only; both are checked already."""
        made = copy(self)
        object.__setattr__(made, "x", x)
        object.__setattr__(made, "radius", radius)
        return made

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.x.size)

    @property
    def centre(self) -> Float:
        """The point x the ball is drawn around (d,)."""
        return self.x

    def moving(self) -> Mask:
        """Which features may move.

        Returns
        -------
        mask of shape (d,)
            True where one may.
        """
        mask = np.zeros(self.n_features, dtype=bool)
        mask[list(range(self.n_features)) if self.features is None else list(self.features)] = True
        return mask

    def box(self) -> Box:
        """The smallest box of doubles that contains the ball.

        Returns
        -------
        Box
            Its ends rounded outward where they are not doubles.
        """
        return self._hull(outward=True)

    def inner_box(self) -> Box:
        """The largest box of doubles whose every coordinate range the region reaches; for norm=inf, a
        subset.
        """
        return self._hull(outward=False)

    def _hull(self, outward: bool) -> Box:
        lower, upper = self.x.copy(), self.x.copy()
        mask = self.moving()
        if self.norm == 0:
            assert self.domain is not None
            if self.radius >= 1:
                lower[mask], upper[mask] = self.domain[0][mask], self.domain[1][mask]
            for end in (*lower, *upper):
                require(bool(np.isfinite(end)), f"domain must be finite with norm=0, got {end}")
            return Box(lower, upper)
        if self.scale is None:
            reach = np.full(int(mask.sum()), self.radius)
            lower[mask] = add(self.x[mask], -reach, down=outward)
            upper[mask] = add(self.x[mask], reach, down=not outward)
        else:
            for j in np.flatnonzero(mask):
                x, step = Fraction(float(self.x[j])), Fraction(self.radius) * Fraction(float(self.scale[j]))
                lower[j] = (round_down if outward else round_up)(x - step)
                upper[j] = (round_up if outward else round_down)(x + step)
        if self.domain is not None:
            lower, upper = np.maximum(lower, self.domain[0]), np.minimum(upper, self.domain[1])
        if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
            raise InvalidInputError(f"radius must keep the region finite, got {self.radius}")
        return Box(lower, upper)

    def contains(self, z: ArrayLike) -> bool:
        """Whether a point certainly lies in the ball.

        By rational arithmetic; for powers other than 1, 2 and inf by ball arithmetic.

        Parameters
        ----------
        z : array of shape (d,) or row of a table
            The point.

        Returns
        -------
        bool
            True if it certainly does.
        """
        point = row("z", z, self.names, self.n_features)
        return self._reachable(point) and length_at_most(self._steps(point), self.norm, self.radius)

    def project(self, z: Float) -> Float:
        """A point (d,) near z (d,) that is exactly in the ball: `contains` is True."""
        inner = self.inner_box()
        point = np.clip(z, inner.lower, inner.upper)
        if self.norm == np.inf or self.radius == 0:
            return point
        if self.norm == 0:  # the coordinates that moved most keep their place, the others return to x
            back = np.argsort(-np.abs(point - self.x), kind="stable")[int(min(self.radius, point.size)) :]
            point[back] = self.x[back]
            return point
        x = self.x
        scale = np.ones_like(x) if self.scale is None else self.scale
        with np.errstate(all="ignore"):  # radii at the ends of the number range: x is always a point
            unit = self.radius * scale
            moved = (point - x) / unit
            low, high = (inner.lower - x) / unit, (inner.upper - x) / unit
            step = unit * nearest(np.nan_to_num(moved), low, high, self.norm)
            # Rounding can leave the point outside: shrink until membership is certain, first at a glance.
            inside = np.clip(x + step * (1.0 - _MARGIN), inner.lower, inner.upper)
            normal = _NORMAL[0] < unit.min() and unit.max() < _NORMAL[1]
            if normal and len(x) < 1000 and length((inside - x) / unit, self.norm) < 1.0 - 0.5 * _MARGIN:
                return inside
            shrunk = (x + step * (1.0 - shrink) for shrink in (0.0, *(2.0**k for k in range(-52, 0, 3))))
            for candidate in (*shrunk, point):
                inside = np.asarray(np.clip(candidate, inner.lower, inner.upper))
                if np.isfinite(inside).all() and self.contains(inside):
                    return inside
        return x.copy()

    def radius_of(self, z: ArrayLike) -> float:
        """How far away a point is.

        Parameters
        ----------
        z : array of shape (d,) or row of a table
            The point.

        Returns
        -------
        float
            The smallest radius, up to a rounding, whose ball around x contains it; inf if none does.
        """
        point = row("z", z, self.names, self.n_features)
        return 0.0 + length_up(self._steps(point), self.norm) if self._reachable(point) else math.inf

    def _reachable(self, point: Float) -> bool:
        """Whether only features that may move did, inside the domain."""
        if (point[~self.moving()] != self.x[~self.moving()]).any():
            return False
        return self.domain is None or bool(((self.domain[0] <= point) & (point <= self.domain[1])).all())

    def _steps(self, point: Float) -> list[Fraction]:
        """|z_j - x_j| / scale_j of the features that moved, exactly."""
        scale = np.ones(self.n_features) if self.scale is None else self.scale
        return [
            abs(Fraction(float(a)) - Fraction(float(b))) / Fraction(float(s))
            for a, b, s in zip(point, self.x, scale, strict=True)
            if a != b
        ]


Region = Box | Ball


def region_from_dict(data: object) -> Region:
    """The box or ball that `to_dict` wrote; anything else is an error of one sentence."""
    region: Region = read(Region, data)
    return region


def _norm(norm: Norm) -> float:
    rule = "norm must be 0, >= 1 or inf"
    require(not isinstance(norm, str) or norm == "inf", f"{rule}, got {norm!r}")
    array = as_doubles("norm", math.inf if isinstance(norm, str) else no_truth("norm", norm))
    require(array.ndim == 0, f"norm must be one number, got shape {array.shape}")
    require(bool(array == 0 or array >= 1), f"{rule}, got {shown(norm)}")
    return float(array)


def _radius(radius: float, norm: float) -> float:
    array = as_floats("radius", no_truth("radius", radius))
    require(array.ndim == 0, f"radius must be one number, got shape {array.shape}")
    value = float(array)
    require(value >= 0, f"radius must be >= 0, got {value}")
    if norm == 0:
        require(value == int(value), f"radius must be an integer with norm=0, got {value}")
    return value


def _broadcast(name: str, value: Float, d: int) -> Float:
    require(
        value.ndim == 0 or value.shape == (d,), f"{name} must be one number or {d}, got shape {value.shape}"
    )
    return np.array(np.broadcast_to(value, (d,)))


def _bound(name: str, value: ArrayLike, d: int) -> Float:
    """One end of a domain: numbers, infinities allowed (a one-sided domain), NaN not."""
    array = as_doubles(name, value)
    if np.isnan(array).any():  # a sentence is dear where the domain is: not before it is needed
        raise InvalidInputError(f"{name} must not be NaN, got {shown(value)}")
    return _broadcast(name, array, d)


def _domain(domain: tuple[ArrayLike, ArrayLike] | None, x: Float) -> tuple[Float, Float] | None:
    if domain is None:
        return None
    low, high = _bound("domain", domain[0], x.size), _bound("domain", domain[1], x.size)
    bad = np.flatnonzero(~(low <= high))
    if bad.size:
        raise InvalidInputError(f"domain must have low <= high, got {low[bad[0]]} > {high[bad[0]]}")
    outside = np.flatnonzero((x < low) | (x > high))
    if outside.size:
        j = int(outside[0])
        raise InvalidInputError(
            f"x must lie in domain, got {x[j]} outside [{low[j]}, {high[j]}] at feature {j}"
        )
    return freeze(low), freeze(high)
