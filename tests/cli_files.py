"""Small files for the tests of the command line: a table in odd units, a model trained on it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

NAMES = ["age", "weight, kg", "<b>dose</b>"]
#: Columns of very different units, and an offset.
UNIT = np.array([10.0, 0.01, 3000.0])
OFFSET = np.array([50.0, 0.0, -1e4])


def points(n: int, seed: int) -> tuple[np.ndarray, list[str]]:
    random = np.random.default_rng(seed)
    Z = random.normal(size=(n, 3))
    labels = ["ill" if z[0] + 0.7 * z[1] ** 2 > 0.4 else "well" for z in Z]
    return Z * UNIT + OFFSET, labels


def write_table(path: Path, rows: list[list[object]], header: list[str]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def patients(folder: Path, name: str, n: int, seed: int) -> Path:
    X, labels = points(n, seed)
    rows = [[f"p{i}", *map(repr, x.tolist()), y] for i, (x, y) in enumerate(zip(X, labels, strict=True))]
    return write_table(folder / name, rows, ["who", *NAMES, "state"])
