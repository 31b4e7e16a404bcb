"""Small models and proofs for the tests, made without gpcert: the files are written by hand, hints are found
by trying.

Hints need no care: the checker accepts none on trust. The prover asks the checker itself for the quadratic of
a leaf and looks for D and y; what is *true* is found elsewhere, by sampling with formulas of its own
(`truth`).
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

from flint import arb, arb_mat, ctx

import gpcert_check.leaves as leaves_module
import gpcert_check.radial as radial_module
from gpcert_check.arithmetic import quadratic
from gpcert_check.balls import read_region
from gpcert_check.claims import Checker, Claim
from gpcert_check.leaves import Slice
from gpcert_check.radial import view_of
from gpcert_check.reading import Reject

RBF = "rbf"


def hexed(values: Any) -> Any:
    if isinstance(values, float):
        return values.hex()
    return [hexed(value) for value in values] if isinstance(values, list | tuple) else values


class Toy:
    """One latent, or several, as plain lists of doubles."""

    def __init__(
        self, seed: int, n: int = 4, D: int = 2, classes: int = 1, link: Any = None, indefinite: bool = False
    ) -> None:
        rng = random.Random(seed)
        self.n, self.D, self.C = n, D, classes
        self.X = [[rng.uniform(-1, 1) for _ in range(D)] for _ in range(n)]
        if n > 3 and rng.random() < 0.3:
            self.X[1] = list(self.X[0])  # duplicated centres
        self.scale = [rng.uniform(0.7, 1.6) for _ in range(D)]
        self.s2 = rng.uniform(0.5, 3.0)
        self.likelihood = link or {"name": "probit", "scale": rng.choice([1.0, 1.5]).hex()}
        self.W = [[10 ** rng.uniform(-2, 3) for _ in range(n)] for _ in range(classes)]
        self.alpha = [[rng.gauss(0, 0.4) for _ in range(n)] for _ in range(classes)]
        self.m0 = [rng.uniform(-0.3, 0.3) for _ in range(classes)]
        self.R = [self._inverse(W) for W in self.W]
        if indefinite:
            for R in self.R:
                for i in range(n):
                    R[i][i] -= rng.uniform(0, 0.3) / self.s2
        self.stored_witness = not indefinite

    def _inverse(self, W: list[float]) -> list[list[float]]:
        B = arb_mat(self.n, self.n, [arb(self.kernel(a, b)) for a in self.X for b in self.X])
        for i, w in enumerate(W):
            B[i, i] += 1 / arb(w)
        R = [[float(x.mid()) for x in row] for row in B.inv().tolist()]
        return [[R[max(i, j)][min(i, j)] for j in range(self.n)] for i in range(self.n)]

    def kernel(self, a: list[float], b: list[float]) -> float:
        steps = [(x - y) / s for x, y, s in zip(a, b, self.scale, strict=True)]
        return self.s2 * math.exp(-sum(d * d for d in steps) / 2)  # a power would not end in inf

    def description(self) -> dict[str, Any]:
        kernel = {"type": RBF, "lengthscale": hexed(self.scale), "variance": self.s2.hex()}
        mean = self.m0[0].hex() if self.C == 1 else hexed(self.m0)
        about = {
            "format": 1,
            "package_version": "0",
            "kernel": kernel,
            "likelihood": self.likelihood,
            "mean": mean,
        }
        return about | {"classes": None, "feature_names": None, "training": {"loss": 0.5}}

    def tensors(self) -> dict[str, tuple[list[int], list[float]]]:
        n, C = self.n, self.C
        several = [C] if C > 1 else []
        weights = [self.alpha[c][i] for i in range(n) for c in range(C)]
        found = {
            "centres": ([n, self.D], [x for row in self.X for x in row]),
            "weights": ([n, *several], weights),
            "precision": ([*several, n, n], [x for R in self.R for row in R for x in row]),
        }
        if self.stored_witness:
            found["factors.site_precision"] = ([*several, n], [w for W in self.W for w in W])
        return found

    def write(self, path: Path, description: Any = None, **changed: tuple[list[int], list[float]]) -> str:
        """The model file; returns its hash."""
        header: dict[str, Any] = {"__metadata__": {"gpcert": json.dumps(description or self.description())}}
        data = b""
        for name, (shape, values) in (self.tensors() | changed).items():
            part = struct.pack(f"<{len(values)}d", *values)
            header[name] = {
                "dtype": "F64",
                "shape": shape,
                "data_offsets": [len(data), len(data) + len(part)],
            }
            data += part
        text = json.dumps(header).encode()
        blob = struct.pack("<Q", len(text)) + text + data
        path.write_bytes(blob)
        return hashlib.sha256(blob).hexdigest()

    def latent(self, x: list[float], c: int = 0) -> tuple[float, float]:
        """Mean and clipped variance in floats, by formulas of the tests' own."""
        k = [self.kernel(row, x) for row in self.X]
        mean = self.m0[c] + sum(a * b for a, b in zip(self.alpha[c], k, strict=True))
        explained = sum(k[i] * self.R[c][i][j] * k[j] for i in range(self.n) for j in range(self.n))
        return mean, max(0.0, self.s2 - explained)

    def truth(self, x: list[float]) -> list[float]:
        """All probabilities at a point, in floats."""
        link = self.likelihood["link"] if self.C > 1 else self.likelihood
        p = [expectation(link, *self.latent(x, c)) for c in range(self.C)]
        return [1 - p[0], p[0]] if self.C == 1 else [each / sum(p) for each in p]


