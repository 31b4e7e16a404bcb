"""What is proved of a search that was ended early, and why there is no file where nothing is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpcert as gc
from gpcert.proofs.file import ProofText
from gpcert.results import Unproved
from helpers.exact import small_model
from judge.proofs import rejected

POST = small_model()
X = np.random.default_rng(3).standard_normal((3, 2))
WIDE = [gc.Ball(x, 1.0) for x in X]
NARROW = {"tolerance": 1e-12, "n_jobs": 1}


def ask_range(which: Any, **options: Any) -> Any:
    return gc.probability_range(POST, WIDE[which], **NARROW, **options)


def ask_verdict(which: Any, **options: Any) -> Any:
    return gc.certify(POST, X[which], WIDE[which], threshold=0.3, **NARROW, **options)


def ask_radius(which: Any, **options: Any) -> Any:
    return gc.certified_radius(POST, X[which], rtol=1e-9, **NARROW, **options)


ASKED = pytest.mark.parametrize("ask", [ask_range, ask_verdict, ask_radius])


def stopping(after: int, how: str) -> Callable[[object], bool]:
    """True, or Ctrl-C, from the `after`-th report on."""
    told = 0

    def progress(p: object) -> bool:
        nonlocal told
        told += 1
        if told >= after and how == "Ctrl-C":
            raise KeyboardInterrupt
        return told >= after

    return progress


@ASKED
@pytest.mark.parametrize("how", ["True", "Ctrl-C"])
def test_what_an_interrupted_search_knows_is_proved(
    ask: Callable[..., Any], how: str, tmp_path: Path
) -> None:
    """The numbers of the answer, in a file that the checker accepts."""
    files = []
    for after in (1, 2, 4):
        answer = ask(0, progress=stopping(after, how), proof=tmp_path / f"{after}.json")
        if gc.Status.INTERRUPTED in (getattr(answer, "ended", None), getattr(answer, "status", None)):
            assert answer.proof.exact
            files.append(Path(answer.proof.path))
    assert files
    gc.save(POST, tmp_path / "model.safetensors")
    assert rejected(tmp_path / "model.safetensors", files) == []


@ASKED
def test_what_a_stopped_call_did_not_come_to_says_so(ask: Callable[..., Any], tmp_path: Path) -> None:
    first, *others = ask(slice(0, 3), progress=stopping(1, "True"), proof=tmp_path)
    assert first.unproved is None
    assert [(other.proof, other.unproved) for other in others] == [(None, Unproved.INTERRUPTED)] * 2
    assert [other.unproved for other in ask(slice(0, 3), progress=stopping(1, "True"))] == [None] * 3


def test_points_that_evaluate_and_explain_did_not_come_to_say_so(tmp_path: Path) -> None:
    stop = {"progress": stopping(1, "True"), "n_jobs": 1, "proof": tmp_path}
    assert gc.evaluate(POST, X, POST.predict(X), [0.5, 1.0], **stop).unproved is Unproved.INTERRUPTED
    assert gc.explain(POST, X, 0.5, **stop).unproved is Unproved.INTERRUPTED


@ASKED
@pytest.mark.parametrize(
    ("limit", "why"), [({"max_nodes": 0}, Unproved.NODES), ({"max_seconds": 1e-9}, Unproved.TIME)]
)
def test_a_search_that_ended_before_it_knew_anything_names_its_end(
    ask: Callable[..., Any],
    limit: dict[str, float],
    why: Unproved,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Points are known even then: without them nothing is left to claim."""
    for name in ("point", "margin_at"):
        monkeypatch.setattr(ProofText, name, lambda *asked: 1.0)
    answer = ask(0, **limit, proof=tmp_path / "p.json")
    assert (answer.proof, answer.unproved) == (None, why)


def test_what_the_simple_form_does_not_prove_is_told_apart_from_what_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProofText, "_prove", lambda self, goal: (-np.inf, None))
    radius = gc.certified_radius(POST, X[0], max_radius=0.01, proof=tmp_path / "r.json")
    assert (radius.safe, radius.proof, radius.unproved) == (0.01, None, Unproved.WEAK)


def test_a_tie_has_nothing_to_prove(tmp_path: Path) -> None:
    """No label to keep."""
    tied = gc.Posterior(
        centres=[[0.0]], weights=[0.0], precision=[[1.0]], kernel=gc.RBF(1.0, 1.0), likelihood=gc.Probit()
    )
    answer = gc.certify(tied, [0.5], gc.Ball([0.5], 0.1), proof=tmp_path / "p.json")
    assert (answer.proof, answer.unproved) == (None, Unproved.NOTHING)


def test_labels_on_balls_beyond_proof_are_claimed_nowhere(tmp_path: Path) -> None:
    """Radii are not known before the work: a file that the checker would reject is not written."""
    radius = 1e-200
    found = gc.evaluate(POST, X, POST.predict(X), [0.0, radius], proof=tmp_path)
    assert (found.proof, found.unproved) == ((), Unproved.WEAK)
    one = gc.certified_radius(POST, X[0], max_radius=radius, proof=tmp_path / "r.json")
    assert (one.safe, one.proof, one.unproved) == (radius, None, Unproved.WEAK)
