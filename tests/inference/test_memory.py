"""Training that cannot fit into memory is refused at once; what it needs is measured, not believed."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import gpcert as gc
from gpcert.cli import main
from gpcert.inference import train as memory

N = 300


def labels(X: np.ndarray, classes: int) -> np.ndarray:
    return (np.arange(len(X)) % classes).astype(str)


@pytest.mark.parametrize(
    ("classes", "options"),
    [
        (2, {"max_evals": 0}),
        (2, {"max_evals": 1, "kernel": gc.Matern52() + gc.RBF()}),
        (2, {"max_evals": 1, "inference": "ep"}),
        (3, {"max_evals": 0}),
        (4, {"max_evals": 1}),
        (3, {"max_evals": 0, "likelihood": "softmax"}),
        (4, {"max_evals": 1, "likelihood": "softmax"}),
    ],
)
def test_training_takes_what_is_reckoned(classes: int, options: dict[str, object]) -> None:
    """Never refused where it would fit: at least as much, and not twice as much."""
    X = np.random.default_rng(0).normal(size=(N, 3))
    gc.GPClassifier(**options).fit(X[:20], labels(X[:20], classes))  # what is loaded once
    tracemalloc.start()
    gc.GPClassifier(**options).fit(X, labels(X, classes))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    told = 8 * N**2 * memory.matrices(classes, "likelihood" in options)
    assert told <= peak <= 2 * told


def test_too_many_points_are_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memory, "available", lambda: 8 * 7 * 25**2)
    X = np.linspace(0.0, 1.0, 26)[:, None]
    with pytest.raises(
        gc.InvalidInputError, match=r"^X must have at most 25 points to be trained on in 0\.0 GB"
    ):
        gc.GPClassifier().fit(X, labels(X, 2))
    assert gc.GPClassifier(max_evals=0).fit(X[:25], labels(X[:25], 2)).n_evals_ == 0
    table = tmp_path / "rows.csv"
    lines = [f"r{i},{x},{label}" for i, (x, label) in enumerate(zip(X[:, 0], labels(X, 2), strict=True))]
    table.write_text("\n".join(["who,x,y", *lines]))
    fit = [
        "fit",
        str(table),
        "--target",
        "y",
        "--id",
        "who",
        "--max-evals",
        "0",
        "-o",
        str(tmp_path / "m.safetensors"),
    ]
    assert main(fit) == 2
    assert capsys.readouterr().err == (
        "gpcert: X must have at most 25 points to be trained on in 0.0 GB of memory, "
        "got 26, which need 0.0 GB\n"
    )
    assert main([*fit, "--rows", "0:25"]) == 0
    assert gc.load(tmp_path / "m.safetensors").feature_names == ("x",)  # names of rows are no feature
    monkeypatch.setattr(memory, "available", lambda: None)  # nobody says
    assert main(fit) == 0


def test_what_there_is() -> None:
    assert (memory.available() or 1) > 0
