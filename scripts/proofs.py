"""Proofs of random and of real queries: exported, checked by gpcert_check.

    python scripts/proofs.py                           # 1,000 random queries, then real ones
    python scripts/proofs.py --queries 100 --real 0    # numbers 0 to 99
    python scripts/proofs.py --first 4711 --queries 1 --real 0

Random query number i is `Query.pick(i)` of the soak (tests/judge/queries.py). A number counts as proved
exactly if the file proves the very double of the answer; "within" is how far the others are from it at most.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

# The judge lives with the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import gpcert as gc
from gpcert.results import CertifiedRadius, ProbabilityRange, ProofFile, Verdict
from judge.proofs import rejected
from judge.queries import Query

KINDS = ("probit", "logit", "probit", "scaled probit", "one-vs-rest probit", "logit", "one-vs-rest logit")
NORMS = (np.inf, np.inf, 2.0, 1.0)
QUESTIONS = ("probability_range", "certify", "certified_radius", "explain", "evaluate")


def main() -> int:
    """Export and check; 0 if every file was accepted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=1000, help="random ones (default: 1000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first (default: 0)")
    parser.add_argument("--real", type=int, default=40, help="test points per data set (default: 40)")
    options = parser.parse_args()
    totals, worst, start, bad = Counter[str](), 0.0, time.perf_counter(), 0
    queries = chain(random_ones(options.first, options.queries), real_ones(options.real))
    for name, post, answers, folder in queries:
        proofs = [proof for answer in answers for proof in _proofs(answer)]
        files = [Path(proof.path) for proof in proofs]
        model = Path(folder) / "model.safetensors"
        gc.save(post, model)
        wrong = rejected(model, files)
        for sentence in wrong:
            print(f"{name}: {sentence}", flush=True)
        bad += len(wrong)
        totals.update(queries=1, proofs=len(proofs), exact=sum(proof.exact for proof in proofs))
        totals.update(bytes=sum(file.stat().st_size for file in files))
        for answer in answers:
            numbers = list(_numbers(answer))
            totals.update(numbers=len(numbers), same=sum(a == b for a, b in numbers))
            gap = max((abs(a - b) for a, b in numbers), default=0.0)
            if gap > 0:
                print(f"{name}: a number is proved to within {gap:.2g}", flush=True)
            worst = max(worst, gap)
    share = totals["same"] / max(totals["numbers"], 1)
    print(f"{dict(totals)}")
    print(f"rejected {bad}; numbers proved exactly {share:.2%}; the others within {worst:.2g}; ", end="")
    print(f"files proving all they claim {totals['exact']} of {totals['proofs']}; ", end="")
    print(f"{time.perf_counter() - start:.0f} s")
    return 1 if bad else 0


def random_ones(first: int, count: int) -> Iterator[tuple[str, Any, list[Any], str]]:
    """Queries of the soak, about models and balls that can be proved."""
    for number in range(first, first + count):
        query = provable(number)
        with tempfile.TemporaryDirectory() as folder:
            try:
                post, answers = query.ask(Path(folder))
            except Exception:
                print(f"query {number}: {traceback.format_exc()}\n  {query}", flush=True)
                continue
            yield f"query {number} ({query.question}, {query.model.kind})", post, answers, folder


def provable(number: int) -> Query:
    """Query number `number` of the soak, changed where it could not be proved."""
    query = Query.pick(number, QUESTIONS[number % len(QUESTIONS)])
    kind, norm = KINDS[number % len(KINDS)], NORMS[number % len(NORMS)]
    model = replace(query.model, kind=kind, kernel="rbf", classes=min(query.model.classes, 4))
    return replace(query, model=model, norm=norm, batch="one")


def real_ones(count: int) -> Iterator[tuple[str, Any, list[Any], str]]:
    """Ranges and verdicts around test points of the data sets."""
    plan = {"synthetic2d": (1.0, [0.1, 0.5, 1.0]), "spam": (1.5, [0.05, 0.1]), "mnist38": (4.0, [0.05, 0.1])}
    for data_set, (lengthscale, radii) in plan.items() if count else ():
        data = gc.datasets.load(data_set)
        fit = gc.GPClassifier(gc.RBF(lengthscale, 2.0), max_evals=0).fit(
            data.X_train[:200], data.y_train[:200]
        )
        post, X = fit.posterior_, data.X_test[:count]
        for radius in radii:
            balls = [gc.Ball(x, radius) for x in X]
            with tempfile.TemporaryDirectory() as folder:
                ranges = gc.probability_range(post, balls, proof=folder, n_jobs=1)
                verdicts = gc.certify(post, X, balls, proof=folder, n_jobs=1)
                yield f"{data_set}, radius {radius}", post, [*ranges, *verdicts], folder


def _proofs(answer: Any) -> Iterator[ProofFile]:
    found = getattr(answer, "proof", None)
    yield from found if isinstance(found, tuple) else () if found is None else (found,)


def _numbers(answer: Any) -> Iterator[tuple[float, float]]:
    """(reported, proved) for each number that a file may prove; trivial ones do not count."""
    proof = getattr(answer, "proof", None)
    if isinstance(proof, tuple) or proof is None or proof.lower is None or proof.upper is None:
        return
    if isinstance(answer, ProbabilityRange):
        pairs = (answer.lower, proof.lower, 0.0), (answer.upper, proof.upper, 1.0)
    elif isinstance(answer, Verdict):
        pairs = ((answer.margin.lower, proof.lower, -answer.threshold),)
    elif isinstance(answer, CertifiedRadius):
        pairs = ((answer.safe, proof.lower, 0.0),)
    else:
        return
    yield from ((a, b) for a, b, trivial in pairs if a != trivial and np.isfinite(a))


if __name__ == "__main__":
    sys.exit(main())
