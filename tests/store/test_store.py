"""A store keeps every answer as it comes; what it holds is not computed again, and is checked when read."""

from __future__ import annotations

import csv
import json
import sqlite3
from dataclasses import replace
from hashlib import sha256
from struct import pack

import numpy as np
import pytest

import gpcert as gc
from gpcert.cli import main
from gpcert.store import merge
from helpers.exact import small_model

POST = small_model()
X = np.random.default_rng(3).standard_normal((9, 2))
BALLS = [gc.Ball(x, 0.2) for x in X]
RADII = [0.05, 0.1]

QUESTIONS = {
    "ProbabilityRange": lambda **o: gc.probability_range(POST, BALLS, **o),
    "LatentRange": lambda **o: gc.latent_range(POST, BALLS, **o),
    "Verdict": lambda **o: gc.certify(POST, X, BALLS, **o),
    "CertifiedRadius": lambda **o: gc.certified_radius(POST, X, rtol=0.1, **o),
    "Explanation": lambda **o: [gc.explain(POST, X, 0.2, **o)],
    "Evaluation": lambda **o: [gc.evaluate(POST, X, POST.predict(X), RADII, **o)],
    "Attack": lambda **o: gc.attack(POST, BALLS, **o),
}


def told(answer):
    """All but the time it took."""
    return {name: value for name, value in answer.to_dict().items() if name != "seconds"}


def ranges(path, **options):
    return gc.probability_range(POST, BALLS, store=path, n_jobs=1, **options)


@pytest.mark.parametrize("kind", QUESTIONS)
def test_every_question_keeps_its_answers_and_finds_them(kind, tmp_path):
    path, ask = tmp_path / "runs.db", QUESTIONS[kind]
    plain, first, again = ask(), ask(store=path), ask(store=gc.Store(path))
    assert [told(a) for a in plain] == [told(a) for a in first] == [told(a) for a in again]
    table = gc.Store(path).answers()
    assert table["kind"] == [kind] * len(X)
    assert set(table["model"]) == {POST.digest}
    assert len(gc.Store(path).runs()) == 1  # the second computed nothing
    loaded = list(gc.Store(path).load())
    assert {a.model for a in loaded} == {POST.digest}
    if len(first) == len(X):
        assert first == again  # the seconds too: they are the first's
        assert set(loaded) == set(first)


def test_robustness_keeps_the_ranges_it_is_made_of(tmp_path):
    path = tmp_path / "runs.db"
    first = gc.robustness(POST, BALLS, store=path)
    assert gc.Store(path).answers()["kind"] == ["ProbabilityRange"] * len(X)
    assert gc.robustness(POST, BALLS, store=path) == first


def test_an_answer_serves_questions_that_are_less_sharp(tmp_path):
    path = tmp_path / "runs.db"
    sharp = ranges(path, tolerance=0.001)
    assert ranges(path, tolerance=0.05) == sharp
    assert ranges(path, tolerance=0.001, max_seconds=1.0, max_nodes=7) == sharp


def test_a_limit_that_was_met_is_asked_again_without_and_one_that_was_not_is_not(tmp_path):
    path = tmp_path / "runs.db"
    limited = ranges(path, tolerance=1e-4, max_nodes=3)
    open_ = [a.status is gc.Status.NODES for a in limited]
    assert any(open_)
    assert ranges(path, tolerance=1e-4, max_nodes=2) == limited
    free = ranges(path, tolerance=1e-4)
    assert all(a.status is gc.Status.CONVERGED for a in free)
    assert [a == b for a, b in zip(free, limited, strict=True)] == [not was for was in open_]
    assert [told(a) for a in free] == [
        told(b) if was else told(a)
        for a, b, was in zip(free, gc.probability_range(POST, BALLS, tolerance=1e-4), open_, strict=True)
    ]


def test_the_better_answer_stays_whichever_comes_first(tmp_path):
    path = tmp_path / "runs.db"
    good, bad = gc.probability_range(POST, BALLS[0], tolerance=1e-4), None
    bad = replace(
        good,
        min=gc.Enclosure(0.0, good.min.upper),
        status=gc.Status.TIME,
        about=replace(good.about, settings=replace(good.settings, tolerance=1e-6, max_seconds=9.0)),
    )
    for order in ((good, bad), (bad, good)):
        store = gc.Store(tmp_path / f"{order[0] is good}.db")
        store.add_model(POST)
        for answer in order:
            store.put([answer])
        assert list(store.load()) == [good]
    # Once it was searched for in vain at 1e-6 for 9 s, the same is not tried again.
    late = gc.probability_range(POST, BALLS[0], tolerance=1e-6, max_seconds=9.0, store=tmp_path / "True.db")
    assert late != good  # of the two settings neither is sharper than the other: it was tried
    assert not path.exists()


