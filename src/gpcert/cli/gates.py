"""A share of rows that has to be proved: `--require`, for continuous integration."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from gpcert.cli.keeping import keep
from gpcert.cli.options import number
from gpcert.cli.show import say, warn
from gpcert.files import write_whole
from gpcert.numbers import counted, exactly
from gpcert.records.rows import Row
from gpcert.results import Verdict
from gpcert.validation import require

#: The exit status where less is proved than was required.
NOT_MET = 3


def add_gate(parser: argparse.ArgumentParser) -> None:
    """The options of a gate."""
    group = parser.add_argument_group("gate (exit status 3 where it is not met)")
    told = "share of the rows that must be right and proved safe at every radius"
    group.add_argument("--require", type=_share, metavar="SHARE", help=told)
    group.add_argument("--class", dest="only", metavar="CLASS", help="count only rows truly of this class")
    group.add_argument("--at", type=number, metavar="R", help="only at this of the radii")
    group.add_argument("--junit", type=Path, metavar="FILE", help="write the outcome as JUnit XML")


def _share(text: str) -> Fraction:
    """A decimal, not its double: 9 of 10 rows meet 0.9."""
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(-1)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be a share from 0 to 1, got {text!r}")
    return value


@dataclass(frozen=True)
class Gate:
    """What is required of which rows, (row, radius), by their true labels."""

    share: Fraction
    only: str | None
    rows: dict[float | None, list[tuple[int, str]]]  #: by radius; None: each row has its own
    junit: Path | None
    threshold: float  #: what P(label) stays above where it is proved safe

    def judge(self, answers: Sequence[Row], classes: Sequence[str], seconds: float, quiet: bool) -> int:
        """Say and write whether it is met: 0, or the exit status; rows without an answer are not proved."""
        proved = {(r.row, r.radius) for r in answers if _holds(r, classes)}
        cases = []
        for radius, rows in self.rows.items():
            known = proved if radius is not None else {(row, None) for row, _ in proved}
            lost = [row for row, _ in rows if (row, radius) not in known]
            cases.append((radius, len(rows), lost, Fraction(len(rows) - len(lost), len(rows)) >= self.share))
        for radius, n, lost, met in cases:
            line = self._line(radius, n, len(lost), met)
            if not met:
                warn(line)
            elif not quiet:
                say(line)
        if self.junit is not None:
            text = self._xml(cases, seconds)
            kept = keep(self.junit, lambda place: write_whole(place, text))
            if kept.note:
                warn(kept.note)
        return 0 if all(met for *_, met in cases) else NOT_MET

    def _line(self, radius: float | None, n: int, lost: int, met: bool) -> str:
        where = "its own radius" if radius is None else f"radius {exactly(radius)}"
        held = f"{counted(n - lost, n)} rows"
        who = "" if self.only is None else f" of class {self.only}"
        kept = "" if self.threshold == 0.5 else f" with a probability above {exactly(self.threshold)}"
        told = (
            f"required {exactly(float(self.share))} right and proved safe{kept}{who} at {where}, got {held}"
        )
        return f"{told}: {'met' if met else 'NOT met'}"

    def _xml(self, cases: Sequence[tuple[float | None, int, list[int], bool]], seconds: float) -> str:
        """One test case for each radius."""
        made = []
        for radius, n, lost, met in cases:
            line = _text(self._line(radius, n, len(lost), met))
            rows = f"rows not proved: {', '.join(map(str, lost)) or 'none'}"
            name = f"{self.only or 'all rows'} at {'own radii' if radius is None else exactly(radius)}"
            inside = f"<system-out>{escape(line)}; {rows}</system-out>"
            if not met:
                inside = f"<failure message={quoteattr(line)}>{rows}</failure>"
            case = f'<testcase classname="gpcert.certify" name={quoteattr(_text(name))} time="{seconds:.3f}">'
            made.append(f"{case}{inside}</testcase>")
        failed = sum(not met for *_, met in cases)
        counts = f'tests="{len(cases)}" failures="{failed}" errors="0"'
        suite = f'<testsuite name="gpcert certify" {counts} time="{seconds:.3f}">'
        return "\n".join(
            [
                '<?xml version="1.0" encoding="UTF-8"?>',
                "<testsuites>",
                suite,
                *made,
                "</testsuite>",
                "</testsuites>\n",
            ]
        )


def _holds(row: Row, classes: Sequence[str]) -> bool:
    """Proved: the class that cannot change is the true one."""
    answer: Any = row.answer
    return isinstance(answer, Verdict) and answer.status == "safe" and classes[answer.label] == row.label


def _text(text: str) -> str:
    """What XML can hold."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def read_gate(parsed: argparse.Namespace, rows: Sequence[tuple[int, str | None, float]]) -> Gate | None:
    """From the options and (row, true label, radius) of all that is asked; what cannot be is told before."""
    if parsed.require is None:
        for name, value in (("--class", parsed.only), ("--at", parsed.at), ("--junit", parsed.junit)):
            require(value is None, f"{name} must be given with --require, got it alone")
        return None
    require(all(label is not None for _, label, _ in rows), "--require needs true labels; see --target")
    by_radius: dict[float | None, list[tuple[int, str]]] = {}
    for row, label, radius in rows:
        key = None if parsed.radius is None else radius
        if label is not None and parsed.only in (None, label) and parsed.at in (None, radius):
            by_radius.setdefault(key, []).append((row, label))
    asked = ", ".join(sorted({exactly(radius) for *_, radius in rows})[:8])
    known = parsed.at is None or parsed.at in {radius for *_, radius in rows}
    require(known, f"--at must be one of the radii asked about, {asked}, got {parsed.at}")
    require(bool(by_radius), f"--class must be the true class of at least one row, got {parsed.only!r}")
    return Gate(parsed.require, parsed.only, by_radius, parsed.junit, parsed.threshold)
