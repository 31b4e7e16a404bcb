"""The parts of V9' one by one, where they are tight: rates at the worst variance, known quadratics."""

from __future__ import annotations

import random
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from flint import arb, arb_mat

from fuzz import LOGIT
from gpcert_check.arithmetic import dot, normal
from gpcert_check.indefinite import variances
from gpcert_check.joint import Class, Rate, Total
from gpcert_check.logit import SIGMA, mean_of
from gpcert_check.model import Latent
from gpcert_check.planes import Plane, Probit, falling
from gpcert_check.reading import Reject
from gpcert_check.regions import Cell
from making import hexed
from truth import needed_mean

_ROUNDING = arb(10) ** -20


def _class(rng: random.Random, d: int, scale: list[float], level: Any, latent: Any) -> Class:
    """A plane whose expansion is known, on a random cell; many of its parts vanish, so that others show."""

    def some(size: float = 1.0) -> arb:
        return arb(rng.choice([0.0, 0.0, rng.gauss(0, size)]))

    lower = [Fraction(-rng.choice([0.0, rng.random()])) for _ in range(d)]
    upper = [Fraction(rng.uniform(0.05, 1.0)) for _ in range(d)]
    cell = Cell(lower, upper, [0.0] * d, scale)
    f2 = [[some() for _ in range(d)] for _ in range(d)]
    f2 = [[f2[max(i, j)][min(i, j)] for j in range(d)] for i in range(d)]
    form = [abs(some()) for _ in range(d)]
    H = arb_mat([[f2[i][j] - (form[i] if i == j else 0) for j in range(d)] for i in range(d)])
    plane = Plane(some(), some(), arb(0), abs(some()))
    point = SimpleNamespace(
        plane=plane,
        cell=cell,
        x=cell.reach([1] * d),
        f0=some(),
        f1=[some() for _ in range(d)],
        f2=arb_mat(f2),
        H=H,
    )
    point.rest, point.leaf, point.q0 = abs(some()), {}, arb(latent.s2) * rng.random()
    return Class(SimpleNamespace(latent=latent, scale=scale), point, level)


def _plane(one: Class, d: list[arb], sign: int) -> arb:
    """f at a displacement, its orders from three on as large as they may be."""
    point, plane = one.point, one.point.plane
    r = dot(d, d) / 2
    higher = sum(((point.f2[j, j] - point.H[j, j] + point.rest) * a * a for j, a in enumerate(d)), arb(0))
    form = dot(d, [dot(row, d) for row in point.f2.tolist()])
    F = plane.still + point.f0 + dot(point.f1, d) + form / 2 + sign * higher / 2
    return plane.constant + (F - plane.bend * r.expm1()) * (-r).exp()


def sum_complaints(seed: int) -> list[str]:
    """V9' (d): the quadratic of a sum lies below it, whatever the units."""
    rng = random.Random(seed)
    d = rng.choice([1, 1, 2])
    common = [1.0] * d if rng.random() < 0.5 else [rng.uniform(0.5, 2) for _ in range(d)]
    scale = common if rng.random() < 0.4 else [rng.uniform(0.5, 2) for _ in range(d)]
    latent = SimpleNamespace(s2=1.0)
    one = _class(rng, d, scale, None, latent)
    rate = Rate(arb(0), *(abs(arb(rng.choice([0.0, 0.0, rng.random()]))) for _ in range(3)))
    weight, paid = arb(rng.choice([0.0, 1.0, 2.5])), arb(rng.choice([0.0, 0.0, 1.0, 1.5]))
    total = Total(one.point.cell, common, arb(0))
    total.add(one, weight, paid, rate)
    for _ in range(20):
        own = [a + (b - a) * rng.choice([0, 1, rng.random(), 1e-3]) for a, b in one.point.cell.box]
        f = _plane(one, own, rng.choice([1, -1]))
        if abs(f) > one.most + _ROUNDING:
            return [f"{seed}: a plane is larger than it says"]
        z = [a * s / t for a, s, t in zip(own, scale, common, strict=True)]
        grown = (dot(z, z) / 2).exp()
        lost = (rate.apart + rate.spread * dot(own, own).sqrt()) * abs(f) + rate.curve * f * f / 2
        form = dot(z, [dot(row, z) for row in total.H.tolist()])
        below = total.constant * grown + total.value + dot(total.g, z) + form / 2
        if below > grown * (weight * f - paid * lost) + _ROUNDING:
            return [f"{seed}: a sum lies below its quadratic"]
    return []


def least_complaints(seed: int) -> list[str]:
    """V5 under e^r: the least value of a total, with good hints for d = 1."""
    rng = random.Random(seed)
    cell = Cell([Fraction(-rng.random())], [Fraction(rng.random()) + 1], [0.0], [1.0])
    total = Total(cell, [1.0], arb(rng.gauss(0, 2)))
    total.value, total.g = arb(rng.gauss(0, 1)), [arb(rng.choice([0.0, rng.gauss(0, 1)]))]
    value = total.least({"D": hexed([rng.choice([8.0, 20.0])]), "y": hexed([rng.uniform(-0.5, 1)])})
    for i in range(41):
        z = cell.box[0][0] + (cell.box[0][1] - cell.box[0][0]) * i / 40
        if value > total.constant * (z * z / 2).exp() + total.value + total.g[0] * z + _ROUNDING:
            return [f"{seed}: a total lies below its least value"]
    return []


