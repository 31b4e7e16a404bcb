"""Posteriors in files: safetensors with a versioned JSON header; never pickle.

Tensors (float64): "centres", "weights", "precision", and "factors.NAME" for each further factor. The metadata
entry "gpcert" is a JSON object with the entries of `_HEADER`; floats in it are hexadecimal strings, so that
what is loaded equals what was saved bit for bit.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save as safetensors_bytes

from gpcert.errors import GpcertError, InvalidInputError, ModelFileError
from gpcert.files import write_whole
from gpcert.formats import extension
from gpcert.kernels import exact_float, kernel_from_dict
from gpcert.likelihoods import likelihood_from_dict
from gpcert.posterior import Posterior
from gpcert.validation import Float, as_path
from gpcert.version import __version__

FORMAT = 1
_HEADER = {
    "format",
    "package_version",
    "kernel",
    "likelihood",
    "mean",
    "classes",
    "feature_names",
    "training",
}
_TENSORS = ("centres", "weights", "precision")
_FACTOR = "factors."
_LENGTH = 8  # bytes at the beginning that tell the length of the header, least first
_LONGEST = 100_000_000  # header that safetensors reads
_loaded: WeakKeyDictionary[Posterior, str] = WeakKeyDictionary()  # of posteriors, their files' SHA-256


def save(posterior: Posterior, path: str | os.PathLike[str]) -> None:
    """Write the posterior to a file, whole or not at all; an existing file is replaced.

    Parameters
    ----------
    posterior : Posterior
        The model.
    path : path
        The .safetensors file.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.safetensors")
    >>> gc.save(clf.posterior_, path)
    >>> gc.load(path).digest == clf.posterior_.digest
    True
    """
    extension("path", path, ".safetensors")
    write_whole(Path(path), model_bytes(posterior))


def model_bytes(posterior: Posterior) -> bytes:
    """The content of a model file."""
    if not isinstance(posterior, Posterior):
        raise InvalidInputError(f"posterior must be a Posterior, got {type(posterior).__name__}")
    tensors = {name: getattr(posterior, name) for name in _TENSORS}
    tensors |= {_FACTOR + name: array for name, array in posterior.factors.items()}
    # safetensors writes raw memory: the rows must lie in C order.
    contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    metadata = {"gpcert": json.dumps(_header(posterior), allow_nan=False)}
    return bytes(safetensors_bytes(contiguous, metadata=metadata))


def file_digest(posterior: Posterior) -> str:
    """The SHA-256 of the file it was loaded from; else of the one that `save` writes."""
    return _loaded.get(posterior) or sha256(model_bytes(posterior)).hexdigest()


def model_of(content: bytes, name: str) -> Posterior:
    """The posterior in the content of a model file; `name` says where it was found."""
    try:
        if int.from_bytes(content[:_LENGTH], "little") > _LONGEST:
            _reject("it does not begin as a safetensors file")
        return _posterior(*_parts(content))
    except (SafetensorError, ValueError, GpcertError, MemoryError, RecursionError) as error:
        raise ModelFileError(f"{name} is not a valid gpcert model: {error}") from error


def load(path: str | os.PathLike[str]) -> Posterior:
    """Read a posterior that `save` wrote.

    Nothing in the file is executed, and everything is validated as by the `Posterior` constructor.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Posterior
        The model, bit for bit.

    Raises
    ------
    ModelFileError
        If the file is anything else; the message names it.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.safetensors")
    >>> gc.save(clf.posterior_, path)
    >>> gc.load(path).n_centres
    4
    """
    return load_hashed(as_path("path", path))[0]


def load_hashed(path: str | os.PathLike[str]) -> tuple[Posterior, str]:
    """`load`, and the SHA-256 of the very bytes that were read: the file may be replaced at any time."""
    name = os.fspath(path)
    # Devices and pipes could block or never end.
    if not os.path.isfile(name):
        raise ModelFileError(f"{name} must be a model file, got {_what_it_is(name)}")
    try:
        content = _content(name)
    except (OSError, ValueError, MemoryError) as error:
        raise ModelFileError(f"{name} is not a valid gpcert model: {error}") from error
    posterior, hashed = model_of(content, name), sha256(content).hexdigest()
    _loaded[posterior] = hashed
    return posterior, hashed


def _header(posterior: Posterior) -> dict[str, Any]:
    about = {"format": FORMAT, "package_version": __version__}
    return about | posterior.description() | {"training": dict(posterior.training)}


def _what_it_is(name: str) -> str:
    return "something that is not a regular file" if os.path.exists(name) else "no such file"


def _content(name: str) -> bytes:
    """The bytes of the file; of a file that cannot be a model, no more than its beginning."""
    with open(name, "rb") as file:
        start = file.read(_LENGTH)
        if int.from_bytes(start, "little") > _LONGEST:
            _reject("it does not begin as a safetensors file")
        return start + file.read()


def _parts(content: bytes) -> tuple[dict[str, Any], dict[str, Float]]:
    stored = deserialize(content)  # type: ignore[no-untyped-call]  # checks sizes against the file
    length = int.from_bytes(content[:_LENGTH], "little")
    metadata = json.loads(content[_LENGTH : _LENGTH + length]).get("__metadata__") or {}
    if "gpcert" not in metadata:
        _reject("it has no gpcert header")
    header = _parse(metadata["gpcert"])
    # The header first: a newer format may hold other tensors.
    return header, {key: _tensor(key, part) for key, part in stored}


def _tensor(key: str, part: dict[str, Any]) -> Float:
    shape = part["shape"]
    if part["dtype"] != "F64":
        _reject(f"tensor {key[:40]!r} must be float64, got {part['dtype']}")
    if not (len(shape) <= 8 and all(shape)):
        _reject(f"tensor {key[:40]!r} must have at most 8 axes, none of size 0, got {shape[:9]}")
    return np.frombuffer(part["data"], dtype="<f8").reshape(shape)


def _parse(text: str) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its header is not JSON ({type(error).__name__})") from error
    if not isinstance(header, dict):
        _reject("its header is not an object")
    found = header.get("format")
    if type(found) is not int or found < 1:
        _reject(f"its format version must be a whole number >= 1, got {str(found)[:40]!r}")
    if found > FORMAT:
        written_by = str(header.get("package_version"))[:40]
        _reject(f"it has format version {found} (gpcert {written_by}); this version reads up to {FORMAT}")
    if set(header) != _HEADER:
        _reject(f"its header lacks or adds the entries {sorted(set(header) ^ _HEADER)[:5]}")
    return header


def _posterior(header: dict[str, Any], tensors: dict[str, Float]) -> Posterior:
    if missing := [name for name in _TENSORS if name not in tensors]:
        _reject(f"it lacks the tensors {missing}")
    factors = {name.removeprefix(_FACTOR): array for name, array in tensors.items() if name not in _TENSORS}
    if unknown := [name for name in tensors if name not in _TENSORS and not name.startswith(_FACTOR)]:
        _reject(f"it has unknown tensors {[name[:40] for name in unknown[:5]]}")
    names = header["feature_names"]
    if not (names is None or (isinstance(names, list) and all(isinstance(name, str) for name in names))):
        _reject("its feature_names must be a list of strings or null")
    if not isinstance(header["package_version"], str):
        _reject("its package_version must be a string")
    if not isinstance(header["training"], dict):
        _reject("its training record must be an object")
    kernel, likelihood, mean = header["kernel"], header["likelihood"], header["mean"]
    return Posterior(
        *(tensors[name] for name in _TENSORS),
        kernel=[kernel_from_dict(k) for k in kernel]
        if isinstance(kernel, list)
        else kernel_from_dict(kernel),
        likelihood=None if likelihood is None else likelihood_from_dict(likelihood),
        mean=[exact_float("mean", m) for m in mean] if isinstance(mean, list) else exact_float("mean", mean),
        classes=_read_classes(header["classes"]),
        feature_names=names,
        factors=factors,
        training=header["training"],
    )


def _read_classes(description: object) -> NDArray[Any] | None:
    if description is None:
        return None
    if not (isinstance(description, dict) and set(description) == {"dtype", "labels"}):
        _reject("classes must have a dtype and labels")
    kind, labels = description["dtype"], description["labels"]
    if not isinstance(labels, list):
        _reject("labels must be a list")
    if kind == "str" and all(type(label) is str for label in labels):
        return np.array(labels, dtype=np.str_)
    if kind == "bool" and all(type(label) is bool for label in labels):
        return np.array(labels, dtype=np.bool_)
    if kind in ("float16", "float32", "float64"):
        with np.errstate(over="ignore"):
            return np.array([exact_float("label", label) for label in labels], dtype=kind)
    integers = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    if kind in integers and all(type(label) is int for label in labels):
        limits = np.iinfo(kind)
        if all(limits.min <= label <= limits.max for label in labels):
            return np.array(labels, dtype=kind)
    _reject(f"labels do not fit their dtype {str(kind)[:40]!r}")


def _reject(reason: str) -> NoReturn:
    raise ModelFileError(reason)
