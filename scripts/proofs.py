"""Proofs of random and of real queries: exported, checked by gpcert_check.

    python scripts/proofs.py                                # 1,000 random queries, then real ones
    python scripts/proofs.py --jobs 16 --queries 2000 --seconds 500
    python scripts/proofs.py --first 4711 --queries 1 --real 0

Random query number i is `Query.pick(i)` of the soak (tests/judge/queries.py), changed by `provable` to one of
the family number i of `FAMILIES`, over and over, or of the one that --family names. A number
counts as proved exactly if the file proves the very double of the answer; "rest within" is how far the others
are from it at most. Ends of a range, margins, safe radii, ends of every Delta; of an evaluated point, and of
a softmax, whether the label is proved (1 or 0). The exit status is 1 if the checker rejects a file or a
question fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed, parallel_config

# The judge lives with the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import gpcert as gc
from gpcert.proofs.prover import check_provable
from gpcert.results import (
    CertifiedRadius,
    Evaluation,
    Explanation,
    ProbabilityRange,
    ProofFile,
    Unproved,
    Verdict,
    VerdictStatus,
)
from gpcert.rounding import down
from judge.proofs import FAMILIES, provable, rejected

#: Data set -> lengthscale, radii.
REAL = {"synthetic2d": (1.0, (0.1, 0.5, 1.0)), "spam": (1.5, (0.05, 0.1)), "mnist38": (4.0, (0.05, 0.1))}
#: Seconds after which a query is named.
SLOW = 20
#: What the rest of the numbers must be within.
WITHIN = 0.005


@dataclass
class Found:
    """What one query gave; `families`: the rows of the table that it counts in."""

    name: str = ""
    families: Sequence[str] = ()
    files: int = 0
    accepted: int = 0
    size: int = 0
    numbers: list[tuple[float, float]] = field(default_factory=list)  #: reported, proved
    sentences: list[str] = field(default_factory=list)  #: what is wrong
    seconds: float = 0.0


def main() -> int:
    """Export and check; 0 if every file was accepted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=1000, help="random ones (default: 1000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first (default: 0)")
    parser.add_argument(
        "--family", choices=sorted(set(FAMILIES)), help="of all random ones (default: in turn)"
    )
    parser.add_argument("--real", type=int, default=40, help="test points per data set (default: 40)")
    parser.add_argument("--jobs", type=int, default=cpu_count(), help="processes (default: all cores)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no query after this long")
    options = parser.parse_args()
    start, deadline = time.perf_counter(), time.time() + options.seconds
    real = [(*key, i) for i in range(options.real) for key in _real_keys()]
    numbers = range(options.first, options.first + options.queries)
    asked: list[Any] = [*real, *((i, options.family or FAMILIES[i % len(FAMILIES)]) for i in numbers)]
    with parallel_config("loky", inner_max_num_threads=1):
        answers = Parallel(options.jobs, return_as="generator_unordered")(
            delayed(proved)(each, deadline) for each in asked
        )
    found = []
    for each in answers:
        found.append(each)
        for sentence in each.sentences:
            print(sentence, flush=True)
        if each.seconds > SLOW:
            print(f"{each.name} took {each.seconds:.0f} s", flush=True)
    return summed_up([each for each in found if each.families], time.perf_counter() - start)


def proved(asked: Any, deadline: float) -> Found:
    """One query, exported and checked."""
    if time.time() > deadline:
        return Found()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            make = random_one if isinstance(asked[0], int) else real_one
            name, families, post, answers = make(asked, Path(folder))
        except Exception:
            return Found(str(asked), ("failed",), sentences=[f"query {asked}: {traceback.format_exc()}"])
        files = [Path(proof.path) for answer in answers for proof in _proofs(answer)]
        model = Path(folder) / "model.safetensors"
        gc.save(post, model)
        wrong = rejected(model, files)
        told = _numbers
        if isinstance(post.likelihood, gc.Softmax):
            told = _labels if _provable(post) else _nothing
        numbers = [pair for answer in answers for pair in told(answer, post.n_classes > 2)]
        sentences = [f"{name}: REJECTED {sentence}" for sentence in wrong]
        far = [(a, b) for a, b in numbers if a != b and not abs(a - b) <= WITHIN]
        sentences += [f"{name}: the answer is {a!r}, proved is {b!r}" for a, b in far]
        size = sum(file.stat().st_size for file in files)
    seconds = time.perf_counter() - begun
    return Found(name, families, len(files), len(files) - len(wrong), size, numbers, sentences, seconds)


def random_one(asked: tuple[int, str], folder: Path) -> tuple[str, list[str], Any, list[Any]]:
    """A query of the soak, about a model and balls that can be proved."""
    number, query = asked[0], provable(*asked)
    post, answers = query.ask(folder)
    name = f"query {number} ({query.question}, {query.model.kind})"
    balls = query.question in ("certified_radius", "evaluate") or query.shape == "ball"
    shape = "norm inf" if query.question == "explain" else f"norm {query.norm:g}" if balls else "boxes"
    precision = "definite" if query.model.precision in ("laplace", "zero", "spectrum") else "indefinite"
    families = [query.model.kind, query.model.kernel, query.question, shape, f"{precision} precision"]
    return (
        name,
        [
            *families,
            "ordinary" if query.model.units == query.model.size == query.model.push == 0 else "extreme",
        ],
        post,
        answers,
    )


def _real_keys() -> Iterator[tuple[str, float]]:
    for data_set, (_, radii) in REAL.items():
        yield from ((data_set, radius) for radius in radii)


