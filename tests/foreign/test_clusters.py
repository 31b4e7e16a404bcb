"""Batches on Dask and Ray themselves, two workers each: `make test-full`.

Answers are those of one process bit for bit, whoever dies on the way, and are kept as they come.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager

import distributed
import joblib
import numpy as np
import psutil
import pytest
import ray
from ray.util.joblib import register_ray

import gpcert as gc
from gpcert.running import Collector, Pieces, Running, ask_all, batch
from helpers import running_tasks
from helpers.exact import small_model

POST = small_model()
X = np.random.default_rng(8).standard_normal((24, 2))
BALLS = [gc.Ball(x, 0.3) for x in X]


@contextmanager
def dask():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config("dask"),
    ):
        yield client


@contextmanager
def ray_():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=50)
    register_ray()
    try:
        with joblib.parallel_config("ray"):
            yield None
    finally:
        ray.shutdown()


@pytest.fixture(scope="module", params=[dask, ray_], ids=["dask", "ray"])
def cluster(request):
    with request.param() as client:
        yield client


def workers(client):
    """Processes that work."""
    if client is not None:
        return list(client.run(os.getpid).values())
    return [p.pid for p in psutil.process_iter() if "ray::PoolActor" in " ".join(_command(p))]


def _command(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def told(answers):
    return [{k: v for k, v in a.to_dict().items() if k != "seconds"} for a in answers]


def asked(ask, task, pieces):
    collector = Collector(lambda p: None)
    ask_all(ask, task, Pieces(len(pieces), list(pieces).__getitem__), Running(collector, None))
    return collector.answers, collector.complaints


def test_answers_are_those_of_one_process_and_kept(cluster, tmp_path):
    path = tmp_path / "runs.db"
    found = gc.probability_range(POST, BALLS, tolerance=1e-3, store=path)
    assert told(found) == told(gc.probability_range(POST, BALLS, tolerance=1e-3, n_jobs=1))
    assert len(gc.Store(path).answers()) == len(BALLS)
    home = os.getpid()
    assert home not in {process for process, *_ in asked(running_tasks.where, None, range(4))[0].values()}
    assert gc.certified_radius(POST, X, rtol=0.1)[3].safe > 0


def test_answers_are_kept_as_they_come(cluster, tmp_path):
    """Somebody stops the batch in the middle: what was answered before is in the store."""
    path, seen = tmp_path / "runs.db", []

    def stop(p):
        seen.append(p.done)
        return p.done >= 6

    gc.probability_range(POST, BALLS, tolerance=1e-5, store=path, progress=stop)
    assert 6 <= len(gc.Store(path).answers()) < len(BALLS)


def test_a_scheduler_that_forgets_everything_costs_nothing_but_time(cluster):
    """Dask's `restart`: all workers end, all tasks are dropped."""
    restart = (lambda: None) if cluster is None else cluster.restart  # Ray has nothing like it
    timer = threading.Timer(0.7, restart)
    timer.start()
    found, _ = asked(running_tasks.stubborn, None, [30] * 12)
    timer.join()
    assert found == dict.fromkeys(range(12), ("all", 30))


def test_a_worker_that_is_killed_costs_nothing_but_time(cluster):
    def killer():
        time.sleep(0.7)
        os.kill(workers(cluster)[0], signal.SIGKILL)

    thread = threading.Thread(target=killer)
    thread.start()
    found, _ = asked(running_tasks.stubborn, None, [30] * 12)
    thread.join()
    assert found == dict.fromkeys(range(12), ("all", 30))


@pytest.mark.parametrize("seen", [True, False], ids=["board", "no board"])
def test_a_piece_that_kills_three_workers_is_set_aside(cluster, seen, monkeypatch):
    """Also where no worker can tell what it had begun, as on another machine."""
    call = batch.Call
    if not seen:
        monkeypatch.setattr(batch, "Call", lambda token, path, rows: call(token, "/none", rows))
    found, (said,) = asked(running_tasks.dies, {3}, range(6))
    assert found == {i: i for i in range(6) if i != 3}
    assert said.endswith("1 of 6 are not answered")
