"""Random comparisons of classes (V9'), each class a toy of its own, and pointwise what they are about."""

from __future__ import annotations

import random
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from flint import arb

import gpcert_check.joint as joint
from fuzz import LOGIT, region_of
from gpcert_check.balls import read_region
from gpcert_check.claims import Claim
from gpcert_check.indefinite import contractions
from gpcert_check.joint import Comparison, _look, weights
from gpcert_check.leaves import Slice
from gpcert_check.links import link_of
from gpcert_check.model_file import Model
from gpcert_check.reading import Reject
from making import Toy, expectation, hexed, level_down, sample, solved
from truth import exact_expectation, exact_latent, needed_mean


class Classes:
    """C toys with one link and, now and then, one kernel; some indefinite, some with clipped variances."""

    def __init__(self, seed: int, rng: random.Random, folder: str) -> None:
        D, C = rng.randint(1, 3), rng.randint(2, 4)
        self.link = LOGIT if rng.random() < 0.3 else {"name": "probit", "scale": rng.choice([1.0, 2.5]).hex()}
        shared = rng.random() < 0.4
        self.toys, self.latents = [], []
        for c in range(C):
            indefinite = rng.random() < 0.15
            toy = Toy(1000 * seed + c, rng.randint(1, 5), D, link=self.link, indefinite=indefinite)
            if shared and c:
                toy.scale = self.toys[0].scale
            toy.alpha = [[rng.choice([1.0, 1.0, 4.0]) * a for a in toy.alpha[0]]]
            toy.s2 = rng.choice([toy.s2, 0.1, 8.0])
            if not indefinite:
                toy.R = [toy._inverse(toy.W[0])]
            lifted = not indefinite and rng.random() < 0.15
            if lifted:
                toy.R = [[[1.2 * r for r in row] for row in toy._inverse([1e5] * toy.n)]]
            toy.write(Path(folder) / "m")
            latent = Model(str(Path(folder) / "m")).latents[0]
            if indefinite or lifted:
                about = {"jitter": 1e-9 * toy.s2, "contraction": 1.2 + 1e-5, "negative": 0.9 * indefinite}
                contractions(latent, {name: float(value).hex() for name, value in about.items()})
            else:
                latent.verify(toy.W[0])
            self.toys.append(toy)
            self.latents.append(latent)
        self.several = SimpleNamespace(latents=self.latents, classes=C, link=link_of(self.link))

    def exact(self, z: list[float]) -> list[arb]:
        return [exact_expectation(self.link, *exact_latent(toy, z)) for toy in self.toys]


