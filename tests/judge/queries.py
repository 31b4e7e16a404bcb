"""Random queries: every public question with every option, every region, every ending.

`OPTIONS` lists what is drawn for each question; a test compares it with the signatures, so that an option
that is not drawn here does not exist. A query is given back by its number alone.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import gpcert as gc
from gpcert.errors import InvalidInputError
from gpcert.posterior import Posterior
from gpcert.proofs.prover import check_provable
from gpcert.regions import Ball, Box, Region
from gpcert.running import Progress
from judge.models import CHOICES, OTHER_LINKS, Model

#: Question -> its options, all of which `_Asking` draws.
LIMITS = ("tolerance", "max_seconds", "max_nodes", "progress", "n_jobs", "store")
BALLS = ("norm", "features", "domain", "scale")
OPTIONS: dict[str, tuple[str, ...]] = {
    "probability_range": ("region", "label", "method", *LIMITS, "device", "proof"),
    "latent_range": ("region", "label", *LIMITS),
    "certify": ("x", "region", "threshold", *LIMITS, "device", "proof"),
    "robustness": ("region", "label", "x", *LIMITS, "device"),
    "certified_radius": ("x", "max_radius", "rtol", "threshold", *BALLS, *LIMITS, "proof"),
    "explain": ("X", "radius", "label", "features", "domain", "scale", *LIMITS, "proof"),
    "evaluate": ("X", "y", "radii", "threshold", *BALLS, *LIMITS, "device", "proof"),
    "attack": ("region", "x", "label", "method", "starts", "rng", "progress", "n_jobs", "store"),
}
#: Questions that are not drawn, and why.
NOT_DRAWN = {
    "certify_table": "its verdicts are those of `certify`, which it asks",
    "certified_score": "its number is that of `evaluate`, which it asks",
}

NORMS = (np.inf, np.inf, 2.0, 1.0, 0.0, 1.0 + 1e-7, 1.5, 3.0, 200.0, 2000.0, 1e6)
#: For questions that ask many others, each within this limit.
SECONDS = {"explain": 0.1, "evaluate": 0.1, "certified_radius": 0.3}
ENDINGS = ("nodes", "nodes", "few nodes", "seconds", "stop", "interrupt")


@dataclass(frozen=True)
class Query:
    """A question about a model; `seed` draws its numbers."""

    question: str
    model: Model
    shape: str  #: of regions: "box", "ball", "thin", "point"
    norm: float
    width: float  #: of regions in lengthscales
    ending: str
    batch: str  #: "one", "list", "processes"
    seed: int

    @classmethod
    def pick(cls, number: int, question: str | None = None) -> Query:
        """Query number `number`, of any question or of this one."""
        rng = np.random.default_rng(number)
        drawn = {name: _choice(rng, values) for name, values in CHOICES.items()}
        names = [q for q in OPTIONS for _ in range(3 if q in ("probability_range", "certify") else 1)]
        asked = question or _choice(rng, names)
        if (
            np.random.default_rng((number, 5)).random() < 0.1
        ):  # of its own: earlier numbers stay what they were
            drawn["layout"] = "close"
        other = int(np.random.default_rng((number, 6)).integers(len(OTHER_LINKS) + 1))
        if drawn["kind"] == "link" and other:
            drawn["kind"] = OTHER_LINKS[other - 1]
        if asked != "latent_range" and drawn["kind"] == "regression":
            drawn["kind"] = "probit"
        if asked == "explain":  # as many questions as there are features, twice
            drawn["d"] = min(drawn["d"], 2)
        if drawn["kind"] in ("softmax", "independent", "separate"):  # what the judge affords
            drawn["n"], drawn["d"] = min(drawn["n"], 8), min(drawn["d"], 8)
            drawn["classes"] = min(drawn["classes"], _choice(rng, (3, 4, 4, 5, 9)))
        return cls(
            asked,
            Model(**drawn, seed=number),
            shape=_choice(rng, ("box", "ball", "ball", "thin", "point")),
            norm=_choice(rng, NORMS),
            width=_choice(rng, (0.0, 1e-18, 1e-9, 1e-3, 0.1, 0.1, 0.5, 1.0, 3.0, 30.0)),
            ending=_choice(rng, ENDINGS),
            batch=_choice(rng, ("one",) * 90 + ("list",) * 12 + ("processes",)),
            seed=number,
        )

    def __str__(self) -> str:
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "seed"}
        return ", ".join(f"{name}={value!r}" for name, value in own.items())

    def ask(self, folder: Path | None = None) -> tuple[Posterior, list[Any]]:
        """The model and the answers, at least one; a ball too large for doubles is drawn smaller.

        `folder`: where proof files go, for what can be proved.
        """
        asking = _Asking(self, self.model.posterior(), folder)
        answers = asking.answers()
        if asking.kept is not None:  # once more of the store, which may have all, some or none of it
            answers += _Asking(self, self.model.posterior(), None, asking.kept).answers()
        return asking.post, answers


def _choice(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


class _Asking:
    """One query: draws what its question takes, and asks."""

    def __init__(self, query: Query, post: Posterior, folder: Path | None, kept: Path | None = None) -> None:
        """`kept`: the folder of a store that another one has made."""
        self.query, self.post, self.folder, self.kept = query, post, folder, kept
        self.rng = np.random.default_rng(query.seed + 1)
        self.count = {"one": 1, "list": 3, "processes": 6}[query.batch]
        self.single = query.batch == "one"

    def answers(self) -> list[Any]:
        """At least one."""
        found = getattr(self, self.query.question)()
        return list(found) if isinstance(found, Sequence) else [found]

    # What is drawn

    def limits(self) -> dict[str, Any]:
        rng, ending = self.rng, self.query.ending
        calls = int(rng.integers(1, 10))

        def progress(p: Progress) -> bool:
            nonlocal calls
            calls -= 1
            if calls <= 0 and ending == "interrupt":
                raise KeyboardInterrupt
            return calls <= 0 and ending == "stop"

        seconds = SECONDS.get(self.query.question, 0.5)
        limits: dict[str, Any] = {"max_nodes": 12, "max_seconds": seconds, "tolerance": self.tolerance()}
        if ending == "few nodes":
            limits["max_nodes"] = int(rng.integers(0, 5))
        if ending == "seconds":
            limits["max_seconds"] = float(10.0 ** rng.uniform(-4, -1))
        if ending in ("stop", "interrupt"):
            limits["progress"] = progress
        limits["n_jobs"] = 2 if self.query.batch == "processes" else _choice(rng, (None, 1))
        if "device" in OPTIONS[self.query.question]:
            limits["device"] = _choice(rng, ("auto", "cpu"))
        return limits | {"store": self.store()}

    def store(self) -> Path | None:
        """Where the answers are kept, if they are: models with Python functions cannot be."""
        if self.rng.random() < 0.8:
            return None
        try:
            self.post.description()
        except InvalidInputError:
            return None
        if self.kept is None:
            self.kept = Path(tempfile.mkdtemp())
            weakref.finalize(self, shutil.rmtree, self.kept, ignore_errors=True)
        return self.kept / "runs.db"

    def proof(self, regions: Any, folder: bool = False) -> dict[str, Any]:
        """Where the proof of the answer goes, if it can be proved; `folder`: not a file, even for one."""
        if self.folder is None:
            return {}
        try:
            asked = [regions] if isinstance(regions, Box | Ball) else regions
            check_provable(self.post, asked, "proof")
        except InvalidInputError:
            return {}
        return {"proof": self.folder / "proof.json" if self.single and not folder else self.folder}

    def tolerance(self) -> float:
        return _choice(self.rng, (0.02, 0.02, 0.1, 1e-3, 1e-9))

    def label(self) -> Any:
        """A class of the model, by its value in any of its forms."""
        value = _choice(self.rng, self.post.classes)
        return _choice(self.rng, (value, value.item(), str(value)))

    def labels(self, regions: Any) -> Any:
        """One for all, or one for each of several regions."""
        if isinstance(regions, Box | Ball) or self.rng.random() < 0.7:
            return self.label()
        return [self.label() for _ in regions]

    def threshold(self) -> float:
        usual = self.post.n_classes > 2 or self.rng.random() < 0.6
        return 0.5 if usual else _choice(self.rng, (0.1, 0.3, 0.499, 0.7, 0.9, 0.999))

    def lengths(self) -> np.ndarray:
        """About one lengthscale per feature (d,)."""
        d = self.post.n_features
        kernel = self.post.kernels[0]
        parts = [kernel]
        while any(hasattr(part, "parts") for part in parts):
            parts = [p for part in parts for p in getattr(part, "parts", (part,))]
        return np.broadcast_to(np.asarray(parts[0].lengthscale, dtype=float), (d,))

    def point(self) -> np.ndarray:
        rng, d = self.rng, self.post.n_features
        x = self.post.centres[rng.integers(self.post.n_centres)].copy()
        step = rng.standard_normal(d) * 10.0 ** rng.uniform(-3, 0.5) / d**0.5
        if rng.random() < 0.15:
            step = step * 10.0 ** rng.uniform(0, 3)
        elif rng.random() < 0.15:  # nearly a centre
            step = step * 10.0 ** rng.uniform(-13, -4)
        with np.errstate(all="ignore"):
            return np.clip(np.nan_to_num(x + self.lengths() * step), -1e300, 1e300)

    def half(self) -> np.ndarray:
        with np.errstate(all="ignore"):
            half = 0.5 * self.query.width * self.lengths() / self.post.n_features**0.5
        return np.clip(half, 0.0, 1e300)

    def ball_options(self, x: np.ndarray) -> dict[str, Any]:
        """norm, features, domain, scale of balls around all the rows of x (m, d)."""
        rng, d, norm = self.rng, self.post.n_features, self.query.norm
        options: dict[str, Any] = {"norm": norm}
        if rng.random() < 0.3:
            options["features"] = rng.permutation(d)[: rng.integers(0 if norm else 1, d + 1)].tolist()
        if norm == 0 or rng.random() < 0.3:
            low, high = (
                x.min(axis=0) - rng.random(d) * self.half(),
                x.max(axis=0) + rng.random(d) * self.half(),
            )
            if norm != 0 and rng.random() < 0.3:
                low = np.full(d, -np.inf)
            options["domain"] = (np.maximum(low, -1e301) if norm == 0 else low, high)
        if norm != 0 and rng.random() < 0.2:
            options["scale"] = 10.0 ** rng.uniform(-2, 2, d) * 10.0 ** float(
                _choice(rng, (0, 0, 0, -150, 150))
            )
        return options

    def within_data(self, x: np.ndarray, options: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]]:
        """At times the domain is "data": what to ask with in its place, and the points x (m, d) inside."""
        own = np.random.default_rng((self.query.seed, 8))  # of its own: earlier numbers stay what they were
        if options.get("norm") == 0 or own.random() < 0.8:
            return x, {}
        parts = {name: getattr(self.post, name) for name in ("kernel", "likelihood", "mean")}
        arrays = self.post.centres, self.post.weights, self.post.precision
        self.post = Posterior(*arrays, **parts, training={"centres": "training data"})
        options["domain"] = self.post.training_columns.possible()
        return np.clip(x, *options["domain"]), {"domain": "data"}

    def radius(self, options: dict[str, Any]) -> float:
        if options["norm"] == 0:
            return float(self.rng.integers(0, min(self.post.n_features, 3) + 1))
        scale = options.get("scale", np.ones(1))
        with np.errstate(all="ignore"):
            radius = float(self.half().min() / float(np.max(scale)))
        return radius if np.isfinite(radius) else 1.0

    def region(self) -> Region:
        rng, shape = self.rng, self.query.shape
        x, half = self.point(), self.half()
        if shape == "point":
            return Box(x, x)
        if shape in ("box", "thin"):
            still = rng.random(len(x)) < (0.5 if shape == "thin" else 0.0)
            below, above = (np.where(still, 0.0, half * rng.random(len(x))) for _ in range(2))
            return Box(x - below, x + above)
        options = self.ball_options(x[None])
        return Ball(x, self.radius(options), **options)

    def regions(self) -> tuple[Any, Any]:
        """One region and a point of it, or lists of them; every norm needs a region that doubles can hold."""
        found = []
        while len(found) < self.count:
            region = self.region()
            with contextlib.suppress(InvalidInputError):  # its box is not finite: another one
                region.box()
                found.append(region)
        x = [self.inside(region) for region in found]
        return (found[0], x[0]) if self.single else (found, x)

    def together(self) -> tuple[Any, Any]:
        """The same, sometimes enough boxes or balls, in columns or not, to be bounded together."""
        if self.query.batch == "list" and self.query.shape == "ball" and self.rng.random() < 0.5:
            with contextlib.suppress(InvalidInputError):  # not finite: one by one
                return self.columns()
        found, x = self.regions()
        rows = self.query.shape == "box" or (self.query.shape == "ball" and self.query.norm in (np.inf, 2.0))
        if self.query.batch == "list" and rows:
            while len(found) < 16:
                more, points = self.regions()
                found, x = [*found, *more], [*x, *points]
        return found, x

    def columns(self) -> tuple[Any, Any]:
        """Balls of one kind, as `gc.balls` makes them."""
        x = np.array([self.point() for _ in range(16)])
        options = self.ball_options(x)
        found = gc.balls(x, self.radius(options), **options)
        for region in found:
            region.box()
        return found, x

    def inside(self, region: Region) -> np.ndarray:
        if isinstance(region, Ball) or self.rng.random() < 0.5:
            return np.array(region.centre)
        return np.array(region.lower)

    # What is asked

    def probability_range(self) -> Any:
        region, _ = self.together()
        paper = self.rng.random() < 0.25
        whole = self.query.norm != 0 and self.post.n_centres <= 8
        method = "paper" if paper and whole and _published(self.post) else "auto"
        label, limits = self.labels(region), self.limits()
        proof = self.proof(region) if method == "auto" else {}
        return gc.probability_range(self.post, region, label, method, **limits, **proof)

    def latent_range(self) -> Any:
        region, _ = self.regions()
        if self.query.batch == "list" and self.query.shape == "box":  # enough for the sweep over cells
            region = [*region, *(r for _ in range(3) for r in self.regions()[0])]
        label = None if self.post.weights.ndim == 1 else self.label()
        return gc.latent_range(self.post, region, label, **self.limits())

    def certify(self) -> Any:
        region, x = self.together()
        return gc.certify(self.post, x, region, self.threshold(), **self.limits(), **self.proof(region))

    def robustness(self) -> Any:
        region, x = self.regions()
        given = x if self.rng.random() < 0.5 else None
        return gc.robustness(self.post, region, self.labels(region), given, **self.limits())

    def certified_radius(self) -> Any:
        many = self.query.batch == "list" and self.query.norm == np.inf and self.rng.random() < 0.3
        x = np.array([self.point() for _ in range(16 if many else self.count)])
        options = self.ball_options(x)
        x, data = self.within_data(x, options)
        radius = self.radius(options)
        small = "domain" in options and np.abs(options["domain"]).max() < 1e200
        if small and self.rng.random() < 0.4:
            radius = np.inf
        most = None if self.rng.random() < 0.2 else radius
        rtol = _choice(self.rng, (1e-3, 0.05, 0.3))
        threshold, limits = self.threshold(), self.limits()
        if not self.fits(x, min(radius, 1e300), options):
            return self.again()
        given = x[0] if self.single else x
        options |= limits | self.proof(Ball(x[0], 0.0, **options)) | data
        return gc.certified_radius(
            self.post, given, max_radius=most, rtol=rtol, threshold=threshold, **options
        )

    def explain(self) -> Any:
        x = np.array([self.point() for _ in range(min(self.count, 2))])
        options = self.ball_options(x)
        kept = {name: options[name] for name in ("features", "domain", "scale") if name in options}
        x, data = self.within_data(x, kept)
        radius = self.radius(kept | {"norm": np.inf})
        if not self.fits(x, radius, kept):
            return self.again()
        label = self.label()
        balls = [Ball(row, radius, **kept) for row in x]
        kept |= self.limits() | self.proof(balls, folder=True) | data
        e = gc.explain(self.post, x[0] if self.single else x, radius, label, **kept)
        return [e] if self.single else [e, e.mean()]

    def evaluate(self) -> Any:
        m, shares = min(self.count + 1, 4), np.array([0.0, 0.3, 1.0])
        if self.query.batch == "list" and self.query.norm == np.inf and self.rng.random() < 0.5:
            m, shares = 16, np.array([0.0, 0.1, 0.3, 0.6, 1.0])  # settled together
        X = np.array([self.point() for _ in range(m)])
        options = self.ball_options(X)
        X, data = self.within_data(X, options)
        y = self.post.classes[self.post.probability(X).argmax(axis=1)]
        y = np.where(self.rng.random(m) < 0.8, y, self.rng.choice(self.post.classes, m))
        largest = self.radius(options)
        radii = np.unique(largest * (np.array([1.0]) if options["norm"] == 0 else shares))
        if not self.fits(X, largest, options):
            return self.again()
        ball, threshold = Ball(X[0], 0.0, **options), self.threshold()
        options |= self.limits() | self.proof(ball, folder=True) | data
        return gc.evaluate(self.post, X, y, radii, threshold=threshold, **options)

    def attack(self) -> Any:
        region, x = self.regions()
        start = x if self.rng.random() < 0.5 else None
        label = self.labels(region) if self.rng.random() < 0.5 else None
        method = _choice(self.rng, ("pgd", "gpfgs", "gpjm"))
        starts, rng = int(self.rng.integers(1, 4)), int(self.rng.integers(100))
        limits = {name: each for name, each in self.limits().items() if name in OPTIONS["attack"]}
        return gc.attack(self.post, region, start, label, method, starts=starts, rng=rng, **limits)

    def fits(self, X: np.ndarray, radius: float, options: dict[str, Any]) -> bool:
        """Whether balls of this radius around X (m, d) have boxes of doubles."""
        with contextlib.suppress(InvalidInputError):
            return all(Ball(x, radius, **options).box() is not None for x in X)
        return False

    def again(self) -> Any:
        """The ball did not fit into doubles: ask about a point instead, so that every query is answered."""
        x = self.point()
        return gc.probability_range(self.post, Box(x, x), self.label(), max_nodes=5)


def _published(post: Posterior) -> bool:
    """Whether the published method takes the model."""
    link = post.likelihood
    return isinstance(post.kernel, gc.RBF) and isinstance(link, gc.Probit | gc.Logit | gc.Softmax)
