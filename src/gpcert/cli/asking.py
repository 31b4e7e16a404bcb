"""Many rows of one run; interrupted, or with a worker that died, what is known comes back.

Each row is asked on its own, or with some others where that is cheaper. The posterior travels to the workers
once, as it was loaded: no worker opens the file again, so that all answer for the same model.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from gpcert.cli.progress import Interrupt
from gpcert.cli.show import warn
from gpcert.errors import ImpossibleInputsWarning, UnitsWarning
from gpcert.posterior import Posterior
from gpcert.running import Bar, Listener, Progress, Report, Running, ask_all

Answer = dict[str, Any]
#: Asks one question: (posterior, query, progress) -> {"answer": ...}, or {"answers": [...]} of a query that
#: has a `size`. A module's function: it travels.
Ask = Callable[[Posterior, Any, Listener], Answer]


class Outcome(NamedTuple):
    """Answers by row, None where there is none; whether a signal ended the work; what else went wrong."""

    answers: list[Any]
    interrupted: bool
    failure: str | None


def size(query: Any) -> int:
    """How many rows a query is about."""
    return int(getattr(query, "size", 1))


def answer_all(
    ask: Ask,
    post: Posterior,
    queries: Sequence[Any],
    jobs: int | None,
    bar: Bar,
    interrupt: Interrupt,
    together: Callable[[], Mapping[int, Any]] = dict,
) -> Outcome:
    """The answers in the order of the rows, as many as could be had; `together` answers what it can."""
    first = [0, *accumulate(map(size, queries))]  # row of each query
    found: dict[int, Answer] = {}
    told: list[str] = []

    def listen(p: Progress) -> bool:
        bar(p)
        return interrupt.requested

    try:
        running = Running(listen, jobs, told.append)
        found.update({i: {"answer": answer} for i, answer in together().items()})
        left = {i: query for i, query in zip(first, queries, strict=False) if i not in found}
        ask_all(_row, (ask, post), left, running, found=found, size=size, total=first[-1])
        interrupt.over = True  # here, where a KeyboardInterrupt would still be caught
    except KeyboardInterrupt:
        interrupt.requested = True
    except Exception as error:
        if not found:
            raise
        # One row's trouble does not cost the answers to the others.
        told.append("".join(traceback.format_exception_only(error)).strip())
    finally:
        interrupt.over = True
        bar.close()
    if len(found) == len(queries) and told:
        warn(told.pop())  # a worker died, and cost nothing but time
    rows = {i + k: each for i, some in found.items() for k, each in enumerate(_listed(some))}
    return Outcome([rows.get(i) for i in range(first[-1])], interrupt.requested, "; ".join(told) or None)


def _listed(found: Answer) -> list[Any]:
    return found["answers"] if "answers" in found else [found["answer"]]


def _row(task: tuple[Ask, Posterior], query: Any, report: Report) -> Answer:
    ask, post = task
    warnings.simplefilter("ignore", ImpossibleInputsWarning)
    warnings.simplefilter("ignore", UnitsWarning)  # said once, after the answers
    return ask(post, query, lambda p: report(p.lower, p.upper, p.nodes, p.seconds))
