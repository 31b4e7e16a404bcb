"""Print the lowest versions that pyproject.toml admits, for pip: `numpy>=1.26` -> `numpy==1.26.*`.

`make test-full` runs the suite on them, so that the bounds stay true.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

GROUPS = ("plots", "tables", "sklearn", "completion", "test")


def main() -> None:
    """One requirement per line: the core dependencies and the groups the tests need."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"]
    bounds = project["dependencies"] + [b for g in GROUPS for b in project["optional-dependencies"][g]]
    for bound in bounds:
        if not bound.startswith("gpcert["):
            print(re.sub(r">=([\d.]+).*", r"==\1.*", bound))


if __name__ == "__main__":
    main()