#: scikit-learn's formula, as its source has it.
LAMBDAS = [0.41, 0.4, 0.37, 0.44, 0.39]
COEFFICIENTS = [-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654]


def expectation(link: dict[str, Any], mean: float, variance: float) -> float:
    if link["name"] == "floored":
        floor = float.fromhex(link["floor"])
        return floor + (1 - 2 * floor) * expectation(link["link"], mean, variance)
    if link["name"] == "five_erf":
        spread = [math.sqrt(1 + 2 * a * a * variance) for a in LAMBDAS]
        below = [0.5 * math.erfc(a * abs(mean) / s) for a, s in zip(LAMBDAS, spread, strict=True)]
        p = sum(c * b for c, b in zip(COEFFICIENTS, below, strict=True))
        return sum(COEFFICIENTS) - p if mean > 0 else p
    if link["name"] == "probit":
        c = float.fromhex(link["scale"]) ** -2
        return 0.5 * math.erfc(-mean / math.sqrt(c + variance) / math.sqrt(2))
    root = math.sqrt(variance)
    return sum(w / (1 + math.exp(-(mean + root * z))) for w, z in _NODES)


_STEPS = [-8 + 16 * (i + 0.5) / 200 for i in range(200)]
_TOTAL = sum(math.exp(-z * z / 2) for z in _STEPS)
_NODES = [(math.exp(-z * z / 2) / _TOTAL, z) for z in _STEPS]


def box(lower: list[float], upper: list[float]) -> dict[str, Any]:
    return {"kind": "box", "lower": hexed(lower), "upper": hexed(upper)}


def ball(
    x: list[float],
    radius: float,
    norm: str = "inf",
    features: Any = None,
    domain: Any = None,
    scale: Any = None,
) -> dict[str, Any]:
    shown = (
        None
        if domain is None
        else [
            ["-inf" if a == -math.inf else "inf" if a == math.inf else a.hex() for a in side]
            for side in domain
        ]
    )
    about = {"kind": "ball", "x": hexed(x), "radius": radius.hex(), "norm": norm, "features": features}
    return about | {"domain": shown, "scale": None if scale is None else hexed(scale)}


def sample(region: Any, rng: random.Random) -> list[float]:
    """A point of the region, often at its edge; only points that it contains."""
    while True:
        ends = zip(region.lower, region.upper, strict=True)
        z = [float(a) + rng.choice([0.0, 1.0, rng.random(), rng.random()]) * float(b - a) for a, b in ends]
        if hasattr(region, "norm"):
            shrink = rng.random() if region.norm != "0" else 1.0
            z = [x + shrink * (a - x) for a, x in zip(z, region.x, strict=True)]
            if region.norm == "0":
                keep = set(rng.sample(range(len(z)), min(len(z), int(region.radius))))
                z = [a if j in keep else x for j, (a, x) in enumerate(zip(z, region.x, strict=True))]
        if region.contains(z):
            return z


