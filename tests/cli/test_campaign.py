"""Campaigns: a file that is checked, parts that are kept, a status from anywhere, budgets, kills."""

from __future__ import annotations

import csv
import signal
import sqlite3
import time
from fractions import Fraction
from hashlib import sha256
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

import gpcert as gc
from gpcert.cli import main
from gpcert.cli.campaign.file import read_campaign
from gpcert.cli.campaign.standing import lines
from gpcert.numbers import percent
from helpers.exact import small_model

POST = small_model(training={"centres": "training data"})
X = np.random.default_rng(4).standard_normal((6, 2))
Y = POST.predict(X)
Y[0] = 1 - Y[0]  # one label is wrong
FILE = """
store = "runs.db"
jobs = 1
[models]
m = "m.safetensors"
[data]
file = "points.npz"
[[questions]]
ask = "certify"
radii = [0.05, 0.3]
norms = ["inf", 2]
[[questions]]
ask = "evaluate"
radii = [0.05, 0.3]
[[questions]]
ask = "radius"
rtol = 0.1
[[questions]]
ask = "range"
radii = [0.1]
features = [["x0"], ["x1"]]
[[questions]]
ask = "explain"
radii = [0.1]
"""


@pytest.fixture
def folder(tmp_path):
    gc.save(POST, tmp_path / "m.safetensors")
    np.savez(tmp_path / "points.npz", X=X, y=Y)
    return tmp_path


def write(folder, text, name="c.toml"):
    (folder / name).write_text(text)
    return folder / name


def run(path, action="run", *options):
    return main(["campaign", action, str(path), *options])


def stored(path):
    return {a.digest: a for a in gc.Store(path).load()}


