"""A certified lower bound of a quadratic over a p-ball in a box, normalised (docs/maths/regions.md, 2).

B5 (faces) shortens the box; then the quadratic is made convex, at a price that the ball or the box pays, and
its tangent is minimised over the set. Candidates for the price: box multipliers and, for p >= 2, weighted
ellipsoids around the ball, found together by Newton's method (B6); the ball's own constraint, for p other
than 1 and 2 (B11); a matrix for p = 1 (B7). Every multiplier is sound, the best value counts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpcert.bounds.geometry.ball_separable import separable_bound
from gpcert.bounds.geometry.box_quadratic import QuadraticBound, convexified, curvature
from gpcert.bounds.geometry.unit_ball import UnitBall
from gpcert.regions import nearest
from gpcert.rounding import TINY, UNIT, gamma, is_certainly_psd, norm_up, sum_up, symmetric
from gpcert.validation import Float

_NEWTON_STEPS = 24


def multipliers(
    g: Float, H: Float, low: Float, high: Float, weight: Float, enough: float, accuracy: float
) -> tuple[Float, float, Float]:
    """Good multipliers D of the box (d,) and E of the ellipsoid sum_j weight_j d_j^2 <= 1, and a good y (d,).

    Newton on max dual(D, E) + mu (log det A + sum log D + log E) in units d = middle + half * z, where
    A = H + diag(D + E weight).
    """
    half, middle = 0.5 * (high - low), 0.5 * (low + high)
    matrix = H * np.outer(half, half)
    vector = (g + H @ middle) * half
    constant = g @ middle + 0.5 * middle @ H @ middle
    n = len(g)
    values = np.linalg.eigvalsh(matrix)
    size = max(abs(values[0]), abs(values[-1]), float(np.abs(vector).max()), TINY)
    # Convex without the ellipsoid, which may be nearly flat along some features.
    D = np.abs(vector) + max(-values[0], 0.0) + 0.01 * size / n
    # The ellipsoid in units of z: (z^T diag(curl) z + 2 pull.z + level) / 2 <= 0.
    curl, pull = weight * half * half, weight * half * middle
    level = float(weight @ (middle * middle)) - 1.0
    E = np.float64(max(float(D.max() / curl.max()), 1e-120))  # overflows to inf, where a float would raise
    mu = 0.0
    for step in range(_NEWTON_STEPS):
        A = matrix.copy()
        A[np.diag_indices(n)] += D + E * curl
        inverse = np.asarray(np.linalg.inv(A), dtype=np.float64)
        linear = vector + E * pull
        z = -inverse @ linear
        dual = 0.5 * linear @ z - 0.5 * D.sum() + 0.5 * E * level
        gap = _primal(matrix, vector, z, middle, half, weight) - dual
        # Stop where the target is met with room for rounding, or where no better multipliers can meet it.
        met = dual + constant - 1e-11 * size >= enough
        if met or gap <= accuracy * abs(dual) or step == _NEWTON_STEPS - 1:
            break
        mu = 0.15 * gap / n if step == 0 else mu
        change = _newton_step(inverse, z, (D, E), (curl, pull, level), mu)
        if not np.isfinite(change).all():
            break
        length = _longest_step(matrix, np.append(D, E), change, curl)
        D, E = D + length * change[:n], E + length * float(change[n])
        mu *= 0.15 if length > 0.5 else 0.9
    return D / half**2, E, middle + half * z


def _newton_step(
    inverse: Float,
    z: Float,
    at: tuple[Float, float],
    ellipsoid: tuple[Float, Float, float],
    mu: float,
) -> Float:
    """The step of (D, E), (d + 1,): the curvature is that of the box, bordered by the ellipsoid's."""
    (D, E), (curl, pull, level) = at, ellipsoid
    n = len(D)
    squares, traces = inverse * inverse, np.diagonal(inverse)
    b, mixed = curl * z + pull, squares @ curl
    curvature = np.empty((n + 1, n + 1))
    curvature[:n, :n] = np.outer(z, z) * inverse + mu * squares
    curvature[np.arange(n), np.arange(n)] += mu / D**2
    curvature[:n, n] = curvature[n, :n] = z * (inverse @ b) + mu * mixed
    curvature[n, n] = b @ inverse @ b + mu * (curl @ mixed + 1.0 / E**2)
    slope = np.append(
        0.5 * (z * z - 1.0) + mu * (traces + 1.0 / D),
        0.5 * (curl @ (z * z) + 2.0 * pull @ z + level) + mu * (curl @ traces + 1.0 / E),
    )
    return np.asarray(np.linalg.solve(curvature, slope), dtype=np.float64)


