"""Queries that can be proved, and what the independent checker says of proof files.

The checker lives in checker/ and shares no line with gpcert.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from judge.models import TWO
from judge.queries import Query

KINDS = ("probit", "logit", "probit", "scaled probit", "one-vs-rest probit", "logit", "one-vs-rest logit")
NORMS = (np.inf, np.inf, 2.0, 1.0)
QUESTIONS = ("probability_range", "certify", "certified_radius", "explain", "evaluate")
#: About labels alone.
LABELS = ("certify", "certified_radius", "evaluate")
#: What a random query may be about, by its number: two classes and one-vs-rest with the Gaussian kernel,
#: labels of a softmax, two classes with another kernel, balls of norm 0, links as libraries have them,
#: ranges of a softmax. Nine, so that families, kinds and norms meet in all combinations.
FAMILIES = ("core", "core", "core", "softmax", "kernel", "kernel", "norm 0", "formula", "shares")
FORMULAS = ("five erf", "one-vs-rest erf", "floored", "five erf", "floored logit")
KERNELS = ("matern52", "matern32", "rational quadratic", "matern12")
CHECKER = Path(__file__).resolve().parents[2] / "checker"


def rejected(model: Path, files: list[Path]) -> list[str]:
    """The files that are not accepted, each with the checker's sentence; it runs without gpcert."""
    if not files:
        return []
    outside = {"PYTHONPATH": str(CHECKER), "PATH": os.environ.get("PATH", "")}
    command = [sys.executable, "-m", "gpcert_check", str(model), *map(str, files)]
    run = subprocess.run(command, capture_output=True, text=True, env=outside, cwd=model.parent)
    lines = run.stdout.splitlines()
    proved = {line.split(": PROVED")[0] for line in lines if ": PROVED" in line}
    said = {str(file): [line for line in lines if line.startswith(str(file))] for file in files}
    wrong = [
        f"{file.name}: {said[str(file)] or run.stderr[-300:]}" for file in files if str(file) not in proved
    ]
    return wrong if wrong or run.returncode == 0 else [f"exit status {run.returncode}: {run.stderr[-300:]}"]


def provable(number: int, family: str = "core", turn: int | None = None) -> Query:
    """Query number `number` of the soak, changed where it could not be proved, to one of a family.

    `turn`: which question, and whether of absurd magnitudes; by default so that every family has all.
    """
    questions = LABELS if family == "softmax" else ("probability_range",) if family == "shares" else QUESTIONS
    turn = number // len(FAMILIES) if turn is None else turn
    query = Query.pick(number, questions[turn % len(questions)])
    kind, norm = KINDS[number % len(KINDS)], NORMS[number % len(NORMS)]
    model = replace(query.model, kind=kind, kernel="rbf", classes=min(query.model.classes, 4))
    if family in ("softmax", "shares"):
        kind = ("softmax", "independent")[number % 2]
        few = {"n": min(model.n, 8), "d": min(model.d, 8), "classes": max(model.classes, 3)}
        model = replace(model, kind=kind, **few)
    if family == "kernel":
        model = replace(model, kind=KINDS[turn // 5 % 4], kernel=KERNELS[number // 2 % len(KERNELS)])
    if family == "formula":
        kind = FORMULAS[turn // len(QUESTIONS) % len(FORMULAS)]
        other = kind in TWO and turn % 4 == 0
        model = replace(model, kind=kind, kernel=KERNELS[turn // 4 % len(KERNELS)] if other else "rbf")
    if family == "norm 0":  # of up to five features, so that sets of them are few
        norm, model = 0.0, replace(model, d=min(model.d, 5))
        query = replace(query, shape="ball")
    if turn % 3 or family in (
        "softmax",
        "shares",
    ):  # of absurd magnitudes a third is enough: many are refused
        model = replace(model, units=0, size=0, push=0)
    return replace(query, model=model, norm=norm, batch="one")
