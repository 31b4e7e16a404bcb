"""A listing of what is in a store: named columns, to look at and to take elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpcert.extras import extra
from gpcert.formats import write_table


class Listing:
    """Columns of one length: `table["status"]` is one of them, iterating gives a dict for each row.

    Parameters
    ----------
    columns : mapping of str to list
        The columns by name.

    Examples
    --------
    >>> from gpcert.store.listing import Listing
    >>> table = Listing({"status": ["safe", "unknown"], "seconds": [0.1, 2.0]})
    >>> table["status"], next(iter(table))
    (['safe', 'unknown'], {'status': 'safe', 'seconds': 0.1})
    """

    def __init__(self, columns: Mapping[str, list[Any]]) -> None:
        self.columns = dict(columns)

    @classmethod
    def of(cls, names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> Listing:
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
        return f"Listing({len(self)} rows: {', '.join(self.columns)})"

    def to_pandas(self) -> Any:
        """As a data frame of pandas.

        Returns
        -------
        DataFrame
            The same columns.
        """
        return extra("pandas", "to_pandas").DataFrame(self.columns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, whole or not at all; numbers are exact, no text is a formula.

        Parameters
        ----------
        path : path
            Its extension says the format: .csv, .parquet or .xlsx (`pip install 'gpcert[tables]'`).
        """
        write_table(Path(path), self.columns)