def solved(
    g: list[arb], H: arb_mat, cell: Any, D0: Any, y0: Any, least: Any = None
) -> tuple[arb, list[float], list[float]]:
    """Hints D and y for a programme: Gershgorin's diagonal, or a common one, and coordinate descent."""
    d = len(g)
    h = [[float(x.mid()) for x in row] for row in H.tolist()]
    slope = [float(x.mid()) for x in g]
    ends = [(float(a.mid()), float(b.mid())) for a, b in cell]
    rows = [sum(abs(h[i][j]) for j in range(d) if j != i) for i in range(d)]
    best: tuple[arb, list[float], list[float]] | None = None
    for D in (
        [max(0.0, rows[i] - h[i][i]) * 1.000001 + 1e-12 for i in range(d)],
        [1.5 * max(0.0, max(rows[i] - h[i][i] for i in range(d))) + 1e-9] * d,
    ):
        y = [(a + b) / 2 for a, b in ends]
        for _ in range(40):
            for j in range(d):
                curve = h[j][j] + D[j]
                rest = slope[j] - D[j] * sum(ends[j]) / 2 + sum(h[j][i] * y[i] for i in range(d) if i != j)
                goal = -rest / curve if curve > 0 else ends[j][0] if rest > 0 else ends[j][1]
                y[j] = min(max(goal, ends[j][0]), ends[j][1])
        try:
            value = quadratic(g, H, cell, D, y, least)
        except Reject:
            continue
        if best is None or value > best[0]:
            best = value, D, y
    if best is None:
        raise Reject("no hints found")
    return best


def leaf_for(
    view: Slice,
    level: Any,
    lower: Any,
    upper: Any,
    hints: dict[str, Any],
    reference: list[float] | None = None,
) -> tuple[arb, dict[str, Any]]:
    """The leaf with the best D and y, and its value."""
    if reference is None:
        reference = [float((a + b) / 2) for a, b in zip(lower, upper, strict=True)]
    zero = [(0.0).hex()] * len(lower)
    best: tuple[arb, dict[str, Any]] | None = None
    norm = getattr(view.region, "norm", "inf")
    multipliers = {"inf": [None]}.get(
        norm,
        [[a * (norm != "0"), b * (norm != "2")] for a in (0.0, 0.5, 3.0, 30.0) for b in (0.0, 0.2, 1.0, 5.0)],
    )
    tried = []
    for pair in multipliers:
        if pair in tried:
            continue
        tried.append(pair)
        leaf = {"ref": hexed(reference), "D": zero, "y": zero, **hints} | (
            {} if pair is None else {"ball": hexed(pair)}
        )
        kept: list[Any] = []

        def probe(*given: Any, kept: list[Any] = kept) -> arb:
            value, D, y = solved(*given)
            kept[:] = [D, y]
            return value

        saved = leaves_module.quadratic
        leaves_module.quadratic = radial_module.quadratic = probe
        try:
            (value,) = view._values([(lower, upper, leaf)], [level])
        except Reject:
            continue
        finally:
            leaves_module.quadratic = radial_module.quadratic = saved
        found = leaf | {"D": hexed(kept[0]), "y": hexed(kept[1])}
        if best is None or value > best[0]:
            best = value, found
    if best is None:
        raise Reject("no leaf found")
    return best


def tree(view: Slice, level: Any, choose: Any, most: int = 60) -> list[dict[str, Any]]:
    """A tree of at most `most` leaves that show the level; `choose(reference)` gives the hints."""
    region, nodes, count = view.region, [], 0
    todo = [([region.lower[j] for j in region.moving], [region.upper[j] for j in region.moving])]
    while todo:
        lower, upper = todo.pop()
        middle = [float((a + b) / 2) for a, b in zip(lower, upper, strict=True)]
        value, leaf = leaf_for(view, level, lower, upper, choose(middle))
        count += 1
        if value > 1e-9:
            nodes.append(leaf)
            continue
        if count > most:
            raise Reject("too many leaves")
        j = max(range(len(lower)), key=lambda j: float(upper[j] - lower[j]) / view.scale[j])
        cut = Fraction(float((lower[j] + upper[j]) / 2))
        right, left = list(lower), list(upper)
        right[j] = left[j] = cut
        nodes.append({"split": j, "at": float(cut).hex()})
        todo += [(right, upper), (lower, left)]
    return nodes


