"""The work of a checker for one file: a softmax claims less where its integrals would cost too much."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpcert as gc
from gpcert.bounds.factory import BoundFactory
from gpcert.proofs import softmax
from gpcert.proofs.softmax import near
from judge.proofs import CHECKER

#: Checks the file with a limit, says what it spent.
LIMITED = """
import sys, gpcert_check.softmax as softmax
from gpcert_check.claims import Checker
softmax.MOST_TERMS = int(sys.argv[1])
checker = Checker(sys.argv[2])
print(len(checker.check(sys.argv[3])) - 1, checker.subject.spent)
"""


def spent(most: int, model: Path, file: Path) -> tuple[int, int]:
    """Claims that the checker accepts and terms that it sums, with a limit of these; a rejection fails."""
    outside = {"PYTHONPATH": str(CHECKER), "PATH": os.environ.get("PATH", "")}
    command = [sys.executable, "-c", LIMITED, str(most), str(model), str(file)]
    run = subprocess.run(command, capture_output=True, text=True, env=outside, check=True)
    claims, terms = map(int, run.stdout.split())
    return claims, terms


def silent(extra: int) -> gc.Posterior:
    """0 < E (f_0 - f_1) < s_2 at 0, where only an integral tells who wins; more centres are far away."""
    X = np.zeros((1 + extra, 2))
    X[1:] = 50.0 + 9.0 * np.arange(extra)[:, None]
    R = np.array([0.6, 0.01, 0.01])[:, None, None] * np.eye(1 + extra)
    weights = np.outer(np.eye(1 + extra)[0], [0.4, 0.0, -0.1])
    return gc.Posterior(X, weights, R, kernel=gc.RBF(1.0, 1.5), likelihood="softmax")


@pytest.mark.parametrize("extra", [0, 60])  # the sums cost most, or the products besides
def test_a_file_asks_for_no_more_work_than_a_checker_does(
    extra: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Supports of a ball of norm 0 share the terms of a file; without enough of them it claims
    less, and what it claims is accepted.
    """
    post, x = silent(extra), np.zeros(2)
    model, file = tmp_path / "model.safetensors", tmp_path / "proof.json"
    gc.save(post, model)
    balls = gc.Ball(x, 1, norm=0, domain=(x - 0.05, x + 0.05)), gc.Ball(x, 0.05)
    for ball in balls:
        assert gc.certify(post, x, ball, proof=file).proof is not None
        claims, terms = spent(10**9, model, file)
        assert claims == 1
        proved = []
        for limit in (terms - 1, 2 * terms, 10 * terms):
            file.unlink(missing_ok=True)
            monkeypatch.setattr(softmax, "_TERMS", limit)
            verdict = gc.certify(post, x, ball, proof=file)
            assert verdict.status is gc.VerdictStatus.SAFE
            proved.append(verdict.proof is not None)
            assert verdict.proof is None or spent(limit, model, file)[0] == 1
        assert not proved[0]
        assert proved[-1]
        monkeypatch.undo()


def test_a_point_takes_of_the_same_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    post, x = silent(0), np.zeros(2)
    around = near(post, x, 0.0)
    assert around is not None
    monkeypatch.setattr(softmax, "_TERMS", 2 * around.most - 1)
    labels = softmax.Labels(post, BoundFactory(post))
    assert [labels.decided(1, -1, x) for _ in range(2)] == [True, False]