def test_parts_of_a_block_are_known_and_the_others_asked(tmp_path):
    path = tmp_path / "runs.db"
    some = gc.certified_radius(POST, X[[7, 2, 5]], rtol=0.1, store=path)
    whole = gc.certified_radius(POST, X, rtol=0.1, store=path)
    assert [whole[7], whole[2], whole[5]] == some
    assert whole == gc.certified_radius(POST, X, rtol=0.1, store=path)
    for ours, plain in zip(whole, gc.certified_radius(POST, X, rtol=0.1), strict=True):
        np.testing.assert_allclose([ours.safe, ours.unsafe], [plain.safe, plain.unsafe], rtol=0.1)


def test_what_was_interrupted_is_not_kept(tmp_path):
    path, seen = tmp_path / "runs.db", []

    def stop(p):
        seen.append(p.done)
        return p.done == 4

    first = ranges(path, progress=stop)
    assert [a.status is gc.Status.INTERRUPTED for a in first].count(False) == len(gc.Store(path).answers())
    counted = []
    again = ranges(path, progress=lambda p: counted.append((p.done, p.total)) or False)
    assert counted[0][0] >= 4
    assert {total for _, total in counted} == {len(BALLS)}
    assert [told(a) for a in again] == [told(a) for a in gc.probability_range(POST, BALLS)]


def test_processes_keep_through_the_client(tmp_path):
    path = tmp_path / "runs.db"
    first = gc.probability_range(POST, BALLS, n_jobs=2, store=path)
    assert [told(a) for a in first] == [told(a) for a in gc.probability_range(POST, BALLS)]
    assert list(gc.Store(path).load()) != []
    assert {json.dumps(told(a)) for a in gc.Store(path).load()} == {json.dumps(told(a)) for a in first}


def test_the_model_comes_back(tmp_path):
    path = tmp_path / "runs.db"
    ranges(path)
    store = gc.Store(path)
    (row,) = store.models()
    post = store.model(row["digest"][:10])
    assert post.digest == POST.digest
    assert row["answers"] == len(X)
    assert gc.probability_range(post, BALLS[0], store=path) == next(iter(store.load()))
    with pytest.raises(gc.InvalidInputError, match=r"model must be the digest of one model in .*, got 'zz'"):
        store.model("zz")


def test_a_model_that_cannot_be_saved_cannot_be_kept(tmp_path):
    def step(f):
        return np.clip(0.5 + np.asarray(f), 0.0, 1.0)

    link = gc.Link(step, lambda low, high: (step(low), step(high)))
    post = gc.Posterior(POST.centres, POST.weights, POST.precision, kernel=POST.kernel, likelihood=link)
    with pytest.raises(gc.StoreError, match="a store must hold the model, which cannot be saved"):
        gc.Store(tmp_path / "runs.db").add_model(post)


