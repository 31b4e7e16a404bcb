"""Proof files beside a store: an answer comes with the file that proves it, or is asked again."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import gpcert as gc
from gpcert.cli import main
from helpers.exact import small_model

POST = small_model()
X = np.random.default_rng(3).standard_normal((3, 2))
BALLS = [gc.Ball(x, 0.2) for x in X]

QUESTIONS = {
    "range": lambda **o: list(gc.probability_range(POST, BALLS, **o)),
    "certify": lambda **o: list(gc.certify(POST, BALLS, **o)),
    "radius": lambda **o: list(gc.certified_radius(POST, X, rtol=0.5, max_radius=0.5, **o)),
    "explain": lambda **o: [gc.explain(POST, X, 0.2, **o)],
    "evaluate": lambda **o: [gc.evaluate(POST, X, POST.predict(X), [0.05, 0.1], **o)],
}


def files_of(answers):
    return [f for a in answers for f in (a.proof if isinstance(a.proof, tuple) else (a.proof,))]


def asked(ask, **options):
    """The answers, and whether anything was computed."""
    heard = []
    return ask(**options, progress=lambda p: heard.append(p) or False), bool(heard)


@pytest.mark.parametrize("kind", QUESTIONS)
def test_what_is_kept_is_served_with_its_proof_and_not_without(kind, tmp_path):
    ask, store, folder = QUESTIONS[kind], tmp_path / "runs.db", tmp_path / "proofs"
    bare, _ = asked(ask, store=store)
    assert all(a.proof is None for a in bare)
    proved, again = asked(ask, store=store, proof=folder)
    assert again  # what was kept had no proof
    files = files_of(proved)
    assert len(files) == len(X)
    assert {Path(f.path) for f in files} == set(folder.iterdir())
    served, computed = asked(ask, store=store, proof=folder)
    assert not computed
    assert files_of(served) == files
    # Nobody who did not ask for a proof is told of one.
    plain, computed = asked(ask, store=store)
    assert not computed
    assert all(a.proof is None for a in plain)
    # A file that is gone, or is another, is proved anew; so is one that lies elsewhere.
    one, other, *_ = (Path(f.path) for f in files)
    one.unlink()
    other.write_bytes(other.read_bytes() + b" ")
    mended, computed = asked(ask, store=store, proof=folder)
    assert computed
    assert [f.path for f in files_of(mended)] == [f.path for f in files]
    for file in files_of(mended):
        assert sha256(Path(file.path).read_bytes()).hexdigest() == file.digest
    elsewhere, computed = asked(ask, store=store, proof=tmp_path / "others")
    assert computed
    assert {Path(f.path).parent for f in files_of(elsewhere)} == {tmp_path / "others"}


def test_a_narrower_answer_without_a_proof_stays_and_the_proved_one_is_returned(tmp_path):
    store, place = tmp_path / "runs.db", tmp_path / "proof.json"
    narrow = gc.probability_range(POST, BALLS[0], tolerance=1e-6, store=store)
    proved = gc.probability_range(POST, BALLS[0], tolerance=0.05, store=store, proof=place)
    assert proved.proof is not None
    assert proved.tolerance == 0.05
    assert list(gc.Store(store).load()) == [narrow]


def test_on_the_command_line(tmp_path, capsys):
    gc.save(POST, tmp_path / "m.safetensors")
    np.savez(tmp_path / "points.npz", X=X)
    model, data, store, folder = (
        str(tmp_path / n) for n in ("m.safetensors", "points.npz", "c.db", "proofs")
    )
    ask = ["certify", model, data, "--radius", "0.1", "--jobs", "1", "--store", store, "--proof", folder]
    assert main(ask) == 0
    times = {f.name: f.stat().st_mtime_ns for f in Path(folder).iterdir()}
    assert len(times) == len(X)
    assert main(ask) == 0
    assert {f.name: f.stat().st_mtime_ns for f in Path(folder).iterdir()} == times
    assert {a.proof.path for a in gc.Store(store).load()} == {str(Path(folder) / name) for name in times}
