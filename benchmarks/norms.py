"""Ranges over balls of every norm on MNIST38: what converges at tolerance 0.02 and what it costs.

All 196 pixels, clipped to [0, 1]; 20 test points, half of them those with the smallest |p - 1/2|; minimum and
maximum together; CPU time, one BLAS thread, and floors (see `ranges.py`) measured in the same run.
`GPCERT_BENCH_POINTS` takes fewer points, `GPCERT_BENCH_ONLY` rows whose name contains a text.
"""

from __future__ import annotations

import time

import numpy as np

import gpcert as gc
from ranges import ONLY, Row, floor_seconds, model, points

TITLE = "Ranges over balls, MNIST38, all pixels in [0, 1], tolerance 0.02 (min and max together), one thread"

#: norm, radius, seconds per region
QUERIES: list[tuple[float, float, float]] = [
    (2, 0.25, 20),
    (2, 0.5, 20),
    (2, 1.0, 20),
    (1, 1.0, 20),
    (1, 3.0, 10),
    (0, 1, 20),
    (0, 2, 20),
    (0, 4, 20),
    (0, 8, 10),
    (3, 0.25, 10),
    (1.5, 1.0, 10),
]


def measure() -> list[Row]:
    post, data = model("mnist38")
    gc.probability_range(post, gc.Ball(data.X_test[0], 0.0))  # verifies the model's facts once
    chosen = points(post, data.X_test)
    rows: list[Row] = []
    for norm, radius, seconds in QUERIES:
        name = f"L{norm:g}, r = {radius:g}" if norm else f"L0, {radius:g} pixels"
        if ONLY not in name:
            continue
        floor = float(np.median([floor_seconds(post, data.X_test[:10]) for _ in range(5)]))
        results, spent = [], []
        for i in chosen:
            region = gc.Ball(data.X_test[i], radius, norm, domain=data.domain)
            start = time.process_time()
            results.append(gc.probability_range(post, region, max_seconds=seconds))
            spent.append(time.process_time() - start)
        rows.append(
            {
                "region": name,
                "converged": float(np.mean([r.status == "converged" for r in results])),
                "answered at once": float(np.mean([r.nodes == 0 for r in results])),
                "median s": round(float(np.median(spent)), 3),
                "max s": round(float(np.max(spent)), 2),
                "floors": round(float(np.median(spent)) / floor),
                "nodes": int(np.max([r.nodes for r in results])),
            }
        )
        print(rows[-1], flush=True)
    return rows
