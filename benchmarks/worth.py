"""What each heuristic is worth: boxes, CPU time and regions lost without it, over fixed families of queries.

    python benchmarks/worth.py [--switch NAME ...] [--family TEXT ...]   # without each heuristic
    python benchmarks/worth.py --against SRC [--family TEXT ...]         # another version's sources, before

A heuristic stays if it buys 10 % of boxes or time on default use, or settles regions there that nothing else
settles. Each version has a process of its own, all are asked one family after the other, so that they meet
the same load, and limits are CPU seconds. A switch replaces a part by nothing or by less: answers stay true.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from math import exp, log
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer

import gpcert as gc

TITLE = "What each heuristic is worth: boxes and CPU time without it, default use"
SECONDS = 3.0
PIXELS = {"domain": (0.0, 1.0)}

# --- models: name -> posterior, test points


def made(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A table whose label depends on five features and noise; with eight features, not linearly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, :5].sum(axis=1) if d > 8 else 2.0 * np.sin(X[:, 0]) + 2.0 * X[:, 1] * X[:, 2]
    return X, (score + 0.5 * rng.normal(size=n) > 0).astype(int)


def blobs(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Ten classes in ten features."""
    rng = np.random.default_rng(seed)
    X, centres = rng.normal(size=(400, 10)), 1.2 * rng.normal(size=(10, 10))
    return X, ((X[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)


def tumours() -> tuple[np.ndarray, np.ndarray]:
    """Thirty measurements of 569 tumours, standardised."""
    data = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(data.data))
    return ((data.data - data.data.mean(0)) / data.data.std(0))[order], data.target[order]


def fitted(kernel: Any, X: np.ndarray, y: np.ndarray, likelihood: str = "probit") -> gc.Posterior:
    return gc.GPClassifier(kernel=kernel, likelihood=likelihood, max_evals=0).fit(X, y).posterior_


def shipped(name: str, kernel: Any, count: int | None = None, likelihood: str = "probit") -> Any:
    data = gc.datasets.load(name)
    return fitted(kernel, data.X_train[:count], data.y_train[:count], likelihood), data.X_test


def table(
    n: int, d: int, kernel: Any, likelihood: str = "probit", seed: int = 0, use: int | None = None
) -> Any:
    X, y = made(n, d, seed)
    return fitted(kernel, X[:use], y[:use], likelihood), X


def ten(likelihood: str) -> Any:
    return fitted(gc.RBF(3.0, 10.0), *blobs(), likelihood), np.random.default_rng(5).normal(size=(100, 10))


def held_out() -> Any:
    X, y = tumours()
    return fitted(gc.RBF(5.0, 10.0), X[:300], y[:300]), X[300:]


def indefinite() -> Any:
    """As variational inference leaves it: some variances larger than the prior's."""
    X, k = np.random.default_rng(4).normal(size=(300, 10)), gc.RBF(3.0, 2.0)
    Z = X[:100]
    K = k(Z) + 1e-6 * np.eye(100)
    inverse, L = np.linalg.inv(K), np.linalg.cholesky(K)
    A = 0.05 * np.random.default_rng(5).normal(size=(100, 100))
    R = inverse - inverse @ L @ (0.6 * np.eye(100) + A @ A.T) @ L.T @ inverse
    weights = inverse @ (np.sin(Z[:, 0]) + 0.5 * Z[:, 1])
    return gc.Posterior(Z, weights, 0.5 * (R + R.T), kernel=k, likelihood="probit"), X


def linked(link: Any) -> Any:
    post, X = table(400, 8, gc.RBF(3.0, 10.0), "logit", use=200)
    other = gc.Posterior(
        post.centres, post.weights, post.precision, kernel=post.kernel, likelihood=link, mean=post.mean
    )
    return other, X


def own_link() -> gc.Link:
    """A logistic of which the library knows no more than that it rises, and its values."""
    return gc.Link(expit, lambda a, b: (expit(a) * (1 - 1e-14), expit(b) * (1 + 1e-14)), "logistic")


MODELS: dict[str, Callable[[], tuple[gc.Posterior, np.ndarray]]] = {
    "images": partial(shipped, "mnist38", gc.RBF(5.0, 10.0)),
    "images, logit": partial(shipped, "mnist38", gc.RBF(5.0, 10.0), None, "logit"),
    "images, lengthscale 3": partial(shipped, "mnist38", gc.RBF(3.0, 10.0), 300),
    "three classes": partial(shipped, "mnist358", gc.RBF(5.0, 10.0), 300, "softmax"),
    "spam": partial(shipped, "spam", gc.RBF(5.0, 10.0), 500),
    "two features": partial(shipped, "synthetic2d", gc.RBF(1.6, 300.0), 300),
    "60 features": partial(table, 145, 60, gc.RBF(8.0, 10.0)),
    "60 features, logit": partial(table, 145, 60, gc.RBF(8.0, 10.0), "logit"),
    "33 features": partial(table, 245, 33, gc.RBF(6.0, 10.0)),
    "30 features": partial(table, 200, 30, gc.RBF(5.5, 10.0), seed=3),
    "20 features": partial(table, 200, 20, gc.RBF(4.5, 10.0), seed=3),
    "8 features": partial(table, 400, 8, gc.RBF(3.0, 10.0)),
    "Matern 5/2": partial(table, 400, 8, gc.Matern52(3.0, 10.0), use=200),
    "Matern 3/2": partial(table, 400, 8, gc.Matern32(3.0, 10.0), use=200),
    "Matern 1/2": partial(table, 400, 8, gc.Matern12(3.0, 10.0), use=200),
    "tumours": held_out,
    "ten classes": partial(ten, "softmax"),
    "ten classes, one-vs-rest": partial(ten, "probit"),
    "indefinite": indefinite,
    "scikit-learn's link": lambda: linked(gc.FiveErf()),
    "own link": lambda: linked(own_link()),
}


@cache
def model(name: str) -> tuple[gc.Posterior, np.ndarray]:
    post, X = MODELS[name]()
    gc.probability_range(post, gc.Ball(X[0], 0.0), label=post.classes[-1])  # what is verified once per model
    return post, X


# --- families: what is asked


@dataclass(frozen=True)
class Family:
    """`count` regions of radius `radius` about test points, one by one or as a batch."""

    model: str
    radius: float
    tolerance: float = 0.02
    count: int = 4
    norm: float = np.inf
    ask: str = "range"
    batch: bool = False
    pixels: int = 0  #: moving features of an image; 0: all
    default: bool = True

    @property
    def name(self) -> str:
        more = [f"norm {self.norm:g}"] * (self.norm != np.inf) + [f"{self.pixels} pixels"] * (self.pixels > 0)
        asked = f"{self.count} {self.ask}s" + (" as a batch" if self.batch else "")
        return ", ".join([self.model, *more, f"r {self.radius:g}, {self.tolerance:g}", asked])

    def regions(self, X: np.ndarray) -> list[gc.Ball]:
        options: dict[str, Any] = dict(PIXELS) if X.shape[1] == 196 else {}
        if self.norm == 0.0:
            options["domain"] = (float(X.min()), float(X.max()))
        if self.pixels:
            options["features"] = np.random.default_rng(3).permutation(X.shape[1])[: self.pixels].tolist()
        return [gc.Ball(x, self.radius, norm=self.norm, **options) for x in X[: self.count]]

    def run(self) -> dict[str, float]:
        """CPU seconds, regions settled within their limit, boxes."""
        post, X = model(self.model)
        limits = {"max_seconds": SECONDS, "n_jobs": 1, "tolerance": self.tolerance}
        ask = {
            "range": partial(gc.probability_range, post, label=post.classes[-1], **limits),
            "verdict": partial(gc.certify, post, **limits),
            "latent range": partial(gc.latent_range, post, **limits),
        }[self.ask]
        regions = self.regions(X)
        start = time.process_time()
        answers = list(ask(regions)) if self.batch else [ask(region) for region in regions]
        cpu = time.process_time() - start
        settled = sum(str(a.status) in ("converged", "safe", "unsafe") for a in answers)
        return {"cpu": cpu, "settled": settled, "boxes": sum(a.nodes for a in answers)}


def families() -> Iterator[Family]:
    """Default use first: what a new user asks."""
    images, few = "images", {"pixels": 10, "count": 10}
    for radius, tolerance in ((0.05, 0.02), (0.1, 0.02), (0.15, 0.02), (0.05, 0.001), (0.1, 0.001)):
        yield Family(images, radius, tolerance, 10)
    yield from (Family(images, radius, **few) for radius in (0.25, 1.0))
    yield from (Family("images, logit", 0.1, tolerance, 6) for tolerance in (0.02, 0.001))
    yield from (Family("images, lengthscale 3", radius, count=5) for radius in (0.15, 0.2))
    yield from (Family("spam", r, t, 10) for r, t in ((0.1, 0.02), (0.5, 0.02), (0.1, 0.001)))
    steps = (0.1, 0.02), (0.5, 0.02), (1.0, 0.02), (2.0, 0.02), (1.0, 0.001)
    yield from (Family("two features", r, t, 6) for r, t in steps)
    yield from (Family("60 features", r, t) for r, t in ((0.5, 0.02), (0.3, 0.001)))
    yield Family("60 features, logit", 0.3, 0.001)
    yield Family("33 features", 0.5)
    yield from (Family("8 features", r, t, 6) for r, t in ((0.2, 0.02), (0.5, 0.02), (0.5, 0.001)))
    yield from (Family("8 features", r, norm=p) for p, r in ((2.0, 0.6), (1.0, 0.8), (0.0, 2)))
    yield from (Family("tumours", r, t) for r, t in ((0.1, 0.02), (0.3, 0.02), (0.5, 0.02), (0.3, 0.001)))
    yield from (Family("Matern 5/2", r, count=3, norm=p) for p, r in ((np.inf, 0.3), (2.0, 0.4)))
    yield from (Family("Matern 3/2", r, count=3, norm=p) for p, r in ((np.inf, 0.3), (1.0, 0.8)))
    yield Family("three classes", 0.1, count=8, ask="verdict")
    yield from (Family("three classes", r) for r in (0.05, 0.1))
    for several in ("ten classes", "ten classes, one-vs-rest"):
        yield Family(several, 0.1, count=8, ask="verdict")
        yield Family(several, 0.1, count=3)
    yield Family(images, 0.1, count=10, ask="verdict")
    yield Family("8 features", 0.5, count=8, ask="verdict")
    yield from (Family("8 features", r, count=3, ask="latent range") for r in (0.1, 0.3))
    yield Family("images, lengthscale 3", 0.05, count=3, ask="latent range")
    many = {"count": 100, "batch": True}
    yield from (Family(images, r, **many) for r in (0.05, 0.1))
    yield Family(images, 0.1, ask="verdict", **many)
    rows = ("8 features", 0.2), ("8 features", 0.5), ("spam", 0.25), ("Matern 5/2", 0.1), ("Matern 3/2", 0.1)
    yield from (Family(name, r, **many) for name, r in rows)
    yield Family("three classes", 0.05, ask="verdict", **many)
    yield from (
        Family(name, 0.1, ask="verdict", **many) for name in ("ten classes", "ten classes, one-vs-rest")
    )
    yield from exotic()


def exotic() -> Iterator[Family]:
    """Finer tolerances, kinks, rare norms, other links and precisions: they may cost three times as much."""
    tight = {
        "30 features": ((0.3, 1e-4),),
        "20 features": ((0.3, 1e-4),),
        "8 features": ((0.2, 1e-4), (0.1, 1e-6)),
        "images": ((0.1, 1e-4),),
        "images, lengthscale 3": ((0.1, 1e-3),),
        "two features": ((0.5, 1e-5),),
        "spam": ((0.1, 1e-5),),
        "60 features, logit": ((0.1, 1e-5),),
        "indefinite": ((0.2, 0.02), (0.1, 1e-3)),
        "scikit-learn's link": ((0.2, 0.02),),
        "own link": ((0.2, 0.02),),
        "Matern 1/2": ((0.1, 0.02), (0.3, 0.02)),
    }
    yield from (Family(name, *row, default=False) for name, rows in tight.items() for row in rows)
    yield from (Family("8 features", 0.6, norm=p, default=False) for p in (1.5, 3.0))
    yield from (Family("Matern 3/2", 0.4, count=3, norm=p, default=False) for p in (1.5, 3.0))


# --- switches: each takes one heuristic away


def put(place: str, value: Any) -> None:
    """Set `package.module:Class.attribute` below gpcert."""
    module, _, path = place.partition(":")
    target: Any = import_module(f"gpcert.{module}")
    *outer, name = path.split(".")
    for each in outer:
        target = getattr(target, each)
    getattr(target, name)  # it must be there
    setattr(target, name, value)


def several(*places: tuple[str, Any]) -> Callable[[], None]:
    return lambda: [put(*each) for each in places] and None


def nothing(*_args: Any, **_kwargs: Any) -> None:
    return None


def none_of(*_args: Any, **_kwargs: Any) -> list[Any]:
    return []


RBF, LEVEL, RADIAL = (
    "bounds.one.gaussian:RbfBound",
    "bounds.one.level:LevelBound",
    "bounds.one.radial:RadialBound",
)


def one_price() -> None:
    """Only the dear one."""
    from gpcert.bounds.one.gaussian import RbfBound

    places = RbfBound.planes
    put(f"{RBF}.planes", lambda *a, **k: [(retreat, (True,)) for retreat, _ in places(*a, **k)])


def two_places(_bound: Any, size: float, *_args: Any, **_options: Any) -> list[Any]:
    retreats = (0.0, 0.15) if size < 0.6 else (0.3, 0.6)
    return [(retreat, (True,)) for retreat in retreats] if size < 4.0 else []


def one_by_one() -> None:
    import gpcert.questions.rooted as rooted

    rooted.FEWEST = 10**9
    for function in (rooted._groups, rooted.decisions):
        assert function.__defaults__ is not None
        function.__defaults__ = (10**9, *function.__defaults__[1:])


SWITCHES: dict[str, Callable[[], None]] = {
    "remnants": several(
        ("bounds.local.gaussian.plane:remnant", nothing),
        ("bounds.one.radial:remnant", nothing),
    ),
    "cheap price": one_price,
    "planes of second order": several(("bounds.local.gaussian.plane:Plane.bent", nothing)),
    "nearer planes": several((f"{LEVEL}._near", none_of)),
    "expansions of kinks": several((f"{RADIAL}.kinked", False)),
    "caps": several(
        ("bounds.geometry.ball:BallShape.parts", nothing),
        ("bounds.geometry.ball:_caps", lambda least, norm: np.ones(len(least))),
    ),
    "table of retreats": several((f"{RBF}.planes", two_places)),
    "sign": several(("bounds.factory:BoundFactory.sign", lambda self, *a: self.pair(*a)[0])),
    "planes of latents": several(("bounds.one.latent:LatentBound._planes", none_of)),
    "joint one-vs-rest": several(
        ("bounds.several.shares:JointShare.of", staticmethod(lambda bound: bound)),
        ("bounds.several.joint:JointLabel.of", staticmethod(lambda bound: bound)),
    ),
    "functionals after Y1": several(
        ("bounds.several.tangents.expansion:ClassExpansion.rest", lambda self, a, B: 0.0),
    ),
    "roots of batches": one_by_one,
    "later passes": several(
        ("engine.root:passes", lambda facts, rows, noise, answer, *_: answer(rows, None, None, 0)),
    ),
    "fewer centres": several(("engine.facts:fewer_of", nothing)),
    "few directions": several(("engine.facts:basis_of", nothing)),
    "forms and shells": several(("engine.later:_centres", lambda *_: 0)),
}  # fmt: skip


# --- one process for each version, asked in turn


def serve(switch: str) -> None:
    """Answer one line (the name of a family) after the other."""
    import gpcert.clock

    gpcert.clock.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[attr-defined]
    if switch:
        SWITCHES[switch]()
    known = {family.name: family for family in families()}
    for line in sys.stdin:
        family = known[line.rstrip("\n")]
        model(family.model)
        print(json.dumps(family.run()), flush=True)


class Version:
    """A process with a switch off, or with other sources."""

    def __init__(self, switch: str = "", src: str | None = None) -> None:
        paths = [] if src is None else [src, f"{src}/../experiments"]
        env = {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")}
        env["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "-W", "ignore", __file__, "--serve", switch]
        self._process = subprocess.Popen(command, env=env, stdin=-1, stdout=-1, text=True)

    def begin(self, family: Family) -> None:
        assert self._process.stdin is not None
        print(family.name, file=self._process.stdin, flush=True)

    def found(self) -> dict[str, float]:
        assert self._process.stdout is not None
        return dict(json.loads(self._process.stdout.readline()))

    def end(self) -> None:
        self._process.communicate()


Row = dict[str, float]


def compared(before: Version, versions: list[Version], chosen: list[Family]) -> Iterator[list[Row]]:
    """Each family by all: boxes and CPU seconds as multiples of those before, regions lost.

    One version after the other, or all at once where each has a core and half the machine is idle.
    """
    everyone = [before, *versions]
    together = (os.cpu_count() or 1) >= 2 * len(everyone)
    for family in chosen:
        found = []
        for version in everyone:
            version.begin(family)
            if not together:
                found.append(version.found())
        base, *others = found or [version.found() for version in everyone]
        yield [
            {
                "boxes": (found["boxes"] + 1) / (base["boxes"] + 1),
                "cpu": found["cpu"] / base["cpu"],
                "lost": base["settled"] - found["settled"],
                "seconds before": base["cpu"],
            }
            for found in others
        ]
    for version in everyone:
        version.end()


def summary(name: str, chosen: list[Family], rows: list[Row]) -> dict[str, str | float]:
    """Geometric means over the families, the worst of them, regions lost."""
    report: dict[str, str | float] = {"version": name}
    for group in ("default", "exotic"):
        some = [pair for pair in zip(chosen, rows, strict=True) if pair[0].default == (group == "default")]
        if not some:
            continue
        for key in ("boxes", "cpu"):
            report[f"{group}: {key}"] = exp(sum(log(row[key]) for _, row in some) / len(some))
        worst, row = max(some, key=lambda pair: pair[1]["boxes"])
        report[f"{group}: most boxes"] = f"{row['boxes']:.3g} ({worst.name})"
        report[f"{group}: lost"] = sum(row["lost"] for _, row in some)
    return report


def measure(names: list[str] | None = None, only: list[str] | None = None) -> list[dict[str, str | float]]:
    """One row for each heuristic."""
    chosen = [f for f in families() if (any(text in f.name for text in only) if only else f.default)]
    names = names or list(SWITCHES)
    rows = list(compared(Version(), [Version(name) for name in names], chosen))
    each = zip(names, zip(*rows, strict=True), strict=True)
    return [summary(f"without {name}", chosen, list(some)) for name, some in each]


def against(src: str, only: list[str] | None) -> None:
    """This version beside another, family by family."""
    chosen = [f for f in families() if not only or any(text in f.name for text in only)]
    found = []
    for family, (row,) in zip(chosen, compared(Version(src=src), [Version()], chosen), strict=True):
        found.append(row)
        print(f"{family.name}: {', '.join(f'{key} {value:.3g}' for key, value in row.items())}", flush=True)
    print(json.dumps(summary("now", chosen, found), indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--switch", action="append", choices=SWITCHES, metavar="NAME")
    parser.add_argument("--family", action="append", metavar="TEXT", help="families whose name holds it")
    parser.add_argument("--against", metavar="SRC", help="the `src` of the version before")
    parser.add_argument("--serve", metavar="NAME", help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if parsed.serve is not None:
        serve(parsed.serve)
    elif parsed.against is not None:
        against(parsed.against, parsed.family)
    else:
        for row in measure(parsed.switch, parsed.family):
            print(json.dumps(row))


if __name__ == "__main__":
    main()
