"""A campaign runs: in rounds where its total budget is limited, most is spent where most is open.

Without a budget every question is asked once, with the limits of the file. With one, each round allows every
answer that is still open four times the seconds of the round before: what is easy is settled everywhere
before anything hard is tried twice. A priority says what comes first in each round: verdicts, of rows that
are not labelled wrongly, because they alone narrow the certified accuracy; and of these the widest
enclosures, or the rows nearest to the boundary.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gpcert.cli.campaign.file import Campaign
from gpcert.cli.campaign.parts import Part, Truth, lots, parts
from gpcert.cli.campaign.standing import forget, register, standings
from gpcert.running import Progress
from gpcert.store import Store
from gpcert.validation import Index

#: Seconds for one answer in the first round of a limited campaign, and how many times more in the next.
_FIRST, _MORE = 0.5, 4.0


def run_campaign(
    campaign: Campaign,
    store: Store,
    tell: Callable[[Progress], Any],
    stop: Callable[[], bool],
) -> bool:
    """Ask everything; False: it was stopped, or its budget was spent, before all was asked."""
    asked = dict(enumerate(parts(campaign)))
    for number, part in asked.items():
        names = [*map(part.table.named, range(len(part.table.X)))]
        register(store, campaign.digest, number, part.described, part.blanks(store), part.truth, names)
    forget(store, campaign.digest, len(asked))
    if campaign.priority != "order":
        asked = dict(sorted(asked.items(), key=lambda each: not each[1].judges))
    deadline = time.monotonic() + campaign.budget
    limited = math.isfinite(campaign.budget)
    seconds = _FIRST if limited else math.inf

    def listen(p: Progress) -> bool:
        tell(p)
        return stop() or time.monotonic() >= deadline

    while True:
        for number, part in asked.items():
            if stop() or time.monotonic() >= deadline:
                return False
            running = {"store": store, "progress": listen, "n_jobs": campaign.jobs}
            for lot in lots(_order(campaign, store, number, part)):
                if not (stop() or time.monotonic() >= deadline):
                    part.ask(lot, min(seconds, part.limit), **running)
        if stop() or time.monotonic() >= deadline:
            return False
        if all(seconds >= part.limit or _settled(store, campaign, k) for k, part in asked.items()):
            return True
        seconds *= _MORE


def _settled(store: Store, campaign: Campaign, number: int) -> bool:
    """Whether no larger limit would change anything: nothing is missing but what was lost."""
    return all(s.lost or s.limit == math.inf for s in standings(store, campaign.digest, number))


def _order(campaign: Campaign, store: Store, number: int, part: Part) -> Index:
    """The rows of a part, those first whose answers would tell most."""
    rank = np.zeros(len(part.table.X))
    if campaign.priority == "boundary":
        rank = part.points.nearness
    elif campaign.priority == "widest" and math.isfinite(campaign.budget):  # else all is asked once, as it is
        known = standings(store, campaign.digest, number)
        rank = -np.array([math.inf if s.width is None else s.width for s in known])
    idle = [truth is Truth.WRONG and campaign.priority != "order" for truth in part.truth]
    return np.lexsort((rank, np.array(idle)))
