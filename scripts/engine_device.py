"""Batches on a device: is it trusted, what does it settle per second, and does anything contradict it?

    PYTHONPATH=src python scripts/engine_device.py [--device cuda] [--verdicts 65536] [--ranges 65536]

needs numpy, scipy, python-flint, safetensors, joblib, threadpoolctl, torch and array-api-compat. Trains on
1,000 digits (MNIST 3/8), then for each setting: rates of the root pass from columns of boxes to columns of
answers, both numpy's, and, of what it settles, from rows of numbers to answers in Python; shares settled, and
sampled points and attacks that would contradict a bound. Also the batched against the scalar answers, on
a few. Exit status 1 if the device is refused or anything is contradicted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np

import gpcert as gc
from gpcert.bounds.levels.curves import LevelCurves
from gpcert.bounds.levels.registry import curves_of
from gpcert.engine.backend import Backend, Torch
from gpcert.engine.facts import Facts, facts_of
from gpcert.engine.lines import probabilities
from gpcert.engine.root import Settled, smallest, verdicts
from gpcert.engine.rows import Rows
from gpcert.engine.signs import signs
from gpcert.engine.trust import flaw
from gpcert.engine.values import amplitudes, points
from gpcert.posterior import Posterior
from gpcert.validation import Float, Mask

#: (question, features, radius, tolerance).
SETTINGS = (
    ("verdict", 196, 0.02, 0.5),
    ("verdict", 196, 0.05, 0.5),
    ("verdict", 196, 0.1, 0.5),
    ("verdict", 196, 0.15, 0.5),
    ("range", 10, 0.25, 0.02),
    ("range", 10, 0.5, 0.02),
    ("range", 10, 1.0, 0.02),
    ("range", 196, 0.05, 0.02),
    ("range", 196, 0.1, 0.02),
    ("range", 196, 0.15, 0.02),
    ("range", 196, 0.2, 0.02),
    ("range", 196, 0.05, 0.001),
)
#: As batches split without limits.
SPLITS = 3


def model(centres: int) -> tuple[Posterior, Float]:
    """A posterior of digits, and digits to ask about."""
    data = gc.datasets.load("mnist38")
    kernel = gc.RBF(6.06, 91.7)
    clf = gc.GPClassifier(kernel, max_evals=0).fit(data.X_train[:centres], data.y_train[:centres])
    return clf.posterior_, np.concatenate([data.X_test, data.X_train[:centres]])


def queries(X: Float, rows: int, rng: np.random.Generator) -> Float:
    """The digits again and again, with a little noise after the first round."""
    many = X[np.arange(rows) % len(X)].copy()
    many[len(X) :] += rng.uniform(-0.02, 0.02, many[len(X) :].shape)
    return np.clip(many, 0.0, 1.0)


def rows_of(post: Posterior, backend: Backend, setting: tuple[str, int, float, float], X: Float) -> Rows:
    """The boxes around X; a verdict is asked of the likelier class."""
    what, count, radius, _ = setting
    features = np.arange(X.shape[1]) if count == X.shape[1] else np.arange(90, 90 + count)
    facts, curves = facts_of(post, features, backend), curves_of(post.likelihood)
    sign = np.ones(len(X)) if what == "range" else np.where(signs(facts, curves, X) < 0, -1.0, 1.0)
    low, high = (np.clip(X[:, features] + s * radius, 0.0, 1.0) for s in (-1.0, 1.0))
    return Rows(low, high, low, high, X[:, facts.rest], sign)


def ask(
    post: Posterior, backend: Backend, setting: tuple[str, int, float, float], rows: Rows
) -> tuple[Settled, float]:
    """Answers and seconds of one call, from doubles to columns; of a range, both sides."""
    what, count, _, tolerance = setting
    features = np.arange(post.n_features) if count == post.n_features else np.arange(90, 90 + count)
    facts, curves = facts_of(post, features, backend), curves_of(post.likelihood)
    start = time.perf_counter()
    if what == "verdict":
        found = verdicts(facts, curves, rows, SPLITS)
    else:
        found = smallest(facts, curves, rows, tolerance, sides=2, splits=SPLITS)
    return found, time.perf_counter() - start


def sides(setting: tuple[str, int, float, float], rows: Rows) -> Rows:
    """The row of each answer."""
    if setting[0] == "verdict":
        return rows
    both = rows.each(lambda column: np.concatenate([column, column]))
    return replace(both, sign=np.concatenate([rows.sign, -rows.sign]))


def done(setting: tuple[str, int, float, float], found: Settled) -> Mask:
    """Of which questions both sides are settled, or the sign is."""
    if setting[0] == "verdict":
        return np.asarray((found.lower > 0.5) | (found.upper < 0.5))
    narrow = found.upper - found.lower <= setting[3]
    return np.asarray(narrow[: len(narrow) // 2] & narrow[len(narrow) // 2 :])


def end_to_end(post: Posterior, setting: tuple[str, int, float, float], X: Float, device: str) -> float:
    """Seconds from rows of numbers to answers in Python, regions included."""
    what, count, radius, tolerance = setting
    features = None if count == X.shape[1] else list(range(90, 90 + count))
    start = time.perf_counter()
    regions = gc.balls(X, radius, features=features, domain=(0.0, 1.0))
    if what == "range":
        gc.probability_range(post, regions, tolerance=tolerance, device=device, n_jobs=1)
    else:
        gc.certify(post, regions, device=device, n_jobs=1)
    return time.perf_counter() - start


def contradictions(
    facts: Facts, curves: LevelCurves, rows: Rows, found: Settled, rounds: int, rng: np.random.Generator
) -> int:
    """Rows with a point (random, a vertex, a mutation of the witness) where P is certainly below what was
    proved; on the device.
    """
    backend, wrong = facts.backend, 0
    xp = backend.xp
    for start in range(0, len(rows), 16384):
        few = rows.each(lambda column, a=start: backend.array(column[a : a + 16384]))
        lower, upper, witness = (backend.array(column[start : start + 16384]) for column in found[:3])
        around, base = amplitudes(facts, few.standing), backend.array(rng.random(few.lower.shape))
        bad = lower > upper
        for turn in range(rounds):
            cut = int(rng.integers(len(base)))
            part = backend.concat([base[cut:], base[:cut]])
            vertex = xp.where(part < 0.5, few.lower, few.upper)
            inside = few.lower + part * (few.upper - few.lower)
            x = (inside, vertex, xp.where(part < 0.1, vertex, witness))[turn % 3]
            at = points(facts, x, around)
            low, high = at.mean()
            mean = xp.where(few.sign > 0, low, -high), xp.where(few.sign > 0, high, -low)
            p = probabilities(backend, curves, mean, at.variance)
            bad = bad | (p[1] < lower)
        wrong += int(xp.sum(bad * 1))
    return wrong


def denied(
    post: Posterior, rows: Rows, found: Settled, features: Any, checks: int, rng: np.random.Generator
) -> int:
    """Rows whose witness has another probability by the predictor, on the CPU."""
    few = rng.choice(len(rows), min(checks, len(rows)), replace=False)
    Z = np.empty((len(few), post.n_features))
    Z[:, np.setdiff1d(np.arange(post.n_features), features)] = rows.standing[few]
    Z[:, features] = found.witness[few]
    p = post.probability(Z)
    p = np.where(rows.sign[few] > 0, p[:, 1], p[:, 0])
    return int(((p > found.upper[few] + 1e-9) | (p < found.lower[few] - 1e-9)).sum())


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--verdicts", type=int, default=65536, help="rows of each setting")
    parser.add_argument("--ranges", type=int, default=65536, help="rows of each, a quarter at r = 0.2")
    parser.add_argument("--centres", type=int, default=1000)
    parser.add_argument("--checks", type=int, default=256, help="witnesses asked of the predictor")
    parser.add_argument("--rounds", type=int, default=24, help="sampled points per row, on the device")
    parser.add_argument("--scalar", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    backend = Backend() if options.device == "numpy" else Torch(options.device)
    reason = flaw(backend) if isinstance(backend, Torch) else None
    name = options.device
    if isinstance(backend, Torch) and name == "cuda":
        name = backend.torch.cuda.get_device_name()
    print(json.dumps({"device": name, "refused": reason, "gpcert": gc.__version__}), flush=True)
    if reason is not None:
        return 1
    rng, wrong, asked = np.random.default_rng(0), 0, {"verdict": 0, "range": 0}
    post, X = model(options.centres)
    for setting in SETTINGS:
        count = options.verdicts if setting[0] == "verdict" else options.ranges
        many = queries(X, count if setting[2] != 0.2 else count // 4, rng)
        rows = rows_of(post, backend, setting, many)
        found, first = ask(post, backend, setting, rows)
        seconds = [ask(post, backend, setting, rows)[1] for _ in range(options.repeat)]
        rows = sides(setting, rows)
        settled = done(setting, found)
        asked_of = "cpu" if options.device == "numpy" else options.device
        whole = [end_to_end(post, setting, many[settled], asked_of) for _ in range(options.repeat)]
        features = np.arange(196) if setting[1] == 196 else np.arange(90, 90 + setting[1])
        facts, curves = facts_of(post, features, backend), curves_of(post.likelihood)
        bad = contradictions(facts, curves, rows, found, options.rounds, rng)
        bad += denied(post, rows, found, features, options.checks, rng)
        bad += against_scalar(post, setting, many[: options.scalar], found, len(many))
        wrong += bad
        asked[setting[0]] += len(many)
        told = {
            "question": setting[0],
            "features": setting[1],
            "radius": setting[2],
            "tolerance": setting[3],
            "rows": len(many),
            "first_s": round(first, 3),
            "per_s": round(len(many) / float(np.median(seconds))),
            "end_to_end_per_s": round(int(settled.sum()) / float(np.median(whole))),
            "settled": round(float(settled.mean()), 5),
            "contradicted": bad,
        }
        print(json.dumps(told), flush=True)
    print(json.dumps({"asked": asked, "contradictions": wrong}))
    return int(wrong > 0)


def against_scalar(
    post: Posterior, setting: tuple[str, int, float, float], X: Float, found: Settled, total: int
) -> int:
    """Answers one by one that contradict those of the batch."""
    what, count, radius, tolerance = setting
    features = None if count == X.shape[1] else list(range(90, 90 + count))
    wrong = 0
    for i, x in enumerate(X):
        ball = gc.Ball(x, radius, features=features, domain=(0.0, 1.0))
        if what == "range":
            one = gc.probability_range(post, ball, tolerance=tolerance, max_nodes=20)
            ends = (one.min.lower, one.min.upper), (1.0 - one.max.upper, 1.0 - one.max.lower)
            sides = (i, i + total)
        else:
            verdict = gc.certify(post, x, ball, max_nodes=20)
            ends, sides = ((verdict.margin.lower + 0.5, verdict.margin.upper + 0.5),), (i,)
        for (low, high), row in zip(ends, sides, strict=False):
            wrong += int(found.lower[row] > high + 1e-12 or found.upper[row] < low - 1e-12)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
