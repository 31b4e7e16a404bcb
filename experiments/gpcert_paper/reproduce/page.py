"""What an experiment leaves: claims beside ours, figures as PNG and SVG, one HTML page."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpcert.extras import extra
from gpcert.files import write_whole
from gpcert.html import Html, join, table, tag
from gpcert.pages.html import page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Claim", "Findings", "new_figure", "paragraphs", "save", "write_index", "write_page"]

_SUBTITLE = "Adversarial Robustness Guarantees for Classification with Gaussian Processes, AISTATS 2020"
_VERDICTS = {True: "agrees", False: "disagrees", None: "undecided"}


class Claim(NamedTuple):
    """A statement of the paper, its number, ours, whether they agree (None: undecided), and why."""

    statement: str
    paper: str
    ours: str
    agrees: bool | None
    why: str = ""


@dataclass(frozen=True)
class Findings:
    """The result of one experiment; `figures`: (file stem, caption)."""

    title: str
    claims: Sequence[Claim]
    figures: Sequence[tuple[str, str]]
    notes: Sequence[str]
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = ()


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text, each on one line."""
    return [" ".join(part.split()) for part in text.strip().split("\n\n")]


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, drawn without a window."""
    made: Figure = extra("matplotlib.figure", "a page").Figure(figsize=(width, height), layout="constrained")
    return made


def save(figure: Figure, folder: Path, stem: str) -> None:
    """As PNG and as SVG."""
    for kind, options in (("png", {"dpi": 130}), ("svg", {"metadata": {"Date": None}})):
        drawn = io.BytesIO()
        figure.savefig(drawn, format=kind, **options)
        write_whole(folder / f"{stem}.{kind}", drawn.getvalue())


def write_page(folder: Path, findings: Findings, files: Sequence[str]) -> Path:
    """The claims as claims.csv and everything as index.html."""
    claims = io.StringIO(newline="")
    writer = csv.writer(claims)
    writer.writerow(("statement", "paper", "ours", "verdict", "why"))
    writer.writerows((c.statement, c.paper, c.ours, _VERDICTS[c.agrees], c.why) for c in findings.claims)
    write_whole(folder / "claims.csv", claims.getvalue())
    pictures = [_picture(folder / f"{stem}.png", caption) for stem, caption in findings.figures]
    extras = [(heading, table(head, rows)) for heading, head, rows in findings.tables]
    links = join(tag("p", tag("a", name, href=name)) for name in (*files, "claims.csv"))
    path = folder / "index.html"
    sections = [
        ("What the paper says, and what we measure", _claims(findings.claims)),
        ("Figures", join(pictures)),
        *extras,
        (
            "Settings, and what differs from the paper",
            tag("ul", *(tag("li", note) for note in findings.notes)),
        ),
        ("Numbers", links),
    ]
    write_whole(path, page(findings.title, _SUBTITLE, sections))
    return path


def write_index(folder: Path, pages: Sequence[tuple[str, Findings]]) -> Path:
    """All experiments on one page: the claims, with links."""
    sections = [
        (
            f.title,
            join([_claims(f.claims), tag("p", tag("a", "figures and numbers", href=f"{name}/index.html"))]),
        )
        for name, f in pages
    ]
    path = folder / "index.html"
    write_whole(path, page("The paper, reproduced", _SUBTITLE, sections))
    return path


def _picture(path: Path, caption: str) -> Html:
    """Inside the page, so that it can be passed on as one file."""
    source = "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
    image = tag("img", src=source, alt=caption, style="max-width:100%; background:white")
    return tag("figure", image, tag("figcaption", caption))


def _claims(claims: Sequence[Claim]) -> Html:
    # A sentence, not a name: it may break.
    wide = "display: inline-block; min-width: 14em; white-space: normal"
    rows = [
        (tag("span", c.statement, style=wide), c.paper, c.ours, _VERDICTS[c.agrees], c.why) for c in claims
    ]
    return table(("statement", "paper", "ours", "verdict", "why"), rows)
