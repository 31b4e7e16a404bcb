"""Pieces of work for tests of the executor: functions of a module, which workers import."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from gpcert.clock import heed


def times(factor, piece, report):
    return factor * piece


def steps(until, piece, report):
    """Steps that narrow [0, 1/k], at most `piece` of them, and waits for a file, if one is named, before."""
    while until is not None and not Path(until).exists():
        time.sleep(0.005)
    for k in range(1, piece + 1):
        time.sleep(0.002)
        if report(0.0, 1.0 / k, k, 0.0):
            return "stopped", k
    return "all", piece


def stubborn(shared, piece, report):
    """Steps that no stop ends."""
    for k in range(piece):
        report(0.0, 1.0, k, 0.0)
        time.sleep(0.01)
    return "all", piece


def dies(victims, piece, report):
    report(0.0, 1.0, 0, 0.0)
    if piece in victims:
        os._exit(3)
    return piece


def dies_once(folder, piece, report):
    """As a worker that somebody kills: its work succeeds when it is repeated."""
    mark = Path(folder) / "died"
    if piece == 2 and not mark.exists():
        mark.touch()
        os._exit(3)
    return piece


def dies_elsewhere(home, piece, report):
    if os.getpid() != home:
        os._exit(3)
    return piece


def hungry(victim, piece, report):
    if piece == victim:
        raise MemoryError
    return piece


def fails(shared, piece, report):
    raise ValueError(f"piece must be good, got {piece}")


def where(shared, piece, report):
    """Process and thread, and the BLAS threads that it was given."""
    time.sleep(0.05)
    main = threading.current_thread() is threading.main_thread()
    return os.getpid(), main, os.environ.get("OMP_NUM_THREADS")


def silent(task, piece, report):
    """Makes no report; looks, as attacks do, whether it is to stop, a thousand times."""
    report(0.0, 1.0, piece, 0.0)
    for _ in range(1000):
        heed()
        time.sleep(0.02)
    return "not told"
