"""The statements against sampling: every function here returns sentences that are complaints; none is as it
should be.

`python fuzz.py N`: N seeds of each, exit status 1 with the first complaint. Mutation tests run it on broken
checkers.
"""

from __future__ import annotations

import random
import sys
from fractions import Fraction
from math import factorial, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from flint import arb, arb_mat

from gpcert_check.arithmetic import quadratic
from gpcert_check.balls import read_region
from gpcert_check.claims import Claim
from gpcert_check.explain import Extremes, balance
from gpcert_check.five_erf import FiveErf
from gpcert_check.indefinite import contractions
from gpcert_check.leaves import Slice
from gpcert_check.logit import Logit
from gpcert_check.model import Latent
from gpcert_check.model_file import Model
from gpcert_check.planes import Probit, falling, rising
from gpcert_check.reading import Reject
from gpcert_check.several import extreme
from gpcert_check.sharper import envelope, narrowed, tail
from gpcert_check.work import Work
from making import Toy, ball, box, hexed, leaf_for, sample
from truth import exact_expectation, exact_latent, needed_mean, psi_told

LOGIT = {"name": "logit"}
FIVE_ERF = {"name": "five_erf"}


def region_of(toy: Toy, rng: random.Random, kind: str) -> dict[str, Any]:
    """A random region with standing features now and then."""
    x = [rng.uniform(-0.8, 0.8) for _ in range(toy.D)]
    size = rng.choice([0.05, 0.3, 0.8, 1.2])
    if kind == "box":
        upper = [a + (0 if toy.D > 1 and rng.random() < 0.2 else rng.uniform(0.1, 1) * size) for a in x]
        upper[0] = x[0] + size
        return box(x, upper)
    scale = None if rng.random() < 0.5 else [rng.uniform(0.5, 2) for _ in x]
    domain = (
        None
        if kind != "0" and rng.random() < 0.5
        else [[a - size * rng.random() for a in x], [a + size for a in x]]
    )
    features = None if toy.D == 1 or rng.random() < 0.7 else sorted(rng.sample(range(toy.D), toy.D - 1))
    radius = float(rng.randint(1, max(1, toy.D - 1))) if kind == "0" else size
    return ball(x, radius, kind, features, domain, scale)


def bent_curve(p: float, top: float, rng: random.Random) -> dict[str, Any]:
    """Points a little above the level's curve of the logistic, or, wrongly, below."""
    shift = rng.choice([1e-9, 1e-9, 0.1, -0.3])
    S = (
        [0.0, 0.3 * top, top * 1.01]
        if rng.random() < 0.5
        else [0.0, *(top * 1.01 * i / 6 for i in range(1, 7))]
    )
    return {
        "c": rng.choice([1.5, 2.0]).hex(),
        "S": hexed(S),
        "m": hexed([needed_mean(LOGIT, p, s) + shift for s in S]),
    }


