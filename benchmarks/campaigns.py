"""Campaigns: what a store costs the client, how fast it is listed, how many cores one client can feed.

Answers are synthetic (a range of a small model, the region another one each time), the store, the executor
and its workers are real. `GPCERT_BENCH_ANSWERS` sets the size of the largest store, 1,000,000 by default.

    python benchmarks/campaigns.py curve [IMAGES]

runs the curve of certified accuracy of MNIST 3/8 as a campaign, killed (-9) three times, and compares its
store with that of an undisturbed one, answer by answer, and with `gc.evaluate` itself, without a store; about
five minutes on two cores.
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
from gpcert.running import Pieces, Running, ask_all
from gpcert.store import keeping

TITLE = "Campaigns: overhead per answer, listing, cores that one client feeds"
ANSWERS = int(os.environ.get("GPCERT_BENCH_ANSWERS", "1000000"))
LOT = 2048

Row = dict[str, str | float]


def model() -> gc.Posterior:
    X = np.random.default_rng(0).standard_normal((12, 2))
    return gc.GPClassifier(max_evals=0).fit(X, (X[:, 0] > 0).astype(int)).posterior_


def piece(template: gc.ProbabilityRange, k: int, report: object) -> gc.ProbabilityRange:
    """An answer for nothing."""
    return replace(template, region=gc.Box([float(k), 0.0], [k + 1.0, 1.0]))


def slow(task: tuple[gc.ProbabilityRange, float], k: int, report: object) -> gc.ProbabilityRange:
    """The same after a while."""
    time.sleep(task[1])
    return piece(task[0], k, report)


def measure() -> list[Row]:
    post = model()
    template = gc.probability_range(post, gc.Box([0.0, 0.0], [1.0, 1.0]))
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for part in (_overhead, _fed, _many):
            for row in part(post, template, pathlib.Path(folder)):
                print(row, flush=True)
                rows.append(row)
    return rows


def _overhead(post: gc.Posterior, template: gc.ProbabilityRange, folder: pathlib.Path) -> Iterator[Row]:
    """CPU of this process, its writing thread included, per answer; the workers' is their own."""
    for jobs, count in ((1, 5000), (2, 5000)):
        for what in ("no store", "new", "resumed"):
            path = folder / f"{jobs}.db"
            running = Running(None, jobs)
            if what != "no store":
                running = replace(running, keeper=keeping(path, [post], "benchmark"))
            ask_all(piece, template, Pieces(2, int), Running(None, jobs))  # workers are there
            cpu, wall = _asked(template, range(count), running)
            row: Row = {"measure": f"overhead, {what}", "jobs": jobs}
            row |= {"client CPU per answer [ms]": 1e3 * cpu / count, "wall [ms]": 1e3 * wall / count}
            if jobs > 1 and what == "new":
                row |= {f"cores fed at {s:g} s": round(s * count / cpu) for s in (0.01, 0.1, 1.0)}
            yield row


def _fed(post: gc.Posterior, template: gc.ProbabilityRange, folder: pathlib.Path) -> Iterator[Row]:
    """Workers that sleep need no cores: how busy one client keeps more of them than the machine has."""
    for jobs, seconds, count in ((8, 0.01, 4000), (32, 0.1, 4000)):
        running = replace(Running(None, jobs), keeper=keeping(folder / f"{jobs}.db", [post], "benchmark"))
        ask_all(slow, (template, seconds), Pieces(jobs, lambda k: 0), Running(None, jobs))
        cpu, wall = _asked(template, range(count), running, seconds)
        row: Row = {"measure": "workers that sleep", "jobs": jobs, "seconds per answer": seconds}
        row |= {"busy": count * seconds / (wall * jobs), "client CPU per answer [ms]": 1e3 * cpu / count}
        yield row


