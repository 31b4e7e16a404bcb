"""Files: bit-exact round trips, whole or not at all, and one clear error for every damaged file."""

import errno
import hashlib
import json
import os
import pickle
import stat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from gpcert import model_file
from gpcert.errors import InvalidInputError, ModelFileError
from gpcert.files import write_whole
from gpcert.kernels import RBF, Matern12, Matern32, RationalQuadratic
from gpcert.likelihoods import Link, Logit, OneVsRest, Probit, Softmax
from gpcert.model_file import load, load_hashed, save
from gpcert.posterior import Posterior

rng = np.random.default_rng(0)
X = rng.normal(size=(4, 2))
A = rng.normal(size=(12, 12))
R = A @ A.T + np.eye(12)
CORRELATED = R.reshape(3, 4, 3, 4).transpose(0, 2, 1, 3)
INDEPENDENT = np.stack([R[:4, :4], R[4:8, 4:8], R[8:, 8:]])
ODD = RBF([0.1, 1 / 3]) * (Matern12(np.pi) + RationalQuadratic(1e-30, 1e30, 0.7))


def two_class(**rest):
    return Posterior(X, [0.1, -1e-310, 1e300, -0.0], R[:4, :4], **({"kernel": RBF()} | rest))


def several(precision, **rest):
    return Posterior(
        X, np.full((4, 3), 1 / 3), precision, **({"kernel": RBF(), "likelihood": "softmax"} | rest)
    )


MODELS = {
    "plain": two_class,
    "odd kernel and numbers": lambda: two_class(kernel=ODD, mean=1 / 3, likelihood=Probit(0.1)),
    "strings": lambda: two_class(classes=["ham ", "späm\ud800"], feature_names=["length", "längd"]),
    "float labels": lambda: two_class(classes=np.array([0.1, 1e-320]), likelihood="logit"),
    "float32 labels": lambda: two_class(classes=np.array([0.1, 0.2], dtype=np.float32)),
    "small integer labels": lambda: two_class(classes=np.array([-128, 127], dtype=np.int8)),
    "large integer labels": lambda: two_class(classes=np.array([2**63, 2**64 - 1], dtype=np.uint64)),
    "boolean labels": lambda: two_class(classes=[True, False]),
    "regression": lambda: two_class(likelihood=None),
    "factors": lambda: two_class(
        factors={"site_precision": np.arange(4), "whitening": np.asfortranarray(rng.normal(size=(2, 3)))},
        training={"inference": "laplace", "trace": [0.1, 1 / 3], "nested": {"seed": 0, "none": None}},
    ),
    "softmax, correlated": lambda: several(CORRELATED, mean=[0.0, 0.1, 1 / 3], likelihood=Softmax()),
    "softmax, independent": lambda: several(INDEPENDENT, kernel=[ODD, RBF(2.0), Matern32([1.0, 3.0])]),
    "one-vs-rest": lambda: several(INDEPENDENT, likelihood=OneVsRest(Logit()), classes=list("abc")),
    "fortran order": lambda: Posterior(np.asfortranarray(X), np.ones(4), R[:4, :4], kernel=RBF()),
}


