"""Tables of a store as Parquet, read back by pyarrow itself; without it one sentence."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import gpcert as gc
from helpers.exact import small_model

BALLS = [gc.Ball(x, 0.2) for x in np.random.default_rng(9).standard_normal((4, 2))]


@pytest.mark.full
def test_numbers_are_exact(tmp_path):
    import pyarrow.parquet

    gc.probability_range(small_model(), BALLS, store=tmp_path / "runs.db")
    table = gc.Store(tmp_path / "runs.db").answers()
    table.save(tmp_path / "t.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "t.parquet").to_pydict() == table.columns


def test_without_pyarrow_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    gc.probability_range(small_model(), BALLS[:1], store=tmp_path / "runs.db")
    with pytest.raises(
        gc.GpcertError, match=r"a .parquet file needs pyarrow, got none: pip install 'gpcert\[tables\]'"
    ):
        gc.Store(tmp_path / "runs.db").answers().save(tmp_path / "t.parquet")
    assert not (tmp_path / "t.parquet").exists()
