"""The shipped data: sizes, splits, exact values, origin, and errors."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files

import numpy as np
import pytest

from gpcert import datasets
from gpcert.datasets import loading
from gpcert.errors import GpcertError, InvalidInputError

SIZES = {  # training, test, extra points, features
    "synthetic2d": (1000, 200, 0, 2),
    "spam": (1000, 200, 3401, 11),
    "mnist38": (1000, 200, 784, 196),
    "mnist358": (500, 200, 2176, 196),
}
LABELS = {"synthetic2d": [0, 1], "spam": ["ham", "spam"], "mnist38": [3, 8], "mnist358": [3, 5, 8]}


@pytest.fixture(scope="module", params=list(SIZES))
def data(request: pytest.FixtureRequest) -> datasets.Dataset:
    return datasets.load(request.param)


def points(data: datasets.Dataset) -> np.ndarray:
    return np.concatenate([data.X_train, data.X_test, data.X_extra])


def test_sizes_are_those_of_the_paper(data: datasets.Dataset) -> None:
    *rows, d = SIZES[data.name]
    for part, n in zip(("train", "test", "extra"), rows, strict=True):
        assert getattr(data, f"X_{part}").shape == (n, d)
        assert getattr(data, f"y_{part}").shape == (n,)
    assert len(data.feature_names) == len(set(data.feature_names)) == d
    assert data.offset.shape == data.scale.shape == (d,)


def test_every_class_is_in_training_and_test_parts(data: datasets.Dataset) -> None:
    for part in (data.y_train, data.y_test):
        labels, counts = np.unique(part, return_counts=True)
        assert labels.tolist() == LABELS[data.name]
        assert counts.min() >= 0.2 * counts.sum()
    assert data.y_extra.dtype == data.y_train.dtype == data.y_test.dtype


def test_arrays_are_finite_doubles_and_cannot_be_written(data: datasets.Dataset) -> None:
    for part in ("train", "test", "extra"):
        X, y = getattr(data, f"X_{part}"), getattr(data, f"y_{part}")
        assert X.dtype == np.float64
        assert np.isfinite(X).all()
        assert not X.flags.writeable
        assert not y.flags.writeable
    with pytest.raises(AttributeError):
        data.name = "other"  # type: ignore[misc]


def test_no_point_is_on_both_sides_of_the_split(data: datasets.Dataset) -> None:
    seen: set[bytes] = set()
    for part in (data.X_train, data.X_test, data.X_extra):
        rows = {row.tobytes() for row in part}
        assert not rows & seen
        seen |= rows


def test_spam_has_the_known_number_of_copies_and_none_crosses_in_either_form() -> None:
    wide = datasets.load("spam", features="all")
    y = np.concatenate([wide.y_train, wide.y_test, wide.y_extra])
    mails = np.column_stack([points(wide), y == "spam"])
    assert mails.shape == (4601, 58)
    assert len(mails) - len(np.unique(mails, axis=0)) == 391
    sides = [{row.tobytes() for row in part} for part in (wide.X_train, wide.X_test, wide.X_extra)]
    assert not sides[0] & sides[1]
    assert not sides[0] & sides[2]
    assert not sides[1] & sides[2]


def test_selected_spam_variables_are_columns_of_all() -> None:
    wide, narrow = datasets.load("spam", features="all"), datasets.load("spam")
    columns = list(loading.SPAM_COLUMNS)
    assert len(wide.feature_names) == 57
    assert narrow.feature_names == tuple(wide.feature_names[j] for j in columns)
    np.testing.assert_array_equal(narrow.X_test, wide.X_test[:, columns])
    # The paper names three of its variables.
    assert {"word_freq_free", "char_freq_$", "capital_run_length_total"} <= set(narrow.feature_names)
    assert np.mean(np.concatenate([wide.y_train, wide.y_test, wide.y_extra]) == "spam") == pytest.approx(
        0.394, abs=5e-4
    )


@pytest.mark.parametrize("name", ["synthetic2d", "spam"])
def test_tables_are_standardised_with_training_statistics(name: str) -> None:
    data = datasets.load(name)
    np.testing.assert_allclose(data.X_train.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(data.X_train.std(axis=0), 1.0, rtol=1e-12)
    assert np.abs(data.X_test.mean(axis=0)).max() > 1e-6  # the test points had no say


def test_spam_in_its_own_units_has_three_decimals_and_no_negative_value() -> None:
    data = datasets.load("spam", features="all")
    thousandths = 1000 * (points(data) * data.scale + data.offset)
    np.testing.assert_allclose(thousandths, np.rint(thousandths), atol=1e-5)
    assert np.rint(thousandths).min() == 0
    assert np.rint(thousandths[:, :54]).max() <= 100_000  # per cent


def test_synthetic2d_is_two_shifted_standard_normals() -> None:
    data = datasets.load("synthetic2d")
    X = points(data) * data.scale + data.offset
    y = np.concatenate([data.y_train, data.y_test])
    for label, centre in ((0, (5.0, 0.0)), (1, (0.0, 5.0))):
        own = X[y == label]
        assert len(own) == 600
        np.testing.assert_allclose(own.mean(axis=0), centre, atol=5 / np.sqrt(600))
        np.testing.assert_allclose(np.cov(own.T), np.eye(2), atol=0.25)


@pytest.mark.parametrize("name", ["mnist38", "mnist358"])
def test_images_are_sums_of_four_grey_values(name: str) -> None:
    data = datasets.load(name)
    X = points(data)
    assert data.image_shape == (14, 14)
    assert data.domain == (0.0, 1.0)
    assert (X.min(), X.max()) == (0.0, 1.0)
    np.testing.assert_array_equal(np.rint(X * 1020) / 1020, X)


def test_both_mnist_sets_hold_the_same_threes_and_eights() -> None:
    two, three = datasets.load("mnist38"), datasets.load("mnist358")
    y = np.concatenate([three.y_train, three.y_test, three.y_extra])
    assert np.unique(y, return_counts=True)[1].tolist() == [1010, 892, 974]
    assert {row.tobytes() for row in points(two)} == {row.tobytes() for row in points(three)[y != 5]}


@pytest.mark.parametrize("name", ["mnist", "SPAM", "", None, 3, ["spam"]])
def test_unknown_name(name: object) -> None:
    with pytest.raises(
        InvalidInputError, match="name must be one of synthetic2d, spam, mnist38, mnist358, got"
    ):
        datasets.load(name)  # type: ignore[arg-type]


def test_unknown_selection() -> None:
    with pytest.raises(InvalidInputError, match="features must be 'selected' or 'all', got 'some'"):
        datasets.load("spam", features="some")  # type: ignore[arg-type]


def test_readme_beside_the_files_lists_their_sizes_and_checksums() -> None:
    folder = files("gpcert.datasets").joinpath("data")
    readme = folder.joinpath("README.md").read_text(encoding="utf-8")
    listed = {
        name: digest for digest, name in re.findall(r"^([0-9a-f]{64})  (\S+)$", readme, flags=re.MULTILINE)
    }
    assert listed == {entry.file: entry.sha256 for entry in loading.CATALOGUE.values()}
    for name, digest in listed.items():
        content = folder.joinpath(name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest
        assert f"| `{name}` | {len(content):,} |" in readme


def test_a_changed_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = loading.CATALOGUE["spam"]
    other = {**loading.CATALOGUE, "spam": loading.Entry(**{**vars(entry), "sha256": "0" * 64})}
    monkeypatch.setattr(loading, "CATALOGUE", other)
    with pytest.raises(GpcertError, match=r"shipped file spam\.npz must have SHA-256 0000"):
        datasets.load("spam")
