"""What ends an export does not cost the answer: Ctrl-C, a limit of time, nothing to prove."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gpcert as gc
from gpcert.cli import main
from gpcert.clock import OutOfTime, check, now, remaining, until
from gpcert.proofs import prover, record
from gpcert.proofs.file import ProofText
from gpcert.proofs.prover import Prover
from gpcert.proofs.record import Goal
from gpcert.results import Unproved, answer_from_dict
from gpcert.rounding import down
from helpers.exact import small_model
from judge.proofs import rejected

POST = small_model()
X = np.random.default_rng(3).standard_normal((3, 2))
BALLS = [gc.Ball(x, 0.2) for x in X]
WAYS = ("range", "verdict", "radius", "labels", "influences")


def numbers(answer: gc.ProbabilityRange | gc.Verdict | gc.CertifiedRadius) -> tuple[float, ...]:
    if isinstance(answer, gc.ProbabilityRange):
        return answer.lower, answer.upper
    if isinstance(answer, gc.Verdict):
        return answer.margin.lower, answer.margin.upper
    return answer.safe, answer.unsafe


@pytest.fixture
def known(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[float, float]:
    """What the question is answered: with a proof, since then boxes are halved."""
    return numbers(request.getfixturevalue("ask")(0, proof=tmp_path / "known.json"))


@pytest.fixture
def exports(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ctrl-C comes in every export."""
    begun: list[str] = []

    def broken(name: str) -> object:
        def prove(self: Prover, *asked: object) -> None:
            begun.append(name)
            raise KeyboardInterrupt

        return prove

    for name in WAYS:
        monkeypatch.setattr(Prover, name, broken(name))
    return begun


@pytest.mark.parametrize(
    "ask",
    [
        lambda which, **o: gc.probability_range(POST, BALLS[which], **o),
        lambda which, **o: gc.certify(POST, BALLS[which], **o),
        lambda which, **o: gc.certified_radius(POST, X[which], rtol=0.5, max_radius=0.5, **o),
    ],
)
def test_an_interrupted_export_leaves_the_answer(
    ask: object, known: tuple[float, float], exports: list[str], tmp_path: Path
) -> None:
    """Of one region it comes back without its proof; a batch ends there, as with Ctrl-C in a search."""
    answer = ask(0, proof=tmp_path / "p.json")
    assert numbers(answer) == known
    assert (answer.proof, answer.unproved) == (None, Unproved.INTERRUPTED)
    assert answer_from_dict(json.loads(json.dumps(answer.to_dict()))).unproved is Unproved.INTERRUPTED
    first, *others = ask(slice(0, 3), proof=tmp_path / "folder", n_jobs=1)
    assert (numbers(first), first.unproved) == (known, Unproved.INTERRUPTED)
    assert len(exports) == 2
    assert [str(getattr(other, "ended", getattr(other, "status", None))) for other in others] == [
        "interrupted"
    ] * 2


def test_evaluate_and_explain_keep_what_an_interrupted_export_was_about(
    exports: list[str], tmp_path: Path
) -> None:
    labels = POST.predict(X)
    whole = gc.evaluate(POST, X, labels, [0.05, 0.1])
    cut = gc.evaluate(POST, X, labels, [0.05, 0.1], proof=tmp_path, n_jobs=1)
    assert (cut.proof, cut.unproved, exports) == ((), Unproved.INTERRUPTED, ["labels"])
    assert cut.verdicts[0].tolist() == whole.verdicts[0].tolist()
    assert cut.labels.tolist()[1:] == [None, None]
    told = gc.explain(POST, X, 0.2, proof=tmp_path, n_jobs=1)
    full = gc.explain(POST, X, 0.2)
    assert (told.proof, told.unproved, exports[1:]) == ((), Unproved.INTERRUPTED, ["influences"])
    assert (told.lower[0].tolist(), told.lower[1].tolist()) == (full.lower[0].tolist(), [-2.0, -2.0])


def test_a_store_keeps_an_answer_whose_export_was_interrupted(exports: list[str], tmp_path: Path) -> None:
    options = {"store": tmp_path / "runs.db", "n_jobs": 1}
    first = gc.probability_range(POST, BALLS[0], proof=tmp_path / "p.json", **options)
    kept = gc.probability_range(POST, BALLS[0], **options)
    assert (kept.unproved, kept.seconds) == (None, first.seconds)


