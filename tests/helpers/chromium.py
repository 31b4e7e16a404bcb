"""Headless Chromium over its debugging pipe: file descriptors 3 and 4, messages that end in a zero byte."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from base64 import b64decode
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find() -> str | None:
    """The installed browser, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One page of a browser of its own; `problems` collects errors, exceptions and refused requests."""

    def __init__(self, profile: Path, dark: bool = False) -> None:
        browser = find()
        assert browser is not None, "chromium must be installed (Debian: apt-get install chromium)"
        into, out = os.pipe(), os.pipe()

        def pass_pipes() -> None:
            os.dup2(into[0], 30)  # first out of the way: a pipe may have the number 3 or 4 already
            os.dup2(out[1], 40)
            os.dup2(30, 3)
            os.dup2(40, 4)

        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        options += ["--remote-debugging-pipe", f"--user-data-dir={profile}", "--window-size=1200,900"]
        self._process = subprocess.Popen(
            [browser, *options],
            close_fds=False,
            preexec_fn=pass_pipes,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(into[0])
        os.close(out[1])
        self._write, self._read = os.fdopen(into[1], "wb", buffering=0), os.fdopen(out[0], "rb", buffering=0)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.problems: list[str] = []
        self.loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write.close()
        self._read.close()
        self._process.terminate()
        self._process.wait(timeout=30)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of one command; events that arrive meanwhile are looked at."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                return dict(answer["result"])
            self._look(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            piece = self._read.read(1 << 16)
            assert piece, "chromium ended"
            self._buffer += piece
        first, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(first))

    def _look(self, event: dict[str, Any]) -> None:
        told = event.get("params", {})
        name = event.get("method")
        if name == "Page.loadEventFired":
            self.loaded = True
        elif (
            name == "Runtime.exceptionThrown"
            or (name == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"))
            or (name == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"))
        ):
            self.problems.append(json.dumps(told)[:500])
        elif name == "Network.requestWillBeSent":
            url = told["request"]["url"]
            if not url.startswith(("file:", "data:", "about:")):
                self.problems.append(f"request to {url}")

    def open(self, path: Path) -> None:
        """Load a file and wait until it is there."""
        self.loaded = False
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not self.loaded:
            self._look(self._next())

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, path: Path, whole: bool = True) -> None:
        """A PNG of the page."""
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 8000), "scale": 1}
            taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(b64decode(taken["data"]))