def _asked(
    template: gc.ProbabilityRange, numbers: range, running: Running, seconds: float = 0.0
) -> tuple[float, float]:
    """CPU of this process, and seconds."""
    start, cpu = time.perf_counter(), time.process_time()
    pieces = Pieces(len(numbers), numbers.__getitem__)
    ask, task = (slow, (template, seconds)) if seconds else (piece, template)
    ask_all(ask, task, pieces, running, blank=lambda k: piece(template, k, None))
    return time.process_time() - cpu, time.perf_counter() - start


def _many(post: gc.Posterior, template: gc.ProbabilityRange, folder: pathlib.Path) -> Iterator[Row]:
    """All answers through workers, executor and store, as a campaign asks them: by lots."""
    store, spent, start = gc.Store(folder / "many.db"), 0.0, time.perf_counter()
    store.begin("benchmark")
    sizes = [size for size in (10_000, 100_000, 300_000, 1_000_000) if size < ANSWERS] + [ANSWERS]
    for first, size in zip([0, *sizes], sizes, strict=False):
        for lot in range(first, size, LOT):
            running = replace(Running(None, 2), keeper=keeping(store, [post], "benchmark"))
            spent += _asked(template, range(lot, min(lot + LOT, size)), running)[0]
        row: Row = {"measure": "asked and kept, 2 workers", "answers": size}
        row |= {"client CPU per answer [ms]": 1e3 * spent / size, "seconds": time.perf_counter() - start}
        row["client memory [MB]"] = _memory()
        yield row | _looked_at(store)


def _looked_at(store: gc.Store) -> Row:
    """In a process of its own: what a table holds is not this client's."""
    printed = subprocess.run(
        [sys.executable, "-c", _LOOK, str(store.path)], capture_output=True, text=True, check=True
    )
    seen: Row = json.loads(printed.stdout)
    return seen | {"bytes per answer": round(store.path.stat().st_size / float(seen["rows"]))}


_LOOK = """
import json, sys, time
import gpcert as gc
store, report = gc.Store(sys.argv[1]), {}
for name, look in (("summarised", store.counts), ("runs and models", lambda: (store.runs(), store.models())),
                   ("listed", store.answers)):
    start = time.process_time()
    table = look()
    report[name + ", CPU [s]"] = time.process_time() - start
print(json.dumps(report | {"rows": len(table)}))
"""


def _memory() -> float:
    """Resident now, in MB; the largest so far where the system does not say."""
    try:
        pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 2**20
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def curve(images: int) -> None:
    """The whole curve as a campaign, killed three times, against an undisturbed one."""
    data = gc.datasets.load("mnist38")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        post = gc.GPClassifier(max_evals=40).fit(data.X_train, data.y_train).posterior_
        gc.save(post, folder / "m.safetensors")
        X, y = np.concatenate([data.X_test, data.X_extra]), np.concatenate([data.y_test, data.y_extra])
        np.savez(folder / "images.npz", X=X[:images], y=y[:images])
        radii = np.linspace(0.0, 0.2, 41).tolist()
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
        answers = [sorted(map(_report, gc.Store(folder / f"{run}.db").load())) for run in ("calm", "killed")]
        assert len(answers[0]) == images
        assert answers[0] == answers[1]
        print(f"{images} images, 41 radii: equal bit for bit; undisturbed {calm:.0f} s", flush=True)
        whole = gc.evaluate(post, X[:images], y[:images], radii, domain=data.domain)
        points = {a.balls[0].digest: a for a in gc.Store(folder / "killed.db").load()}
        for i, ball in enumerate(whole.balls):
            for name in ("labels", "correct", "wrong", "safe", "unsafe", "verdicts", "counterexamples"):
                one, all_ = getattr(points[ball.digest], name)[0], getattr(whole, name)[i]
                assert np.array_equal(one, all_, equal_nan=np.asarray(one).dtype.kind == "f"), (i, name)
        print(f"equal to evaluate: certified at 0.1 {whole.certified[20]:.4f}, seconds {whole.seconds:.0f}")


def _report(answer: gc.Answer) -> str:
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