@pytest.mark.parametrize("verb", ["range", "certify", "radius", "explain"])
def test_the_command_line_writes_the_answer(verb: str, exports: list[str], tmp_path: Path) -> None:
    gc.save(POST, tmp_path / "model.safetensors")
    (tmp_path / "rows.csv").write_text("x0,x1\n0.1,0.2")
    files = [str(tmp_path / "model.safetensors"), str(tmp_path / "rows.csv")]
    size = [] if verb == "radius" else ["--radius", "0.1"]
    told = tmp_path / "told.json"
    main(
        [verb, *files, *size, "--quiet", "--proof", str(tmp_path / "proofs"), "-o", str(told), "--jobs", "1"]
    )
    (row,) = json.loads(told.read_text())["answers"]
    assert row["answer"]["unproved"] == "interrupted"
    page = tmp_path / "page.html"
    assert main(["report", str(told), "-o", str(page)]) == 0
    assert "A proof was asked for: interrupted." in page.read_text()


def test_whoever_hears_of_progress_may_end_an_export(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command line's first Ctrl-C, and workers, are told so."""
    monkeypatch.setattr(record, "_LOOK", 0.0)
    stop = False

    def working(self: ProofText, *asked: object) -> float:
        nonlocal stop
        check()
        stop = True
        check()
        raise AssertionError

    monkeypatch.setattr(ProofText, "at_least", working)
    answer = gc.probability_range(POST, BALLS[0], proof=tmp_path / "p.json", progress=lambda p: stop)
    assert answer.unproved is Unproved.INTERRUPTED
    assert answer.status is gc.Status.CONVERGED


def test_a_file_that_cannot_be_written_leaves_the_answers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(path: Path, content: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(prover, "write_whole", full)
    known = gc.probability_range(POST, BALLS)
    answers = gc.probability_range(POST, BALLS, proof=tmp_path, n_jobs=1)
    assert [numbers(answer) for answer in answers] == [numbers(answer) for answer in known]
    assert [answer.unproved for answer in answers] == [Unproved.UNWRITTEN] * 3


def test_weaker_claims_are_written_where_time_ends_an_attempt(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The answer says both; all that is written is proved."""
    prove, known = ProofText._prove, gc.probability_range(POST, BALLS[0])
    with_file = gc.certify(POST, X[0], BALLS[0], proof=tmp_path / "v.json")
    sharp = known.lower, known.upper, 0.5 + with_file.margin.lower

    def slow(self: ProofText, goal: Goal) -> object:
        if goal.value in sharp:
            raise OutOfTime
        return prove(self, goal)

    monkeypatch.setattr(ProofText, "_prove", slow)
    answer = gc.probability_range(POST, BALLS[0], proof=tmp_path / "p.json")
    assert answer.proof.lower < answer.lower <= answer.proof.lower + 1e-8
    assert answer.proof.upper - 1e-8 <= answer.upper < answer.proof.upper
    assert not answer.proof.exact
    verdict = gc.certify(POST, X[0], BALLS[0], proof=tmp_path / "v.json")
    assert verdict.status is gc.VerdictStatus.SAFE
    assert down(0.0) == verdict.proof.lower < verdict.margin.lower
    gc.save(POST, tmp_path / "model.safetensors")
    assert rejected(tmp_path / "model.safetensors", sorted(tmp_path.glob("*.json"))) == []


def test_an_export_without_time_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends that no attempt had time for: the points alone are claimed, and of what has none nothing."""
    for name in ("_SECONDS", "_TIMES", "_LEAST"):
        monkeypatch.setattr(record, name, 0.0)
    answer = gc.probability_range(POST, BALLS[0], proof=tmp_path / "p.json")
    assert (answer.proof.lower, answer.proof.upper, answer.proof.exact) == (0.0, 1.0, False)
    radius = gc.certified_radius(POST, X[0], max_radius=0.01, proof=tmp_path / "r.json")
    assert (radius.safe, radius.proof, radius.unproved) == (0.01, None, Unproved.TIME)


def test_a_clock_knows_what_is_left_and_who_wants_to_stop() -> None:
    with until(now() + 100.0, stop=lambda: True), until(now() + 50.0):
        assert remaining() <= 50.0
        with pytest.raises(KeyboardInterrupt):
            check()
    assert remaining() == np.inf
    check()
