"""`gpcert VERB ...`: the parser, and the one place where errors become one line and an exit status."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from gpcert import __version__
from gpcert.cli import demo
from gpcert.errors import GpcertError

__all__ = ["main"]

_VERBS = (demo,)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; 0 when done, 2 for bad input, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="gpcert", description="Guaranteed ranges of GP-classifier probabilities."
    )
    parser.add_argument("--version", action="version", version=f"gpcert {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for verb in _VERBS:
        verb.add_parser(verbs)
    parsed = parser.parse_args(arguments)
    try:
        parsed.run(parsed)
    except (GpcertError, OSError) as error:
        print(f"gpcert: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0
