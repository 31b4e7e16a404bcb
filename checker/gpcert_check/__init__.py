"""An independent checker of gpcert's proof files: `gpcert-check MODEL PROOF...`.

Shares no line with gpcert. Every number that decides is a ball of Arb, whose operations enclose the exact
result; the statements V1 to V14 cited are those of gpcert's docs/maths/proof.md.
"""

from gpcert_check.claims import Checker
from gpcert_check.reading import Reject

__all__ = ["Checker", "Reject"]
