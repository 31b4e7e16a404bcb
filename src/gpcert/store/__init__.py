"""Answers that are kept as they come, in one SQLite file: never computed twice, never lost."""

from gpcert.store.keeper import Plan, keeping
from gpcert.store.store import Merged, Store, merge

__all__ = ["Merged", "Plan", "Store", "keeping", "merge"]
