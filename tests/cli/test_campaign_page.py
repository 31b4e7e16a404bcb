"""The page of a campaign: what its store has, of the rows and models as they are now."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gpcert as gc
from gpcert.cli import main
from gpcert.cli.campaign.file import read_campaign
from gpcert.cli.campaign.page import result_of
from gpcert.cli.campaign.parts import parts
from helpers.exact import small_model

POST = small_model()
X = np.random.default_rng(4).standard_normal((6, 2))
Y = POST.predict(X)
Y[0] = 1 - Y[0]  # one label is wrong
RADII = [0.0, 0.05, 0.3, 1.5]
HEAD = 'store = "runs.db"\njobs = 1\n[models]\nm = "m.safetensors"\n[data]\nfile = "points.npz"\n'
EVALUATE = f'[[questions]]\nask = "evaluate"\nradii = {RADII}\n'
MORE = (
    '[[questions]]\nask = "certify"\nradii = [0.3]\nnorms = ["inf", 2]\n'
    '[[questions]]\nask = "range"\nradii = [0.1]\nfeatures = [["x0"]]\n'
    '[[questions]]\nask = "explain"\nradii = [0.1]\n'
    '[[questions]]\nask = "radius"\nrtol = 0.5\nmax_radius = 0.5\n'
)


@pytest.fixture
def campaign(tmp_path):
    gc.save(POST, tmp_path / "m.safetensors")
    np.savez(tmp_path / "points.npz", X=X, y=Y)
    path = tmp_path / "plane.toml"
    path.write_text(HEAD + EVALUATE)
    assert main(["campaign", "run", str(path)]) == 0
    return path


def page(path, capsys):
    out = path.with_suffix(".html")
    status = main(["campaign", "report", str(path), "-o", str(out)])
    return (status, out.read_text()) if out.exists() else (status, capsys.readouterr().err)


def test_an_evaluation_is_shown_by_its_radii(campaign, capsys):
    (part,) = parts(read_campaign(campaign))
    _, rows = result_of(part, gc.Store(campaign.with_name("runs.db")))
    whole = gc.evaluate(POST, X, Y, RADII)
    assert [row.answer.unsafe for row in rows] == whole.unsafe.tolist()
    assert [row.answer.safe for row in rows] == np.nan_to_num(whole.safe).tolist()
    assert len({str(row.answer.status) for row in rows}) == 2  # some hold at every radius, others do not
    for row, point in zip(rows, whole.balls, strict=True):
        # Read back as a results file would be, and about the very same balls.
        assert type(row.answer).from_dict(row.answer.to_dict()).safe == row.answer.safe
        told = {claim.region.digest for claim in row.answer.claims()}
        radii = {row.answer.safe, row.answer.unsafe} - {0.0, np.inf}
        assert told == {gc.Ball(point.x, radius).digest for radius in radii}
    status, text = page(campaign, capsys)
    assert status == 0
    assert "<h1>Campaign plane</h1>" in text


def test_the_page_links_the_proof_of_each_evaluated_point(campaign, capsys):
    campaign.write_text(HEAD + EVALUATE + 'proof = "proofs"\n')
    assert main(["campaign", "run", str(campaign)]) == 0
    files = sorted(campaign.with_name("proofs").iterdir())
    assert len(files) == len(X)
    status, text = page(campaign, capsys)
    assert status == 0
    assert {file: text.count(f"{file.name}</a>") for file in files} == dict.fromkeys(files, 1)


def test_the_page_has_what_the_store_has(campaign, capsys):
    campaign.write_text(HEAD + EVALUATE + MORE)
    assert main(["campaign", "run", str(campaign)]) == 0
    status, text = page(campaign, capsys)
    assert status == 0
    safe = sum(a == b for a, b in zip(POST.predict(X), Y, strict=True))  # at 0.3 all keep their label
    verdicts = gc.certify(POST, X, [gc.Ball(x, 0.3) for x in X])
    assert {str(v.status) for v in verdicts} == {"safe"}
    assert len(re.findall(f"For {safe} of {len(X)} rows", text)) >= 2
    # Rows that are others now have no answers: they are told of as missing, or there is no page.
    np.savez(campaign.with_name("points.npz"), X=np.vstack([X[:2] + 1.0, X[2:]]), y=Y)
    status, text = page(campaign, capsys)
    assert "some runs were stopped early" in text
    assert "all bounds hold" in text
    campaign.with_suffix(".html").unlink()
    np.savez(campaign.with_name("points.npz"), X=X + 1.0, y=Y)
    status, text = page(campaign, capsys)
    assert status == 2
    assert "must have been run before, got a store without its answers" in text


def test_an_answer_that_was_changed_is_not_shown(campaign, capsys):
    import sqlite3

    with sqlite3.connect(campaign.with_name("runs.db")) as connection:
        connection.execute("UPDATE contents SET data = replace(data, '0.3', '0.5') WHERE id = 1")
    connection.close()
    status, text = page(campaign, capsys)
    assert status == 2
    assert "is damaged: it is not what was written" in text


@pytest.mark.parametrize("name", ["runs.db", "runs.db-wal", "points.npz", "m.safetensors", "plane.toml"])
def test_a_report_is_a_file_of_its_own(campaign, capsys, name):
    before = {path: path.read_bytes() for path in campaign.parent.iterdir()}
    assert main(["campaign", "report", str(campaign), "-o", str(campaign.with_name(name))]) == 2
    assert "--output must be a file of its own, got " in capsys.readouterr().err
    assert {path: path.read_bytes() for path in campaign.parent.iterdir()} == before


def test_no_table_tells_what_was_changed_in_the_store(campaign, capsys):
    import sqlite3

    with sqlite3.connect(campaign.with_name("runs.db")) as connection:
        connection.execute("UPDATE answers SET lower = 1.5, upper = 9e999 WHERE id = 1")
    connection.close()
    store, table = str(campaign.with_name("runs.db")), str(campaign.with_name("t.csv"))
    capsys.readouterr()
    for asked in (
        ["campaign", "status", str(campaign)],
        ["campaign", "report", str(campaign), "-o", table],
        ["store", "list", store],
        ["store", "export", store, "-o", table],
    ):
        assert main(asked) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "answer 1 is damaged: it is not what was written" in err
    assert not campaign.with_name("t.csv").exists()


def test_a_campaign_with_two_thresholds_has_two_pages(campaign, capsys):
    """Safe means another thing above another threshold: answers of both are on no page together."""
    more = '[[questions]]\nask = "certify"\nradii = [0.3]\nthreshold = 0.9\n'
    campaign.write_text(HEAD + EVALUATE + MORE + more)
    assert main(["campaign", "run", str(campaign)]) == 0
    capsys.readouterr()
    status, text = page(campaign, capsys)
    assert status == 0
    assert "<h1>Campaign plane, threshold 0.5</h1>" in text
    other = campaign.with_name("plane.threshold-0.9.html")
    assert capsys.readouterr().out.count("saved: ") == 2
    assert "<h1>Campaign plane, threshold 0.9</h1>" in other.read_text()
    other.unlink()
    other.mkdir()
    assert main(["campaign", "report", str(campaign), "-o", str(campaign.with_suffix(".html"))]) == 2
    assert "--output must be a file, got the folder" in capsys.readouterr().err
