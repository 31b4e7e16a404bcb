"""Answers that took hours are kept: what can be checked is checked before; a file that fails has a second.

Only a complete run replaces a file that holds something; what an interrupted one knows goes beside it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from gpcert.errors import InvalidInputError
from gpcert.formats import extension
from gpcert.validation import require


class Kept(NamedTuple):
    """Where it is, None: nowhere; what to tell if that is not where it was wanted; whether saving failed."""

    place: Path | None
    note: str = ""
    failed: bool = False


def check_output(
    path: Path | None, *others: str | Path | None, ends: Sequence[str], name: str = "--output"
) -> None:
    """What would fail after the work is an error before it; no other file of the command is written over.

    `ends`: the extensions that it may have.
    """
    if path is None:
        return
    try:
        require(path.parent.is_dir(), f"{name} must be in a folder that exists, got {path}")
        require(not path.is_dir(), f"{name} must be a file, got the folder {path}")
        require(not path.exists() or path.is_file(), f"{name} must be an ordinary file, got {path}")
        for other in others:
            distinct = other is None or not _same(path, Path(other))
            require(
                distinct, f"{name} must be a file of its own, got {path}, which the command uses elsewhere"
            )
        extension(name, path, *ends)
        _try_folder(path)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        reason = getattr(error, "strerror", None) or error
        raise InvalidInputError(f"{name} must be a file that can be written, got {path} ({reason})") from None


def check_outputs(parsed: argparse.Namespace, *inputs: str | Path | None) -> None:
    """All that a question writes, -o, --junit, --store, --proof, are different files, and none is read."""
    store, proof, junit = (getattr(parsed, option, None) for option in ("store", "proof", "junit"))
    used = [*inputs, *files_of_store(store), proof]
    check_output(parsed.output, *used, ends=parsed.ends)
    check_output(junit, parsed.output, *used, ends=(".xml",), name="--junit")


def files_of_store(store: Path | None) -> list[Path]:
    """A store, and what SQLite writes beside it."""
    return [] if store is None else [Path(f"{store}{end}") for end in ("", "-wal", "-shm", "-journal")]


def _same(one: Path, other: Path) -> bool:
    """Whether they are one file, or would be: links included, and names of what is not there yet."""
    if one.exists() and other.exists():
        return os.path.samefile(one, other)
    return one.resolve() == other.resolve()


def keep(path: Path, write: Callable[[Path], None], complete: bool = True) -> Kept:
    """`write(path)`; beside it what is incomplete and would replace a file; elsewhere where that fails."""
    wanted = path
    try:
        wanted = path if complete or not _holds_something(path) else _beside(path)
        write(wanted)
    except OSError as error:
        if wanted != path:
            with suppress(OSError):
                wanted.unlink()
        return rescue(str(path), path.name, write, error.strerror or str(error.__cause__ or error))
    note = f"{path} stays as it was; this incomplete run is in {wanted}"
    return Kept(wanted, note if wanted != path else "")


def _try_folder(path: Path) -> None:
    """Make, and remove, a file with the longest name that writing needs: no rights or flags say as much."""
    path = path.resolve()
    probe = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    with open(probe, "xb"):
        pass
    os.unlink(probe)


def _holds_something(path: Path) -> bool:
    """An empty file (`mktemp`) has nothing to lose."""
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _beside(path: Path) -> Path:
    """certify.partial.json for certify.json; certify.partial-2.json if that exists, and so on; now it does.

    Made here, empty, so that of two runs that are interrupted at once neither takes the other's name.
    """
    for i in count(1):
        other = path.with_name(f"{path.stem}.partial{f'-{i}' if i > 1 else ''}{path.suffix}")
        with suppress(FileExistsError), open(other, "xb"):
            return other
    raise AssertionError  # counting does not end


def rescue(wanted: str, name: str, write: Callable[[Path], None], reason: str) -> Kept:
    """In the temporary folder, readable by this user alone, where `wanted` could not be written."""
    from tempfile import mkdtemp

    message, folder = f"{wanted} could not be written ({reason})", None
    try:
        folder = Path(mkdtemp(prefix="gpcert-rescued-"))
        write(folder / name)
    except OSError:
        if folder is not None:
            with suppress(OSError):
                folder.rmdir()
        return Kept(None, message, failed=True)
    return Kept(folder / name, f"{message}; saved in its place: {folder / name}", failed=True)