def test_tables_go_elsewhere(tmp_path):
    path = tmp_path / "runs.db"
    ranges(path)
    table = gc.Store(path).answers(kind="ProbabilityRange", status="converged", model=POST.digest)
    (row,) = gc.Store(path).counts()
    assert (row["kind"], row["status"], row["count"]) == ("ProbabilityRange", "converged", len(X))
    table.save(tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[0].split(",") == list(table.columns)
    assert [float(line.split(",")[4]) for line in lines[1:]] == table["lower"]  # exactly
    assert len(table.to_pandas()) == len(X)
    assert len(gc.Store(path).answers(kind="Verdict")) == 0
    with pytest.raises(gc.InvalidInputError, match=r"path must end in .csv, .parquet or .xlsx, got 't.txt'"):
        table.save("t.txt")


def test_stores_are_put_together(tmp_path):
    one, two = gc.Store(tmp_path / "1.db"), gc.Store(tmp_path / "2.db")
    gc.probability_range(POST, BALLS[:5], store=one, tolerance=0.1)
    gc.probability_range(POST, BALLS[3:], store=two, tolerance=1e-3)
    assert merge(one, two) == (6, 0)
    found = gc.probability_range(POST, BALLS[3:], tolerance=1e-3, store=one)
    assert found == list(two.load())
    assert len(one.answers()) == len(X)
    before, after = one.compact()
    assert after <= before


def changed(path, sql, *given):
    with sqlite3.connect(path) as connection:
        connection.execute(sql, given)
    connection.close()


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("PRAGMA user_version = 1", "must be a store of version 2, got 1: of another gpcert"),
        ("PRAGMA application_id = 7", "must be a gpcert store, got another database"),
        ("CREATE TRIGGER t AFTER INSERT ON answers BEGIN DELETE FROM models; END", "no others, got others"),
        ("CREATE VIEW v AS SELECT * FROM answers", "and no others, got others"),
        ("UPDATE contents SET data = replace(data, '0.', '0.1')", "is damaged: it is not what was written"),
        ("UPDATE contents SET data = x'80049500'", "is damaged: it is not what was written"),
        ("UPDATE contents SET data = (SELECT data FROM contents ORDER BY id DESC LIMIT 1), sha256 = "
         "(SELECT sha256 FROM contents ORDER BY id DESC LIMIT 1)", "it is not what was written"),
        ("UPDATE OR REPLACE answers SET key = (SELECT key FROM answers WHERE id = 2) WHERE id = 1",
         "answer 1 is damaged: it is not what was written"),
        ("UPDATE answers SET lower = lower + 1e-9", "it is not what was written"),
        ("UPDATE answers SET status = 'time limit'", "it is not what was written"),
        ("UPDATE answers SET tolerance = 0", "it is not what was written"),
        ("UPDATE answers SET max_seconds = 9", "it is not what was written"),
        ("UPDATE answers SET max_nodes = 'many'", "it is not what was written"),
    ],
)  # fmt: skip
def test_what_is_not_a_store_of_ours_is_one_sentence(tmp_path, sql, told):
    path = tmp_path / "runs.db"
    ranges(path)
    changed(path, sql)
    before = path.read_bytes()
    with pytest.raises(gc.StoreError, match=told):
        ranges(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"max": {"lower": ', '"max": {"lower": -', r"max must be lower and upper end in \[0, 1\]"),
        ('"nodes": ', '"nodes": -', "nodes must be a whole number"),
        ('"kind": "Ball"', '"kind": "os.system"', "region.kind must be one of Box, Ball"),
        ('"schema"', '"scheme"', "schema must be 1, got nothing"),
        ('"seconds": ', '"seconds": 1', "tables show what it does not say"),
    ],
)
def test_what_no_answer_can_be_is_refused_however_well_it_is_signed(tmp_path, old, new, said):
    path = tmp_path / "runs.db"
    (answer, *_) = ranges(path)
    data = json.dumps(answer.to_dict()).replace(old, new)
    names = "kind, status, lower, upper, width, seconds, tolerance, max_seconds, max_nodes"
    with sqlite3.connect(path) as connection:
        row = connection.execute(f"SELECT key, {names} FROM answers WHERE id = 1").fetchone()
        key, kind, status, *numbers = row
    connection.close()
    hashed = sha256(data.encode()).hexdigest()
    told = f"{hashed} {kind} {status} {answer.model} ".encode() + key + pack("<7d", *numbers)
    changed(path, "UPDATE contents SET data = ?, sha256 = ? WHERE id = 1", data, sha256(told).hexdigest())
    with pytest.raises(gc.StoreError, match=said):
        ranges(path)


def test_what_a_store_can_be(tmp_path):
    (tmp_path / "text").write_text("no database at all, " * 100)
    with pytest.raises(gc.StoreError, match="must be a gpcert store, got a file that is not one"):
        ranges(tmp_path / "text")
    with pytest.raises(gc.StoreError, match="store must be a file that exists, got"):
        ranges(tmp_path)
    with pytest.raises(gc.StoreError, match="store must be in a folder that exists, got"):
        ranges(tmp_path / "none" / "runs.db")
    with pytest.raises(gc.StoreError, match="store must be a file that exists, got"):
        gc.Store(tmp_path / "none.db").answers()
    with pytest.raises(gc.InvalidInputError, match="store must be a path or a Store, got 7"):
        ranges(7)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE answers SET status = 'converged', upper = 0.25 WHERE id = 2",
        "UPDATE answers SET kind = 'Verdict' WHERE id = 2",
        "UPDATE answers SET seconds = 1e9 WHERE id = 2",
        "UPDATE answers SET tolerance = 0, max_nodes = 9e999 WHERE id = 2",
        "UPDATE answers SET model = 77 WHERE id = 2",
        "UPDATE contents SET data = replace(data, '0.', '0.1') WHERE id = 2",
        "DELETE FROM contents WHERE id = 2",
    ],
)
def test_tables_tell_what_was_written(tmp_path, sql):
    path = tmp_path / "runs.db"
    ranges(path)
    store = gc.Store(path)
    assert len(store.answers()) == sum(store.counts()["count"]) == len(X)
    store.close()
    changed(path, sql)
    for table in (store.answers, store.counts):
        with pytest.raises(gc.GpcertError, match="answer 2 is damaged"):
            table()