def _primal(matrix: Float, vector: Float, z: Float, middle: Float, half: Float, weight: Float) -> float:
    """The quadratic at z, drawn into the box and the ellipsoid: at least the minimum, if 0 is in the box."""
    d = middle + half * np.clip(z, -1.0, 1.0)
    inside = (d / max(1.0, float(np.sqrt(weight @ (d * d)))) - middle) / half
    return float(vector @ inside + 0.5 * inside @ matrix @ inside)


def _longest_step(matrix: Float, at: Float, change: Float, curl: Float) -> float:
    """A step keeping the multipliers positive and matrix + diag(D + E curl) positive definite."""
    shrinking = change < 0
    length = min(1.0, 0.9 * float(np.min(-at[shrinking] / change[shrinking], initial=np.inf)))
    for _ in range(40):
        new = at + length * change
        try:
            np.linalg.cholesky(matrix + np.diag(new[:-1] + new[-1] * curl))
        except np.linalg.LinAlgError:
            length *= 0.7
            continue
        return length * (0.95 if length < 1.0 else 1.0)
    return 0.0


_FACE_ROUNDS = 3
#: Coordinates narrower than this share of the widest are held where they are smallest: units that differ by
#: more leave nothing of the convex part but rounding (B5').
_NARROW = 1e-9
_DESCENT_STEPS = 80
#: Steps end it that are shorter than this share of the set, and where it only guides: what a tangent loses is
#: of second order.
_SHORT, _ROUGH = 1e-7, 1e-3
#: Smallest |y_j| that counts in an ellipsoid for p > 2, relative to that of a point with equal coordinates.
_LEAST = (0.03, 0.1, 0.3, 0.7)
#: The part of a certain deficit that a programme may lose besides.
_PART = 0.2
#: Multiples of the most negative eigenvalue tried for B7.
_SHIFTS = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0])


def unit_lower_bound(
    g: Float, H: Float, ball: UnitBall, enough: float = np.inf, accuracy: float = 1e-6
) -> QuadraticBound:
    """At most the minimum of g.u + u^T H u / 2 over the ball, H (d, d) symmetric; a point near it."""
    with np.errstate(all="ignore"):  # overflow ends as -inf, never as a bound
        ball = _shortened(g, H, ball)
        point, width = ball.rest, ball.high - ball.low
        free = width > _NARROW * float(width.max())
        # Substitution of the others rounds: the constant, and the gradient, which acts over at most 1.
        fixed = np.flatnonzero(~free)
        moved = H[:, fixed] @ point[fixed]
        constant = float((g + 0.5 * moved)[fixed] @ point[fixed])
        scale = np.abs(g) + np.abs(H[:, fixed]) @ np.abs(point[fixed])
        if point[fixed].any():
            constant -= 2.0 * gamma(2 * len(g) + 20) * float(scale.sum()) + len(g) * TINY
        if width[fixed].any():
            held = (np.abs(g) + np.abs(H).sum(axis=1)) * width
            constant -= float(held[fixed].sum()) * (1.0 + 1e-6) + len(g) * TINY
        if not free.any():
            return QuadraticBound(constant, point)
        found = _best(
            (g + moved)[free], H[np.ix_(free, free)], ball.restricted(free), enough - constant, accuracy
        )
        point = point.copy()
        point[free] = found.point
        value = constant + found.value
        value = value - 2.0 * UNIT * abs(value)
        return QuadraticBound(value if np.isfinite(value) else -np.inf, point)


def _shortened(g: Float, H: Float, ball: UnitBall) -> UnitBall:
    """B5: where a component of the gradient keeps its sign, its coordinate ends at the rest on that side."""
    slack = gamma(4 * len(g) + 20) * (np.abs(g) + np.abs(H).sum(axis=1))
    for _ in range(_FACE_ROUNDS):
        rest = ball.rest
        falls = (g - ball.support(-H) - slack >= 0) & (ball.high > rest)
        rises = (g + ball.support(H) + slack <= 0) & (ball.low < rest)
        if not (falls.any() or rises.any()):
            break
        ball = UnitBall(np.where(rises, rest, ball.low), np.where(falls, rest, ball.high), ball.norm)
    return ball


