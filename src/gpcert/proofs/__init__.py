"""Proof files: what an answer states, with all that a small independent program needs to check it."""

from gpcert.proofs.influences import Line, Range
from gpcert.proofs.limits import exported, unasked
from gpcert.proofs.prover import ProofPath, Prover, check_provable, checked_prover, row_names
from gpcert.proofs.tree import Tree

__all__ = [
    "Line",
    "ProofPath",
    "Prover",
    "Range",
    "Tree",
    "check_provable",
    "checked_prover",
    "exported",
    "row_names",
    "unasked",
]
