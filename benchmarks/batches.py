"""Throughput: 1,000 regions in one call against 1,000 calls, wall clock, all cores this process may use.

The calls are measured on a sample, before and after the batch, in the same run; each answer of the batch is
compared with the single one. `GPCERT_BENCH_POINTS` takes fewer regions.
"""

from __future__ import annotations

import os
import time

import numpy as np

import gpcert as gc
from gpcert.running import cores

TITLE = "Batches: 1,000 regions in one call against 1,000 calls"
POINTS = int(os.environ.get("GPCERT_BENCH_POINTS", "1000"))
SAMPLE = 60

Row = dict[str, str | float]

QUERIES = [("synthetic2d", 0.5), ("spam", 0.1), ("spam", 0.5), ("mnist38", 0.02), ("mnist38", 0.1)]


def measure() -> list[Row]:
    rows: list[Row] = []
    models: dict[str, gc.Posterior] = {}
    for name, r in QUERIES:
        data = gc.datasets.load(name)
        if name not in models:
            models[name] = gc.GPClassifier(max_evals=20).fit(data.X_train, data.y_train).posterior_
        post = models[name]
        X = np.concatenate([data.X_test, data.X_train])[:POINTS]
        regions = [gc.Ball(x, r, domain=data.domain) for x in X]
        rows.append({"model": name, "r": r} | _compare(post, regions))
        print(rows[-1], flush=True)
    return rows


def _compare(post: gc.Posterior, regions: list[gc.Ball]) -> Row:
    gc.probability_range(post, regions[0])  # verifies the model's facts once
    sample = np.linspace(0, len(regions) - 1, min(SAMPLE, len(regions))).astype(int)
    singles, first = _singles(post, regions, sample)
    start = time.perf_counter()
    batch = gc.probability_range(post, regions)
    together = time.perf_counter() - start
    _, second = _singles(post, regions, sample)
    single = 0.5 * (first + second) / len(sample) * len(regions)
    worst = max(
        abs(a - b)
        for i, one in zip(sample, singles, strict=True)
        for a, b in (
            (one.min.lower, batch[i].min.lower),
            (one.min.upper, batch[i].min.upper),
            (one.max.lower, batch[i].max.lower),
            (one.max.upper, batch[i].max.upper),
        )
    )
    return {
        "regions": len(regions),
        "cores": cores(),
        "one call s": round(together, 2),
        "many calls s": round(single, 2),
        "ratio": round(single / together, 2),
        "largest difference": worst,
    }


def _singles(
    post: gc.Posterior, regions: list[gc.Ball], sample: np.ndarray
) -> tuple[list[gc.ProbabilityRange], float]:
    start = time.perf_counter()
    answers = [gc.probability_range(post, regions[i]) for i in sample]
    return answers, time.perf_counter() - start