def level_down(p: float, digits: float = 1e-12) -> float:
    """t with Phi(t) >= p, a little above."""
    low, high = -30.0, 30.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if 0.5 * math.erfc(-middle / math.sqrt(2)) < p else (low, middle)
    return high + digits


class Prover:
    """Proofs about one toy, through a checker whose facts are proved."""

    def __init__(self, toy: Toy, path: Path, facts: Any = None) -> None:
        self.toy, self.path = toy, path
        self.sha = toy.write(path)
        self.checker = Checker(str(path))
        self.facts = facts or [None] * toy.C
        with ctx.workprec(self.checker.model.bits):
            for c, fact in enumerate(self.facts):
                self.checker._verify(c, fact)

    def two(self, region: Any, claim: Claim, style: str = "plane", t: float | None = None) -> dict[str, Any]:
        """A proof for two classes; style: plane, forms, envelope, flat."""
        up = claim.sense > 0
        view = view_of(self.checker.model.latents[0], region, 1 if (claim.label == 1) == up else -1)
        link, toy = self.checker.subject.link, self.toy
        p = claim.value if up else 1 - claim.value
        if hasattr(link, "inner"):
            floor = float(link.floor.mid())
            link, p = link.inner, (p - floor) / (1 - 2 * floor)
        t = level_down(p) if t is None else t
        level = link.level({"t": t.hex()}, view.latent)
        moving = region.moving

        def choose(middle: list[float]) -> dict[str, Any]:
            z = [float(a) for a in region.lower]
            for j, a in zip(moving, middle, strict=True):
                z[j] = a
            spread = math.sqrt(float(link.c.mid()) + toy.latent(z)[1])
            hints: dict[str, Any] = {} if view.gaussian else {"touch": (1e-3).hex()}
            if t > 0:
                hints["tau"] = (0.0 if style == "flat" else t / (2 * spread)).hex()
            if style == "forms":
                hints["forms"] = {
                    "metric": hexed([1.0 + 0.3 * i for i in range(len(moving))]),
                    "thetas": hexed([0.3, 0.3]),
                    "own": t > 0,
                }
            return hints

        if style == "envelope":
            return {"t": t.hex(), "tree": [{"envelope": True}]}
        return {"t": t.hex(), "tree": tree(view, level, choose)}

    def file(self, regions: list[Any], claims: list[Any]) -> dict[str, Any]:
        return {
            "format": "gpcert-proof-1",
            "model": self.sha,
            "facts": self.facts,
            "regions": regions,
            "claims": claims,
        }


def everywhere(
    label: int, sense: str, value: float, proof: Any, region: int = 0, quantity: str = "probability"
) -> dict[str, Any]:
    about = {"kind": "everywhere", "quantity": quantity, "label": label, "region": region}
    return about | {"sense": sense, "value": value.hex(), "proof": proof}


def at(
    label: int, sense: str, value: float, point: list[float], region: int = 0, quantity: str = "probability"
) -> dict[str, Any]:
    about = {"kind": "at", "quantity": quantity, "label": label, "region": region}
    return about | {"sense": sense, "value": value.hex(), "point": hexed(point)}


def proved_range(
    prover: Prover,
    region: dict[str, Any],
    label: int = 1,
    style: str = "plane",
    slack: float = 0.03,
    seed: int = 0,
) -> dict[str, Any]:
    """A file with both ends of P(label) over a region, from sampled extremes and a slack."""
    rng, exact = random.Random(seed), read_region(region, prover.toy.D)
    points = [sample(exact, rng) for _ in range(300)]
    values = [prover.toy.truth(z)[label] for z in points]
    low, high = min(values), max(values)
    claims = []
    for sense, value in ((">=", max(low - slack, 0.0)), ("<=", min(high + slack, 1.0))):
        claim = Claim("probability", label, 1 if sense == ">=" else -1, False, value)
        proof = None if value in (0.0, 1.0) else prover.two(exact, claim, style)
        claims.append(everywhere(label, sense, value, proof))
    claims.append(at(label, "<=", low + 1e-9, points[values.index(low)]))
    claims.append(at(label, ">=", high - 1e-9, points[values.index(high)]))
    return prover.file([region], claims)
