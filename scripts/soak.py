"""The full containment run: random queries, each judged in ball arithmetic, none may be answered falsely.

    python scripts/soak.py                        # 10,000 queries, seeds 0 to 9,999
    python scripts/soak.py --seed 4200            # goes on where an earlier run was stopped
    python scripts/soak.py --seed 4711 --queries 1     # one query again
    python scripts/soak.py --several --queries 3000    # ranges and verdicts with 2 to 12 classes

Query number i is `Case.pick` of seed i (tests/exact.py), or `Setting.pick` (tests/several.py, judged by the
predictor and its stated error), so every line printed can be reproduced alone.
The last line sums up; the exit status is 1 if any query was answered falsely or failed, else 0.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

# The judge lives with the tests, which are not a package.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from exact import Case, falsehoods
from several import Setting, complaints


def main() -> int:
    """Ask the queries; 0 if every answer was true."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=10_000, help="how many (default: 10000)")
    parser.add_argument("--seed", type=int, default=0, help="number of the first query (default: 0)")
    parser.add_argument("--several", action="store_true", help="several classes instead of two")
    parser.add_argument("--every", type=int, default=250, help="queries between two lines of progress")
    options = parser.parse_args()
    warnings.simplefilter("error")
    start, asked, bad, kinds = time.perf_counter(), 0, 0, Counter[str]()
    try:
        for seed in range(options.seed, options.seed + options.queries):
            rng = np.random.default_rng(seed)
            case = Setting.pick(rng) if options.several else Case.pick(rng)
            found = judge(case)
            asked += 1
            kinds[case.kind if isinstance(case, Setting) else case.precision] += 1
            bad += bool(found)
            for complaint in found:
                print(f"seed {seed}: {complaint}\n  {case}", flush=True)
            if asked % options.every == 0:
                seconds = time.perf_counter() - start
                print(f"{asked} queries, {bad} false, {seconds:.0f} s; next seed {seed + 1}", flush=True)
    except KeyboardInterrupt:
        print(f"stopped; go on with --seed {options.seed + asked}")
    seconds = time.perf_counter() - start
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    print(
        f"soak: {asked} queries ({counts}) from seed {options.seed}: {bad} false or failed, {seconds:.0f} s"
    )
    return 1 if bad else 0


def judge(case: Case | Setting) -> list[str]:
    """What is false about the answer, or the error that came instead."""
    try:
        return complaints(case) if isinstance(case, Setting) else falsehoods(case)
    except KeyboardInterrupt:
        if isinstance(case, Setting) or case.stop != "interrupt":  # ours: the person at the keyboard
            raise
        return ["the interrupt was not caught"]
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return [f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"]


if __name__ == "__main__":
    sys.exit(main())
