"""A frozen set of queries: what a refactoring must answer as before, or more sharply.

Only the public interface is used and nothing here is shared with the judge, so that the same file runs on
any version: `python tests/frozen.py run FILE` writes what this version answers, `compare OLD NEW` tells what
changed and what it costs. Enclosures are compared with each other (two true ones of a number meet; the later
is no wider), never taken for the truth.
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
    "stopped": {"max_nodes": 30, "tolerance": 1e-3, "progress": True},
}
Answer = dict[str, tuple[float, float]]


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


def extremes(found: Any) -> Answer:
    return {"min": (found.min.lower, found.min.upper), "max": (found.max.lower, found.max.upper)}


def verdict(found: Any) -> Answer:
    return {"margin": (found.margin.lower, found.margin.upper)}


def ask_range(post: Any, region: Any, ending: str, label: int = 1) -> Answer:
    return extremes(gc.probability_range(post, region, label, **limits(ending)))


def ask_certify(post: Any, region: Any, ending: str) -> Answer:
    return verdict(gc.certify(post, region.centre, region, **limits(ending)))


def ask_latent(post: Any, region: Any, ending: str) -> Answer:
    found = gc.latent_range(post, region, **limits(ending))
    parts = {"mean": extremes(found.mean), "variance": extremes(found.variance)}
    return {f"{name} {key}": ends for name, each in parts.items() for key, ends in each.items()}


def ask_radius(post: Any, norm: float) -> Answer:
    x = np.round(post.centres[:3].mean(axis=0), 3)
    domain = (x - 1.0, x + 1.0) if norm == 0 else None
    most = 3.0 if norm == 0 else 0.5
    r = gc.certified_radius(post, x, norm=norm, max_radius=most, rtol=0.05, domain=domain, max_nodes=10)
    return {"radius": (r.safe, r.unsafe)}


def ask_explain(post: Any) -> Answer:
    e = gc.explain(post, post.centres[:2], 0.2, max_nodes=10)
    ends = zip(e.lower.ravel().tolist(), e.upper.ravel().tolist(), strict=True)
    return {f"influence {i}": pair for i, pair in enumerate(ends)}


def ask_evaluate(post: Any, norm: float) -> Answer:
    X, domain = post.centres[:4], None
    if norm == 0:
        domain = (X.min(axis=0) - 1.0, X.max(axis=0) + 1.0)
    y = [post.classes[i] for i in post.probability(X).argmax(axis=1)]
    radii = [1, 2] if norm == 0 else [0.05, 0.3]
    t = gc.evaluate(post, X, y, radii, norm=norm, domain=domain, max_nodes=6)
    return {f"accuracy {i}": pair for i, pair in enumerate(zip(t.certified, t.attacked, strict=True))}


def queries() -> Iterator[tuple[str, Callable[[], Answer]]]:
    """Every query by its name."""
    for kernel, link, norm in itertools.product(KERNELS, ("probit", "logit"), NORMS):
        post = posterior(kernel, link)
        for radius, ending in ((0.1, "plenty"), (0.5, "fine")):
            region, name = ball(post, radius, norm), f"{kernel} {link} norm {norm} radius {radius} {ending}"
            yield f"range {name}", lambda p=post, r=region, e=ending: ask_range(p, r, e)
        region = ball(post, 0.4, norm)
        yield f"certify {kernel} {link} norm {norm}", lambda p=post, r=region: ask_certify(p, r, "plenty")
    for kernel, norm in itertools.product(KERNELS, (np.inf, 2.0)):
        post = posterior(kernel, "probit", seed=1)
        for ending in ("root", "stopped"):
            region = ball(post, 0.8, norm)
            yield f"range {kernel} {norm} {ending}", lambda p=post, r=region, e=ending: ask_range(p, r, e)
        yield f"latent {kernel} {norm}", lambda p=post, n=norm: ask_latent(p, ball(p, 0.3, n), "plenty")
        yield f"radius {kernel} {norm}", lambda p=post, n=norm: ask_radius(p, n)
    for kernel in KERNELS:
        post = posterior(kernel, "logit", d=2, seed=2)
        yield f"explain {kernel}", lambda p=post: ask_explain(p)
        yield f"evaluate {kernel}", lambda p=post: ask_evaluate(p, np.inf)
    several = (("softmax", 2), ("softmax", 3), ("softmax", 5), ("onevsrest", 3), ("onevsrest", 4))
    for kernel, (scheme, classes) in itertools.product(("rbf", "matern32", "sum"), several):
        link = gc.OneVsRest(gc.Logit()) if scheme == "onevsrest" else "softmax"
        post = posterior(kernel, link, classes, n=7, d=2)
        for norm in (np.inf, 2.0, 0.0):
            name, region = f"{kernel} {scheme} {classes} norm {norm}", ball(post, 0.2, norm)
            yield f"range {name}", lambda p=post, r=region: ask_range(p, r, "root")
            yield f"certify {name}", lambda p=post, r=region: ask_certify(p, r, "plenty")
    for likelihood, name in ((gc.FiveErf(), "five_erf"), (gc.Floored(gc.Probit(), 0.01), "floored")):
        for norm in NORMS:
            post = posterior("rbf", likelihood)
            yield f"range {name} norm {norm}", lambda p=post, n=norm: ask_range(p, ball(p, 0.3, n), "plenty")


def run(path: Path) -> None:
    found = {}
    for name, ask in queries():
        start = time.process_time()
        ends = ask()
        found[name] = {"cpu": time.process_time() - start, "ends": ends}
    path.write_text(json.dumps(found, indent=0))
    print(f"{len(found)} queries, {sum(each['cpu'] for each in found.values()):.1f} CPU s")


def differences(old: Answer, new: Answer) -> str:
    """ "same", "tighter", "wider", or "apart": two enclosures of one number that do not meet."""
    if any(a[0] > b[1] or b[0] > a[1] for a, b in ((old[key], new[key]) for key in old)):
        return "apart"
    pairs = [(tuple(old[key]), tuple(new[key])) for key in old]
    if all(a == b for a, b in pairs):
        return "same"
    return "tighter" if all(a[0] <= b[0] and b[1] <= a[1] for a, b in pairs) else "wider"


def compare(old: Path, new: Path) -> None:
    before, after = (
        {
            name: each if "ends" in each else {"ends": each}
            for name, each in json.loads(path.read_text()).items()
        }
        for path in (old, new)
    )  # `data/frozen.json` has the ends alone
    assert list(before) == list(after), "the two files answer different queries"
    kinds = {name: differences(before[name]["ends"], after[name]["ends"]) for name in before}
    for kind in ("same", "tighter", "wider", "apart"):
        names = [name for name, each in kinds.items() if each == kind]
        print(f"{kind}: {len(names)}", *(names if kind != "same" else ()), sep="\n  ")
    if not all("cpu" in each for each in (*before.values(), *after.values())):
        return
    ratios = [after[name]["cpu"] / max(before[name]["cpu"], 1e-4) for name in before]
    total = sum(each["cpu"] for each in after.values()) / sum(each["cpu"] for each in before.values())
    print(f"CPU after / before: median of the queries {np.median(ratios):.3f}, in all {total:.3f}")


if __name__ == "__main__":
    {"run": run, "compare": compare}[sys.argv[1]](*map(Path, sys.argv[2:]))