class Case:
    """A comparison on a part of a random region."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        with TemporaryDirectory() as folder:
            self.classes = Classes(seed, rng, folder)
        toys, C = self.classes.toys, len(self.classes.toys)
        self.region = read_region(
            region_of(toys[0], rng, rng.choice(["box", "box", "inf", "2", "1"])), toys[0].D
        )
        self.samples = [sample(self.region, rng) for _ in range(12)]
        start = self.samples[0]
        if rng.random() < 0.5:
            start = [float((a + b) / 2) for a, b in zip(self.region.lower, self.region.upper, strict=True)]
        margin = rng.random() < 0.5
        self.order = margin and self.classes.link != LOGIT and rng.random() < 0.6
        label = rng.randrange(C)
        self.rival = rng.choice([c for c in range(C) if c != label]) if margin else None
        p = [expectation(self.classes.link, *toy.latent(start)) for toy in toys]
        value = p[label] / sum(p) - (p[self.rival] / sum(p) if margin else 0) - rng.choice([0, 0.01, 0.2])
        sense = 1 if margin or rng.random() < 0.5 else -1
        self.claim = Claim(
            "margin" if margin else "probability", label, sense, False, 0.0 if self.order else value
        )
        self.weights = weights(self.claim, self.rival, C)
        shift = rng.choice([0.0, 0.0, 0.0, rng.gauss(0, 0.3)])
        common = level_down(min(max(p[label], 1e-6), 1 - 1e-6)) + shift
        parts = []
        for c, w in enumerate(self.weights):
            if w == 0 or (not self.order and rng.random() < 0.05):
                parts.append(None)
                continue
            own = p[c] if w > 0 else 1 - p[c]
            own = level_down(min(max(own, 1e-6), 1 - 1e-6)) + shift
            if self.order:
                own = common if c == label else -common
            parts.append(self._part(c, own, toys[c].latent(start)[1]))
        self.start = start
        reference = [start[j] for j in self.region.moving]
        self.data = {"ref": hexed(reference), "classes": parts, "programmes": None}
        ends = [[end[j] for j in self.region.moving] for end in (self.region.lower, self.region.upper)]
        self.comparison = Comparison(*ends, self.claim, self.rival, self.data)

    def _part(self, c: int, t: float, variance: float) -> dict[str, Any]:
        rng, d = self.rng, len(self.region.moving)
        part: dict[str, Any] = {}
        if rng.random() < 0.3:
            metric, thetas = [rng.uniform(0.3, 3) for _ in range(d)], [rng.uniform(0.05, 2)]
            part["forms"] = {"metric": hexed(metric), "thetas": hexed(thetas), "own": rng.random() < 0.5}
        if self.classes.link != LOGIT:
            noise = float.fromhex(self.classes.link["scale"]) ** -2
            tau = {"tau": (rng.choice([1.0, 1.0, 1.0, 0.0]) * t / (2 * sqrt(noise + variance))).hex()}
            return part | {"t": t.hex()} | (tau if t > 0 else {})
        p = expectation({"name": "probit", "scale": (1.0).hex()}, t, 0.0)
        m = needed_mean(LOGIT, p, variance)
        part |= {"p": p.hex(), "rate": hexed([variance, m - 1e-8, m + 1e-8])}
        if p > 0.5:
            return part | {"tangent": hexed([variance, m - 1e-8, m + 1e-8])}
        top = float(self.classes.latents[c].top.upper()) * 1.001
        S = [top * i / 5 for i in range(6)]
        heights = hexed([needed_mean(LOGIT, p, s) + 1e-8 for s in S])
        return part | {
            "curve": {"c": (2.0).hex(), "S": hexed(S), "m": heights},
            "nu": rng.choice([0.0, 0.4]).hex(),
        }

    def values(self) -> list[arb]:
        """Lower bounds of e^r times what is compared, with good hints."""
        totals, region = self.totals(), self.region
        norm = getattr(region, "norm", "inf")
        balls = (
            [None]
            if norm == "inf"
            else [[a, b * (norm == "1")] for a in (0.0, 1.0, 10.0) for b in (0.0, 0.5)]
        )
        zero = hexed([0.0] * len(region.moving))
        saved, joint.quadratic = joint.quadratic, lambda *given: solved(*given)[0]
        found = []
        try:
            for total in totals:
                tried = []
                for pair in balls:
                    hints = {"D": zero, "y": zero} | ({} if pair is None else {"ball": hexed(pair)})
                    tried.append(total.least(hints))
                found.append(max(tried, key=lambda a: float(a.mid())))
        finally:
            joint.quadratic = saved
        return found

    def truth(self, z: list[float]) -> arb:
        """What is compared at a point, times e^r."""
        label, toys = self.claim.label, self.classes.toys
        used = self.comparison.classes
        scale = toys[label if label in used else min(used)].scale
        steps = [(arb(z[j]) - arb(self.start[j])) / arb(scale[j]) for j in self.region.moving]
        grown = (sum((s * s for s in steps), arb(0)) / 2).exp()
        if not self.order:
            return grown * sum(
                (w * p for w, p in zip(self.weights, self.classes.exact(z), strict=True)), arb(0)
            )
        noise = 1 / arb(float.fromhex(self.classes.link["scale"])) ** 2
        (m, S), (mj, Sj) = (exact_latent(toys[c], z) for c in (label, self.rival or 0))
        return grown * (m - mj * ((noise + S) / (noise + Sj)).sqrt())

    def totals(self) -> list[joint.Total]:
        """The quadratics before they are minimised."""
        several, region = self.classes.several, self.region
        for c, latent in enumerate(several.latents):
            for sign in (1, -1):
                _look(several, Slice(latent, region, sign), c, sign, [self.comparison])
        return self.comparison.totals(region, self.order)

    def below(self, total: joint.Total, z: list[float]) -> arb:
        """constant e^r + value + g.d + d^T H d/2 at a point."""
        moving = self.region.moving
        d = [(arb(z[j]) - arb(self.start[j])) / arb(s) for j, s in zip(moving, total.scale, strict=True)]
        form = sum((d[i] * total.H[i, k] * d[k] for i in range(len(d)) for k in range(len(d))), arb(0))
        r = sum((a * a for a in d), arb(0)) / 2
        return total.constant * r.exp() + total.value + sum(map(lambda a, b: a * b, total.g, d), form / 2)

    def near(self) -> list[list[float]]:
        """Points of the region on the way from the reference: first orders show there."""
        ways = [(z, 10 ** self.rng.uniform(-4, 0)) for z in self.samples]
        found = [[a + share * (b - a) for a, b in zip(self.start, z, strict=True)] for z, share in ways]
        return [z for z in found if self.region.contains(z)]


def joint_complaints(seed: int) -> list[str]:
    """V9': no sampled point lies below the quadratic there, nor, now and then, below its least value."""
    try:
        case = Case(seed)
        if not case.region.moving:
            return []
        totals = case.totals()
        least = case.values() if case.rng.random() < 0.1 else []
    except Reject:
        return []
    for z in [*case.samples, *case.near()]:
        true = case.truth(z)
        bounds = [case.below(total, z) for total in totals]
        if min(bounds) > true or (least and min(least) > true):
            return [f"{seed}: classes compared at {z} lie below their bound"]
    return []