class Case:
    """A random leaf: model, slice, level, hints, and pointwise what the leaf is about."""

    def __init__(self, seed: int, folder: str) -> None:
        rng = self.rng = random.Random(seed)
        chance = rng.random()
        link = LOGIT if chance < 0.15 else FIVE_ERF if chance > 0.85 else None
        indefinite = rng.random() < 0.25
        toy = self.toy = Toy(seed, rng.randint(1, 5), rng.randint(1, 3), link=link, indefinite=indefinite)
        if rng.random() < 0.3:
            toy.s2 *= 1e-3 if rng.random() < 0.5 else 8.0
            toy.R = [toy._inverse(W) for W in toy.W]
        if rng.random() < 0.4:  # weights that fit: the mean is large and of one sign
            toy.alpha[0] = [rng.choice([0.0, 1.0, 4.0]) * rng.choice([-1, 1]) for _ in toy.alpha[0]]
        lifted = not indefinite and rng.random() < 0.2
        if lifted:  # variances that are clipped
            toy.W = [[10 ** rng.uniform(2, 6) for _ in W] for W in toy.W]
            toy.R = [[[1.4 * r for r in row] for row in toy._inverse(W)] for W in toy.W]
        toy.write(Path(folder) / "m")
        self.latent = Model(str(Path(folder) / "m")).latents[0]
        if indefinite or lifted:
            hints = {"jitter": 1e-9 * toy.s2, "contraction": 1.4 + 1e-5, "negative": 0.9 * indefinite}
            contractions(self.latent, {name: float(value).hex() for name, value in hints.items()})
        else:
            self.latent.verify(toy.W[0])
        self.region = read_region(
            region_of(toy, rng, rng.choice(["box", "box", "inf", "2", "1", "0"])), toy.D
        )
        self.sign = rng.choice([1, -1])
        self.view = Slice(self.latent, self.region, self.sign)
        self.lower = [self.region.lower[j] for j in self.region.moving]
        self.upper = [self.region.upper[j] for j in self.region.moving]
        if rng.random() < 0.4 and self.lower:
            j = rng.randrange(len(self.lower))
            cut = Fraction(float(self.lower[j] + Fraction(rng.random()) * (self.upper[j] - self.lower[j])))
            if self.lower[j] < cut < self.upper[j]:
                (self.lower if rng.random() < 0.5 else self.upper)[j] = cut
        self.hints: dict[str, Any] = {}
        self._logit() if link == LOGIT else self._five_erf() if link else self._probit()
        if rng.random() < 0.3:
            d = len(self.lower)
            thetas = [rng.uniform(0.05, 2) for _ in range(rng.randint(0, 2))]
            metric = [rng.uniform(0.3, 3) for _ in range(d)]
            self.hints["forms"] = {
                "metric": hexed(metric),
                "thetas": hexed(thetas),
                "own": rng.random() < 0.5,
            }

    def _probit(self) -> None:
        rng = self.rng
        t = rng.choice([0.0, rng.gauss(0, 1), rng.gauss(0, 3), -abs(rng.gauss(0, 8))])
        self.link = self.toy.likelihood
        self.level = Probit(self.link).level({"t": t.hex()}, self.latent)
        if t > 0:
            self.hints["tau"] = (
                rng.choice([0.0, 0.2, 1.0, 2.0, -0.5]) * t / (2 * sqrt(1 + self.toy.s2 / 2))
            ).hex()
        if t < 0 and rng.random() < 0.3:
            self.hints["tau"] = (0.0).hex()
        if rng.random() < 0.4:
            self.hints["spread"] = True
        c = 1 / arb(float.fromhex(self.link["scale"])) ** 2
        self.required = lambda S: arb(t) * (c + S).sqrt()

    def _logit(self) -> None:
        rng, toy = self.rng, self.toy
        p = rng.choice([0.5, rng.uniform(0.02, 0.98), rng.uniform(0.1, 0.45)])
        proof: dict[str, Any] = {"p": p.hex()}
        top = float(self.latent.top.upper())
        self.link = LOGIT
        if p < 0.5:
            proof["curve"] = bent_curve(p, top, rng)
            self.hints["nu"] = rng.choice([0.0, 0.2, 0.5, 1.0, 2.0]).hex()
            if rng.random() < 0.4:
                self.hints["tau"] = (0.0).hex()
                S = rng.random() ** 2 * toy.s2
                m = needed_mean(LOGIT, p, S)
                self.hints |= {"spread": True, "tangent": hexed([S, m - 1e-9, m + 1e-9])}
        if p > 0.5:
            flat = rng.random() < 0.3
            S = top * rng.choice([1.01, rng.random()]) if flat else rng.random() * toy.s2
            if flat:
                self.hints["spread"] = True
            m = needed_mean(LOGIT, p, S)
            wrong = rng.choice([0.0, 0.0, 0.3, -0.3])
            self.hints["tangent"] = hexed([S, m - 1e-9 + max(0.0, wrong), m + 1e-9 + wrong])
            if flat:
                self.hints["tau"] = (0.0).hex()
        self.level = Logit(LOGIT).level(proof, self.latent)
        self.required = lambda S: arb(needed_mean(LOGIT, p, float(S.mid())) - 1e-8)

    def _five_erf(self) -> None:
        rng, toy = self.rng, self.toy
        p = rng.choice([0.5, rng.uniform(0.02, 0.98), rng.uniform(0.9, 0.999), rng.uniform(0.001, 0.1)])
        self.link = FIVE_ERF
        top = float(self.latent.top.upper())
        self.hints = psi_told(FIVE_ERF, p, rng.random() * toy.s2, top, rng.random() < 0.3)
        for name, told in self.hints.items():
            wrong = rng.choice([0.0, 0.0, 0.3, -0.3, -1e-4])
            self.hints[name] = [(float.fromhex(told[0]) + wrong).hex(), *told[1:]]
        if rng.random() < 0.4:
            self.hints["spread"] = True
        self.level = FiveErf(FIVE_ERF).level({"p": p.hex()}, self.latent)
        self.required = lambda S: arb(needed_mean(FIVE_ERF, p, float(S.mid())) - 1e-8)

    def point(self) -> list[float] | None:
        """A point of the leaf's part of the region."""
        z = sample(self.region, self.rng)
        for j, a, b in zip(self.region.moving, self.lower, self.upper, strict=True):
            z[j] = min(max(z[j], float(a)), float(b))
        inside = all(
            a <= Fraction(z[j]) <= b
            for j, a, b in zip(self.region.moving, self.lower, self.upper, strict=True)
        )
        return z if inside and self.region.contains(z) else None

    def value(self, z: list[float], reference: list[float] | None) -> arb:
        """(mu - m_p(S)) e^{|d|^2/2}; without a reference, mu - m_p(S) itself."""
        mean, variance = exact_latent(self.toy, z)
        plain = self.sign * mean - self.required(variance)
        if reference is None:
            return plain
        steps = [
            (arb(z[j]) - a) / self.toy.scale[j] for j, a in zip(self.region.moving, reference, strict=True)
        ]
        return plain * (sum((s * s for s in steps), arb(0)) / 2).exp()


