"""A table of what is in a store: named columns, to look at and to take elsewhere."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpcert.errors import GpcertError
from gpcert.files import write_whole
from gpcert.validation import require


class Table:
    """Columns of one length: `table["status"]` is one of them, iterating gives a dict for each row.

    Parameters
    ----------
    columns : mapping of str to list
        The columns by name.

    Examples
    --------
    >>> from gpcert.store.table import Table
    >>> table = Table({"status": ["safe", "unknown"], "seconds": [0.1, 2.0]})
    >>> table["status"], next(iter(table))
    (['safe', 'unknown'], {'status': 'safe', 'seconds': 0.1})
    """

    def __init__(self, columns: Mapping[str, list[Any]]) -> None:
        self.columns = dict(columns)

    @classmethod
    def of(cls, names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> Table:
        """From rows."""
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        return cls({name: list(column) for name, column in zip(names, columns, strict=True)})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def __getitem__(self, name: str) -> list[Any]:
        return self.columns[name]

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    def to_pandas(self) -> Any:
        """As a data frame of pandas.

        Returns
        -------
        DataFrame
            The same columns.
        """
        import pandas

        return pandas.DataFrame(self.columns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, whole or not at all; numbers are exact.

        Parameters
        ----------
        path : path
            Its extension says the format: .csv or .parquet (needs pyarrow).
        """
        place = Path(path)
        known = place.suffix in (".csv", ".parquet")
        require(known, f"path must end in .csv or .parquet, got {place}")
        write_whole(place, self._csv() if place.suffix == ".csv" else self._parquet())

    def _csv(self) -> str:
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*self.columns.values(), strict=True))
        return text.getvalue()

    def _parquet(self) -> bytes:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise GpcertError("Parquet needs pyarrow, got none: pip install 'gpcert[tables]'") from None
        buffer = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table(self.columns), buffer)
        return buffer.getvalue()
