"""Every kernel, norm and link: order, root gap, share converged and cost, in floors measured in the same run.

Floor = one evaluation of mean, variance and their gradients at one point, as tersely as numpy allows.
`GPCERT_BENCH_POINTS`: test points per row, half of them those with the smallest |p - 1/2|;
`GPCERT_BENCH_ONLY`: rows whose name contains a text; `GPCERT_BENCH_MODELS`: a folder to keep models in.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from scipy.special import ndtr

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.one.level import Left

TITLE = "Kernels, norms and links: tolerance 0.02, at most 10 CPU s per region, one thread"
POINTS = int(os.environ.get("GPCERT_BENCH_POINTS", "6"))
ONLY = os.environ.get("GPCERT_BENCH_ONLY", "")
MODELS = os.environ.get("GPCERT_BENCH_MODELS", "")

Row = dict[str, str | float]

KERNELS = {
    "RBF": gc.RBF(),
    "Matern 5/2": gc.Matern52(),
    "Matern 3/2": gc.Matern32(),
    "Matern 1/2": gc.Matern12(),
    "rational quadratic": gc.RationalQuadratic(),
    "RBF + Matern 3/2": None,
    "Matern 5/2 * RBF": None,
}
DECLARED = {"Matern 3/2": "2 to 3", "Matern 1/2": "1 to 3", "RBF + Matern 3/2": "2 to 3"}
#: kernel, norm, link; norm 0 has its own table (norms.py), because its radius counts features
ROWS = [(name, norm, "probit") for name in KERNELS for norm in (np.inf, 2.0, 1.0, 3.0)]
ROWS += [(name, np.inf, link) for name in KERNELS for link in ("logit", "Link(Phi)")]
#: data set, features (0: all), radius
SETS = [
    ("mnist38", 10, 0.25),
    ("mnist38", 10, 0.5),
    ("mnist38", 0, 0.05),
    ("spam", 0, 0.25),
    ("synthetic2d", 0, 0.5),
]
ROOTS = (0.1, 0.2, 0.4)
#: CPU seconds per region
SECONDS = 10.0
LINK = gc.Link(ndtr, lambda a, b: (ndtr(a) - 1e-14, ndtr(b) + 1e-14), "Phi", symmetric=True)


def model(data: str, kernel: str) -> tuple[gc.Posterior, gc.datasets.Dataset]:
    loaded = gc.datasets.load(data)
    path = (
        Path(MODELS) / f"{data} {kernel}.safetensors".replace("/", "").replace("*", "x") if MODELS else None
    )
    if path is not None and path.exists():
        return gc.load(path), loaded
    if KERNELS[kernel] is None:  # the Gaussian kernel's lengthscale, and three times as much
        rbf = model(data, "RBF")[0].kernel
        l, s2 = rbf.lengthscale, rbf.variance
        both = gc.RBF(l, 0.5 * s2) + gc.Matern32(3.0 * l, 0.5 * s2)
        if "*" in kernel:
            both = gc.Matern52(l, s2) * gc.RBF(3.0 * l, 1.0)
        classifier = gc.GPClassifier(both, max_evals=0)
    else:
        classifier = gc.GPClassifier(KERNELS[kernel], max_evals=25)
    fitted = classifier.fit(loaded.X_train, loaded.y_train)
    if path is not None:
        gc.save(fitted.posterior_, path)
    return fitted.posterior_, loaded


def floor_seconds(post: gc.Posterior, X: np.ndarray) -> float:
    """Less than any caller of `latent` pays: no checks, no generality, one matrix-vector product."""
    kernels = getattr(post.kernel, "parts", (post.kernel,))
    R, alpha, centres = post.precision, post.weights, post.centres
    spent = []
    for x in X:
        start = time.process_time()
        k, slopes = np.zeros(len(centres)), []
        for kernel in kernels:
            v = (centres - x) / kernel.lengthscale
            z = 0.5 * np.einsum("ij,ij->i", v, v)
            k += kernel.variance * kernel.profile.value(z)
            slopes.append((kernel.variance * kernel.profile.derivative(z, 1), v / kernel.lengthscale))
        r = R @ k
        _ = k @ alpha, post.kernel.prior_variance - k @ r
        _ = [np.stack([slope * alpha, -2.0 * slope * r]) @ v for slope, v in slopes]
        spent.append(time.process_time() - start)
    return float(np.median(spent))


def points(post: gc.Posterior, X: np.ndarray) -> np.ndarray:
    order = np.argsort(np.abs(post.probability(X)[:, 1] - 0.5))
    half = order[: POINTS // 2]
    return np.concatenate([half, np.setdiff1d(np.arange(len(X)), half)[: POINTS - len(half)]])


def measure() -> list[Row]:
    rows: list[Row] = []
    for kernel, norm, link in ROWS:
        name = f"{kernel}, norm {norm:g}, {link}"
        if ONLY not in name:
            continue
        row: Row = {"kernel": kernel, "norm": f"{norm:g}", "link": link}
        row |= {"declared order": DECLARED.get(kernel, "3")}
        row |= root_gaps(linked(model("synthetic2d", kernel)[0], link), norm)
        for data, d, r in SETS:
            post, loaded = model(data, kernel)
            row |= cost(linked(post, link), loaded, d, r, norm)
        rows.append(row)
        print(row, flush=True)
    return rows


def linked(post: gc.Posterior, link: str) -> gc.Posterior:
    if link == "probit":
        return post
    likelihood = gc.Logit() if link == "logit" else LINK
    return gc.Posterior(
        post.centres, post.weights, post.precision, kernel=post.kernel, likelihood=likelihood, mean=post.mean
    )


def root_gaps(post: gc.Posterior, norm: float) -> Row:
    """Median gap of the first bound over whole regions of three sizes, and the measured order."""
    X = gc.datasets.load("synthetic2d").X_test
    chosen = points(post, X)
    row: Row = {"measured": round(float(np.median([order(post, X[i], norm) for i in chosen])), 1)}
    for r in ROOTS:
        regions = [gc.Ball(X[i], r, norm) for i in chosen]
        answers = gc.probability_range(post, regions, tolerance=1e-9, max_nodes=2)
        gap = float(np.median([max(a.min.width, a.max.width) for a in answers]))
        row[f"root gap {r}"] = float(f"{gap:.1e}")
    return row


def order(post: gc.Posterior, x: np.ndarray, norm: float) -> float:
    """log2 of how the gap of one local bound of mu - 0.2 S grows when the region, centred at x, doubles."""
    gaps = []
    mean, variance = post.latent(x[None])
    offset = float(mean[0] - post.mean - 0.2 * variance[0])
    for r in (0.05, 0.1):
        region = gc.Ball(x, r, norm)
        box, inner, moving = region.box(), region.inner_box(), np.ones(len(x), dtype=bool)
        bound = BoundFactory(post).pair(1, shape_of(region, moving), x, moving)[0]
        _, local = next(iter(bound.attempts(Left(box.lower, box.upper), x)))
        axes = [np.linspace(a, b, 81) for a, b in zip(inner.lower, inner.upper, strict=True)]
        grid = np.stack(np.meshgrid(*axes), -1).reshape(-1, len(x))
        if norm != np.inf:  # onto the sphere: there the extremes are
            grid = x + (grid - x) / np.maximum(np.linalg.norm(grid - x, norm, axis=1) / r, 1e-9)[:, None]
        mean, variance = post.latent(grid)
        least = float((mean - post.mean - 0.2 * variance).min()) - offset
        gaps.append(least - local.lower_bound(1.0, 0.2, -offset).latent)
    return float(np.log2(gaps[1] / gaps[0]))


def cost(post: gc.Posterior, data: gc.datasets.Dataset, d: int, r: float, norm: float) -> Row:
    label = f"{data.name} {d or 'all'} r={r}"
    gc.probability_range(post, gc.Ball(data.X_test[0], 0.0))  # verifies the model's facts once
    floor = floor_seconds(post, data.X_test[:20])
    results, spent = [], []
    for i in points(post, data.X_test):
        x = data.X_test[i]
        features = np.sort(np.random.default_rng(int(i)).choice(len(x), d, replace=False)) if d else None
        region = gc.Ball(x, r, norm, features=features, domain=data.domain)
        start = time.process_time()
        deadline = start + SECONDS
        stop = lambda *_, end=deadline: time.process_time() >= end  # noqa: E731
        results.append(gc.probability_range(post, region, progress=stop))
        spent.append(time.process_time() - start)
    share = float(np.mean([q.status == "converged" for q in results]))
    return {label: f"{share:.0%}, {np.median(spent) / floor:.0f} floors, {np.median(spent):.2f} s"}