def rate_complaints(seed: int) -> list[str]:
    """V9' (a), (b): P at the worst variance, and at both ends of f, is at least what the rate says."""
    rng = random.Random(seed)
    probit = rng.random() < 0.6
    s2 = rng.choice([0.2, 1.0, 6.0])
    kernel = {"type": "rbf", "lengthscale": (1.0).hex(), "variance": s2.hex()}
    latent = Latent([[0.0]], kernel, [0.0], [0.5], 0.0)
    latent.settle(arb(rng.choice([0.0, 0.3])), arb(rng.choice([0.0, 0.2])))
    p = rng.choice([0.5, rng.uniform(0.02, 0.98)])
    link = {"name": "probit", "scale": rng.choice([1.0, 3.0]).hex()} if probit else LOGIT
    t = rng.choice([0.0, rng.gauss(0, 1.5)])
    try:
        level = Probit(link).level({"t": t.hex()}, latent) if probit else SimpleNamespace(p=p)
        one = _class(rng, 1, [1.0], level, latent)
        if not probit:
            away = rng.choice([0.0, 0.0, 0.3])
            S = max(float((s2 - one.point.q0).mid()), 0.0) + away
            m = needed_mean(LOGIT, p, S)
            wrong = rng.choice([0.0] * 6 + [0.4, -0.4, None])
            ends = [m + 1e-9, m - 1e-9] if wrong is None else [m - 1e-9 + wrong, m + 1e-9 + wrong]
            one.point.leaf["rate"] = hexed([S, *ends])
        rate = one.rate()
    except Reject:
        return []
    here = arb(s2) - one.point.q0
    for _ in range(6):
        d = one.point.x.sqrt() * rng.choice([1, rng.random(), 1e-3])
        S = (here + rng.choice([1, -1]) * one._change() * d).nonnegative_part().min(latent.top)
        f = one.most * rng.choice([1, -1, rng.uniform(-1, 1), 1e-3, -1e-3])
        bound = rate.slope * f - (rate.apart + rate.spread * d) * abs(f) - rate.curve * f * f / 2
        if probit:
            A = (level.c + S).sqrt()
            true = normal(t + f / A) - normal(arb(t))
        else:
            true = mean_of(SIGMA, arb(needed_mean(LOGIT, p, float(S.mid()))) + f, S) - p + 1e-7
        if bound > true + _ROUNDING:
            return [f"{seed}: a rate is too large"]
    return []


def spread_complaints(seed: int) -> list[str]:
    """V3', V9' (a): the variance near a reference, of one centre whose precision is as large as it may be."""
    rng = random.Random(seed)
    s2, q = rng.choice([0.5, 2.0]), rng.choice([0.5, 1.0, 1.4, -0.7])
    kernel = {"type": "rbf", "lengthscale": (1.0).hex(), "variance": s2.hex()}
    latent = Latent([[0.0]], kernel, [0.0], [q / s2], 0.0)
    latent.settle((arb(q) - 1).nonnegative_part(), arb(max(-q, 0.0)))

    def variance(x: float) -> arb:
        return s2 - arb(q) * s2 * (-arb(x) * x).exp()

    spot, reach = rng.uniform(-1.5, 1.5), 10 ** rng.uniform(-3, 0)
    q0 = s2 - variance(spot)
    point = SimpleNamespace(q0=q0, x=arb(reach) ** 2)
    change = Class._change(SimpleNamespace(view=SimpleNamespace(latent=latent), point=point))
    least, most, below = variances(latent, q0, arb(reach) ** 2)
    c, steep, r = arb(10 ** rng.uniform(-3, 0)), arb(2), arb(q) * (-arb(spot) * spot / 2).exp()
    plane = falling(latent, arb(0), steep, c, q0, arb(reach) ** 2)
    for _ in range(12):
        d = reach * rng.choice([1, -1, rng.uniform(-1, 1)])
        S = variance(spot + d)
        near = (-((arb(spot + d) - spot) ** 2) / 2).exp()
        value = plane.constant + plane.still * near - plane.bend * (1 - near)
        value += plane.factor * r * s2 * (-(arb(spot + d) ** 2) / 2).exp()
        if value > steep * (c + S.nonnegative_part()).sqrt() + _ROUNDING:
            return [f"{seed}: a plane of a cell lies above what it supports"]
        if abs(S - variance(spot)) > change * abs(arb(spot + d) - spot) + _ROUNDING:
            return [f"{seed}: a variance changes more than it may"]
        if (
            S.nonnegative_part() < least - _ROUNDING
            or most.max(S.min(arb(0))) + _ROUNDING < S
            or -below - _ROUNDING > S
        ):
            return [f"{seed}: a variance leaves its ends"]
    return []


ALL = [sum_complaints, least_complaints, rate_complaints, spread_complaints]