def leaf_complaints(seed: int, points: int = 25) -> list[str]:
    """V2 to V8, V10: the value of a leaf lies below what it bounds, at every sampled point."""
    with TemporaryDirectory() as folder:
        try:
            case = Case(seed, folder)
        except Reject:
            return []
    rng, d = case.rng, len(case.lower)
    if d == 0:
        return []
    samples = [z for z in (case.point() for _ in range(points)) if z is not None]
    if not samples:
        return []
    found = []
    try:
        ends = case.lower, case.upper
        known = narrowed(case.view, *ends, case.hints)
        outright = case.level.outright(known, envelope(case.view, *ends), case.hints)
        if any(outright > case.value(z, None) for z in samples):
            found.append(f"{seed}: the envelope lies above a point")
    except Reject:
        pass
    reference = [samples[0][j] for j in case.region.moving]
    if rng.random() < 0.5:
        reference = [
            float((a + b) / 2) + rng.gauss(0, 0.2) for a, b in zip(case.lower, case.upper, strict=True)
        ]
    try:
        if rng.random() < 0.6:
            value, leaf = leaf_for(case.view, case.level, case.lower, case.upper, case.hints, reference)
        else:
            size = rng.choice([0.5, 3.0, 20.0])
            leaf = {
                "ref": hexed(reference),
                "D": hexed([size * rng.random() for _ in range(d)]),
                **case.hints,
            }
            leaf["y"] = hexed([rng.gauss(0, 1) for _ in range(d)])
            norm = getattr(case.region, "norm", None)
            if norm is not None:
                pair = (
                    rng.choice([0.0, 2.0, -2.0]) * (norm != "0"),
                    rng.choice([0.0, 1.5, -1.5]) * (norm != "2"),
                )
                leaf["ball"] = hexed([*pair])
            (value,) = case.view._values([(case.lower, case.upper, leaf)], [case.level])
    except Reject:
        return found
    cell = case.region.cell(case.lower, case.upper, reference, case.view.scale)
    weights = [rng.uniform(0, 2) for _ in range(d)]
    reach = cell.reach(weights)
    for z in samples:
        if value > case.value(z, reference):
            found.append(f"{seed}: a leaf's bound lies above a point: {leaf}")
        steps = [
            (arb(z[j]) - a) / s
            for j, a, s in zip(case.region.moving, reference, case.view.scale, strict=True)
        ]
        if reach < sum((w * s * s for w, s in zip(weights, steps, strict=True)), arb(0)):
            found.append(f"{seed}: a cell reaches farther than it says")
    return found


