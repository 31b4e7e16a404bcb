"""Ours beside other ways to find the smallest probability of a class over a box: the same queries in one run.

The published method (docs/maths/paper.md) proves its bounds, as ours does. SCIP (PySCIPOpt, if installed) is
a global solver for the same nonlinear programme in floating point: its dual bound holds up to its tolerances.
scipy's global optimisers find a small value and prove nothing. One thread, at most `SECONDS` CPU seconds
per query where a method has such a limit. The task `peers` of environments.toml has SCIP.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from unittest.mock import patch

import numpy as np
from scipy.optimize import differential_evolution, dual_annealing, shgo
from scipy.special import ndtr

import gpcert as gc

TITLE = "Peers: the smallest P over a box, median CPU seconds, one thread"
SECONDS = 3.0
TOLERANCE = 0.01
POINTS = 3

Row = dict[str, str | float]
#: (lower, found): a lower bound of the minimum, NaN if there is none, and the smallest value found.
Ends = tuple[float, float]
Box = tuple[np.ndarray, np.ndarray]


def queries() -> Iterator[tuple[str, gc.Posterior, list[Box]]]:
    """Two-class probit posteriors with the Gaussian kernel, and boxes around test points."""
    plane = gc.datasets.load("synthetic2d")
    for n, radius in ((30, 0.5), (100, 1.0)):
        post = fitted(gc.RBF(1.6, 30.0), plane.X_train[:n], plane.y_train[:n])
        yield f"synthetic2d, n = {n}, r = {radius}", post, boxes(plane.X_test, radius)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 8))
    y = (2.0 * np.sin(X[:, 0]) + 2.0 * X[:, 1] * X[:, 2] > 0).astype(int)
    for d in (3, 8):
        yield f"{d} features, n = 80, r = 0.5", fitted(gc.RBF(2.0, 10.0), X[:, :d], y), boxes(X[:, :d], 0.5)


def fitted(kernel: gc.RBF, X: np.ndarray, y: np.ndarray) -> gc.Posterior:
    return gc.GPClassifier(kernel, max_evals=0).fit(X, y).posterior_


def boxes(X: np.ndarray, radius: float) -> list[Box]:
    return [(x - radius, x + radius) for x in X[:POINTS]]


def by_range(method: str) -> Callable[[gc.Posterior, Box], Ends]:
    def ask(post: gc.Posterior, box: Box) -> Ends:
        limits = {"tolerance": TOLERANCE, "max_seconds": SECONDS}
        with patch.object(time, "perf_counter", time.process_time):  # limits in CPU seconds, as SCIP's
            found = gc.probability_range(post, gc.Box(*box), label=1, method=method, **limits)
        return found.min.lower, found.min.upper

    return ask


def by_scipy(minimise: Callable[..., object]) -> Callable[[gc.Posterior, Box], Ends]:
    def ask(post: gc.Posterior, box: Box) -> Ends:
        found = minimise(lambda x: float(post.probability(x[None])[0, 1]), list(zip(*box, strict=True)))
        return np.nan, float(found.fun)  # type: ignore[attr-defined]

    return ask


def by_scip(post: gc.Posterior, box: Box) -> Ends:
    """minimise t with t w = mu, w^2 = 1 + S: P = Phi(t); mu and S by their definitions."""
    import pyscipopt as scip

    model = scip.Model()
    model.hideOutput()
    model.setParam("timing/clocktype", 1)  # CPU time, as for the others
    model.setParam("limits/time", SECONDS)
    x = [model.addVar(lb=float(low), ub=float(high)) for low, high in zip(*box, strict=True)]
    l, s2 = np.broadcast_to(post.kernel.lengthscale, len(x)), float(post.kernel.variance)
    k = []
    for centre in post.centres:
        z = scip.quicksum(((v - float(c)) / float(u)) ** 2 for v, c, u in zip(x, centre, l, strict=True))
        k.append(model.addVar(lb=0.0, ub=s2))
        model.addCons(k[-1] == s2 * scip.exp(-0.5 * z))
    root = model.addVar(lb=1.0, ub=float(np.sqrt(1.0 + s2)))
    t = model.addVar(lb=-40.0, ub=40.0)
    R, n = post.precision, len(k)
    square = scip.quicksum(float(R[i, j]) * k[i] * k[j] for i in range(n) for j in range(n))
    model.addCons(root * root == 1.0 + s2 - square)
    mu = scip.quicksum(float(a) * v for a, v in zip(post.weights, k, strict=True))
    model.addCons(t * root == float(post.mean) + mu)
    model.setObjective(t)
    # Within the tolerance in P: the density of the normal distribution is at most 0.4.
    model.setParam("limits/absgap", TOLERANCE / 0.4)
    model.optimize()
    found = float(ndtr(model.getObjVal())) if model.getNSols() else np.nan
    return float(ndtr(model.getDualbound())), found


def methods() -> Iterator[tuple[str, Callable[[gc.Posterior, Box], Ends] | None]]:
    yield "gpcert", by_range("auto")
    yield "published method", by_range("paper")
    yield "SCIP (not certified)", by_scip if importlib.util.find_spec("pyscipopt") else None
    yield "differential evolution (found)", by_scipy(lambda f, b: differential_evolution(f, b, rng=0))
    yield "dual annealing (found)", by_scipy(lambda f, b: dual_annealing(f, b, rng=0, maxiter=200))
    yield "shgo (found)", by_scipy(lambda f, b: shgo(f, b))


def measure() -> list[Row]:
    rows: list[Row] = []
    for name, post, regions in queries():
        gc.probability_range(post, gc.Box(*regions[0]), max_nodes=1)  # facts of the model, once
        best = np.full(len(regions), np.inf)
        for method, ask in methods():
            if ask is None:
                rows.append({"queries": name, "method": f"{method}: not installed"})
                continue
            costs, ends = [], []
            for box in regions:
                start = time.process_time()
                ends.append(ask(post, box))
                costs.append(time.process_time() - start)
            lower, found = np.array(ends).T
            best = np.fmin(best, found)
            solved = np.count_nonzero(found - lower <= 1.01 * TOLERANCE)
            proves = np.isfinite(lower).any()
            rows.append(
                {
                    "queries": name,
                    "method": method,
                    "median CPU s": round(float(np.median(costs)), 3),
                    "largest": round(max(costs), 3),
                    "within 0.01": f"{solved}/{len(regions)}" if proves else "no bound",
                    "worst gap": round(float(np.max(np.fmin(found, 1.0) - lower)), 4) if proves else "",
                    "found, above the best": round(float(np.max(np.fmin(found, 1.0) - best)), 5),
                }
            )
            print(rows[-1], flush=True)
    return rows
