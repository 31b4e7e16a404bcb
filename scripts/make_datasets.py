"""Make the files of `src/gpcert/datasets/data` from the raw sources.

    python scripts/make_datasets.py RAW_FOLDER            write the files, print their SHA-256
    python scripts/make_datasets.py RAW_FOLDER --check    compare the shipped arrays with a fresh run

RAW_FOLDER holds `mnist_t10k.npz` (`images` uint8 (10000, 28, 28), `labels` uint8: the MNIST test file) and
`spambase.npz` (`X` float64 (4601, 57) in the UCI order, `y`, 1 = spam). Splits and draws use fixed seeds and
are stored, so that nothing depends on the version of a random generator when the data are loaded.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from gpcert.datasets.loading import SPAM_COLUMNS, SPAM_NAMES

Arrays = dict[str, Any]
DATA = Path(__file__).resolve().parent.parent / "src" / "gpcert" / "datasets" / "data"
# MD5 of the uncompressed idx image file.
MNIST_IMAGES_MD5 = "2646ac647ad5339dbf082846283269ea"


def synthetic2d() -> Arrays:
    """Two standard normals in the plane, 600 points each, shifted by 5 along axis 1 or axis 2."""
    rng = np.random.default_rng(2020)
    labels = np.repeat(np.array([0, 1], dtype=np.int8), 600)
    values = rng.standard_normal((1200, 2))
    values[np.arange(1200), labels] += 5.0
    parts = split(rng.permutation(1200), "synthetic2d", train=1000, test=200)
    return {
        "values": values,
        "labels": labels,
        **parts,
        **standardisation(values, parts["synthetic2d.train"]),
    }


def spam(raw: Path) -> Arrays:
    """All 57 variables in thousandths (exact), split so that equal mails stay on one side."""
    with np.load(raw / "spambase.npz") as archive:
        X, y = archive["X"], archive["y"]
    thousandths = np.rint(X * 1000).astype(np.int32)
    assert np.array_equal(thousandths / 1000.0, X), "spambase has at most three decimals"
    # Mails equal in all 57 variables are equal in the 11 selected ones: both forms are split cleanly.
    group = np.unique(X[:, SPAM_COLUMNS], axis=0, return_inverse=True)[1].reshape(-1)
    parts = grouped_split(group, np.random.default_rng(2020), "spam", train=1000, test=200)
    report_selection(X, y)
    return {
        "values": thousandths,
        "labels": y.astype(np.int8),
        **parts,
        **standardisation(X, parts["spam.train"]),
    }


def mnist(raw: Path) -> Arrays:
    """Threes, fives and eights; each value is the sum of 2 x 2 pixels, 0 to 1020."""
    with np.load(raw / "mnist_t10k.npz") as archive:
        images, labels = archive["images"], archive["labels"]
    header = b"".join(n.to_bytes(4, "big") for n in (0x803, *images.shape))
    assert hashlib.md5(header + images.tobytes()).hexdigest() == MNIST_IMAGES_MD5, "not the MNIST test images"
    kept = np.isin(labels, (3, 5, 8))
    labels = labels[kept].astype(np.int8)
    sums = images[kept].reshape(-1, 14, 2, 14, 2).sum(axis=(2, 4), dtype=np.uint16).reshape(-1, 196)
    rng = np.random.default_rng(2020)
    two = split(rng.permutation(np.flatnonzero(labels != 5)), "mnist38", train=1000, test=200)
    three = split(rng.permutation(len(labels)), "mnist358", train=500, test=200)
    return {"values": sums, "labels": labels, **two, **three}


def split(order: NDArray[np.intp], name: str, *, train: int, test: int) -> Arrays:
    """The first `train` of the shuffled rows, the next `test`, and the rest as extra points."""
    parts = np.split(order.astype(np.int16), [train, train + test])
    return {f"{name}.{part}": rows for part, rows in zip(("train", "test", "extra"), parts, strict=True)}


def grouped_split(
    group: NDArray[np.intp], rng: np.random.Generator, name: str, *, train: int, test: int
) -> Arrays:
    """Exact sizes, whole groups: each shuffled group goes to the first part with room for all its rows."""
    rows_of = [np.flatnonzero(group == g) for g in range(group.max() + 1)]
    room = [train, test, len(group) - train - test]
    parts: list[list[NDArray[np.intp]]] = [[], [], []]
    for g in rng.permutation(len(rows_of)):
        part = next(i for i in range(3) if room[i] >= len(rows_of[g]))
        parts[part].append(rows_of[g])
        room[part] -= len(rows_of[g])
    shuffled = [rng.permutation(np.concatenate(rows)) for rows in parts]  # copies are no longer neighbours
    return split(np.concatenate(shuffled), name, train=train, test=test)


def standardisation(values: NDArray[np.float64], train: NDArray[np.generic]) -> Arrays:
    """Mean and deviation of the training points only, stored so that every machine loads the same bits."""
    return {"offset": values[train].mean(axis=0), "scale": values[train].std(axis=0)}


def report_selection(X: NDArray[np.float64], y: NDArray[np.int8]) -> None:
    """Print how the 11 shipped columns compare with an L1-penalised logistic regression on all rows."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for C in (0.01, 0.0125, 0.015, 0.0175, 0.02):
        model = LogisticRegression(
            l1_ratio=1.0, C=C, solver="liblinear", random_state=0, max_iter=2000, tol=1e-6
        )
        weight = np.abs(model.fit(Z, y).coef_[0])
        largest = set(np.argsort(-weight)[:11].tolist())
        extra = [SPAM_NAMES[i] for i in sorted(largest - set(SPAM_COLUMNS))]
        missing = [SPAM_NAMES[i] for i in sorted(set(SPAM_COLUMNS) - largest)]
        kept = np.flatnonzero(weight)
        print(
            f"L1 logistic C={C}: {kept.size} variables kept, "
            f"{len(set(SPAM_COLUMNS) & set(kept.tolist()))} of our 11 among them; "
            f"{11 - len(missing)} of the 11 largest are ours (it has {extra}, we have {missing})"
        )


def main() -> None:
    """Write or check the three files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("raw", type=Path, metavar="RAW_FOLDER")
    parser.add_argument("--check", action="store_true", help="compare with the shipped files, write nothing")
    args = parser.parse_args()
    made = {"synthetic2d": synthetic2d(), "spam": spam(args.raw), "mnist": mnist(args.raw)}
    for name, arrays in made.items():
        path = DATA / f"{name}.npz"
        if args.check:
            with np.load(path) as shipped:
                assert set(shipped.files) == set(arrays), f"{path.name}: other arrays"
                for key, array in arrays.items():
                    # A mean may differ in its last bit between machines; everything else is exact.
                    rtol = 1e-12 if key in ("offset", "scale") else 0.0
                    np.testing.assert_allclose(
                        shipped[key], array, rtol=rtol, atol=0.0, err_msg=f"{name}.{key}"
                    )
        else:
            np.savez_compressed(path, **arrays)
        content = path.read_bytes()
        print(f"{path.name}: {len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
