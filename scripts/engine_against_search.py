"""Batches against single questions on many random models: nothing that one says may be denied by the other.

    python scripts/engine_against_search.py [--queries 20000] [--seed 0] [--large 1] [--family NAME]

Everything that the engine knows, in turns: two classes (probit, logit, with a floor, scikit-learn's formula;
RBF, Matern, rational quadratic, one lengthscale or one per feature; definite and indefinite precisions, data
far from the origin), more than 32 moving features with near ties, planes of predictors seen through some of
the centres, and labels of several classes; boxes and balls of norm inf and 2 with features, domain and scale.
Ranges and verdicts, each asked in a batch and alone: a contradiction is two disjoint enclosures of one
quantity, or one verdict "safe" and one "unsafe". `--large`: models of 3,100 centres besides, half a minute
each. 20,000 queries take some five minutes of CPU time on one core, and the tests ask a few of them. Exit
status 1 at a contradiction, with the seed of its model.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import gpcert as gc
from helpers.batches import FAMILIES, asked_both_ways


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--large", type=int, default=1, help="models of 3,100 centres")
    parser.add_argument(
        "--nodes", type=int, default=14, help="boxes per question: a batch splits three times"
    )
    parser.add_argument("--family", choices=list(FAMILIES), help="one kind of models alone")
    options = parser.parse_args()
    families = list(FAMILIES)[:-1] if options.family is None else [options.family]
    warnings.simplefilter("error", gc.ContradictionWarning)  # a bound that was given up is one, too
    total, wrong, seed, start = Counter(), 0, options.seed, time.perf_counter()
    while total["verdicts"] + total["ranges"] < options.queries:
        turn = seed - options.seed
        name = "many centres" if turn < options.large else families[turn % len(families)]
        count, found = asked_both_ways(name, seed, options.nodes)
        for each in found:
            print(f"seed {seed}, {name}: {each}", flush=True)
        total, wrong, seed = total + count, wrong + len(found), seed + 1
        if turn % 20 == 19:
            print(dict(total), f"{wrong} contradictions", flush=True)
    asked = total["verdicts"] + total["ranges"]
    print(dict(total))
    print(f"{asked} queries, {wrong} contradictions, {time.perf_counter() - start:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
