"""The soak: random queries of every question, each answer judged claim by claim in ball arithmetic.

    python scripts/soak.py                             # 30,000 queries, numbers 0 to 29,999
    python scripts/soak.py --first 4200 --jobs 8       # goes on where an earlier run was stopped
    python scripts/soak.py --first 4711 --queries 1    # one query again
    python scripts/soak.py --question explain          # one question only

Query number i is `Query.pick(i)` (tests/judge/queries.py), so every line printed can be reproduced alone.
The last lines count queries and claims by question; the exit status is 1 if any answer was false or failed.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed, parallel_config

# The judge lives with the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from gpcert.model_file import save
from gpcert.posterior import Posterior
from judge.answers import came_back, inconsistencies
from judge.proofs import rejected
from judge.queries import OPTIONS, Query
from judge.refute import Judge

#: Seconds for judging one query.
LONGEST = 60
#: Whether the judge has used them.
LATE: list[bool] = []
#: Seconds after which a query is named: a limit that does not hold, or a judge that is too thorough.
SLOW = 30


def main() -> int:
    """Ask the queries; 0 if every answer was true."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=30_000, help="how many (default: 30000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first query (default: 0)")
    parser.add_argument("--question", choices=sorted(OPTIONS), help="ask this one only")
    parser.add_argument("--jobs", type=int, default=cpu_count(), help="processes (default: all cores)")
    parser.add_argument("--every", type=int, default=500, help="queries between two lines of progress")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no query after this long")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.queries)
    start, totals, done = time.perf_counter(), Counter[tuple[str, str]](), 0
    deadline = time.time() + options.seconds
    asked = (delayed(judged)(i, options.question, deadline) for i in numbers)
    with parallel_config("loky", inner_max_num_threads=1):
        answers = Parallel(options.jobs, return_as="generator_unordered")(asked)
    for number, question, counts, sentences in answers:
        if question is None:
            continue
        done += 1
        totals.update({(question, kind): count for kind, count in counts.items()})
        if counts["seconds"] > SLOW:
            print(f"query {number} took {counts['seconds']} s", flush=True)
        for sentence in sentences:
            print(f"query {number}: {sentence}", flush=True)
        if done % options.every == 0:
            bad = sum(count for (_, kind), count in totals.items() if kind == "false")
            print(f"{done} queries, {bad} false, {time.perf_counter() - start:.0f} s", flush=True)
    return summed_up(totals, done, options.first, time.perf_counter() - start)


def judged(
    number: int, only: str | None, deadline: float
) -> tuple[int, str | None, dict[str, int], list[str]]:
    """(number, question, counts of queries, claims, false and undecided ones, what is false)."""
    if time.time() > deadline:
        return number, None, {}, []
    warnings.simplefilter("error")
    begun = time.time()
    LATE.clear()
    query = Query.pick(number, only)
    counts = {"queries": 1, "claims": 0, "false": 0, "undecided": 0}
    try:
        post, answers, unproved = asked(query, number)
        answers = [came_back(answer) for answer in answers]
        found = unproved + [sentence for answer in answers for sentence in inconsistencies(answer)]
        judge = Judge(post, np.random.default_rng(number))
        with limited():
            for claims in (answer.claims() for answer in answers):
                counts["claims"] += len(claims)
                judge.judge(claims)
        found += judge.false
        counts["undecided"] = len(judge.undecided)
    except (Exception, KeyboardInterrupt) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        found = [f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"]
        if LATE:  # a claim too dear to judge, or a callback of python-flint that was interrupted in it
            found, counts["undecided"] = [], counts["claims"] + 1
    counts["false"] = bool(found)
    counts["seconds"] = round(time.time() - begun)
    return number, query.question, counts, [f"{sentence}\n  {query}" for sentence in found[:3]]


def asked(query: Query, number: int) -> tuple[Posterior, list[Any], list[str]]:
    """The model, the answers, and the proof files, of every fourth query, that the checker rejects."""
    if number % 4:
        return *query.ask(), []
    with tempfile.TemporaryDirectory() as folder:
        post, answers = query.ask(Path(folder))
        files = sorted(Path(folder).glob("*.json"))
        if not files:
            return post, answers, []
        model = Path(folder) / "model.safetensors"
        save(post, model)
        return post, answers, rejected(model, files)


class Overtime(Exception):
    """The judge has used its time."""


@contextmanager
def limited() -> Iterator[None]:
    """LONGEST seconds; then every two, as a callback of python-flint may swallow the alarm."""
    signal.signal(signal.SIGALRM, overtime)
    signal.setitimer(signal.ITIMER_REAL, LONGEST, 2.0)
    try:
        yield
    finally:  # one that rings here still ends inside the caller's `try`, and is the last
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def overtime(*_: object) -> None:
    """End the judging of one query."""
    LATE.append(True)
    raise Overtime


def summed_up(totals: Counter[tuple[str, str]], done: int, first: int, seconds: float) -> int:
    """Print the table; 1 if anything was false."""
    print(f"\n{'question':18s} {'queries':>8s} {'claims':>8s} {'false':>6s} {'undecided':>9s}")
    for question in OPTIONS:
        row = [totals[question, kind] for kind in ("queries", "claims", "false", "undecided")]
        print(f"{question:18s} {row[0]:8d} {row[1]:8d} {row[2]:6d} {row[3]:9d}")
    bad = sum(totals[question, "false"] for question in OPTIONS)
    print(f"soak: {done} queries from number {first}: {bad} false or failed, {seconds:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
