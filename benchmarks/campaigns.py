"""Campaigns: what a store costs the client, how fast it is listed, how many cores one client can feed.

Answers are synthetic (a range of a small model, the region another one each time), the store, the executor
and its workers are real. `GPCERT_BENCH_ANSWERS` sets the size of the largest store, 1,000,000 by default.

    python benchmarks/campaigns.py curve [IMAGES]

runs the curve of certified accuracy of MNIST 3/8 as a campaign, killed three times, and compares its store
with that of an undisturbed one, answer by answer.
"""

from __future__ import annotations

import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import gpcert as gc
from gpcert.running import Running, ask_all
from gpcert.store import keeping

TITLE = "Campaigns: overhead per answer, listing, cores that one client feeds"
ANSWERS = int(os.environ.get("GPCERT_BENCH_ANSWERS", "1000000"))
LOT = 2000

Row = dict[str, str | float]


def model() -> gc.Posterior:
    X = np.random.default_rng(0).standard_normal((12, 2))
    return gc.GPClassifier(max_evals=0).fit(X, (X[:, 0] > 0).astype(int)).posterior_


def piece(template: gc.ProbabilityRange, k: int, report: object) -> gc.ProbabilityRange:
    """An answer for nothing."""
    return replace(template, region=gc.Box([float(k), 0.0], [k + 1.0, 1.0]))


def blank(template: gc.ProbabilityRange, k: int) -> gc.ProbabilityRange:
    return piece(template, k, None)


def measure() -> list[Row]:
    post = model()
    template = gc.probability_range(post, gc.Box([0.0, 0.0], [1.0, 1.0]))
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            *_overhead(post, template, pathlib.Path(folder)),
            *_listed(post, template, pathlib.Path(folder)),
        ]
    for row in rows:
        print(row, flush=True)
    return rows


def _overhead(post: gc.Posterior, template: gc.ProbabilityRange, folder: pathlib.Path) -> Iterator[Row]:
    """CPU of this process, its writing thread included, per answer; the workers' is their own."""
    for jobs, count in ((1, 5000), (2, 5000)):
        for what in ("no store", "new", "resumed"):
            path = folder / f"{jobs}.db"
            running = Running(None, jobs)
            if what != "no store":
                running = replace(running, keeper=keeping(path, [post], "benchmark"))
            ask_all(piece, template, {0: 0, 1: 1}, Running(None, jobs))  # workers are there
            start, cpu = time.perf_counter(), time.process_time()
            pieces = {k: k for k in range(count)}
            ask_all(piece, template, pieces, running, blank=lambda k: blank(template, k))
            each = (time.process_time() - cpu) / count
            row: Row = {
                "measure": f"overhead, {what}",
                "jobs": jobs,
                "client CPU per answer [ms]": 1e3 * each,
            }
            row["wall per answer [ms]"] = 1e3 * (time.perf_counter() - start) / count
            if jobs > 1 and what == "new":
                for seconds in (0.01, 0.1, 1.0):
                    row[f"cores fed at {seconds:g} s"] = round(seconds / each)
            yield row


def _listed(post: gc.Posterior, template: gc.ProbabilityRange, folder: pathlib.Path) -> Iterator[Row]:
    store = gc.Store(folder / "many.db")
    store.add_model(post)
    store.begin("benchmark")
    written = 0
    cpu = time.process_time()
    for size in sorted({min(100_000, ANSWERS), ANSWERS}):
        while written < size:
            store.put([blank(template, k) for k in range(written, min(written + LOT, size))])
            written = min(written + LOT, size)
        spent = time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start = time.perf_counter()
        store.counts()
        summed = time.perf_counter() - start
        row: Row = {"measure": "listing", "answers": size, "put, CPU per answer [ms]": 1e3 * spent / size}
        row |= {"summarised [s]": summed, "peak memory while writing [MB]": peak}
        start, cpu_listed = time.perf_counter(), time.process_time()
        table = store.answers()
        row["listed, CPU [s]"] = time.process_time() - cpu_listed
        row |= {"listed [s]": time.perf_counter() - start, "rows": len(table)}
        row["bytes per answer"] = round(store.path.stat().st_size / size)
        del table
        yield row


def curve(images: int) -> None:
    """The whole curve as a campaign, killed three times, against an undisturbed one."""
    data = gc.datasets.load("mnist38")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        gc.save(
            gc.GPClassifier(max_evals=40).fit(data.X_train, data.y_train).posterior_, folder / "m.safetensors"
        )
        X, y = np.concatenate([data.X_test, data.X_extra]), np.concatenate([data.y_test, data.y_extra])
        np.savez(folder / "images.npz", X=X[:images], y=y[:images])
        radii = json.dumps(np.linspace(0.0, 0.2, 41).tolist())
        for run in ("calm", "killed"):
            (folder / f"{run}.toml").write_text(
                f'store = "{run}.db"\n[models]\nm = "m.safetensors"\n[data]\nfile = "images.npz"\n'
                f'[[questions]]\nask = "evaluate"\ndomain = ["0:1"]\nradii = {radii}\n'
            )
        start = time.perf_counter()
        _campaign(folder, "calm", None)
        calm = time.perf_counter() - start
        chance = np.random.default_rng(1)
        for _ in range(3):
            _campaign(folder, "killed", calm * chance.uniform(0.2, 0.5))
            answers = len(gc.Store(folder / "killed.db").answers()) if (folder / "killed.db").exists() else 0
            print(f"killed; {answers} of {images} answers in the store", flush=True)
        _campaign(folder, "killed", None)
        told = [sorted(map(_told, gc.Store(folder / f"{run}.db").load())) for run in ("calm", "killed")]
        assert len(told[0]) == images
        assert told[0] == told[1]
        print(f"{images} images, 41 radii: equal bit for bit; undisturbed {calm:.0f} s", flush=True)


def _told(answer: gc.Answer) -> str:
    return json.dumps({name: value for name, value in answer.to_dict().items() if name != "seconds"})


def _campaign(folder: pathlib.Path, run: str, seconds: float | None) -> None:
    """Run it; killed, with its workers, after so many seconds."""
    command = [sys.executable, "-m", "gpcert", "campaign", "run", str(folder / f"{run}.toml"), "--quiet"]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL) as process:
        try:
            status = process.wait(seconds)
            assert status == 0, status
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    if sys.argv[1:2] == ["curve"]:
        curve(int(sys.argv[2]) if sys.argv[2:] else 984)
    else:
        measure()
