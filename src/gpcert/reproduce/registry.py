"""The experiments by name, and the one function that runs them."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from gpcert.reproduce.job import Job, Progress
from gpcert.reproduce.page import Findings, write_index, write_page
from gpcert.validation import require

__all__ = ["EXPERIMENTS", "reproduce"]

#: Name on the command line -> module and function; a module is imported when its experiment is run.
EXPERIMENTS = {
    "safety-synthetic": ("safety", "safety_synthetic"),
    "safety-spam": ("safety", "safety_spam"),
    "safety-mnist": ("safety", "safety_mnist"),
    "robustness": ("robustness", "robustness"),
    "posterior-quality": ("quality", "posterior_quality"),
    "interpret-mnist358": ("interpret_local", "interpret_mnist358"),
    "interpret-global": ("interpret", "interpret_global"),
    "runtime": ("runtime", "runtime"),
}


def reproduce(
    name: str,
    out: Path,
    quick: bool = False,
    progress: Progress = lambda done, total, what: None,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Run one experiment, or "all", into the folder `out`; returns the page. A second run goes on."""
    require(
        name == "all" or name in EXPERIMENTS,
        f"name must be all or one of {', '.join(EXPERIMENTS)}, got {name!r}",
    )
    names = list(EXPERIMENTS) if name == "all" else [name]
    pages: list[tuple[str, Findings]] = []
    path = out
    for each in names:
        start, cpu = time.perf_counter(), time.process_time()
        job = Job(out / each, out / "models", quick, progress)
        job.folder.mkdir(parents=True, exist_ok=True)
        findings = _experiment(each)(job)
        files = sorted(f.name for f in job.folder.glob("*.csv") if f.name != "claims.csv")
        path = write_page(job.folder, findings, files)
        pages.append((each, findings))
        spent = time.perf_counter() - start, time.process_time() - cpu
        say(f"{each}: {spent[0]:.0f} s ({spent[1]:.0f} s of CPU), {path}")
    return path if name != "all" else write_index(out, pages)


def _experiment(name: str) -> Callable[[Job], Findings]:
    module, function = EXPERIMENTS[name]
    found: Callable[[Job], Findings] = getattr(import_module(f"gpcert.reproduce.{module}"), function)
    return found