def identical(one, other):
    assert np.array_equal(one, other)
    assert one.dtype == other.dtype
    assert np.array_equal(np.signbit(one), np.signbit(other)) if one.dtype.kind == "f" else True


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_round_trips_are_bit_exact(make, tmp_path):
    post = make()
    save(post, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    for name in ("centres", "weights", "precision"):
        identical(getattr(post, name), getattr(again, name))
    assert again.kernel == post.kernel
    assert repr(again.likelihood) == repr(post.likelihood)
    identical(np.asarray(post.mean), np.asarray(again.mean))
    if post.classes is None:
        assert again.classes is None
    else:
        assert np.array_equal(post.classes, again.classes)
        assert post.classes.dtype == again.classes.dtype
    assert (again.feature_names, again.training) == (post.feature_names, post.training)
    assert set(again.factors) == set(post.factors)
    for name, factor in post.factors.items():
        identical(factor, again.factors[name])


def test_the_file_says_what_it_is(tmp_path):
    save(two_class(training={"inference": "ep"}), tmp_path / "model.safetensors")
    with safe_open(tmp_path / "model.safetensors", framework="numpy") as file:
        header = json.loads(file.metadata()["gpcert"])
    assert header["format"] == 1
    assert header["training"] == {"inference": "ep"}
    assert header["kernel"] == RBF().to_dict()
    assert isinstance(header["package_version"], str)


def test_paths_may_be_strings_and_existing_files_are_replaced(tmp_path):
    path = str(tmp_path / "model.safetensors")
    save(two_class(), path)
    save(two_class(mean=2.0), path)
    assert load(path).mean == 2.0
    assert os.listdir(tmp_path) == ["model.safetensors"]


@pytest.mark.parametrize("failing", ["model_file.safetensors_bytes", "files.os.replace", "files.os.fsync"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(failing, tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    save(two_class(), path)
    before = path.read_bytes()

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(f"gpcert.{failing}", full)
    with pytest.raises(OSError, match="disk full"):
        save(two_class(mean=2.0), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_a_new_file_has_the_mode_of_the_umask_and_a_replaced_one_keeps_its_own(tmp_path):
    path = tmp_path / "model.safetensors"
    before = os.umask(0o027)
    try:
        save(two_class(), path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        for mode in (0o600, 0o664, 0o444):
            path.chmod(mode)
            save(two_class(mean=2.0), path)
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        os.umask(before)
    link = tmp_path / "link"
    link.symlink_to(path)
    write_whole(link, "text")
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o444


def test_content_is_never_readable_by_more_than_the_file_it_replaces(tmp_path, monkeypatch):
    path = tmp_path / "secret"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o600)
    seen = []

    def synced(descriptor):
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))

    monkeypatch.setattr("gpcert.files.os.fsync", synced)
    write_whole(path, "new")
    assert seen == [0o600]


def test_the_hash_is_of_the_bytes_that_were_parsed(good, target, monkeypatch):
    """The file is replaced while it is read: model and hash are those of one of the two contents."""
    first = good[0]
    target.write_bytes(first)
    parts = model_file._parts

    def slow(content):
        save(two_class(mean=7.0), target)
        return parts(content)

    monkeypatch.setattr(model_file, "_parts", slow)
    post, digest = load_hashed(target)
    assert post.mean == 0.0
    assert digest == hashlib.sha256(first).hexdigest()
    assert target.read_bytes() != first


def test_a_large_file_that_is_no_model_is_not_read(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write(b"age,weight\n")
        file.truncate(1 << 40)  # a hole: no room on the disk, a tebibyte in memory
    assert "does not begin as a safetensors file" in attempt(path)


def test_a_missing_folder_is_an_error_of_the_system(tmp_path):
    with pytest.raises(OSError, match="model"):
        save(two_class(), tmp_path / "nowhere" / "model.safetensors")


def test_callables_cannot_be_saved(tmp_path):
    link = Link(lambda f: 0.5 + 0.5 * np.tanh(f), lambda low, high: (0 * low, 0 * high + 1), name="mine")
    for post in (two_class(likelihood=link), several(INDEPENDENT, likelihood=OneVsRest(link))):
        with pytest.raises(InvalidInputError, match="mine"):
            save(post, tmp_path / "model.safetensors")
    assert os.listdir(tmp_path) == []


def test_only_posteriors_are_saved(tmp_path):
    with pytest.raises(InvalidInputError, match="posterior must be a Posterior, got int"):
        save(3, tmp_path / "model.safetensors")


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The bytes, the header and the tensors of a valid file."""
    path = tmp_path_factory.mktemp("model_file") / "good.safetensors"
    save(two_class(classes=["a", "b"], factors={"site_precision": np.ones(4)}, training={"n": 1}), path)
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["gpcert"])
    return path.read_bytes(), header, load_file(path)


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return tmp_path_factory.mktemp("model_file") / "damaged.safetensors"


def attempt(path):
    """None for a valid posterior, or the message of a ModelFileError: one line that names the file."""
    try:
        post = load(path)
    except ModelFileError as error:
        message = str(error)
    else:
        assert isinstance(post, Posterior)
        assert np.array_equal(post.precision, post.precision.T)
        assert all(np.isfinite(array).all() for array in (post.centres, post.weights, post.precision))
        return None
    assert str(path) in message
    assert "\n" not in message
    assert len(message) < len(str(path)) + 400
    return message


def rewrite(path, header, tensors):
    save_file(tensors, path, metadata={"gpcert": header if isinstance(header, str) else json.dumps(header)})


def test_every_truncation_is_refused(good, target):
    content = good[0]
    for length in range(len(content)):
        target.write_bytes(content[:length])
        assert attempt(target) is not None, length


def test_every_flipped_byte_is_refused_or_harmless(good, target):
    content = good[0]
    for position in range(len(content)):
        for mask in (0xFF, 1 << position % 8):
            damaged = bytearray(content)
            damaged[position] ^= mask
            target.write_bytes(damaged)
            attempt(target)


@settings(deadline=None, max_examples=300)
@given(content=st.binary(max_size=300))
def test_random_bytes_are_refused(content, target):
    target.write_bytes(content)
    assert attempt(target) is not None
    target.write_bytes(len(content).to_bytes(8, "little") + content)
    assert attempt(target) is not None


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_random_edits_are_refused_or_harmless(data, good, target):
    content = bytearray(good[0])
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        stop = data.draw(st.integers(start, min(len(content), start + 20)))
        content[start:stop] = data.draw(st.binary(max_size=20))
    target.write_bytes(content)
    attempt(target)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["type", "dtype", "labels", "name", "link"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=500)
@given(data=st.data())
def test_odd_header_entries_are_refused_or_harmless(data, good, target):
    _, header, tensors = good
    changed = json.loads(json.dumps(header))
    place = changed
    key = data.draw(st.sampled_from(sorted(changed)))
    while isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place)))
    place[key] = data.draw(json_values)
    rewrite(target, changed, tensors)
    attempt(target)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"format": 2, "package_version": "9.9"},
            r"format version 2 \(gpcert 9.9\); this version reads up to 1",
        ),
        ({"format": 0}, "format version must be a whole number >= 1"),
        ({"format": True}, "format version must be a whole number"),
        ({"surprise": 1}, r"lacks or adds the entries \['surprise'\]"),
        ({"kernel": {"type": "periodic"}}, "kernel type must be known, got 'periodic'"),
        ({"kernel": [RBF().to_dict()]}, "kernel must be one kernel of gpcert"),
        ({"package_version": 1}, "package_version must be a string"),
        ({"kernel": RBF([1.0] * 3).to_dict()}, "kernel must have one lengthscale or 2"),
        ({"likelihood": {"type": "cauchit"}}, "likelihood"),
        ({"likelihood": "probit"}, "likelihood"),
        ({"likelihood": []}, "likelihood"),
        ({"mean": 0.0}, "mean must be a hexadecimal float string"),
        ({"mean": "inf"}, "mean must be finite"),
        ({"mean": None}, "mean must be a hexadecimal float string"),
        ({"classes": None, "likelihood": None, "training": []}, "training record must be an object"),
        ({"classes": ["a", "b"]}, "classes must have a dtype and labels"),
        ({"classes": {"dtype": "str", "labels": [1, 2]}}, "labels do not fit their dtype 'str'"),
        ({"classes": {"dtype": "int8", "labels": [1, 300]}}, "labels do not fit their dtype 'int8'"),
        ({"classes": {"dtype": "int64", "labels": [1.0, 2.0]}}, "labels do not fit their dtype 'int64'"),
        ({"classes": {"dtype": "object", "labels": [1, 2]}}, "labels do not fit their dtype 'object'"),
        ({"classes": {"dtype": "U999999999", "labels": ["a", "b"]}}, "labels do not fit their dtype"),
        ({"classes": {"dtype": "str", "labels": "ab"}}, "labels must be a list"),
        ({"classes": {"dtype": "str", "labels": ["a", "a"]}}, "classes must be distinct"),
        ({"feature_names": "ab"}, "feature_names must be a list of strings"),
        ({"feature_names": ["a", 1]}, "feature_names must be a list of strings"),
        ({"feature_names": ["a"]}, "feature_names must have length 2"),
    ],
)
def test_each_broken_rule_of_the_header_is_named(change, message, good, target):
    _, header, tensors = good
    rewrite(target, header | change, tensors)
    with pytest.raises(ModelFileError, match=message):
        load(target)
    assert attempt(target) is not None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "[" * 100_000, '{"format": ' + "9" * 10_000 + "}", "\ud7ff"]
)
def test_headers_that_are_no_objects_are_refused(text, good, target):
    rewrite(target, text, good[2])
    assert "header" in attempt(target)


@pytest.mark.parametrize("depth", [10, 300, 900, 100_000])
@pytest.mark.parametrize(
    "entry", ["kernel", "likelihood", "mean", "classes", "feature_names", "package_version"]
)
def test_deeply_nested_entries_are_refused(entry, depth, good, target):
    deep = "[" * depth + "]" * depth
    text = json.dumps(good[1] | {entry: "HERE"}).replace('"HERE"', deep)
    rewrite(target, text, good[2])
    assert attempt(target) is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": None}, r"lacks the tensors \['weights'\]"),
        ({"extra": np.ones(2)}, r"unknown tensors \['extra'\]"),
        ({"factors.": np.ones(2)}, "factors must be named by identifiers"),
        ({"weights": np.ones(4, dtype=np.float32)}, "tensor 'weights' must be float64, got F32"),
        ({"weights": np.ones(4, dtype=np.int64)}, "tensor 'weights' must be float64, got I64"),
        ({"weights": np.ones(5)}, r"weights must have shape \(4,\)"),
        ({"weights": np.ones((1,) * 9)}, "must have at most 8 axes"),
        ({"centres": np.ones((0, 2))}, "none of size 0"),
        ({"precision": np.full((4, 4), np.nan)}, "precision must be finite"),
        ({"precision": np.triu(np.ones((4, 4)))}, "precision must be symmetric"),
        ({"factors.site_precision": -np.ones(4)}, "must be >= 0"),
    ],
)
def test_each_broken_rule_of_the_tensors_is_named(change, message, good, target):
    _, header, tensors = good
    changed = {name: array for name, array in (tensors | change).items() if array is not None}
    rewrite(target, header, changed)
    with pytest.raises(ModelFileError, match=message):
        load(target)
    assert attempt(target) is not None


@pytest.mark.parametrize(
    "tensor",
    [
        {"dtype": "F64", "shape": [2**62, 4], "data_offsets": [0, 0]},
        {"dtype": "F64", "shape": [0, 2**62], "data_offsets": [0, 0]},
        {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]},
        {"dtype": "F64", "shape": [1] * 1000, "data_offsets": [0, 8]},
        {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]},
        {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]},
        {"dtype": "O", "shape": [1], "data_offsets": [0, 8]},
    ],
)
def test_impossible_sizes_and_types_are_refused(tensor, good, target):
    text = json.dumps({"__metadata__": {"gpcert": json.dumps(good[1])}, "centres": tensor}).encode()
    target.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    assert attempt(target) is not None


def test_foreign_files_are_refused(good, target, tmp_path):
    save_file({"weights": np.ones(3)}, target)
    assert "no gpcert header" in attempt(target)
    target.write_bytes(pickle.dumps(print))
    assert attempt(target) is not None
    np.savez(tmp_path / "model.npz", centres=X)
    assert attempt(tmp_path / "model.npz") is not None


def test_what_is_no_regular_file_is_refused_without_reading(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        assert "not a regular file" in attempt(path)
    assert "no such file" in attempt(tmp_path / "missing")


def test_the_format_of_the_first_version_stays_readable(good, target):
    """A file written out by hand: renaming an entry would break stored models."""
    header = {
        "format": 1,
        "package_version": "0.1",
        "kernel": {"type": "rbf", "lengthscale": "0x1.0000000000000p+1", "variance": "0x1.0000000000000p+0"},
        "likelihood": None,
        "mean": "0x0.0p+0",
        "classes": None,
        "feature_names": ["a", "b"],
        "training": {},
    }
    rewrite(target, header, {name: good[2][name] for name in ("centres", "weights", "precision")})
    assert load(target).kernel == RBF(2.0)
    assert model_file.FORMAT == 1
