"""What a campaign has asked of its store, and how far it is: any terminal may ask while it runs."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import file_digest
from typing import Any, NamedTuple

from gpcert.cli.campaign.file import ASKED, Campaign
from gpcert.cli.campaign.parts import SETTINGS, Truth
from gpcert.cli.io.sources import SHIPPED
from gpcert.errors import StoreError
from gpcert.numbers import exactly
from gpcert.results import Answer
from gpcert.store import Store
from gpcert.store.rows import BESIDE, key_of
from gpcert.store.store import NAMED

#: Entries of the description of a part.
_TOLD = {"ask", "model", "norm", "radius", "radii", "features", "settings", "files"}


class Standing(NamedTuple):
    """One question of a campaign about one item: nothing is known where the status is None."""

    item: int
    truth: Truth | None  #: None: the data have no labels
    status: str | None
    lower: float | None
    upper: float | None
    width: float | None
    seconds: float | None
    limit: float | None  #: of the seconds that it may take, if it met one
    lost: int  #: 1: it was set aside


def forget(store: Store, campaign: str, parts: int) -> None:
    """Of what a campaign has asked, the parts from this number on; the answers stay."""
    with store.writing() as connection:
        connection.execute("DELETE FROM asked WHERE campaign = ? AND part >= ?", (campaign, parts))
        place = f"campaign {campaign}"
        connection.execute("DELETE FROM pieces WHERE place = ? AND number >= ?", (place, parts))


def register(
    store: Store,
    campaign: str,
    part: int,
    described: dict[str, Any],
    blanks: Iterable[Answer],
    truths: Sequence[Truth | None],
    names: Sequence[str],
) -> None:
    """Write down one part of what a campaign asks, about rows with these names, in place of what was there:
    another process sees a whole part, before and after.
    """
    rows = [
        (campaign, part, item, key_of(blank.key), truth)
        for item, (blank, truth) in enumerate(zip(blanks, truths, strict=True))
    ]
    with store.writing() as connection:
        connection.execute("DELETE FROM asked WHERE campaign = ? AND part = ?", (campaign, part))
        connection.executemany("INSERT INTO asked VALUES (?, ?, ?, ?, ?)", rows)
        called = [(key.hex(), name) for (*_, key, _), name in zip(rows, names, strict=True)]
        connection.executemany(NAMED, called)
        connection.execute(
            "INSERT OR REPLACE INTO pieces (place, key, data, number) VALUES (?, ?, ?, ?)",
            (f"campaign {campaign}", str(part), json.dumps(described), part),
        )


def parts_of(store: Store, campaign: str) -> list[dict[str, Any]]:
    """The descriptions of its parts; none: it has not begun."""
    sql = "SELECT CAST(data AS TEXT) FROM pieces WHERE place = ? ORDER BY number"
    rows = list(store.reading(sql, (f"campaign {campaign}",)))
    try:
        described = [json.loads(data) for (data,) in rows]
    except (ValueError, RecursionError):
        described = [None]
    if not all(isinstance(each, dict) and each.keys() == _TOLD and _fits(each) for each in described):
        raise StoreError(f"{store.path} is damaged: what its campaign asks cannot be read; run it again")
    return described


def _fits(described: dict[str, Any]) -> bool:
    """Whether its numbers are numbers."""
    radii, settings, files = described["radii"], described["settings"], described["files"]
    if not isinstance(files, dict) or not all(isinstance(digest, str) for digest in files.values()):
        return False
    listed = isinstance(radii, list) and all(isinstance(r, int | float) for r in radii)
    numbers = (described["radius"], settings.get("threshold")) if isinstance(settings, dict) else ("",)
    return (listed or described["ask"] != "evaluate") and all(
        n is None or isinstance(n, int | float) for n in numbers
    )


def standings(store: Store, campaign: str, part: int) -> list[Standing]:
    """Where every question of a part stands."""
    rest = f"""item, CASE WHEN truth IN (0, 1, 2) THEN truth END,
    EXISTS (SELECT 1 FROM lost l WHERE l.key = q.key) FROM asked q LEFT JOIN answers a ON a.key = q.key
    {BESIDE} WHERE campaign = ? AND part = ? ORDER BY item"""
    found = []
    for row in store.verified(rest, (campaign, part)):
        status, _, lower, upper, width, seconds, _, limit, _, item, truth, lost = row[5:]
        known = None if truth is None else Truth(truth)
        found.append(Standing(item, known, status, lower, upper, width, seconds, limit, lost))
    return found


_DECIDED = ("safe", "unsafe")
#: Of the other questions: what was asked is known; a label that holds as far as was asked is.
_SETTLED = ("converged", "radius limit", "explained")


@dataclass(frozen=True)
class PartStatus:
    """One radius of one part: how many rows are answered, decided, lost, and what is proved of them all.

    `part`: its number, lines of one part are counted once; `settings`: in words, as the file has them.
    `certified`: of the rows, the share whose true label is proved to hold lies in this enclosure; None where
    that is not asked, or the labels are not known. Of a threshold above 1/2 there is no upper end: where
    P(label) falls below it, the label may stay. `seconds`: what the answers took, `remaining`: what the rest
    would take at the same rate, on one process.
    """

    part: int
    ask: str
    model: str
    norm: str
    features: str
    radius: str
    asked: int
    answered: int
    open: int
    lost: int
    certified: tuple[Fraction, Fraction | None] | None
    median: tuple[float, float] | None
    seconds: float
    remaining: float
    threshold: float
    settings: dict[str, str]


def lines(campaign: Campaign, store: Store) -> Iterator[PartStatus]:
    """One for every part and radius; nothing: the campaign has not begun."""
    for number, described in enumerate(parts_of(store, campaign.digest)):
        known = standings(store, campaign.digest, number)
        radii = described["radii"] if described["ask"] == "evaluate" else [described["radius"]]
        for radius in radii:
            yield _line(number, described, radius, known)


def changed(campaign: Campaign, store: Store) -> list[str]:
    """Models and data that are not, byte for byte, what the last run has read, which its lines are about."""
    known = {
        (name, described)
        for part in parts_of(store, campaign.digest)
        for name, described in part["files"].items()
    }
    now = {name: _digest(campaign.place(name)) for name, _ in known if not name.startswith(SHIPPED)}
    return sorted({name for name, described in known if name in now and now[name] != described})


def _digest(place: str) -> str:
    """ "": it cannot be read."""
    try:
        with open(place, "rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _line(
    part: int, described: dict[str, Any], radius: float | None, known: Sequence[Standing]
) -> PartStatus:
    answered = [s for s in known if s.status is not None]
    spent = sum(s.seconds or 0.0 for s in answered)
    features, settings = described["features"], described["settings"]
    threshold = settings.get("threshold") or 0.5
    words = [_word(str(described["ask"]), radius, s) for s in known]
    # Above a threshold below 1/2 there may be two labels: a proof names none.
    certified = _certified(words, known) if described["ask"] in ("certify", "evaluate") else None
    if certified is not None and threshold != 0.5:
        certified = (certified[0], None) if threshold > 0.5 else None
    return PartStatus(
        part,
        str(described["ask"]),
        str(described["model"]),
        str(described["norm"]),
        ",".join(features) if isinstance(features, list) else "all",
        "" if radius is None else repr(radius),
        len(known),
        len(answered),
        sum(word == "open" for word in words),
        sum(s.lost for s in known),
        certified,
        _median(known) if described["ask"] == "radius" else None,
        spent,
        spent / max(len(answered), 1) * (len(known) - len(answered)),
        threshold,
        {name: _text(settings.get(name)) for name in SETTINGS}
        | ({"threshold": exactly(threshold)} if "threshold" in ASKED.get(str(described["ask"]), ()) else {}),
    )


def _text(value: Any) -> str:
    """An entry of the file."""
    return "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _word(ask: str, radius: float | None, s: Standing) -> str:
    """ "safe", "unsafe", "open", or "" of a question without verdicts."""
    if ask == "evaluate" and s.status is not None and radius is not None:
        safe = s.lower is not None and s.lower >= radius
        return "safe" if safe else "unsafe" if s.upper is not None and s.upper <= radius else "open"
    if ask in ("certify", "evaluate"):
        return s.status if s.status in _DECIDED else "open"
    return "" if s.status in _SETTLED else "open"


def _certified(words: Sequence[str], known: Sequence[Standing]) -> tuple[Fraction, Fraction | None] | None:
    """Right and safe is proved; right and unsafe, wrong, or safe with another label is proved not to be."""
    if not known or any(s.truth is None for s in known):
        return None
    pairs = list(zip(words, known, strict=True))
    yes = sum((word, s.truth) == ("safe", Truth.RIGHT) for word, s in pairs)
    against = {("unsafe", Truth.RIGHT), ("safe", Truth.UNSURE)}
    no = sum(s.truth is Truth.WRONG or (word, s.truth) in against for word, s in pairs)
    return Fraction(yes, len(known)), Fraction(len(known) - no, len(known))


def _median(known: Sequence[Standing]) -> tuple[float, float]:
    """Of the radii proved safe and refuted; what is not answered may be anything."""
    safe = statistics.median_low(0.0 if s.lower is None else s.lower for s in known)
    unsafe = statistics.median_low(float("inf") if s.upper is None else s.upper for s in known)
    return safe, unsafe