def real_one(asked: tuple[str, float, int], folder: Path) -> tuple[str, list[str], Any, list[Any]]:
    """The range and the verdict around one test point of a data set."""
    data_set, radius, i = asked
    post, X = _fitted(data_set)
    ball = gc.Ball(X[i], radius)
    answers = [
        gc.probability_range(post, ball, proof=folder / "range.json"),
        gc.certify(post, X[i], ball, proof=folder / "verdict.json"),
    ]
    return f"{data_set}, point {i}, radius {radius}", [data_set], post, answers


def _fitted(data_set: str) -> tuple[Any, Any]:
    data, (lengthscale, _) = gc.datasets.load(data_set), REAL[data_set]
    model = gc.GPClassifier(gc.RBF(lengthscale, 2.0), max_evals=0)
    return model.fit(data.X_train[:200], data.y_train[:200]).posterior_, data.X_test


def _proofs(answer: Any) -> Iterator[ProofFile]:
    found = getattr(answer, "proof", None)
    yield from found if isinstance(found, tuple) else () if found is None else (found,)


def _asked(answer: Any) -> bool:
    """Whether a file could be asked for, and the work for it went to its end."""
    why = getattr(answer, "unproved", None)
    ended = why not in (None, Unproved.INTERRUPTED, Unproved.UNWRITTEN)
    return ended or getattr(answer, "proof", None) is not None


def _numbers(answer: Any, several: bool) -> Iterator[tuple[float, float]]:
    """(reported, proved) for each number that a file may prove, without a file the trivial one; where the
    reported one is trivial, it does not count.
    """
    proof = getattr(answer, "proof", None)
    if isinstance(proof, tuple):
        yield from _of_points(answer)
    if not _asked(answer) or isinstance(proof, tuple):
        return
    lower, upper = (None, None) if proof is None else (proof.lower, proof.upper)
    if isinstance(answer, ProbabilityRange):
        pairs = (answer.lower, lower, 0.0), (answer.upper, upper, 1.0)
    elif isinstance(answer, Verdict):
        pairs = ((answer.margin.lower, lower, -1.0 if several else -answer.threshold),)
    elif isinstance(answer, CertifiedRadius):
        pairs = ((answer.safe, lower, 0.0),)
    else:
        return
    yield from (
        (a, trivial if b is None else b) for a, b, trivial in pairs if a != trivial and np.isfinite(a)
    )


def _of_points(answer: Any) -> Iterator[tuple[float, float]]:
    """Of each point that has a file: for an evaluation 1 and whether its label is proved, for an explanation
    both ends of every Delta.
    """
    if isinstance(answer, Evaluation):
        yield from ((1.0, float(file.exact)) for file in answer.proof or ())
    if isinstance(answer, Explanation) and len(answer.proof or ()) == len(answer.balls):
        for i, (file, ball) in enumerate(zip(answer.proof or (), answer.balls, strict=True)):
            claims = json.loads(Path(file.path).read_text())["claims"]
            told = [claim for claim in claims if claim["kind"] == "balance"]
            for j, claim in zip(np.flatnonzero(ball.moving()), told, strict=True):
                for end in ("lower", "upper"):
                    yield float(getattr(answer, end)[i, j]), float.fromhex(claim[end])


def _labels(answer: Any, several: bool) -> Iterator[tuple[float, float]]:
    """The same of a softmax, whose files about labels say who wins, not by how much: of a safe one (1, 1)
    if that is proved, (1, 0) if not.
    """
    if isinstance(answer, ProbabilityRange):
        yield from _numbers(answer, several)
    proof = getattr(answer, "proof", None)
    if not _asked(answer):
        return
    if isinstance(answer, Verdict) and answer.status is VerdictStatus.SAFE:
        yield 1.0, float(proof is not None and down(0.0) <= (proof.lower or 0.0))
    if isinstance(answer, Evaluation):
        yield from _of_points(answer)
    if isinstance(answer, CertifiedRadius) and answer.safe > 0:
        yield answer.safe, 0.0 if proof is None else proof.lower or 0.0


def _provable(post: Any) -> bool:
    """Whether the model has proofs at all: a third of the models is of absurd magnitudes."""
    try:
        check_provable(post, [], "proof")
    except gc.InvalidInputError:
        return False
    return True


def _nothing(answer: Any, several: bool) -> Iterator[tuple[float, float]]:
    yield from ()


def summed_up(found: list[Found], seconds: float) -> int:
    """Print the table; 1 if a file was rejected or a question failed."""
    total = Counter(family for each in found for family in each.families)
    print(f"\n{'family':22s} {'queries':>7s} {'proofs':>7s} {'accepted':>8s} {'numbers':>8s} ", end="")
    print(f"{'exact':>7s} {'rest within':>11s} {'kB':>6s} {'s':>6s}")
    for family in [*sorted(total), "all"]:
        rows = [each for each in found if family == "all" or family in each.families]
        numbers = [pair for each in rows for pair in each.numbers]
        exact = sum(a == b for a, b in numbers) / max(len(numbers), 1)
        gap = max((abs(a - b) for a, b in numbers if a != b), default=0.0)
        files, accepted = sum(each.files for each in rows), sum(each.accepted for each in rows)
        size = sum(each.size for each in rows) / max(files, 1) / 1e3
        each_s = sum(each.seconds for each in rows) / max(len(rows), 1)
        print(f"{family:22s} {len(rows):7d} {files:7d} {accepted:8d} {len(numbers):8d} ", end="")
        print(f"{exact:7.2%} {gap:11.2g} {size:6.1f} {each_s:6.2f}")
    bad = total["failed"] + sum(each.files - each.accepted for each in found)
    print(f"proofs: {sum(each.files for each in found)} files, {bad} rejected or failed, {seconds:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
