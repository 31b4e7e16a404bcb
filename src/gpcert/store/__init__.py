"""Answers that are kept as they come, in one SQLite file: never computed twice, never lost."""

from gpcert.store.keeper import Plan, keeping
from gpcert.store.merge import Merged, merge
from gpcert.store.pieces import Pieces
from gpcert.store.store import Store

__all__ = ["Merged", "Pieces", "Plan", "Store", "keeping", "merge"]
