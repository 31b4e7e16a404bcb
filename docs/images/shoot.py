"""Takes the picture of the report, `report.png`, in headless Chromium.

Run it where gpcert and a Chromium are installed: python docs/images/shoot.py [folder of `gpcert demo`]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from chromium import Page  # noqa: E402


def main(demo: Path) -> None:
    """The first screen of the report of the demo."""
    with tempfile.TemporaryDirectory() as profile, Page(Path(profile)) as page:
        page.open(demo / "index.html")
        page.screenshot(Path(__file__).parent / "report.png", whole=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "out" / "demo")
