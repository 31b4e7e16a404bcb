"""What every experiment works with: its folder, how much to do, and a table that survives interruption."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar

from gpcert import __version__
from gpcert.files import write_whole
from gpcert.running import on_signals
from gpcert.validation import require

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
        return Table(self.folder / f"{name}.csv", keys, numbers, texts, run)


class Table:
    """Rows in a CSV file, one per key, written as soon as they are known: a later run skips what is there.

    Rows of another kind of run (a note beside the table says which) are never replaced nor used: the run is
    refused. A line that a crash has cut off or filled with something else is dropped, to be done again.
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
        self._numbers = numbers
        self._known: dict[tuple[str, ...], Row] = {}
        note = [run, ", ".join(self.columns)]
        beside = path.with_suffix(".run.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = _lines(path)
        if len(lines) > 1:
            found = _lines(beside)
            other = f"{found[0] if found else 'an unknown run'}{' with other columns' * (found[:1] == [run])}"
            require(
                found == note, f"{path} must be of {run}, got {other}: choose another folder, or remove it"
            )
            self._read(lines[1:])
        write_whole(beside, "\n".join([*note, ""]))
        self._write_all()

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
        row = dict(zip(self.columns, values, strict=True))
        self._known[_as_text(values[: len(self.keys)])] = row
        try:
            with self.path.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerow(values)
        except (
            OSError
        ) as error:  # the row is given even so; what is left of its line is dropped by the next run
            told = f"{error.strerror}; the row not written is {','.join(map(str, values))}"
            raise OSError(error.errno, told, str(self.path)) from None

    def select(self, **fixed: Value) -> list[Row]:
        """The rows with these values."""
        wanted = {name: str(value) for name, value in fixed.items()}
        return [row for row in self.rows if all(str(row[name]) == v for name, v in wanted.items())]

    def column(self, name: str, /, **fixed: Value) -> list[float]:
        """One column of numbers of the rows with these values."""
        return [float(row[name]) for row in self.select(**fixed)]

    def _read(self, lines: Sequence[str]) -> None:
        for line in lines:
            cells = next(csv.reader([line]), [])
            if len(cells) != len(self.columns) or "\ufffd" in line:
                continue
            row = dict(zip(self.columns, map(_parsed, cells), strict=True))
            if all(isinstance(row[name], int | float) for name in self._numbers):
                self._known[tuple(cells[: len(self.keys)])] = row

    def _write_all(self) -> None:
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([row[name] for name in self.columns] for row in self.rows)
        write_whole(self.path, text.getvalue())


def _lines(path: Path) -> list[str]:
    """The whole lines of a file: one without its end may lack digits too. None if there is no file."""
    if not path.exists():
        return []
    return path.read_bytes().decode("utf-8", errors="replace").split("\n")[:-1]


def _as_text(key: Iterable[Value]) -> tuple[str, ...]:
    return tuple(str(value) for value in key)


def _parsed(cell: str) -> Value:
    try:
        return int(cell) if cell.lstrip("-").isdigit() else float(cell)
    except ValueError:
        return cell
