"""`make bench`: run the benchmarks beside this file, one process each, and write what they measured.

    python benchmarks/run.py [NAME ...]

A benchmark is a module here with `TITLE: str` and `measure() -> list[dict[str, str | float]]`, one row per
measurement. Results: `results/NAME.md` (date, machine, commit, a table), which may be checked in as it was
written, and `results/NAME.json` (the same as data, for pictures), which may not.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PACKAGES = ("gpcert", "numpy", "scipy", "python-flint")


def available() -> list[str]:
    return sorted(p.stem for p in HERE.glob("*.py") if p.stem != "run" and not p.stem.startswith("_"))


def surroundings() -> dict[str, str]:
    """What a figure depends on, the code included."""
    cpu = [line.partition(":")[2].strip() for line in cpu_lines() if line.startswith("model name")]
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": commit(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": cpu[0] if cpu else platform.processor() or "unknown",
        "cores": str(os.cpu_count()),
        **{name: version(name) for name in PACKAGES},
        **{name: os.environ.get(name, "not set") for name in THREADS},
        **{name: value for name, value in os.environ.items() if name.startswith("GPCERT_BENCH")},
    }


def commit() -> str:
    """The checkout's, with a plus where something is not committed."""
    git = ["git", "-C", str(HERE), "describe", "--always", "--exclude=*", "--dirty=+"]
    return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()


def cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def measure(name: str) -> None:
    """Run one benchmark in this process and write its two files."""
    module = importlib.import_module(name)
    begin = time.perf_counter()
    rows = module.measure()
    around = surroundings()
    report = {"title": module.TITLE, "seconds": time.perf_counter() - begin, "rows": rows, **around}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    text = markdown(module.TITLE, around, rows)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)


def markdown(title: str, around: dict[str, str], rows: list[dict[str, str | float]]) -> str:
    """A heading, where it was measured, and a table with a column for each key of any row, as first used."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [[show(row.get(column, "")) for column in columns] for row in rows]
    table = [columns, ["---"] * len(columns), *lines]
    measured = "; ".join(f"{name} {value}" for name, value in around.items())
    return f"# {title}\n\nWritten by `benchmarks/run.py`: {measured}.\n\n" + "".join(
        "| " + " | ".join(cells) + " |\n" for cells in table
    )


def show(value: str | float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(available())}; all if none")
    parser.add_argument("--here", action="store_true", help="run in this process (used by the driver itself)")
    args = parser.parse_args()
    unknown = sorted(set(args.names) - set(available()))
    if unknown:
        parser.error(f"NAME must be one of {', '.join(available())}, got {unknown[0]}")
    if args.here:
        for name in args.names:
            measure(name)
        return 0
    # A process each: no benchmark inherits another's memory, caches or thread pools.
    one_thread = {**os.environ, **dict.fromkeys(THREADS, "1")}
    failed = [
        name
        for name in args.names or available()
        if subprocess.run([sys.executable, __file__, "--here", name], env=one_thread, check=False).returncode
    ]
    for name in failed:
        print(f"benchmark {name} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
