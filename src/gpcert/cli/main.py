"""`gpcert VERB ...`: the parser, and the one place where errors become one line and an exit status."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import NoReturn

from gpcert import __version__
from gpcert.cli.show import tell, warn
from gpcert.errors import GpcertError
from gpcert.extras import installing, plugins
from gpcert.running import THREADS, on_signals
from gpcert.validation import meant, printable

#: What the verbs do, in the order of `gpcert --help`; each is a module of this package with DESCRIPTION,
#: EXAMPLES, configure(parser) and run(parsed), and is imported only when it is asked for.
VERBS = {
    "fit": "train a classifier on a table",
    "range": "lowest and highest probability of a class over regions",
    "certify": "can the label change within a region?",
    "radius": "how far can a row move before its label changes?",
    "explain": "which features push the probability up or down?",
    "attack": "look for a point with another label",
    "report": "one HTML page from results",
    "campaign": "many questions from a file: run, status, report",
    "store": "answers that were kept: list, show, export, compact, merge",
    "demo": "train on shipped data, certify, write an HTML page",
}


class _Parser(argparse.ArgumentParser):
    """argparse with its errors as one line, as everywhere in gpcert."""

    options: tuple[str, ...] = ()  #: those of the verb, for suggestions

    def _check_value(self, action: argparse.Action, value: object) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += meant(value, action.choices or ()) + installing(value)
            raise

    def error(self, message: str) -> NoReturn:
        unknown = message.partition("unrecognized arguments: ")[2].split()[:1]
        for option in unknown if message.startswith("unrecognized") else ():
            message += meant(option, self.options)
        self.exit(2, printable(f"{self.prog}: {message}; see {self.prog} --help") + "\n")


def make_parser(wanted: str | None = None) -> argparse.ArgumentParser:
    """The parser, with the options of the wanted verb only: the others' modules are not even imported.

    None: with those of all verbs, for `shtab gpcert.cli.main.make_parser`.
    """
    parser = _Parser(
        prog="gpcert",
        description="Guaranteed ranges of a Gaussian-process classifier's probability over regions.",
        epilog="gpcert VERB --help shows the options of a verb, with examples.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"gpcert {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", dest="verb", required=True)
    others = {} if wanted in VERBS else plugins("verbs")
    summaries = {verb: each.dist.metadata["Summary"] for verb, each in others.items() if each.dist}
    for verb, summary in (VERBS | summaries).items():
        own = verbs.add_parser(
            verb, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
        )
        if wanted in (None, verb):
            declare(own, verb)
            parser.options = tuple(name for action in own._actions for name in action.option_strings)
    return parser


def declare(parser: argparse.ArgumentParser, verb: str) -> None:
    """Give the parser what the verb's module says: text, examples, options, and what to run."""
    module = import_module(f"gpcert.cli.verbs.{verb}") if verb in VERBS else plugins("verbs")[verb].load()
    parser.description = module.DESCRIPTION.strip()
    parser.epilog = "examples:\n" + module.EXAMPLES.strip("\n")
    module.configure(parser)
    parser.set_defaults(run=module.run)
    for action in parser._actions:
        if not action.choices:
            vars(action)["complete"] = "file"  # what shtab offers


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit status is one of docs/cli.md."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given and given[0] != "fit":
        # Read when BLAS is loaded: questions are many small products, which more threads only slow down.
        for name in THREADS:
            os.environ.setdefault(name, "1")
    parsed = make_parser(given[0] if given else "").parse_args(given)
    parsed.command = given
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # no answer is lost for a letter
    status = _run(parsed)
    unsaid = tell()  # what is still in the buffer
    return status or unsaid


def _run(parsed: argparse.Namespace) -> int:
    try:
        with on_signals(_stop):
            return int(parsed.run(parsed) or 0)
    except BrokenPipeError:
        return 0  # the reader of a pipe (`| head`) has gone: nobody to tell
    except GpcertError as error:
        warn(str(error))
    except OSError as error:
        warn(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except MemoryError:
        warn("out of memory; fewer rows, features or --jobs need less")
    except KeyboardInterrupt as stopped:
        return next(iter(stopped.args), 130)
    return 2


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    """TERM and HUP end as Ctrl-C does: no half-written file stays, no process."""
    raise KeyboardInterrupt(128 + number)
