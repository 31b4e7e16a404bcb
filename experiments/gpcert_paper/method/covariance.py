"""Linear bounds on the covariance vector over a box (docs/maths/paper.md, P1).

With w = (x - centre) / lengthscale and t_i(w) = |v_i - w|^2/2 - |v_i|^2/2 = -v_i.w + |w|^2/2, every
covariance is k_i = k_i(centre) e^{-t_i}: convex and decreasing in t_i. A tangent lies below, a chord above:
    below_i + below_slope_i t_i <= k_i <= above_i + above_slope_i t_i        (slopes <= 0),
and 0 <= |w|^2/2 <= `half_square` makes both linear in w. Where a line is no better at the centre than the
plain range of k_i, the range takes its place, as a line of slope 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.rounding import UNDERFLOW, UNIT, gamma
from gpcert.validation import Float


@dataclass(frozen=True, eq=False)
class Extreme:
    """A certified bound, where the relaxation attains it (d,), scaled, and how much of it is rounding."""

    value: float
    point: Float
    rounding: float


@dataclass(frozen=True, eq=False)
class Covariances:
    """Bounds of k (n,) over the box of half-widths `reach` (d,) around a centre, scaled units."""

    v: Float  #: (n, d)
    reach: Float  #: (d,)
    half_square: float  #: at least |w|^2 / 2
    below: Float  #: (n,)
    below_slope: Float  #: (n,), <= 0
    above: Float  #: (n,)
    above_slope: Float  #: (n,), <= 0
    largest: Float  #: (n,), k <= largest on the box
    size: Float  #: (n,): |values| of both lines on the box, term by term, for a-priori rounding bounds

    @property
    def lower_plane(self) -> Float:
        """(n, 1 + d): constant and gradient in w of linear lower bounds."""
        constant = self.below + self.below_slope * self.half_square
        return np.column_stack([constant, -self.below_slope[:, None] * self.v])

    @property
    def upper_plane(self) -> Float:
        """(n, 1 + d): constant and gradient in w of linear upper bounds."""
        return np.column_stack([self.above, -self.above_slope[:, None] * self.v])

    def rounding(self, g: Float) -> Float:
        """At least the rounding error of the bound of g^T k, for g (n,) or for each column of g (n, m)."""
        relative = gamma(g.shape[0] + 4 * len(self.reach) + 40) * 1.01
        return np.asarray(relative * (np.abs(g).T @ self.size) + UNDERFLOW)

    def smallest_sum(self, g: Float) -> Extreme:
        """P2: a lower bound of g^T k in closed form: the lines make it a separable quadratic in w."""
        positive = g > 0
        slopes = g * np.where(positive, self.below_slope, self.above_slope)
        linear, curvature = -(slopes @ self.v), float(slopes.sum())
        minimiser = -np.copysign(self.reach, linear)
        if curvature > 0:
            minimiser = np.clip(-linear / curvature, -self.reach, self.reach)
        value = float(g @ np.where(positive, self.below, self.above))
        value += float(linear @ minimiser) + 0.5 * curvature * float(minimiser @ minimiser)
        error = float(self.rounding(g))
        return Extreme(value - error, minimiser, error)

    def smallest_linear(self, g: Float) -> Extreme:
        """P3: the linear programme min g^T k, with k between its planes and w in the box: it separates."""
        plane = np.where((g > 0)[:, None], self.lower_plane, self.upper_plane)
        constant, *gradient = g @ plane
        slope = np.array(gradient)
        error = float(self.rounding(g))
        value = float(constant) - float(np.abs(slope) @ self.reach) - error
        return Extreme(value, -np.copysign(self.reach, slope), error)


def covariances(slice_: Slice, lower: Float, upper: Float) -> Covariances:
    """P1 on the box [lower, upper] (d,), raw units."""
    centre = 0.5 * lower + 0.5 * upper
    reach = np.maximum(upper - centre, centre - lower) / slice_.lengthscale * (1.0 + 4 * UNIT)
    v = (slice_.points - centre) / slice_.lengthscale
    half_square = 0.5 * float(reach @ reach) * (1.0 + gamma(len(reach) + 4))
    near, far = _change_of_distance(v, reach)
    spread = far - near
    k, relative = _values(slice_, v, far)

    slack = slice_.tiny * (4.0 + spread)
    smallest = np.maximum(k(far) * (1.0 - relative) - slack, 0.0)
    largest = k(near) * (1.0 + relative) + slack
    middle = 0.5 * (near + far)
    value = k(middle)
    below_slope = -value
    below = value * (1.0 + middle) - value * relative * (2.0 + spread + np.abs(middle)) - slack
    far_value = k(far) * (1.0 + relative) + slack
    wide = spread > 0
    above_slope = np.minimum(np.where(wide, (far_value - largest) / np.where(wide, spread, 1.0), 0.0), 0.0)
    above = np.maximum(largest - above_slope * near, far_value - above_slope * far)
    above += 8 * UNIT * (largest - above_slope * (np.abs(near) + np.abs(far)))

    # `not >`: also where a line is not a number.
    flat = ~(below + below_slope * half_square > smallest)
    below, below_slope = np.where(flat, smallest, below), np.where(flat, 0.0, below_slope)
    flat = ~(above < largest)
    above, above_slope = np.where(flat, largest, above), np.where(flat, 0.0, above_slope)
    change = np.abs(v) @ reach + half_square
    size = np.abs(below) + np.abs(above) - (below_slope + above_slope) * change
    return Covariances(v, reach, half_square, below, below_slope, above, above_slope, largest, size)


def _change_of_distance(v: Float, reach: Float) -> tuple[Float, Float]:
    """Enclosures (n,) of the smallest and the largest t_i over the box, coordinate by coordinate."""
    distance = np.abs(v)
    inside = distance <= reach
    near = np.where(inside, -0.5 * distance * distance, (0.5 * reach - distance) * reach).sum(axis=1)
    far = (distance @ reach) + 0.5 * float(reach @ reach)
    slack = gamma(len(reach) + 12) * 2.0 * far
    return near - slack, far + slack


def _values(slice_: Slice, v: Float, far: Float) -> tuple[Callable[[Float], Float], Float]:
    """t -> k (n,), and the relative error of it for every |t_i| <= far_i (E1, with t in the exponent)."""
    at_centre = 0.5 * np.einsum("ij,ij->i", v, v)
    features = slice_.model.centres.shape[1]
    relative = UNIT * ((features + 24) * (2.0 * at_centre + 2.0 * far + slice_.still) + 64.0)

    def value(t: Float) -> Float:
        return np.asarray(slice_.amplitude * np.exp(-np.maximum(at_centre + t, 0.0)))

    return value, relative