def test_a_store_may_be_closed_before_all_is_read(tmp_path):
    """Whoever stops at a damaged answer closes the store first, and gives the rest of the rows up later."""
    path = tmp_path / "runs.db"
    ranges(path)
    store = gc.Store(path)
    answers = store.reading("SELECT id FROM answers ORDER BY id")
    assert next(answers) == (1,)
    store.close()
    answers.close()
    assert len(store.answers()) == len(X)


def test_exports_name_the_rows(tmp_path):
    """Those of Python, of the command line and of a campaign; the first of two; a merge takes them along."""
    path, other, table = tmp_path / "runs.db", tmp_path / "all.db", tmp_path / "t.csv"

    def names(store):
        assert main(["store", "export", str(store), "-o", str(table)]) == 0
        with table.open(newline="", encoding="utf-8") as lines:
            return [(row["kind"], row.get("row")) for row in csv.DictReader(lines)]

    frame = {"x0": X[:3, 0], "x1": X[:3, 1], "who": ["Ann", "=1+1", "Cy"]}
    gc.certify(POST, gc.balls(X[:1], 0.2), store=path)  # nobody has a name
    assert names(path) == [("Verdict", None)]
    gc.certify(POST, gc.balls(frame, 0.2, id="who"), store=path)
    told = [("Verdict", "Ann"), ("Verdict", "'=1+1"), ("Verdict", "Cy")]
    assert names(path) == told
    gc.certify(POST, gc.balls(frame | {"who": ["x", "y", "z"]}, 0.2, id="who"), store=path)
    assert names(path) == told
    merge(gc.Store(other), gc.Store(path))
    assert names(other) == told
    data, model = tmp_path / "d.csv", tmp_path / "m.safetensors"
    gc.save(POST, model)
    rows = [f"{who},{float(a)!r},{float(b)!r}" for who, (a, b) in zip("pqr", X[:3], strict=True)]
    data.write_text("\n".join(["who,x0,x1", *rows]) + "\n", encoding="utf-8")
    asked = ["range", str(model), str(data), "--id", "who", "--radius", "0.1", "--jobs", "1", "--quiet"]
    assert main([*asked, "--store", str(path)]) == 0
    assert names(path) == told + [("ProbabilityRange", who) for who in "pqr"]
    file = tmp_path / "c.toml"
    file.write_text(
        'store = "c.db"\njobs = 1\n[models]\nm = "m.safetensors"\n[data]\nfile = "d.csv"\nid = "who"\n'
        '[[questions]]\nask = "explain"\nradii = [0.1]\n',
        encoding="utf-8",
    )
    assert main(["campaign", "run", str(file), "--quiet"]) == 0
    assert names(tmp_path / "c.db") == [("Explanation", who) for who in "pqr" for _ in range(2)]


def test_exports_say_who_was_asked_and_can_be_reported(tmp_path):
    path, table, file = tmp_path / "runs.db", tmp_path / "t.csv", tmp_path / "a.json"
    balls = gc.balls(X[:3], 0.2, norm=2, features=[1], scale=[1.0, 3.0])
    found = gc.certify(POST, balls, threshold=0.6, store=path)
    gc.probability_range(POST, BALLS[:2], store=path)
    assert main(["store", "export", str(path), "-o", str(table)]) == 0
    with table.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["kind"] for row in rows] == ["Verdict"] * 3 + ["ProbabilityRange"] * 2
    assert [json.loads(row["x"]) for row in rows] == X[:3].tolist() + X[:2].tolist()
    told = [tuple(row[name] for name in ("norm", "radius", "features", "scale", "threshold")) for row in rows]
    assert told == [("2", "0.2", "[1]", "[1.0, 3.0]", "0.6")] * 3 + [("inf", "0.2", "", "", "")] * 2
    assert [row["label"] for row in rows[:3]] == [str(verdict.label) for verdict in found]
    assert {row["model"] for row in rows} == {POST.digest}
    assert main(["store", "export", str(path), "-o", str(file)]) == 0
    for answers, name in ((gc.load_answers(file), "all"), (gc.load_answers(file)[:1], "one")):
        gc.report(answers, tmp_path / f"{name}.html")
        page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        assert POST.digest[:12] in page
        assert "proved" in page
    gc.save_answers(file, found[0])
    gc.report(gc.load_answers(file), tmp_path / "single.html")
    with pytest.raises(gc.InvalidInputError, match="answers must be at least one, got none"):
        gc.report(gc.Answers([]), tmp_path / "none.html")
