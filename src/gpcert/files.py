"""Files written whole or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from uuid import uuid4


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all: a temporary file beside it, which then takes its place.

    It has the mode of the file it replaces, before any content is in it; a new file has the umask's.
    """
    path = path.resolve()  # a link stays a link
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        with open(temporary, "xb") as file:
            _take_mode(file.fileno(), path)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _take_mode(descriptor: int, path: Path) -> None:
    with suppress(FileNotFoundError):
        wanted = stat.S_IMODE(path.stat().st_mode)
        # Only where it differs: some file systems have no modes to change.
        if wanted != stat.S_IMODE(os.fstat(descriptor).st_mode):
            os.chmod(descriptor, wanted)
