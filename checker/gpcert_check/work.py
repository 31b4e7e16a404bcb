"""How much work a file may ask for, counted over all its claims before it is done."""

from __future__ import annotations

from gpcert_check.reading import need

MOST_WORK = 10**10  # of one file: about an hour with thousands of centres; 10^7 is usual


class Work:
    """What the file at hand has asked for: one is checked at a time."""

    spent = 0


def spend(work: int) -> None:
    """Count it: centres times features of a leaf, factors of H, Gram matrices and their powers."""
    need(Work.spent + work <= MOST_WORK, "the file asks for more work than this checker is ready to do")
    Work.spent += work
