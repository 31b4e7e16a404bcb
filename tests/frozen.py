"""A frozen set of queries: what a refactoring must not contradict, and what it costs in boxes.

Only the public interface is used and nothing here is shared with the judge, so that the same file runs on
any version: `python tests/frozen.py run FILE` writes what this version answers, `compare OLD NEW` says what
changed and what it costs. Enclosures are compared with each other (two true ones of a number meet), never
taken for the truth. `data/frozen.json` is what the version before issue 34 answered.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gpcert as gc

KERNELS: dict[str, Callable[[int], Any]] = {
    "rbf": lambda d: gc.RBF(0.8, 1.5),
    "ard": lambda d: gc.RBF(np.linspace(0.5, 1.5, d), 2.0),
    "matern12": lambda d: gc.Matern12(1.2, 1.5),
    "matern32": lambda d: gc.Matern32(1.0, 1.5),
    "matern52": lambda d: gc.Matern52(1.0, 1.5),
    "rational": lambda d: gc.RationalQuadratic(1.0, 1.5, 0.7),
    "sum": lambda d: gc.RBF(0.7, 1.0) + gc.Matern32(1.5, 0.7),
    "product": lambda d: gc.RBF(1.5, 1.2) * gc.RationalQuadratic(1.5, 1.2, 1.0),
}
NORMS = (np.inf, 2.0, 1.0, 3.0, 0.0)
ENDINGS: dict[str, dict[str, Any]] = {
    "plenty": {"max_nodes": 30},
    "root": {"max_nodes": 1},
    "fine": {"max_nodes": 4, "tolerance": 1e-4},
    "deep": {"max_nodes": 300, "tolerance": 1e-3},
    "stopped": {"max_nodes": 30, "tolerance": 1e-3, "progress": True},
}
Ends = dict[str, tuple[float, float]]
#: What is enclosed, and the boxes that it took (None: the answer does not say).
Answer = tuple[Ends, int | None]


def posterior(kernel: str, likelihood: Any, classes: int = 2, n: int = 9, d: int = 3, seed: int = 0) -> Any:
    """A posterior as training would leave it: precision = (K + diag(noise))^-1."""
    rng = np.random.default_rng([seed, n, d, classes, list(KERNELS).index(kernel)])
    k, X = KERNELS[kernel](d), rng.normal(size=(n, d))
    latents = 1 if classes == 2 and likelihood != "softmax" else classes
    K = k(X, X)
    inverses = [np.linalg.inv(K + np.diag(rng.uniform(0.2, 1.0, n))) for _ in range(latents)]
    precision = np.array([(R + R.T) / 2 for R in inverses])
    weights = rng.normal(size=(n, latents))
    if latents == 1:
        return gc.Posterior(X, weights[:, 0], precision[0], kernel=k, likelihood=likelihood)
    return gc.Posterior(X, weights, precision, kernel=k, likelihood=likelihood)


def ball(post: Any, radius: float, norm: float) -> Any:
    """Around a point near the data."""
    x = np.round(post.centres[:3].mean(axis=0), 3)
    if norm == 0.0:
        return gc.Ball(x, 2, norm=0, domain=(x - 2.0 * radius, x + 2.0 * radius))
    return gc.Ball(x, radius, norm=norm)


def limits(ending: str) -> dict[str, Any]:
    options = dict(ENDINGS[ending])
    if options.get("progress"):
        calls = itertools.count()
        options["progress"] = lambda *_: next(calls) >= 6
    return options


def extremes(found: Any) -> Ends:
    return {"min": (found.min.lower, found.min.upper), "max": (found.max.lower, found.max.upper)}


def ask_range(post: Any, region: Any, ending: str, label: int = 1) -> Answer:
    found = gc.probability_range(post, region, label, **limits(ending))
    return extremes(found), found.nodes


def ask_certify(post: Any, region: Any, ending: str) -> Answer:
    found = gc.certify(post, region.centre, region, **limits(ending))
    return {"margin": (found.margin.lower, found.margin.upper)}, found.nodes


def ask_latent(post: Any, region: Any, ending: str) -> Answer:
    found = gc.latent_range(post, region, **limits(ending))
    parts = {"mean": extremes(found.mean), "variance": extremes(found.variance)}
    return {f"{name} {key}": ends for name, each in parts.items() for key, ends in each.items()}, found.nodes


def ask_radius(post: Any, norm: float) -> Answer:
    x = np.round(post.centres[:3].mean(axis=0), 3)
    domain = (x - 1.0, x + 1.0) if norm == 0 else None
    most = 3.0 if norm == 0 else 0.5
    r = gc.certified_radius(post, x, norm=norm, max_radius=most, rtol=0.05, domain=domain, max_nodes=10)
    return {"radius": (r.safe, r.unsafe)}, None


def ask_explain(post: Any) -> Answer:
    e = gc.explain(post, post.centres[:2], 0.2, max_nodes=10)
    ends = zip(e.lower.ravel().tolist(), e.upper.ravel().tolist(), strict=True)
    return {f"influence {i}": pair for i, pair in enumerate(ends)}, None


def ask_evaluate(post: Any, norm: float) -> Answer:
    X, domain = post.centres[:4], None
    if norm == 0:
        domain = (X.min(axis=0) - 1.0, X.max(axis=0) + 1.0)
    y = [post.classes[i] for i in post.probability(X).argmax(axis=1)]
    radii = [1, 2] if norm == 0 else [0.05, 0.3]
    t = gc.evaluate(post, X, y, radii, norm=norm, domain=domain, max_nodes=6)
    shares = zip(t.certified, t.attacked, strict=True)
    return {f"accuracy {i}": pair for i, pair in enumerate(shares)}, None


def queries() -> Iterator[tuple[str, Callable[[], Answer]]]:
    """Every query by its name."""
    for i, (kernel, norm) in enumerate(itertools.product(KERNELS, NORMS)):
        post = posterior(kernel, ("probit", "logit")[i % 2])
        radius, ending = ((0.1, "plenty"), (0.5, "fine"), (0.8, "stopped"))[i % 3]
        name = f"{kernel} {post.likelihood} norm {norm}"
        region = ball(post, radius, norm)
        yield f"range {name} {radius} {ending}", lambda p=post, r=region, e=ending: ask_range(p, r, e)
        if i % 3 == 0:
            region = ball(post, 0.4, norm)
            yield f"certify {name}", lambda p=post, r=region: ask_certify(p, r, "plenty")
    for i, kernel in enumerate(KERNELS):
        post, norm = posterior(kernel, "probit", seed=1), (np.inf, 2.0)[i % 2]
        yield f"latent {kernel} {norm}", lambda p=post, n=norm: ask_latent(p, ball(p, 0.3, n), "plenty")
        yield f"radius {kernel} {norm}", lambda p=post, n=norm: ask_radius(p, n)
        post = posterior(kernel, "logit", d=2, seed=2)
        ask = ask_explain if i % 2 else lambda p: ask_evaluate(p, np.inf)
        yield f"{('evaluate', 'explain')[i % 2]} {kernel}", lambda p=post, a=ask: a(p)
    for d, norm, tolerance in itertools.product((8, 20), (np.inf, 2.0), (0.02, 0.001)):
        post = posterior("rbf", "probit", n=60, d=d, seed=3)
        region = ball(post, 0.1 if norm == np.inf else 0.3, norm)
        name = f"range of {d} features, norm {norm}, {tolerance}"
        yield name, lambda p=post, r=region, t=tolerance: ask_range(p, r, "plenty" if t > 0.01 else "deep")
    several = (("softmax", 2), ("softmax", 3), ("softmax", 5), ("onevsrest", 3), ("onevsrest", 4))
    for i, (kernel, (scheme, classes)) in enumerate(itertools.product(("rbf", "matern32", "sum"), several)):
        link = gc.OneVsRest(gc.Logit()) if scheme == "onevsrest" else "softmax"
        post = posterior(kernel, link, classes, n=7, d=2)
        for j, norm in enumerate((np.inf, 2.0, 0.0)):
            name, region = f"{kernel} {scheme} {classes} norm {norm}", ball(post, 0.2, norm)
            if (i + j) % 2:
                yield f"range {name}", lambda p=post, r=region: ask_range(p, r, "root")
            else:
                yield f"certify {name}", lambda p=post, r=region: ask_certify(p, r, "plenty")
    for likelihood, name in ((gc.FiveErf(), "five_erf"), (gc.Floored(gc.Probit(), 0.01), "floored")):
        for norm in (np.inf, 2.0):
            post = posterior("rbf", likelihood)
            yield f"range {name} norm {norm}", lambda p=post, n=norm: ask_range(p, ball(p, 0.3, n), "plenty")


def run(path: Path) -> None:
    found = {}
    start = time.process_time()
    for name, ask in queries():
        ends, boxes = ask()
        found[name] = {"boxes": boxes, "ends": ends}
    path.write_text(json.dumps(found, indent=0) + "\n")
    print(f"{len(found)} queries, {time.process_time() - start:.1f} CPU s")


def meet(old: Ends, new: Ends) -> bool:
    """Whether two answers may both be true: all their enclosures meet."""
    return all(old[key][0] <= new[key][1] and new[key][0] <= old[key][1] for key in old)


def kind(old: Ends, new: Ends) -> str:
    """ "same", "tighter", "wider", or "contradicts"."""
    if not meet(old, new):
        return "contradicts"
    pairs = [(tuple(old[key]), tuple(new[key])) for key in old]
    if all(a == b for a, b in pairs):
        return "same"
    return "tighter" if all(a[0] <= b[0] and b[1] <= a[1] for a, b in pairs) else "wider"


def compare(old: Path, new: Path) -> None:
    before, after = (json.loads(path.read_text()) for path in (old, new))
    assert list(before) == list(after), "the two files answer different queries"
    kinds = {name: kind(before[name]["ends"], after[name]["ends"]) for name in before}
    for each in ("same", "tighter", "wider", "contradicts"):
        names = [name for name, found in kinds.items() if found == each]
        print(f"{each}: {len(names)}", *(names if each != "same" else ()), sep="\n  ")
    counted = [(before[name]["boxes"], after[name]["boxes"]) for name in before if before[name]["boxes"]]
    more = [(name, before[name]["boxes"], after[name]["boxes"]) for name in before
            if before[name]["boxes"] and after[name]["boxes"] > 1.1 * before[name]["boxes"]]  # fmt: skip
    print(*(f"{name}: {a} -> {b} boxes" for name, a, b in more), sep="\n")
    print("boxes {} -> {}".format(*(sum(column) for column in zip(*counted, strict=True))))


if __name__ == "__main__":
    {"run": run, "compare": compare}[sys.argv[1]](*map(Path, sys.argv[2:]))