def plane_complaints(seed: int) -> list[str]:
    """V3: planes far from any leaf, where the precision is too large (variances clipped) or indefinite."""
    rng = random.Random(seed)
    n, s2 = rng.randint(1, 3), rng.choice([1.0, 4.0])
    toy = Toy(seed, n, 1)
    toy.s2, toy.scale = s2, [1.0]
    factor = rng.choice([1.0005, 1.1, 1.5])
    toy.R = [
        [[factor * r for r in row] for row in toy._inverse([10 ** rng.uniform(-3, 6) for _ in range(n)])]
    ]
    if indefinite := rng.random() < 0.3:
        toy.R[0][0][0] -= rng.uniform(0, 0.9) / s2
    kernel = {"type": "rbf", "lengthscale": (1.0).hex(), "variance": s2.hex()}
    latent = Latent(toy.X, kernel, toy.alpha[0], [r for row in toy.R[0] for r in row], toy.m0[0])
    latent.settle(arb(factor) - 1, arb(0.9 * indefinite))  # what is true of it
    c, steep = arb(10 ** rng.uniform(-3, 0)), arb(rng.choice([0.5, 4.0]))
    for _ in range(6):
        spot = [rng.choice([rng.uniform(-2, 2), toy.X[0][0] + rng.gauss(0, 0.1)])]
        k = [exact_kernel(toy, row, spot) for row in toy.X]
        r = [sum((toy.R[0][i][j] * k[j] for j in range(n)), arb(0)) for i in range(n)]
        q0 = sum((a * b for a, b in zip(k, r, strict=True)), arb(0))
        reach = rng.choice([None, 0.02, 0.3, 1.0])  # V3': planes of a cell
        cell = None if reach is None else arb(reach) ** 2
        planes = [
            (falling(latent, arb(toy.m0[0]), steep, c, q0, cell), True),
            (rising(latent, arb(toy.m0[0]), steep, q0, arb(0), cell), False),
        ]
        ends = (-2.5, 2.5) if reach is None else (spot[0] - reach, spot[0] + reach)
        for x in ([rng.choice([*ends, rng.uniform(*ends)])] for _ in range(10)):
            mean, variance = exact_latent(toy, x)
            near = exact_kernel(toy, x, spot) / s2
            for plane, falls in planes:
                value = plane.constant + plane.still * near - plane.bend * (1 - near)
                for a, b, row in zip(toy.alpha[0], r, toy.X, strict=True):
                    value += (a + plane.factor * b) * exact_kernel(toy, row, x)
                if value > mean + (steep * (c + variance).sqrt() if falls else -steep * variance):
                    return [f"{seed}: a plane lies above what it supports"]
    return []


def quadratic_complaints(seed: int) -> list[str]:
    """V5: any D >= 0 and any y bound the quadratic from below, exactly attained ones included."""
    rng = random.Random(seed)
    d = rng.randint(1, 3)
    g = [arb(rng.gauss(0, 1)) for _ in range(d)]
    half = [[rng.gauss(0, 1) for _ in range(d)] for _ in range(d)]
    H = arb_mat(d, d, [arb(half[i][j]) + half[j][i] for i in range(d) for j in range(d)])
    ends = [(arb(-rng.random()), arb(rng.random())) for _ in range(d)]
    D = [rng.choice([0.0, 4.0, rng.uniform(0, 8), -0.5]) for _ in range(d)]
    try:
        value = quadratic(g, H, ends, D, [rng.gauss(0, 0.5) for _ in range(d)])
    except Reject:
        return []
    for _ in range(30):
        z = [a + (b - a) * rng.choice([0, 1, rng.random()]) for a, b in ends]
        form = sum((z[i] * H[i, j] * z[j] for i in range(d) for j in range(d)), arb(0)) / 2
        if value > sum((a * b for a, b in zip(g, z, strict=True)), arb(0)) + form:
            return [f"{seed}: a quadratic lies below its bound"]
    return []


