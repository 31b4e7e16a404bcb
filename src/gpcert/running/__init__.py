"""One way to run: pieces of a batch here or on workers, with progress, interrupts and dead workers."""

from gpcert.running.executor import Ask, Running, ask_all, cores
from gpcert.running.progress import Bar, Listener, Progress, Report, wants_to_stop
from gpcert.running.signals import SIGNALS, THREADS, on_signals

__all__ = [
    "SIGNALS",
    "THREADS",
    "Ask",
    "Bar",
    "Listener",
    "Progress",
    "Report",
    "Running",
    "ask_all",
    "cores",
    "on_signals",
    "wants_to_stop",
]
