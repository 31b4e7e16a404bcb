"""Campaigns that are killed: run by test_failures.py in a process of its own, which may fork.

    python killed.py FOLDER KILLS

Each child asks the same questions of one store and is killed (SIGKILL) at a random moment; what was committed
stays to the bit, and what is left is answered by the next, until nothing is: then the table is compared with
that of an undisturbed run, and another store begins.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gpcert as gc
from helpers.exact import small_model

POST = small_model()
X = np.random.default_rng(5).standard_normal((50, 2))
BALLS = [gc.Ball(x, 0.2) for x in X]


def ask(store: Path | None) -> list[object]:
    options = {"store": store, "n_jobs": 1}
    ranges = gc.probability_range(POST, BALLS, tolerance=1e-3, **options)
    radii = gc.certified_radius(POST, X[:32], rtol=0.1, **options)
    return [told(a) for a in [*ranges, *radii]]


def told(answer):
    return {name: value for name, value in answer.to_dict().items() if name != "seconds"}


def contents(store: Path) -> dict[int, str]:
    if not store.exists():
        return {}
    kept = gc.Store(store)
    return {number: str(kept.answer(number).to_dict()) for number in kept.numbers()}


def main(folder: Path, kills: int) -> None:
    seed = int(os.environ.get("GPCERT_KILL_SEED", "1"))
    chance, start = random.Random(seed), time.perf_counter()
    wanted = ask(None)
    span = (time.perf_counter() - start) / 6
    killed = campaigns = 0
    while killed < kills:
        store, before, campaigns = folder / f"{campaigns}.db", {}, campaigns + 1
        while len(before) < len(wanted) and killed < kills:
            child = os.fork()
            if not child:
                ask(store)
                os._exit(0)
            time.sleep(chance.uniform(0.0, span))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            killed += os.WIFSIGNALED(status)
            after = contents(store) if store.exists() and store.stat().st_size else {}
            assert before.items() <= after.items(), "what was committed is there, to the bit"
            before = after
        assert ask(store) == wanted, "the same table as undisturbed"
        assert before.items() <= contents(store).items()
    print(f"{killed} killed, {campaigns} campaigns")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