def tail_complaints(seed: int) -> list[str]:
    """V2: the tail of the exponential series, from its own terms."""
    rng = random.Random(seed)
    m, x = rng.randint(1, 8), arb(10 ** rng.uniform(-12, 1.3))
    terms = sum((x**q / factorial(q) for q in range(m, m + 120)), arb(0))
    return [f"{seed}: a tail is too small"] if not tail(m, x) >= terms * (1 - arb(2) ** -60) else []


def facts_complaints(seed: int) -> list[str]:
    """V1, V1': the contractions against functions of the kernel's space."""
    rng = random.Random(seed)
    indefinite = rng.random() < 0.4
    toy = Toy(seed, rng.randint(1, 5), rng.randint(1, 2))
    W = toy.W[0] = [10 ** rng.uniform(3, 8) for _ in range(toy.n)]
    if rng.random() < 0.15:
        W[0] = -rng.uniform(0.2, 3) / toy.s2
    R = toy.R[0] = toy._inverse(W)
    factor = rng.choice([1 + 9e-4, 1 + 9e-4, -1.0])
    for i in range(toy.n):
        for j in range(toy.n):
            R[i][j] *= factor if not indefinite else 1
        R[i][i] -= indefinite * rng.uniform(0, 1.0) / toy.s2
    with TemporaryDirectory() as folder:
        toy.write(Path(folder) / "m")
        latent = Model(str(Path(folder) / "m")).latents[0]
    try:
        if indefinite:
            hints = [
                rng.choice([1e-9, 1e-7]),
                rng.choice([0.9, 1.0 + 1e-6, 1.5]),
                rng.choice([0.0, 0.4, 1.2]),
            ]
            contractions(latent, dict(zip(("jitter", "contraction", "negative"), hexed(hints), strict=True)))
        else:
            latent.verify(W)
    except Reject:
        return []
    for _ in range(12):
        spots = [toy.X[0], *([rng.uniform(-2, 2) for _ in range(toy.D)] for _ in range(2)), *toy.X]
        w = [rng.gauss(0, 1) * rng.choice([0, 1]) for _ in spots]
        z = [
            sum((arb(a) * exact_kernel(toy, x, s) for a, s in zip(w, spots, strict=True)), arb(0))
            for x in toy.X
        ]
        form = sum((z[i] * R[i][j] * z[j] for i in range(toy.n) for j in range(toy.n)), arb(0))
        norm = sum(
            (
                arb(a) * b * exact_kernel(toy, s, r)
                for a, s in zip(w, spots, strict=True)
                for b, r in zip(w, spots, strict=True)
            ),
            arb(0),
        )
        if form > (1 + latent.surplus) * norm or form < -latent.negative * norm:
            return [f"{seed}: a contraction is too small"]
    for x in [*toy.X, [rng.uniform(-2, 2) for _ in range(toy.D)]]:
        k = [exact_kernel(toy, row, x) for row in toy.X]
        S = toy.s2 - sum((k[i] * R[i][j] * k[j] for i in range(toy.n) for j in range(toy.n)), arb(0))
        if not (-latent.lift <= S <= latent.top):
            return [f"{seed}: the variance leaves its range"]
    return []


def exact_kernel(toy: Toy, a: list[float], b: list[float]) -> arb:
    steps = [(arb(x) - y) / s for x, y, s in zip(a, b, toy.scale, strict=True)]
    return arb(toy.s2) * (-sum((s * s for s in steps), arb(0)) / 2).exp()