def _best(g: Float, H: Float, ball: UnitBall, enough: float, accuracy: float) -> QuadraticBound:
    best = QuadraticBound(-np.inf, ball.rest)
    try:
        for value, point in _candidates(g, H, ball, enough, accuracy):
            if value > best.value or best.value == -np.inf:
                best = QuadraticBound(value, point)
            here = float((g + 0.5 * H @ point) @ point)
            if best.value >= min(enough, here - accuracy * abs(here)):  # no other multiplier gives more
                break
    except np.linalg.LinAlgError:  # a singular matrix on the way: what was found so far counts
        pass
    if best.value == -np.inf:  # nothing could be verified: a dominant diagonal can
        dominant = np.abs(H).sum(axis=1) * (1.0 + 1e-9)
        best = QuadraticBound(*_priced(g, H, ball, dominant, np.zeros(len(g)), None))
    return best


def _candidates(
    g: Float, H: Float, ball: UnitBall, enough: float, accuracy: float
) -> Iterator[tuple[float, Float]]:
    """Values and points, by rising price."""
    none = np.zeros(len(g))
    if ball.norm < 2.0:
        values, vectors = np.linalg.eigh(H)
        if ball.norm == 1.0:
            yield _matrix_price(g, H, ball, values, vectors)
            if values[0] < 0:
                D, _ = curvature(g, H, ball.low, ball.high, enough, accuracy)
                yield _priced(g, H, ball, D, none, None)
            return
        if values[0] >= 0:  # convex: at the minimiser the tangent over the ball is exact
            y = descended(g, H, ball)
            yield _priced(g, H, ball, none, none, y)
        else:
            y = descended(g, H, ball, short=_ROUGH)
        target, start = _target(g, H, y, enough, accuracy), (y, _multiplier(g, H, y, ball))
        shift = np.full(len(g), max(-float(values[0]) * (1.0 + 1e-9), 0.0))
        value = separable_bound(g, H, ball, shift, [start], target)
        yield value, y
        if values[0] < 0 and value < target:
            D, z = curvature(g, H, ball.low, ball.high, enough, accuracy)
            yield separable_bound(g, H, ball, D, [start, (z, 0.0)], target), y
        return
    y = descended(g, H, ball, short=_ROUGH)
    for least in (0.03,) if ball.norm == 2.0 else _LEAST:
        weight = _ellipsoid(y, ball.norm, least)
        trial = _priced(g, H, ball, none, _pull(g + H @ y, y, ball) * weight, y)
        if trial[0] > -np.inf:  # convex: a rounder ellipsoid only costs more; at the minimiser it is exact
            y = descended(g, H, ball, start=y)
            weight = _ellipsoid(y, ball.norm, least)
            exact = _priced(g, H, ball, none, _pull(g + H @ y, y, ball) * weight, y)
            yield exact if exact[0] >= trial[0] else trial
            break
    D, multiplier, z = multipliers(g, H, ball.low, ball.high, weight, enough, accuracy)
    if ball.norm == 2.0:
        yield _priced(g, H, ball, D, multiplier * weight, z)
        return
    starts = [(z, multiplier / ball.norm), (y, _multiplier(g, H, y, ball))]
    target = _target(g, H, y, enough, accuracy)
    yield separable_bound(g, H, ball, D + multiplier * weight, starts, target), y


def _target(g: Float, H: Float, y: Float, enough: float, accuracy: float) -> float:
    """What is worth an effort, y (d,) being about a minimiser in the ball: `enough`, or nearly its value; if
    that is too small anyway, all but a part of what is certainly missing.
    """
    here = float((g + 0.5 * H @ y) @ y)
    missing = enough - here if np.isfinite(enough) else 0.0
    return min(enough, here - max(accuracy * abs(here), _PART * missing))


def _multiplier(g: Float, H: Float, y: Float, ball: UnitBall) -> float:
    """B11's m at the minimiser y (d,)."""
    slope = g + H @ y
    return min(_pull(slope, y, ball), float(np.abs(slope).sum())) / ball.norm


def _ellipsoid(y: Float, norm: float, least: float) -> Float:
    """B6: weights w (d,) with sum w_j u_j^2 <= 1 on the ball, about equal to 1 at y; `least` rounds it."""
    if norm == 2.0:
        return np.ones(len(y))
    weight = np.maximum(np.abs(y), least * len(y) ** (-1.0 / norm)) ** (norm - 2.0)
    return np.asarray(weight / float(norm_up(weight, norm / (norm - 2.0))))


def _pull(gradient: Float, y: Float, ball: UnitBall) -> float:
    """The multiplier of the ball at the minimiser y: -gradient_j = multiplier |y_j|^(p-2) y_j where no end
    of the box holds y_j; 0 inside the ball.
    """
    loose = (y > ball.low) & (y < ball.high)
    size = np.abs(y) ** (ball.norm - 1.0) * loose
    total = float(size @ size)
    multiplier = -float((gradient * np.sign(y)) @ size) / total if total > 0 else 0.0
    return max(multiplier, 0.0) if np.isfinite(multiplier) else 0.0


