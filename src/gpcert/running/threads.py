"""One BLAS thread where the products are too small for several.

A question about a small model makes thousands of small products; on several threads each waits for the
others, and the same question, or training, takes many times the CPU time (docs/costs.md). Their number
belongs to the whole process: a call that begins while no other is under way sets it to one, and back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import scipy.linalg  # noqa: F401  (its BLAS is another library than numpy's: both are to be found)
from threadpoolctl import ThreadpoolController

#: Centres up to which one thread is enough, and centres times regions (of training: times centres).
_CENTRES, _PRODUCTS = 4_096, 4_000_000

#: Held by the call that has set the number: only who has set it sets it back.
_set = threading.Lock()


@contextmanager
def one_thread(centres: int, regions: int) -> Iterator[None]:
    """BLAS keeps to one thread inside, if a model of so many centres is asked about few regions."""
    large = centres > _CENTRES or centres * regions > _PRODUCTS
    if large or not _set.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _set.release()


@cache
def _libraries() -> ThreadpoolController:
    """To find them takes milliseconds, as long as many a question."""
    return ThreadpoolController()
