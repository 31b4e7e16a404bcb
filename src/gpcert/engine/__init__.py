"""Many regions of one model at once: the root of the search as batched products, on numpy or a GPU.

A row is one side (the minimum of P, or of 1 - P) of one region. All rows together are searched for a witness,
expanded at a reference, bounded by a supporting plane (docs/maths/batches.md) and settled; what is not
goes to the branch and bound, with its witness and what is known. Nothing here is a second mathematics:
the statements are those of `bounds`, the rounding is that of R1 in any order of summation.
"""

from gpcert.engine.apart import kept_apart, parts_of
from gpcert.engine.backend import Backend, chosen
from gpcert.engine.facts import Facts, facts_of, knows
from gpcert.engine.labels import classes_of, kept_labels, knows_labels
from gpcert.engine.root import Settled, attained, smallest, verdicts
from gpcert.engine.rows import Around, Rows
from gpcert.engine.signs import signs, surely_lost

__all__ = [
    "Around",
    "Backend",
    "Facts",
    "Rows",
    "Settled",
    "attained",
    "chosen",
    "classes_of",
    "facts_of",
    "kept_apart",
    "kept_labels",
    "knows",
    "knows_labels",
    "parts_of",
    "signs",
    "smallest",
    "surely_lost",
    "verdicts",
]