def _priced(g: Float, H: Float, ball: UnitBall, D: Float, E: Float, y: Float | None) -> tuple[float, Float]:
    """B6 with box multipliers D and ball multipliers E, both (d,) >= 0, and the tangent at y; None: at the
    minimiser.
    """
    low, high = ball.low, ball.high
    total = convexified(H, D + E, high - low)
    if total is None:
        return -np.inf, ball.rest
    # What verification added, and the rounding of D + E, the box pays: D + E >= total.
    D = D + np.maximum(total - (D + E), 0.0) * (1.0 + 1e-9) + 8 * UNIT * (D + E)
    A = H.copy()
    A[np.diag_indices(len(g))] += D + E
    c = g - 0.5 * D * (low + high)
    if y is None:
        y = descended(c, A, ball)
    G = c + A @ y
    exponent = np.inf if ball.norm <= 2.0 else ball.norm / (ball.norm - 2.0)
    price = 0.5 * float(norm_up(E, exponent)) + 0.5 * float((-D * low * high).sum())
    size = (
        (np.abs(c) + np.abs(g) + np.abs(A) @ np.abs(y)) * (np.abs(y) + 1.0)
        + D * np.abs(low * high)
        + (D + E) * (1.0 + y * y)
    )
    error = gamma(4 * len(g) + 60) * float(size.sum()) + TINY
    value = float((0.5 * (c + G) - G) @ y) + ball.least(G) - price
    return value - 2.0 * error, np.clip(y, low, high)


def _matrix_price(g: Float, H: Float, ball: UnitBall, values: Float, vectors: Float) -> tuple[float, Float]:
    """B7: the negative part of H costs a kink at 0, by a multiple D of the identity, which the caps pay, and
    by a matrix N, which the ball pays: u^T N u <= |u|_1 sum_j N_jj |u_j|.
    """
    caps = ball.caps
    reach = min(1.0, sum_up(caps))
    size = np.abs(descended(g, H, ball))
    squares = vectors * vectors
    shifts = max(-float(values[0]), 0.0) * _SHIFTS
    prices = [reach * (squares @ np.maximum(-(values + D), 0.0)) @ size + D * (caps @ size) for D in shifts]
    D = float(shifts[int(np.argmin(prices))])
    negative = values + D < 0
    part = vectors[:, negative] * np.sqrt(-(values + D)[negative])
    N = part @ part.T
    diagonal = np.diag_indices(len(g))
    N[diagonal] += 1e-12 * float(np.abs(values).sum()) + 1e-200
    N = symmetric(N)
    A = H + N
    A[diagonal] += D
    if not (is_certainly_psd(A) and is_certainly_psd(N)):
        return -np.inf, ball.rest
    penalty = 0.5 * (reach * np.diagonal(N) + D * caps) * (1.0 + 8 * UNIT)
    y = descended(g, A, ball, penalty)
    G = g + A @ y
    size = (np.abs(g) + np.abs(A) @ np.abs(y)) * (np.abs(y) + 1.0) + (
        np.abs(A) + np.abs(N) + np.abs(H)
    ) @ caps
    error = gamma(4 * len(g) + 60) * float((size + D).sum()) + TINY
    value = float((0.5 * (g + G) - G) @ y) + ball.least(G, penalty)
    return value - 2.0 * error, y


def descended(
    c: Float,
    A: Float,
    ball: UnitBall,
    penalty: Float | None = None,
    start: Float | None = None,
    short: float = _SHORT,
) -> Float:
    """About the minimiser of c.u + u^T A u / 2 (less the penalty's kinks) over the ball: where the tangent
    goes; accelerated projected gradient.
    """
    low, high = ball.low, ball.high
    steepest = float(np.linalg.eigvalsh(A)[-1]) if np.isfinite(A).all() else np.inf
    steepest = max(steepest, 1e-6 * float(np.abs(c).max()), TINY)  # steps far beyond the ball gain nothing
    y = previous = ball.rest if start is None else start
    t, enough = 1.0, short * float((high - low).max())
    for _ in range(_DESCENT_STEPS):
        slope = c + A @ y
        if penalty is not None:
            slope = slope - penalty * np.sign(np.where(y == 0, -slope, y))
        new = nearest(y - slope / steepest, low, high, ball.norm)
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        if (new - previous) @ (y - new) > 0:  # restart
            following = 1.0
        step = np.abs(new - previous).max()
        y = new + (t - 1.0) / following * (new - previous)
        previous, t = new, following
        if step < enough:
            break
    return np.asarray(previous)
