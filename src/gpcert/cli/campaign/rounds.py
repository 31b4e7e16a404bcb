"""A campaign runs: in rounds where its total budget is limited, most is spent where most is open.

Without a budget every question is asked once, with the limits of the file. With one, each round allows every
answer that is still open four times the seconds of the round before: what is easy is settled everywhere
before anything hard is tried twice, and what the last rounds work at are the widest enclosures, or the rows
nearest to the boundary.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gpcert.cli.campaign.file import Campaign
from gpcert.cli.campaign.parts import Part, lots, parts
from gpcert.running import Progress
from gpcert.store import Store
from gpcert.store.campaign import clear, register, settled, widths
from gpcert.validation import Index

__all__ = ["run_campaign"]

#: Seconds for one answer in the first round of a limited campaign, and how many times more in the next.
_FIRST, _MORE = 0.5, 4.0


def run_campaign(
    campaign: Campaign,
    store: Store,
    tell: Callable[[Progress], Any],
    stop: Callable[[], bool],
) -> bool:
    """Ask everything; False: it was stopped, or its budget was spent, before all was asked."""
    asked = list(parts(campaign))
    clear(store, campaign.digest)
    for number, part in enumerate(asked):
        register(store, campaign.digest, number, part.told, part.blanks(store), part.truth)
    deadline = time.monotonic() + campaign.budget
    limited = math.isfinite(campaign.budget)
    seconds = _FIRST if limited else math.inf

    def listen(p: Progress) -> bool:
        tell(p)
        return stop() or time.monotonic() >= deadline

    while True:
        for number, part in enumerate(asked):
            if stop() or time.monotonic() >= deadline:
                return False
            running = {"store": store, "progress": listen, "n_jobs": campaign.jobs}
            for lot in lots(_order(campaign, store, number, part)):
                if not (stop() or time.monotonic() >= deadline):
                    part.ask(lot, min(seconds, part.limit), **running)
        if stop() or time.monotonic() >= deadline:
            return False
        if all(seconds >= part.limit or settled(store, campaign.digest, k) for k, part in enumerate(asked)):
            return True
        seconds *= _MORE


def _order(campaign: Campaign, store: Store, number: int, part: Part) -> Index:
    if campaign.priority == "boundary":
        return np.argsort(part.nearness(), kind="stable")
    if campaign.priority == "widest":
        known = widths(store, campaign.digest, number)
        return np.argsort([-known[i] for i in range(len(known))], kind="stable")
    return np.arange(len(part.table.X))
