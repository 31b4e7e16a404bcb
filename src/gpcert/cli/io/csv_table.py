"""CSV files, compressed ones too: one header line with distinct names, then one row per point.

Read line by line, and once: of what comes after the last row that is wanted, only the hash is made.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import math
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gpcert.cli.io.tables import SKIP, Bad, Reading, check_header, is_missing, picker
from gpcert.errors import InvalidInputError
from gpcert.validation import composed

_BLOCK = 1 << 18  # bytes read at once


class CsvGrid:
    """Header and rows; each row has as many cells as the header."""

    def __init__(self, path: Path, file: io.FileIO, reading: Reading) -> None:
        self.path = path
        self._decimal, self._delimiter = reading.decimal, reading.between
        self._source = _Hashed(file)
        self._bytes = io.BufferedReader(self._source, _BLOCK)
        if path.suffix.lower() == ".gz":
            self._bytes = io.BufferedReader(gzip.GzipFile(fileobj=self._bytes), _BLOCK)  # type: ignore[arg-type]
        self._encoding = reading.encoding
        text = io.TextIOWrapper(self._bytes, "utf-8-sig" if self._is_utf8() else self._encoding, newline="")
        self._reader = csv.reader(text, delimiter=self._delimiter, strict=True)
        self.header = [composed(name.strip()) for name in next(self._lines(), [])]
        check_header(path, self.header, self._delimiter)

    def rows(self, at: Sequence[int]) -> Iterator[tuple[int, Sequence[Any]]]:
        """(line number, the cells at these places) of each row."""
        n, pick = len(self.header), picker(at)
        for row, cells in enumerate(filter(None, self._lines())):
            line = self._reader.line_num
            if len(cells) != n:
                raise InvalidInputError(
                    f"{self.path}, row {row} (line {line}) must have {n} cells, as the header has, "
                    f"got {len(cells)}"
                )
            yield line, pick(cells)

    def numbers(self, cells: Sequence[str]) -> list[float] | None:
        """The numbers in the cells; None: one of them may be none."""
        if self._decimal == ",":
            if "." in "".join(cells):
                return None
            cells = [cell.replace(",", ".") for cell in cells]
        try:
            values = list(map(float, cells))
        except ValueError:
            return None
        # The sum of finite numbers may be infinite: then they are looked at one by one.
        return values if math.isfinite(sum(values)) and "_" not in "".join(cells) else None

    def number(self, cell: str) -> float | Bad:
        """One cell."""
        cell = cell.strip()
        if not cell:
            return Bad("must be a number, got an empty cell", "empty cells", SKIP)
        found = self.numbers([cell])
        if found is not None:
            return found[0]
        if self._finite(cell):
            return Bad(f"must be a number, got {cell!r}", f"texts like {cell!r}", self._hint(cell))
        return Bad(f"must be finite, got {cell}", f"values like {cell}", SKIP * is_missing(cell))

    def _finite(self, cell: str) -> bool:
        """Whether it is no number that is infinite, or none."""
        try:
            return math.isfinite(float(cell))
        except ValueError:
            return True

    def _hint(self, cell: str) -> str:
        if is_missing(cell):
            return SKIP
        other = "." if self._decimal == "," else ","
        decimal = cell.replace(other, "", 1).lstrip("+-").isdigit()
        return f"--decimal {other!r} reads such numbers" if decimal else ""

    def digest(self) -> str:
        """The hash of the whole file: of what is left, too."""
        return self._source.digest()

    def _is_utf8(self) -> bool:
        return self._encoding.lower().replace("_", "-") in ("utf-8", "utf8")

    def _lines(self) -> Iterator[list[str]]:
        try:
            yield from self._reader
        except UnicodeDecodeError as error:
            byte = self._bytes.tell() - len(error.object) + error.start
            name = "UTF-8" if self._is_utf8() else self._encoding
            told = f"{self.path} must be {name} text, got byte {byte} that is not; see --encoding"
            raise InvalidInputError(told) from None
        except UnicodeError as error:  # UTF-16 without its mark
            raise InvalidInputError(f"{self.path} must be {self._encoding} text, got: {error}") from None
        except csv.Error as error:
            raise InvalidInputError(f"{self.path}, line {self._reader.line_num}: not CSV ({error})") from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InvalidInputError(f"{self.path} must be a gzip file, got: {error}") from None


class _Hashed(io.RawIOBase):
    """A file whose bytes are hashed as they are read."""

    def __init__(self, file: io.FileIO) -> None:
        self._file, self._hash, self._count = file, hashlib.sha256(), 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._count

    def readinto(self, buffer: Any, /) -> int:
        got = self._file.readinto(buffer)
        self._hash.update(memoryview(buffer)[:got])
        self._count += got
        return got

    def digest(self) -> str:
        """The hash of the whole file: of what is left, too."""
        buffer = bytearray(_BLOCK)
        while self.readinto(buffer):
            pass
        return self._hash.hexdigest()
