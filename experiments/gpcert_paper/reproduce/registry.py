"""The experiments by name, and the one function that runs them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

from gpcert.errors import GpcertError, InvalidInputError
from gpcert.validation import require
from gpcert_paper.reproduce.job import Job, Progress
from gpcert_paper.reproduce.page import Findings, write_index, write_page

__all__ = ["EXPERIMENTS", "reproduce"]

#: Name on the command line -> module, function, and the optional packages it imports. Modules are imported
#: when their experiment is run.
EXPERIMENTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "outline": ("outline", "outline", ()),
    "safety-synthetic": ("safety", "safety_synthetic", ()),
    "safety-spam": ("safety", "safety_spam", ()),
    "safety-mnist": ("safety", "safety_mnist", ("skimage",)),
    "robustness": ("robustness", "robustness", ("skimage",)),
    "posterior-quality": ("quality", "posterior_quality", ("mici", "arviz_stats")),
    "interpret-mnist358": ("interpret_local", "interpret_mnist358", ("lime",)),
    "interpret-global": ("interpret", "interpret_global", ("lime",)),
    "runtime": ("runtime", "runtime", ("skimage",)),
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
    _need(names)
    for each in names:
        _try_folder(out / each)
    pages: list[tuple[str, Findings]] = []
    path = out
    for each in names:
        start, cpu = time.perf_counter(), time.process_time()
        job = Job(out / each, out / "models", quick, progress)
        findings = _experiment(each)(job)
        for table in job.tables:
            table.save()
        files = sorted(f.name for f in job.folder.glob("*.csv") if f.name != "claims.csv")
        path = write_page(job.folder, findings, files)
        pages.append((each, findings))
        spent = time.perf_counter() - start, time.process_time() - cpu
        say(f"{each}: {spent[0]:.0f} s ({spent[1]:.0f} s of CPU), {path}")
    return path if name != "all" else write_index(out, pages)


def _need(names: Sequence[str]) -> None:
    """Packages that are missing are missed before the first experiment, not after hours."""
    wanted = dict.fromkeys(package for name in names for package in ("matplotlib", *EXPERIMENTS[name][2]))
    missing = [package for package in wanted if find_spec(package) is None]
    if missing:
        raise GpcertError(
            f"these experiments need {', '.join(missing)}: pip install 'gpcert-paper[reproduce]'"
        )


def _try_folder(folder: Path) -> None:
    """So is a place where nothing can be written: the folder is made, and a file in it, gone at once."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidInputError(
            f"out must be a folder that can be written, got {folder} ({error.strerror})"
        ) from None


def _experiment(name: str) -> Callable[[Job], Findings]:
    module, function, _ = EXPERIMENTS[name]
    found: Callable[[Job], Findings] = getattr(import_module(f"gpcert_paper.reproduce.{module}"), function)
    return found
