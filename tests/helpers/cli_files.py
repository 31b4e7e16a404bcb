"""For the tests of the command line: a table in odd units, and commands that run while the test looks on."""

from __future__ import annotations

import csv
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import termios
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

NAMES = ["age", "weight, kg", "<b>dose</b>"]
#: Columns of very different units, and an offset.
UNIT = np.array([10.0, 0.01, 3000.0])
OFFSET = np.array([50.0, 0.0, -1e4])


def points(n: int, seed: int) -> tuple[np.ndarray, list[str]]:
    random = np.random.default_rng(seed)
    Z = random.normal(size=(n, 3))
    labels = ["ill" if z[0] + 0.7 * z[1] ** 2 > 0.4 else "well" for z in Z]
    return Z * UNIT + OFFSET, labels


def write_table(path: Path, rows: list[list[object]], header: list[str]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def patients(folder: Path, name: str, n: int, seed: int) -> Path:
    X, labels = points(n, seed)
    rows = [[f"p{i}", *map(repr, x.tolist()), y] for i, (x, y) in enumerate(zip(X, labels, strict=True))]
    return write_table(folder / name, rows, ["who", *NAMES, "state"])


class Running:
    """`gpcert` in a session of its own, standard error on a terminal, with its own temporary folder.

    Signals have their defaults, whatever this process ignores, but for those `ignored` (`nohup`). With
    `terminal`, standard output goes there, too.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        program: tuple[str, ...] = ("-m", "gpcert"),
        ignored: tuple[int, ...] = (),
        terminal: bool = False,
    ) -> None:
        self.temporary = Path(tempfile.mkdtemp(dir=folder))
        self._terminal, line = pty.openpty()
        termios.tcsetwinsize(line, (24, 120))  # else there is no room for a bar
        self._seen = b""

        def dispositions() -> None:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

        self.process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            cwd=folder,
            stdout=line if terminal else subprocess.PIPE,
            stderr=line,
            text=True,
            start_new_session=True,
            env=os.environ | {"TMPDIR": str(self.temporary)},
            preexec_fn=dispositions,
        )
        os.close(line)

    def until(self, sign: str) -> None:
        """Read standard error until it shows the sign."""
        while not re.search(sign.encode(), self._seen):
            self._seen += os.read(self._terminal, 1000)

    def to_group(self, number: int) -> None:
        """A signal to every process, as terminals and schedulers send it."""
        os.killpg(self.process.pid, number)

    def end(self) -> tuple[int, str, str]:
        """Exit status, standard output, standard error; every process of the session must have gone."""
        out, _ = self.process.communicate(timeout=120)
        with suppress(OSError):  # the other side is closed
            while more := os.read(self._terminal, 1000):
                self._seen += more
        os.close(self._terminal)
        self.gone()
        return self.process.returncode, out, self._seen.decode()

    def workers(self) -> list[int]:
        """Processes of the session that compute: not the first, not the tracker of semaphores."""
        return [pid for pid, command in self._members() if b"popen_loky" in command]

    def gone(self) -> None:
        """Wait until no process of the session is left."""
        deadline = time.monotonic() + 60
        while left := [pid for pid, _ in self._members() if pid != self.process.pid]:
            assert time.monotonic() < deadline, f"processes left: {left}"
            time.sleep(0.05)

    def _members(self) -> list[tuple[int, bytes]]:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                state, *_, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == self.process.pid and state != "Z":
                    found.append((int(entry.name), (entry / "cmdline").read_bytes()))
        return found
