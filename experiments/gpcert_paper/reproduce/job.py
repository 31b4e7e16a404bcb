"""What every experiment works with: its folder, how much to do, and a table that survives interruption."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar

import numpy as np

from gpcert import __version__
from gpcert.errors import StoreError
from gpcert.files import write_whole
from gpcert.running import on_signals
from gpcert.store import Store
from gpcert.validation import require
from gpcert_paper.reproduce.records import Records

__all__ = ["Job", "Progress", "Row", "Table", "Value", "remembering_interrupts"]

Value = str | float
Row = Mapping[str, Value]
T = TypeVar("T")

#: (steps done, steps in all, what is done): called before every step.
Progress = Callable[[int, int, str], None]


#: Signals that came (Ctrl-C, TERM, HUP): questions then return what is known, no result of an experiment.
_pressed: list[int] = []


@contextmanager
def remembering_interrupts() -> Iterator[None]:
    """Ctrl-C, TERM and HUP raise KeyboardInterrupt, and no row is added to a table after it."""

    def press(number: int, frame: FrameType | None) -> NoReturn:
        _pressed.append(number)
        raise KeyboardInterrupt(128 + number)

    try:
        with on_signals(press):
            yield
    finally:
        first, _pressed[:] = _pressed[:1], []
        if first:  # whoever has caught it, and whatever was raised after it
            raise KeyboardInterrupt(128 + first[0])


@dataclass(frozen=True)
class Job:
    """One experiment's run: results go to `folder`, models shared by experiments to `models`."""

    folder: Path
    models: Path
    quick: bool
    progress: Progress = field(repr=False)
    tables: list[Table] = field(default_factory=list, repr=False)  #: those it has asked for

    def choose(self, full: T, quick: T) -> T:
        """The setting of the full run, or of the quick one."""
        return quick if self.quick else full

    def steps(self, items: Sequence[T], what: str) -> Iterator[T]:
        """The items, with progress."""
        for done, item in enumerate(items):
            self.progress(done, len(items), what)
            yield item
        self.progress(len(items), len(items), what)

    def table(
        self, name: str, keys: Sequence[str], numbers: Sequence[str], texts: Sequence[str] = ()
    ) -> Table:
        """The experiment's table `name`.csv; rows of an earlier run with the same settings are kept."""
        run = f"a {'quick' if self.quick else 'full'} run of gpcert {__version__}"
        self.tables.append(Table(self.folder / f"{name}.csv", keys, numbers, texts, run))
        return self.tables[-1]


class Table:
    """Rows of an experiment, one per key, kept in a store as soon as they are known: a later run skips them.

    Rows of another kind of run are never replaced nor used: the run is refused. `save` writes them as CSV.
    """

    def __init__(
        self,
        path: Path,
        keys: Sequence[str],
        numbers: Sequence[str],
        texts: Sequence[str],
        run: str,
    ) -> None:
        self.path, self.keys, self.columns = path, keys, (*keys, *numbers, *texts)
        self._known: dict[tuple[str, ...], Row] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        store = Store(path.parent / "rows.db")
        self._records, runs = Records(store, path.name), Records(store, "runs")
        rows, note = self._records.all(), [run, list(self.columns)]
        found = runs.all().get(path.name, ["an unknown run"])
        if rows:
            other = f"{found[0]}{' with other columns' * (found[0] == run)}"
            require(
                found == note, f"{path} must be of {run}, got {other}: choose another folder, or remove it"
            )
        for values in rows.values():
            self._remember(values)
        runs.put(path.name, note)

    @property
    def rows(self) -> list[Row]:
        """All rows, in the order in which they were added."""
        return list(self._known.values())

    def missing(self, keys: Iterable[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
        """Those keys that have no row yet."""
        return [key for key in keys if _as_text(key) not in self._known]

    def add(self, *values: Value) -> None:
        """One row: keys first, then numbers; none that a signal has cut short."""
        if _pressed:
            raise KeyboardInterrupt
        key = self._remember([value.item() if isinstance(value, np.generic) else value for value in values])
        try:
            self._records.put(json.dumps(key), list(self._known[key].values()))
        except StoreError as error:  # the row is given even so
            raise StoreError(f"{error}; the row not written is {','.join(map(str, values))}") from None

    def save(self) -> None:
        """All rows as CSV, whole or not at all."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([row[name] for name in self.columns] for row in self.rows)
        write_whole(self.path, text.getvalue())

    def select(self, **fixed: Value) -> list[Row]:
        """The rows with these values."""
        wanted = {name: str(value) for name, value in fixed.items()}
        return [row for row in self.rows if all(str(row[name]) == v for name, v in wanted.items())]

    def column(self, name: str, /, **fixed: Value) -> list[float]:
        """One column of numbers of the rows with these values."""
        return [float(row[name]) for row in self.select(**fixed)]

    def _remember(self, values: Sequence[Value]) -> tuple[str, ...]:
        key = _as_text(values[: len(self.keys)])
        self._known[key] = dict(zip(self.columns, values, strict=True))
        return key


def _as_text(key: Iterable[Value]) -> tuple[str, ...]:
    return tuple(str(value) for value in key)
