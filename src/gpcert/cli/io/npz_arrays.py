"""Arrays of an npz file, unpacked only as far as they are asked for.

An npz file is a zip archive of npy files: a header that tells type and shape, then the numbers, row by row.
Both headers are checked against each other before anything is unpacked; memory is needed for what is kept,
never for what is skipped.
"""

from __future__ import annotations

import math
import os
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from gpcert.errors import InvalidInputError
from gpcert.validation import require

_BLOCK = 1 << 20  # bytes unpacked at once, or one row
_FREELY = 1 << 30  # bytes that any file may unpack to
_FACTOR = 20  # beyond that, times the size of the file
_DAMAGED = (
    *(ValueError, TypeError, OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error),
    *(SyntaxError, tokenize.TokenError),  # numpy reads the text of a header as Python's
)


@dataclass(frozen=True)
class Header:
    """What an array is: its type and shape, whether it lies column by column, and where its numbers begin."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool
    start: int


class Archive:
    """An open npz file with the hash of its bytes; the context ends with a check that it did not change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb")
        self._before = os.fstat(self._file.fileno())
        self.sha256 = file_digest(self._file, "sha256").hexdigest()

    def __enter__(self) -> Archive:
        try:
            self._zip = zipfile.ZipFile(self._file)
            self.names = [n.removesuffix(".npy") for n in self._zip.namelist() if n.endswith(".npy")]
        except _DAMAGED as error:
            self._file.close()
            raise self._refused(error) from None
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        after = os.fstat(self._file.fileno())
        self._zip.close()
        self._file.close()
        same = (after.st_mtime_ns, after.st_size) == (self._before.st_mtime_ns, self._before.st_size)
        require(same or kind is not None, f"{self.path} must stay as it is while it is read, got a change")

    def header(self, name: str) -> Header:
        """Type and shape of an array, without its numbers."""
        try:
            with self._open(name) as stream:
                return self._header(name, stream)
        except _DAMAGED as error:
            raise self._refused(error) from None

    def rows(self, name: str, wanted: Sequence[int] | None = None) -> NDArray[Any]:
        """The rows wanted, in ascending order, or all; the first axis counts them."""
        try:
            with self._open(name) as stream:
                head = self._header(name, stream)
                if len(head.shape) not in (1, 2):
                    raise ValueError(f"shape {head.shape} of {name!r}")
                n, width = head.shape if len(head.shape) == 2 else (head.shape[0], 1)
                count = n if wanted is None else len(wanted)
                by_columns = head.fortran and len(head.shape) == 2
                # What is kept, and the one row or column that is unpacked at once.
                self._check_size(name, head, count * max(1, width) + (n if by_columns else width))
                picked = np.arange(n) if wanted is None else np.sort(np.array(wanted))
                if by_columns:
                    return _take(stream, head.dtype, n, np.arange(width), picked).T
                return _take(stream, head.dtype, width, picked).reshape(-1, *head.shape[1:])
        except _DAMAGED as error:
            raise self._refused(error) from None

    def _open(self, name: str) -> IO[bytes]:
        info = self._zip.getinfo(f"{name}.npy")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"a way to compress that numpy does not write: {info.compress_type}")
        return self._zip.open(info)

    def _header(self, name: str, stream: IO[bytes]) -> Header:
        version = npy.read_magic(stream)
        if version != (1, 0):  # others have long headers, which plain arrays do not need
            raise ValueError(f"version {version} of the npy format")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers of Python 2 are read as well
            shape, fortran, dtype = npy.read_array_header_1_0(stream)
        if dtype.hasobject:
            raise ValueError(f"objects in {name!r}, which are never unpickled")
        head = Header(dtype, shape, fortran, stream.tell())
        stored = self._zip.getinfo(f"{name}.npy").file_size - head.start
        told = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or told != stored:
            raise ValueError(f"{stored} bytes of {name!r}, of which shape {shape} has {told}")
        return head

    def _check_size(self, name: str, head: Header, items: int) -> None:
        most = max(_FREELY, _FACTOR * self._before.st_size)
        size = items * max(head.dtype.itemsize, 8)
        require(
            size <= most,
            f"{self.path}: {name} must need at most {most} bytes of memory, {_FACTOR} times the file, "
            f"got {size}; fewer --rows need less",
        )

    def _refused(self, error: Exception) -> InvalidInputError:
        if isinstance(error, InvalidInputError):
            return error
        return InvalidInputError(f"{self.path} must be an npz file of plain arrays, got: {error}")


def _take(
    stream: IO[bytes], dtype: np.dtype[Any], width: int, rows: NDArray[Any], kept: NDArray[Any] | None = None
) -> NDArray[Any]:
    """The rows (ascending) of a matrix of this width that comes row by row; of each, the columns kept."""
    made = np.empty((len(rows), width if kept is None else len(kept)), dtype)
    step = max(1, _BLOCK // max(1, width * dtype.itemsize))
    at = done = 0
    while done < len(rows):
        count = min(step, int(rows[-1]) + 1 - at)
        end = int(np.searchsorted(rows, at + count))
        block = stream.read(count * width * dtype.itemsize)
        if end > done:
            part = np.frombuffer(block, dtype).reshape(count, width)[rows[done:end] - at]
            made[done:end] = part if kept is None else part[:, kept]
        at, done = at + count, end
    return made