def class_complaints(seed: int) -> list[str]:
    """V9: one-vs-rest at random probabilities inside random enclosures."""
    rng = random.Random(seed)
    C = rng.randint(2, 5)
    ends = [sorted((rng.random() ** 2, rng.random() ** 2)) for _ in range(C)]
    pairs = [(arb(a), arb(b)) for a, b in ends]
    label = rng.randrange(C)
    for quantity, sense in (("probability", 1), ("probability", -1), ("margin", 1)):
        bound = extreme(pairs, Claim(quantity, label, sense, False, 0.0))
        for _ in range(20):
            p = [arb(a) + rng.choice([0, 1, rng.random()]) * (arb(b) - a) for a, b in ends]
            shares = [each / sum(p, arb(0)) for each in p]
            own = shares.pop(label)
            for other in shares if quantity == "margin" else [arb(0)]:
                if sense * (bound - (own - other)) > 0:
                    return [f"{seed}: {quantity} leaves its bound"]
    return []


def balance_complaints(seed: int) -> list[str]:
    """Extremes learned from claims about known numbers, and sums of them."""
    rng = random.Random(seed)
    values = [[rng.random() for _ in range(5)] for _ in range(2)]
    known = Extremes()
    for i, row in enumerate(values):
        for kind in ("everywhere", "at"):
            for sense in (1, -1):
                true = min(row) if (sense > 0) == (kind == "everywhere") else max(row)
                if rng.random() < 0.8:
                    value = min(1.0, max(0.0, true - sense * rng.choice([0.0, 0.1])))
                    known.learn(kind, SimpleNamespace(label=1, sense=sense, value=value), i)
    sums = [
        [
            {"sign": rng.choice([1, -1]), "extreme": rng.choice(["max", "min"]), "region": rng.randrange(2)}
            for _ in range(3)
        ]
        for _ in range(2)
    ]
    count = rng.randint(1, 3)
    pick = {"max": max, "min": min}
    true = (
        max(sum(t["sign"] * pick[t["extreme"]](values[t["region"]]) for t in terms) for terms in sums) / count
    )
    for lower, upper in ((true + 1e-9, 4.0), (-4.0, true - 1e-9)):
        about = {
            "kind": "balance",
            "label": 1,
            "sums": sums,
            "count": count,
            "lower": lower.hex(),
            "upper": upper.hex(),
        }
        try:
            balance(about, known, 1, ["here", "there"])
        except Reject:
            continue
        return [f"{seed}: a balance was accepted that is false"]
    return []


def probability_complaints(seed: int) -> list[str]:
    """Points: enclosures of P against formulas of the tests' own."""
    rng = random.Random(seed)
    toy = Toy(seed, rng.randint(1, 5), rng.randint(1, 3), link=rng.choice([None, LOGIT]))
    if rng.random() < 0.3:  # variances below 0 are clipped
        toy.R = [[[3 * r for r in row] for row in R] for R in toy.R]
    with TemporaryDirectory() as folder:
        toy.write(Path(folder) / "m")
        latent = Model(str(Path(folder) / "m")).latents[0]
    z = [rng.uniform(-2, 2) for _ in range(toy.D)]
    link = (Logit if toy.likelihood == LOGIT else Probit)(toy.likelihood)
    ours, theirs = link.expectation(*latent.at(z)), exact_expectation(toy.likelihood, *exact_latent(toy, z))
    close = abs(ours - theirs) <= arb(2) ** -70
    return [] if close and ours.overlaps(theirs) else [f"{seed}: P at a point is wrong"]


ALL = [
    quadratic_complaints,
    tail_complaints,
    class_complaints,
    balance_complaints,
    facts_complaints,
    plane_complaints,
    probability_complaints,
    leaf_complaints,
]


def main(count: int) -> int:
    for seed in range(count):
        for each in ALL:
            Work.spent = 0
            if found := each(seed):
                print(found[0])
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
