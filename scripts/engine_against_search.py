"""Batches against single questions on many random models: nothing that one says may be denied by the other.

    python scripts/engine_against_search.py [--queries 20000] [--seed 0]

Random two-class models with one stationary kernel (definite and indefinite precisions, probit and logit,
data far from the origin), boxes and balls of norm inf and 2 with features, domain and scale; ranges and
verdicts, each asked in a batch and alone. Exit status 1 at a contradiction, with the seed of its model.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import gpcert as gc
from helpers.batches import contradictions, random_questions

_REGIONS = 32


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--nodes", type=int, default=14, help="boxes per question: a batch splits three times"
    )
    options = parser.parse_args()
    asked = roots = wrong = 0
    seed, start = options.seed, time.perf_counter()
    while asked < options.queries:
        rng = np.random.default_rng(seed)
        post, regions = random_questions(rng, _REGIONS)
        limits = {"max_nodes": options.nodes, "n_jobs": 1}
        tolerance = float(rng.choice([0.2, 0.02, 1e-3]))
        X = np.stack([region.centre for region in regions])
        ranges = gc.probability_range(post, regions, tolerance=tolerance, **limits)
        alone = [gc.probability_range(post, each, tolerance=tolerance, **limits) for each in regions]
        verdicts = gc.certify(post, X, regions, **limits)
        single = [gc.certify(post, x, each, **limits) for x, each in zip(X, regions, strict=True)]
        found = contradictions(list(ranges), alone) + contradictions(list(verdicts), single)
        for each in found:
            print(f"seed {seed}: {each}", flush=True)
        wrong += len(found)
        roots += sum(answer.nodes <= 2 for answer in ranges)
        asked += 2 * _REGIONS
        seed += 1
        if (seed - options.seed) % 20 == 0:
            print(f"{asked} queries, {roots} ranges at the root, {wrong} contradictions", flush=True)
    print(f"{asked} queries, {wrong} contradictions, {time.perf_counter() - start:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
