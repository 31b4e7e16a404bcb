"""One way to run: pieces of a batch here or on workers, with progress, interrupts and dead workers."""

from gpcert.running.batch import Keeper, Lot, Pieces, Running, ask_all, made
from gpcert.running.process import THREADS, on_signals, one_thread
from gpcert.running.progress import Bar, Collector, Listener, Progress, Report, Stopped
from gpcert.running.workers import cores

__all__ = [
    "THREADS",
    "Bar",
    "Collector",
    "Keeper",
    "Listener",
    "Lot",
    "Pieces",
    "Progress",
    "Report",
    "Running",
    "Stopped",
    "ask_all",
    "cores",
    "made",
    "on_signals",
    "one_thread",
]
