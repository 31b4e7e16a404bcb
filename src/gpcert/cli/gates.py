"""A share of rows that has to be proved: `--require`, for continuous integration."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from gpcert.classes import Label, position
from gpcert.cli.keeping import keep
from gpcert.cli.options import number
from gpcert.cli.show import say, warn
from gpcert.files import write_whole
from gpcert.numbers import between, counted, exactly
from gpcert.records.rows import Row
from gpcert.results import Verdict
from gpcert.validation import printable, require

#: The exit status where less is proved than was required.
NOT_MET = 3


def add_gate(parser: argparse.ArgumentParser) -> None:
    """The options of a gate."""
    group = parser.add_argument_group("gate (exit status 3 where it is not met)")
    rule = "share of the rows that must be right and proved safe at every radius"
    group.add_argument("--require", type=_share, metavar="SHARE", help=rule)
    group.add_argument("--class", dest="only", metavar="CLASS", help="count only rows truly of this class")
    group.add_argument("--at", type=number, metavar="R", help="only at this of the radii")
    group.add_argument(
        "--junit",
        type=Path,
        metavar="FILE",
        help="write the outcome as JUnit XML: a case for each row, and the gate",
    )


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
    """What is required of which rows, by their true labels."""

    share: Fraction
    only: str | None
    rows: dict[float | None, list[Row]]  #: what is asked, by radius; None: each row has its own region
    junit: Path | None
    threshold: float  #: what P(label) stays above where it is proved safe

    def judge(self, answers: Sequence[Row], seconds: float, quiet: bool) -> int:
        """Say and write whether it is met: 0, or the exit status; rows without an answer are not proved."""
        found = {(r.row, r.radius if r.radius in self.rows else None): r.answer for r in answers}
        suite = ElementTree.Element("testsuite", name="gpcert certify", time=f"{seconds:.3f}")
        status = 0
        for radius, rows in self.rows.items():
            lost = [_lost(found.get((each.row, radius)), each.label) for each in rows]
            held = lost.count("")
            met = Fraction(held, len(rows)) >= self.share
            line = self._line(radius, held, len(rows), met)
            if not met:
                status = NOT_MET
                warn(line)
            elif not quiet:
                say(line)
            at = "" if radius is None else f" at {exactly(radius)}"
            for each, why in zip(rows, lost, strict=True):
                _add_case(
                    suite,
                    "gpcert.certify",
                    f"row {each.row if each.id is None else each.id}{at}",
                    why,
                    "skipped" if met else "failure",
                )
            _add_case(suite, "gpcert.gate", f"{self.only or 'all rows'}{at}", "" if met else line, "failure")
        if self.junit is not None:
            text = _document(suite)
            kept = keep(self.junit, lambda place: write_whole(place, text))
            if kept.note:
                warn(kept.note)
        return status

    def _line(self, radius: float | None, held: int, n: int, met: bool) -> str:
        where = "its own region" if radius is None else f"radius {exactly(radius)}"
        who = "" if self.only is None else f" of class {self.only}"
        kept = "" if self.threshold == 0.5 else f" with a probability above {exactly(self.threshold)}"
        rule = f"required {exactly(float(self.share))} right and proved safe{kept}{who} at {where}"
        return f"{rule}, got {counted(held, n)} rows: {'met' if met else 'NOT met'}"


def _lost(answer: Any, label: str | None) -> str:
    """Why a row does not count; "": it is proved that its class, which is the true one, cannot change."""
    if not isinstance(answer, Verdict):
        return "no answer"
    if answer.status != "safe":
        return f"{answer.status}: margin in {between(answer.margin.lower, answer.margin.upper)}"
    own = str(answer.label)
    return "" if own == label else f"safe, but as {own}: its class is {label}"


def _add_case(suite: ElementTree.Element, group: str, name: str, why: str, kind: str) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=group, name=printable(name))
    if why:
        ElementTree.SubElement(case, kind, message=printable(why))


def _document(suite: ElementTree.Element) -> bytes:
    for name, path in (("tests", "testcase"), ("failures", "*/failure"), ("skipped", "*/skipped")):
        suite.set(name, str(len(suite.findall(path))))
    tree = ElementTree.Element("testsuites")
    tree.append(suite)
    ElementTree.indent(tree)
    content: bytes = ElementTree.tostring(tree, "utf-8", xml_declaration=True)
    return content


def read_gate(parsed: argparse.Namespace, rows: Sequence[Row], classes: Sequence[Label]) -> Gate | None:
    """From the options, and all that is asked (without answers); what cannot be is one sentence."""
    if parsed.require is None:
        for name, value in (("--class", parsed.only), ("--at", parsed.at), ("--junit", parsed.junit)):
            require(value is None, f"{name} must be given with --require, got it alone")
        return None
    require(all(each.label is not None for each in rows), "--require needs true labels; see --target")
    only = None if parsed.only is None else str(classes[position(classes, parsed.only, "--class")])
    by_radius: dict[float | None, list[Row]] = {}
    for each in rows:
        if only in (None, each.label) and parsed.at in (None, each.radius):
            by_radius.setdefault(None if parsed.radius is None else each.radius, []).append(each)
    radii = {each.radius for each in rows if each.radius is not None}
    asked = ", ".join(map(exactly, sorted(radii)[:8])) or "of which there are none"
    known = parsed.at is None or parsed.at in radii
    require(known, f"--at must be one of the radii asked about, {asked}, got {parsed.at}")
    require(bool(by_radius), f"--class must be the true class of at least one row, got {only!r}")
    return Gate(parsed.require, only, by_radius, parsed.junit, parsed.threshold)
