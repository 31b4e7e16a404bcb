"""One way to run: pieces of a batch here or on workers, with progress, interrupts and dead workers."""

from gpcert.running.executor import ask_all
from gpcert.running.keeper import Keeper
from gpcert.running.pieces import Numbered, Pieces, among
from gpcert.running.progress import (
    Bar,
    Collector,
    Listener,
    Progress,
    Report,
    Stopped,
    listener,
    wants_to_stop,
)
from gpcert.running.signals import SIGNALS, THREADS, on_signals
from gpcert.running.threads import one_thread
from gpcert.running.ways import Ask, Lot, Running, made
from gpcert.running.workers import cores

__all__ = [
    "SIGNALS",
    "THREADS",
    "Ask",
    "Bar",
    "Collector",
    "Keeper",
    "Listener",
    "Lot",
    "Numbered",
    "Pieces",
    "Progress",
    "Report",
    "Running",
    "Stopped",
    "among",
    "ask_all",
    "cores",
    "listener",
    "made",
    "on_signals",
    "one_thread",
    "wants_to_stop",
]
