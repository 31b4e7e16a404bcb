"""What may happen to a store: kills at any moment, full disks, damage, two who write: nothing is lost."""

from __future__ import annotations

import os
import re
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpcert as gc
from gpcert.store import merge
from helpers.exact import small_model

POST = small_model()
BALLS = [gc.Ball(x, 0.2) for x in np.random.default_rng(6).standard_normal((60, 2))]


def kill(folder: Path, times: int) -> str:
    command = [sys.executable, str(Path(__file__).with_name("killed.py")), str(folder), str(times)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_campaign_that_is_killed_goes_on(tmp_path):
    assert re.match("6 killed", kill(tmp_path, 6))


@pytest.mark.full
def test_a_campaign_that_is_killed_fifty_times_goes_on(tmp_path):
    assert re.match("50 killed", kill(tmp_path, 50))


def test_a_store_whose_maker_was_killed_is_made_anew(tmp_path):
    """Killed inside its first transaction, whose pages have begun to reach the file."""
    path = tmp_path / "runs.db"
    child = f"""if True:
        import os, sqlite3
        making = sqlite3.connect({str(path)!r}, isolation_level=None)
        making.execute("PRAGMA cache_size = 1")
        making.execute("BEGIN IMMEDIATE")
        making.execute("CREATE TABLE a (x)")
        making.executemany("INSERT INTO a VALUES (?)", [("y" * 500,)] * 2000)
        os._exit(9)"""
    assert subprocess.run([sys.executable, "-c", child], check=False).returncode == 9
    assert path.stat().st_size > 0
    assert (tmp_path / "runs.db-journal").stat().st_size > 0
    found = gc.probability_range(POST, BALLS[:5], store=path)
    assert len(list(gc.Store(path).numbers())) == 5
    assert gc.probability_range(POST, BALLS[:5], store=path) == found


def test_a_full_disk_is_one_sentence_and_costs_nothing_that_was_kept(tmp_path):
    """A limit on file sizes stands for it."""
    path = tmp_path / "runs.db"
    first = gc.probability_range(POST, BALLS[:5], store=path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 30_000, hard))
    try:
        with pytest.raises(gc.StoreError, match=r"runs\.db could not be .*what was committed before is kept"):
            gc.probability_range(POST, BALLS, store=path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert gc.probability_range(POST, BALLS[:5], store=path) == first
    assert len(gc.probability_range(POST, BALLS, store=path)) == len(gc.Store(path).answers())


def test_a_folder_where_nothing_can_be_written_is_told_before_the_work():
    asked = []
    with pytest.raises(gc.StoreError, match=r"/proc/runs\.db must be a file, .*that can be opened"):
        gc.probability_range(POST, BALLS, store="/proc/runs.db", progress=asked.append)
    assert not asked


def test_a_damaged_page_is_one_sentence_and_the_rest_is_taken_over(tmp_path):
    path = tmp_path / "runs.db"
    answers = gc.probability_range(POST, BALLS, store=path)
    gc.Store(path).compact()
    content = bytearray(path.read_bytes())
    place = content.rindex(b'"kind": "ProbabilityRange"') // 4096 * 4096
    content[place : place + 4096] = os.urandom(1) * 4096
    path.write_bytes(content)
    with pytest.raises(gc.StoreError, match="damaged"):
        list(gc.Store(path).load())
    assert path.read_bytes() == content
    new = gc.Store(tmp_path / "new.db")
    taken, unreadable = merge(new, gc.Store(path))
    assert taken + unreadable == len(BALLS)
    assert 0 < unreadable < len(BALLS)
    assert set(new.load()) < set(answers)
    again = gc.probability_range(POST, BALLS, store=new)
    assert [(a.min, a.max) for a in again] == [(a.min, a.max) for a in answers]


def test_a_store_with_damaged_names_and_numbers_is_one_sentence(tmp_path):
    path = tmp_path / "runs.db"
    gc.probability_range(POST, BALLS[:3], store=path)
    content = path.read_bytes()
    named = bytearray(content)
    named[named.index(b"tablemodelsmodels") + 6] = 0x9E
    path.write_bytes(named)
    with pytest.raises(gc.StoreError, match="damaged: it holds a text that is none"):
        gc.Store(path).answers()
    for value in ("many", b"\xff", None, -9e999):
        for name in ("kind", "status", "lower", "tolerance", "max_seconds", "max_nodes"):
            path.write_bytes(content)
            with sqlite3.connect(path) as connection:
                connection.execute(f"UPDATE OR IGNORE answers SET {name} = ? WHERE id = 1", (value,))
            connection.close()
            if path.read_bytes() == content:
                continue  # it cannot be nothing
            with pytest.raises(gc.StoreError, match="answer 1 is damaged"):
                gc.probability_range(POST, BALLS[:3], store=path)
            with pytest.raises(gc.StoreError, match="answer 1 is damaged"):
                gc.Store(path).answers()


_WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from store.test_failures import BALLS, POST, gc
first, step = map(int, sys.argv[3:])
gc.probability_range(POST, BALLS[first:][::step], store=sys.argv[2], n_jobs=1)
"""


def test_two_who_write_at_once_both_succeed(tmp_path):
    path, tests = tmp_path / "runs.db", str(Path(__file__).parents[1])
    two = [
        subprocess.Popen([sys.executable, "-c", _WRITER, tests, str(path), first, step])
        for first, step in (("0", "1"), ("1", "2"))
    ]
    assert [one.wait() for one in two] == [0, 0]
    found = gc.probability_range(POST, BALLS, store=path)
    assert set(gc.Store(path).load()) == set(found)
    for mine, plain in zip(found, gc.probability_range(POST, BALLS), strict=True):
        for a, b in ((mine.min, plain.min), (mine.max, plain.max)):  # of other batches
            assert max(a.lower, b.lower) <= min(a.upper, b.upper)
            assert max(a.upper, b.upper) - min(a.lower, b.lower) <= 2 * mine.tolerance
