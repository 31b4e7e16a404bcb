"""Proof files: what exporting costs beside the answer itself, what checking costs, sizes, what is proved.

CPU time, one BLAS thread; medians over points. "export" is the answer with its proof less the answer alone;
"check" is `gpcert_check` on all files of a row, the model's own part (once per model) apart.
`GPCERT_BENCH_POINTS` takes fewer points.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import gpcert as gc

TITLE = "Proof files: export and check beside the certifying time (median), sizes, numbers proved exactly"
POINTS = int(os.environ.get("GPCERT_BENCH_POINTS", "20"))
CHECKER = Path(__file__).resolve().parents[1] / "checker"

Row = dict[str, str | float]


def measure() -> list[Row]:
    rows = []
    plan = {
        "synthetic2d": (1.0, (0.25, 0.5, 1.0)),
        "spam": (1.5, (0.05, 0.1)),
        "mnist38": (4.0, (0.05, 0.1, 0.15)),
    }
    for name, (lengthscale, radii) in plan.items():
        data = gc.datasets.load(name)
        model = gc.GPClassifier(gc.RBF(lengthscale, 4.0), max_evals=0)
        post = model.fit(data.X_train[:1000], data.y_train[:1000]).posterior_
        for radius in radii:
            rows.append({"model": name, "n": post.n_centres, "radius": radius} | cost(post, data, radius))
            print(rows[-1], flush=True)
    return rows


def cost(post: gc.Posterior, data: gc.datasets.Dataset, radius: float) -> Row:
    balls = [gc.Ball(x, radius) for x in data.X_test[:POINTS]]
    plain, proved, sizes, exact = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        gc.save(post, Path(folder) / "model.safetensors")
        post = gc.load(Path(folder) / "model.safetensors")  # its hash is known then
        gc.probability_range(post, gc.Ball(data.X_test[0], 1e-3), proof=Path(folder) / "first")
        empty = check(folder, ["first"])
        for i, ball in enumerate(balls):
            start = time.process_time()
            gc.probability_range(post, ball)
            middle = time.process_time()
            answer = gc.probability_range(post, ball, proof=Path(folder) / f"{i}.json")
            plain.append(middle - start)
            proved.append(time.process_time() - middle)
            sizes.append((Path(folder) / f"{i}.json").stat().st_size)
            exact.append(answer.proof.exact)
        checked = check(folder, [f"{i}.json" for i in range(len(balls))]) - empty
    certify, export = np.array(plain), np.array(proved) - np.array(plain)
    return {
        "certify ms": round(1e3 * float(np.median(certify)), 1),
        "export / certify": round(float(np.median(export / certify)), 2),
        "model check s": round(empty, 1),
        "check s per query": round(checked / len(balls), 2),
        "kB": round(float(np.median(sizes)) / 1e3, 1),
        "proved exactly": round(float(np.mean(exact)), 3),
    }


def check(folder: str, names: list[str]) -> float:
    """CPU seconds of the checker on these files."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [sys.executable, "-m", "gpcert_check", "model.safetensors", *names]
    subprocess.run(command, cwd=folder, env={"PYTHONPATH": str(CHECKER)}, check=True, capture_output=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