def test_a_campaign_asks_what_its_file_says(folder, capsys):
    path = write(folder, FILE)
    assert run(path, "status") == 2
    assert "store must be a file that exists" in capsys.readouterr().err
    assert run(path) == 0
    told = capsys.readouterr().out
    assert told.count("6/6") == 4 + 2 + 1 + 2 + 1
    assert "54 of 54 answered" in told
    store = gc.Store(folder / "runs.db")
    counts = {row["kind"]: 0 for row in store.counts()}
    for row in store.counts():
        counts[row["kind"]] += row["count"]
    assert counts == {
        "Verdict": 24, "Evaluation": 6, "CertifiedRadius": 6, "ProbabilityRange": 12, "Explanation": 6
    }  # fmt: skip
    assert run(path, "status") == 0
    assert capsys.readouterr().out.splitlines()[:-1] == told.splitlines()[:-1]
    assert run(path, "report", "-o", str(folder / "t.csv")) == 0
    with open(folder / "t.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == (4 + 2 + 1 + 2 + 2) * len(X)  # an explanation has a line for each feature
    names = ("ask", "model", "norm", "radius", "features", "row", "true", "predicted")
    asked = [tuple(each[name] for name in names) for each in table]
    predicted = list(map(str, POST.predict(X)))
    row = [(str(i), str(Y[i]), predicted[i]) for i in range(len(X))]
    assert asked[: len(X)] == [("certify", "m", "inf", "0.05", "", *each) for each in row]
    assert set(asked) >= {("range", "m", "inf", "0.1", "x1", *each) for each in row}
    for line in table:
        i = int(line["row"])
        if line["ask"] in ("certify", "evaluate"):
            ball = gc.Ball(X[i], float(line["radius"]), norm=float(line["norm"]))
            assert line["status"] == gc.certify(POST, ball).status
        elif line["ask"] == "radius":
            found = gc.certified_radius(POST, X[i], rtol=0.1)
            assert 0.0 < float(line["safe"]) < found.unsafe <= 1.21 * found.safe < 1.5 * float(line["unsafe"])
        elif line["ask"] == "range":
            p = POST.probability(X[i : i + 1])[0, 1]
            assert float(line["min_lower"]) - 1e-9 <= p <= float(line["max_upper"]) + 1e-9
    # Its accuracies are those of the verdicts.
    for each in lines(read_campaign(path), gc.Store(folder / "runs.db")):
        if each.ask in ("certify", "evaluate"):
            balls = [gc.Ball(x, float(each.radius), norm=float(each.norm)) for x in X]
            verdicts = gc.certify(POST, X, balls)
            right = [bool(a == b) for a, b in zip(POST.predict(X), Y, strict=True)]
            safe = sum(r and v.status == "safe" for r, v in zip(right, verdicts, strict=True))
            lost = sum(v.status == "unsafe" or not r for r, v in zip(right, verdicts, strict=True))
            assert each.certified == (Fraction(safe, 6), Fraction(6 - lost, 6))


def test_it_goes_on_where_it_was_killed(folder):
    from helpers.cli_files import Running

    path = write(folder, FILE)
    other = write(folder, FILE.replace("runs.db", "calm.db"), "calm.toml")
    assert run(other) == 0
    killed = Running(folder, "campaign", "run", "c.toml")
    deadline = time.monotonic() + 60
    while not (folder / "runs.db").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    killed.to_group(signal.SIGKILL)
    killed.end()
    assert run(path) == 0

    def told(name):
        dicts = [a.to_dict() for a in gc.Store(folder / name).load()]
        return sorted(str({k: v for k, v in each.items() if k != "seconds"}) for each in dicts)

    assert told("runs.db") == told("calm.db")


@pytest.mark.parametrize("priority", ["boundary", "widest"])
def test_a_budget_is_spent_in_rounds_and_the_next_run_goes_on(folder, capsys, priority):
    # A question that no budget of this size answers.
    hard = '[[questions]]\nask = "range"\nradii = [2.0]\ntolerance = 1e-14\n'
    head = FILE.split("[[questions]]")[0]
    path = write(folder, f'budget_seconds = 1.0\npriority = "{priority}"\n{head}{hard}')
    start = time.monotonic()
    assert run(path) == 0
    told = capsys.readouterr().out
    if "the budget is spent" in told:
        assert time.monotonic() - start < 60
        before = gc.Store(folder / "runs.db").answers()["width"]
        assert run(path) == 0
        after = gc.Store(folder / "runs.db").answers()["width"]
        assert all(a <= b for a, b in zip(after, before, strict=False))
    else:
        assert set(gc.Store(folder / "runs.db").answers()["max_seconds"]) == {np.inf}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('store = "runs.db"', "", "store must be given, got nothing"),
        ('store = "runs.db"', 'store = "runs.db"\nstoer = 1', "the file must have no entries but store, "),
        ("jobs = 1", "jobs = 0", "jobs must be a whole number > 0, got 0"),
        ("jobs = 1", "jobs = = 1", "must be a TOML file, got Invalid value"),
        ('ask = "radius"', 'ask = "raduis"', "questions[2].ask must be one of range, certify, radius, "),
        ("rtol = 0.1", "rtol = -0.1", "questions[2].rtol must be a number > 0, got -0.1"),
        ("rtol = 0.1", "radii = [0.1]", "questions[2] must have no entries but ask, models, "),
        ("radii = [0.05, 0.3]", "radii = [0.3, 0.05]", "radii must be a list of increasing numbers >= 0"),
        ("radii = [0.05, 0.3]", "", "questions[0].radii must be given for certify, got nothing"),
        ("norms = [", "norms = [0.5, ", 'norms must be a list of norms: "inf", numbers >= 1, or 0, got'),
        ("rtol = 0.1", "scale = []", "questions[2].scale must be std or NAME=UNIT, or a list of such texts"),
        ('["x0"]', '["z"]', "questions[3]: --features must name features of the model, got 'z'"),
        ('file = "points.npz"', 'file = 3', "data.file must be the path of a CSV or npz file"),
        ("[models]", '[models]\nz = "none"', "none must be a model file, got no such file"),
        ('ask = "certify"', 'ask = "certify"\nmodels = ["z"]', "models must be names from models, got 'z'"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_one_sentence(folder, capsys, old, new, told):
    assert old in FILE
    path = write(folder, FILE.replace(old, new))
    assert run(path) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
    assert "Traceback" not in line


def test_an_address_of_nothing_is_one_sentence(folder, capsys):
    assert run(write(folder, FILE), "run", "--cluster", "http://here") == 2
    assert (
        "--cluster must be tcp://HOST:PORT, ray or ray://HOST:PORT, got 'http://here'"
        in capsys.readouterr().err
    )


def test_stores_on_the_command_line(folder, capsys):
    model, data, store = (str(folder / name) for name in ("m.safetensors", "points.npz", "cli.db"))
    ask = ["certify", model, data, "--radius", "0.1", "--store", store, "--jobs", "1"]
    assert main(ask) == 0
    first = capsys.readouterr().out.splitlines()[:-1]
    kept = stored(folder / "cli.db")
    assert main(ask) == 0
    assert capsys.readouterr().out.splitlines()[:-1] == first
    assert stored(folder / "cli.db") == kept
    assert len(kept) == len(X)
    assert gc.Store(store).runs()["what"] == [f"gpcert {' '.join(ask)}"] * 2
    out = str(folder / "answers.json")
    for command in (
        ["list", store],
        ["show", store, "--id", "1"],
        ["show", store, "--model", POST.digest[:8]],
        ["export", store, "-o", out],
        ["export", store, "-o", str(folder / "a.csv")],
        ["merge", str(folder / "new.db"), store],
        ["compact", str(folder / "new.db")],
    ):
        assert main(["store", *command]) == 0
    assert set(gc.load_answers(out)) == set(kept.values())
    assert stored(folder / "new.db") == kept
    assert main(["store", "export", store, "--status", "none", "-o", out]) == 0
    assert len(gc.load_answers(out)) == 0
    assert "6 answers taken, 0 could not be read" in capsys.readouterr().out
    assert main(["store", "export", store]) == 2
    assert main(["store", "merge", store]) == 2
    assert main(["store", "list", "/dev/null"]) == 2


@pytest.mark.parametrize("verb", ["certify", "range"])
def test_what_a_store_has_is_not_bounded_again_at_the_root(folder, capsys, monkeypatch, verb):
    """Rows that are settled together are looked up like all others."""
    from gpcert.questions import rooted

    many = np.random.default_rng(7).standard_normal((20, 2))
    np.savez(folder / "many.npz", X=many, y=POST.predict(many))
    model, data, store = (str(folder / name) for name in ("m.safetensors", "many.npz", "cli.db"))
    ask = [verb, model, data, "--radius", "0.1", "--store", store, "--jobs", "1"]
    assert main(ask) == 0
    first = capsys.readouterr().out.splitlines()[:-1]
    monkeypatch.setattr(rooted, "_groups", lambda *asked, **how: pytest.fail("asked again"))
    assert main(ask) == 0
    assert capsys.readouterr().out.splitlines()[:-1] == first


def test_a_campaign_leaves_proofs(folder, capsys):
    questions = (
        '[[questions]]\nask = "certify"\nradii = [0.1]\nproof = "proofs"\ndevice = "cpu"\n'
        '[[questions]]\nask = "evaluate"\nradii = [0.1]\nproof = "proofs"\n'
    )
    path = write(folder, FILE.split("[[questions]]")[0] + questions)
    assert run(path) == 0
    files = {f: f.stat().st_mtime_ns for f in (folder / "proofs").iterdir()}
    assert len(files) == 2 * len(X)
    # They are about the model's own file, and are not written twice.
    digest = sha256((folder / "m.safetensors").read_bytes()).hexdigest()
    assert all(digest in f.read_text() for f in files)
    assert run(path) == 0
    assert {f: f.stat().st_mtime_ns for f in (folder / "proofs").iterdir()} == files
    assert run(write(folder, path.read_text().replace('"cpu"', '"tpu"'))) == 2
    assert "questions[0].device must be one of auto, cpu, cuda, got 'tpu'" in capsys.readouterr().err


HARD = f"""
budget_seconds = 40.0
{FILE.split("[[questions]]")[0]}
[[questions]]
ask = "range"
radii = [0.1]
tolerance = 1e-3
[[questions]]
ask = "certify"
radii = [1.0]
norms = [3]
"""


@pytest.mark.parametrize("priority", ["order", "boundary", "widest"])
def test_priorities_spend_a_budget_where_the_certified_accuracy_narrows(folder, monkeypatch, priority):
    """Seconds of this clock are looks at it, so that a budget buys the same work on every machine."""
    from gpcert.cli.campaign import rounds

    many = np.random.default_rng(8).standard_normal((40, 2))
    labels = POST.predict(many)
    labels[:20] = 1 - labels[:20]  # the first half of the rows is labelled wrongly
    np.savez(folder / "points.npz", X=many, y=labels)
    looks = count()
    monkeypatch.setattr(rounds, "time", SimpleNamespace(monotonic=lambda: float(next(looks))))
    path = write(folder, f'priority = "{priority}"\n{HARD}')
    assert run(path) == 0
    ranges, verdicts = lines(read_campaign(path), gc.Store(folder / "runs.db"))
    asked = {a.region.digest for a in gc.Store(folder / "runs.db").load("Verdict")}
    if priority == "order":  # it is spent on ranges
        assert (verdicts.answered, verdicts.certified) == (0, (0, Fraction(1, 2)))
        return
    # Half of the rows are lost before anything is asked; every answer is about one of the others. (Balls of
    # norm 2 are bounded together, whatever their order.)
    low, high = verdicts.certified
    assert high - low < Fraction(1, 2)
    right = {gc.Ball(x, 1.0, norm=3).digest for x in many[20:]}
    assert asked <= right or right <= asked
    assert verdicts.answered >= ranges.answered


@pytest.mark.parametrize("data", ["[]", "{", '{"ask": "evaluate"}', "[" * 9999])
def test_what_a_stranger_wrote_about_a_campaign_is_one_sentence(folder, capsys, data):
    path = write(folder, FILE.split("[[questions]]")[0] + '[[questions]]\nask = "certify"\nradii = [0.1]\n')
    assert run(path) == 0
    with sqlite3.connect(folder / "runs.db") as connection:
        connection.execute("UPDATE pieces SET data = ?", (data,))
    connection.close()
    assert run(path, "status") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "is damaged: what its campaign asks cannot be read; run it again" in line
    assert run(path) == 0
    assert run(path, "status") == 0


def test_above_another_threshold_a_verdict_that_is_not_safe_says_nothing_of_the_label(folder, capsys):
    """At 0 radius nothing moves: every row whose label is right stays right, whatever its probability is."""
    head = FILE.split("[[questions]]")[0]
    right, p = POST.predict(X) == Y, POST.probability(X).max(axis=1)
    high = float(np.median(p[right])) - 1e-9
    asked = "".join(
        f'[[questions]]\nask = "{ask}"\nradii = [0.0]\nthreshold = {t}\n'
        for ask in ("certify", "evaluate")
        for t in (high, 0.5, 0.2)
    )
    path = write(folder, head + asked)
    assert run(path) == 0
    told = capsys.readouterr().out
    found = list(lines(read_campaign(path), gc.Store(folder / "runs.db")))
    sure = right & (p > high)
    assert 0 < sum(sure) < sum(right)
    share = Fraction(int(sum(right)), len(X))
    proved = Fraction(int(sum(sure)), len(X))
    assert [each.certified for each in found] == [(proved, None), (share, share), None] * 2
    assert (
        told.count(f"right and proved above {high}") == told.count(f"robust accuracy {percent(share)}") == 2
    )
    assert run(path, "report", "-o", str(folder / "t.csv")) == 0
    with open(folder / "t.csv", newline="") as file:
        safe = [(row["threshold"], row["status"]) for row in csv.DictReader(file)]
    above = {t: [(str(t), "safe" if q > t else "unsafe") for q in p] for t in (high, 0.5, 0.2)}
    assert safe == [each for told in above.values() for each in told] * 2


@pytest.mark.parametrize("what", ["labels", "rows", "model", "gone"])
def test_what_was_found_for_other_files_is_not_told_as_current(folder, capsys, what):
    path = write(folder, f'{FILE.split("[[questions]]")[0]}[[questions]]\nask = "certify"\nradii = [0.1]\n')
    assert run(path) == 0
    assert run(path, "status") == 0
    if what == "model":
        gc.save(gc.GPClassifier(max_evals=0).fit(X, Y).posterior_, folder / "m.safetensors")
    elif what == "gone":
        (folder / "points.npz").unlink()
    else:
        np.savez(folder / "points.npz", X=X + (what == "rows"), y=1 - Y if what == "labels" else Y)
    name = "m.safetensors" if what == "model" else "points.npz"
    capsys.readouterr()
    for asked in (["status"], ["report"], ["report", "-o", str(folder / "t.csv")]):
        assert run(path, *asked) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert f"was last run with another content of {name}; run it again: what holds is kept" in err
    assert not (folder / "t.csv").exists()
    if what == "labels":  # the page is about what is there now
        assert run(path, "report", "-o", str(folder / "t.html")) == 0
        out, err = capsys.readouterr()
        assert "robust accuracy" not in out
        assert "was last run with another content of points.npz" in err
    if what != "gone":
        assert run(path) == 0
        assert run(path, "status") == 0


def test_questions_that_differ_in_anything_are_counted_and_shown_apart(folder, capsys):
    head = FILE.split("[[questions]]")[0]
    own = ("", "scale = 'std'", "domain = ['-9:9']", "label = '1'", "tolerance = 0.1")
    asked = "".join(f'[[questions]]\nask = "range"\nradii = [0.1]\n{entry}\n' for entry in own)
    path = write(folder, f"{head}{asked}[[questions]]\nask = 'evaluate'\nradii = [0.1, 0.2]\n")
    assert run(path) == 0
    first, *shown = capsys.readouterr().out.splitlines()
    *shown, total = shown
    assert first.split()[5:9] == ["scale", "domain", "label", "tolerance"]
    assert len(set(shown)) == len(own) + 2
    assert total.startswith(f"{(len(own) + 1) * len(X)} of {(len(own) + 1) * len(X)} answered")
