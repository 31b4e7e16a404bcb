"""`gpcert report`: one self-contained HTML page from results files."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpcert.cli.keeping import check_output, keep
from gpcert.cli.show import tell, warn
from gpcert.files import write_whole
from gpcert.pages import report
from gpcert.validation import printable

DESCRIPTION = """
Turn results into one HTML file that opens offline: what is proved in one sentence, classes one by one,
curves, a table of rows that sorts and filters, pictures of images, every setting and version. Files
of one model and kind of region (certify, radius, attack, ...) are put together; several models over
the same data are compared.
"""
EXAMPLES = """
  gpcert report results.json -o report.html
  gpcert report certify.json radius.json attack.json --title "Ward 7" -o report.html
  gpcert report laplace.json ep.json -o comparison.html
  gpcert report monday.json tuesday.json --apart -o runs.html
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULTS", help="files that questions saved")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the page")
    parser.add_argument("--title", help="heading of the page")
    parser.add_argument(
        "--apart", action="store_true", help="compare file with file, even where they are about one model"
    )


def run(parsed: argparse.Namespace) -> int:
    """Write the page and say where it is."""
    check_output(parsed.output, *parsed.results, ends=(".html", ".htm"))
    text = report(parsed.results, parsed.title, parsed.apart)
    kept = keep(parsed.output, lambda place: write_whole(place, text))
    unsaid = 0 if kept.place is None else tell(f"report written: {printable(str(kept.place))}")
    if kept.note:
        warn(kept.note)
    return int(kept.failed) or unsaid
