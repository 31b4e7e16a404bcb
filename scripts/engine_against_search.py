"""Batches against single questions on many random models: nothing that one says may be denied by the other.

    python scripts/engine_against_search.py [--queries 20000] [--seed 0] [--large 1] [--family NAME]

Everything that the engine knows, in turns: two classes (probit, logit, with a floor, scikit-learn's formula;
RBF, Matern, rational quadratic, one lengthscale or one per feature; definite and indefinite precisions, data
far from the origin), more than 32 moving features with near ties, planes of predictors seen through some of
the centres, and labels of several classes; boxes and balls of norm inf and 2 with features, domain and scale.
Ranges and verdicts, each asked in a batch and alone: a contradiction is two disjoint enclosures of one
quantity, or one verdict "safe" and one "unsafe". `--large`: models of 3,100 centres besides, half a minute
each. 20,000 queries take some five minutes of CPU time on one core.
Exit status 1 at a contradiction, with the seed of its model.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import gpcert as gc
from gpcert.engine.facts import knows
from gpcert.engine.labels import knows_labels
from helpers import batches

#: Families of models, in the order of their turns, and the regions of one model.
_FAMILIES = {
    "two classes": (batches.random_questions, 32),
    "many features": (batches.many_features, 32),
    "several classes": (batches.several_classes, 32),
    "two classes again": (batches.random_questions, 32),
    "predictors": (batches.predicted, 32),
}


def _asked(post: gc.Posterior, regions: list, rng: np.random.Generator, nodes: int) -> tuple[Counter, list]:
    """How much was asked of one model, and what was contradicted."""
    limits = {"max_nodes": nodes, "n_jobs": 1}
    X, count = np.stack([region.centre for region in regions]), Counter()
    threshold = 0.5 if post.n_classes > 2 else float(rng.choice([0.5, 0.5, 0.8]))
    verdicts = list(gc.certify(post, X, regions, threshold, **limits))
    single = [gc.certify(post, x, each, threshold, **limits) for x, each in zip(X, regions, strict=True)]
    found = batches.contradictions(verdicts, single)
    count["verdicts"] = len(regions)
    count["decided in both"] = sum(
        "unknown" not in (str(a.status), str(b.status)) for a, b in zip(verdicts, single, strict=True)
    )
    if post.n_classes == 2:
        tolerance = float(rng.choice([0.2, 0.02, 1e-3]))
        ranges = list(gc.probability_range(post, regions, tolerance=tolerance, **limits))
        alone = [gc.probability_range(post, each, tolerance=tolerance, **limits) for each in regions]
        found += batches.contradictions(ranges, alone)
        count["ranges"] = len(regions)
        count["ranges at the root"] = sum(answer.nodes <= 2 for answer in ranges)
    return count, found


def _one(name: str, seed: int, nodes: int) -> tuple[Counter, list]:
    """One model of a family, if the engine knows it."""
    rng = np.random.default_rng(seed)
    make, regions = _FAMILIES.get(name, (batches.large, 16))
    with batches.as_if_large() if name == "predictors" else nullcontext():
        post, some = make(rng, regions)
        if not (knows_labels if post.n_classes > 2 else knows)(post):
            return Counter({"models left alone": 1}), []
        count, found = _asked(post, some, rng, nodes)
    return count + Counter(
        {"models": 1, name.removesuffix(" again"): count["verdicts"] + count["ranges"]}
    ), found


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--large", type=int, default=1, help="models of 3,100 centres")
    parser.add_argument(
        "--nodes", type=int, default=14, help="boxes per question: a batch splits three times"
    )
    parser.add_argument("--family", choices=list(_FAMILIES), help="one kind of models alone")
    options = parser.parse_args()
    families = list(_FAMILIES) if options.family is None else [options.family]
    warnings.simplefilter("error", gc.ContradictionWarning)  # a bound that was given up is one, too
    total, wrong, seed, start = Counter(), 0, options.seed, time.perf_counter()
    while total["verdicts"] + total["ranges"] < options.queries:
        turn = seed - options.seed
        name = "many centres" if turn < options.large else families[turn % len(families)]
        count, found = _one(name, seed, options.nodes)
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
