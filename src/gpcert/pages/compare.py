"""Several models, or runs, over the same rows: figures side by side, curves together, rows that differ
and whether that may be chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from gpcert.html import Html, join, table, tag
from gpcert.numbers import at_most, exactly, percent, radius_at_least
from gpcert.pages.charts import together
from gpcert.pages.groups import ResultGroup, common_threshold, differences
from gpcert.pages.html import word
from gpcert.pages.points import (
    ProvedShares,
    RowAnswers,
    clean_accuracy,
    median_radius,
    radii_attacked,
    radii_decided,
    typical_radius,
)
from gpcert.pages.table import data_table
from gpcert.results.wording import while_moving


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided p of McNemar's test: as uneven a split of the rows that differ, by fair coins."""
    from scipy.stats import binomtest  # takes a quarter of a second

    n = only_first + only_second
    return float(binomtest(only_first, n).pvalue) if n else 1.0


def decided(p: RowAnswers, radius: float) -> bool:
    """Whether a point is proved safe or unsafe at a radius: else it may not even have been asked."""
    return p.safe >= radius or p.unsafe <= radius


class Pair:
    """Two groups on the rows of both; what holds is right, where all labels are known, and proved safe."""

    def __init__(self, first: ResultGroup, second: ResultGroup) -> None:
        self.first, self.second = first, second
        other = {p.row: p for p in second.points}
        self.points = [(p, other[p.row]) for p in first.points if p.row in other]
        self._labelled = all(p.correct is not None for pair in self.points for p in pair)
        kept = "proved safe" if first.threshold == 0.5 else f"proved to stay above {exactly(first.threshold)}"
        self.held = f"right and {kept}" if self._labelled else kept

    def holds(self, p: RowAnswers, radius: float) -> bool:
        """Whether a point counts at a radius."""
        return p.safe >= radius and (not self._labelled or bool(p.correct))

    def counts(self, radius: float) -> tuple[int, int]:
        """How many rows hold with the first, and with the second."""
        first, second = ([self.holds(p, radius) for p in points] for points in zip(*self.points, strict=True))
        return sum(first), sum(second)

    def split(self, radius: float) -> tuple[int, int, int, int]:
        """How many rows hold with both, with the first only, with the second only, with neither.

        Only rows that both decide: what is undecided, or was never asked, is not lost.
        """
        both = [pair for pair in self.points if all(decided(p, radius) for p in pair)]
        held = Counter((self.holds(a, radius), self.holds(b, radius)) for a, b in both)
        return held[True, True], held[True, False], held[False, True], held[False, False]


def chance(pair: Pair, radius: float) -> str:
    """Whether luck of the draw may explain the difference, in a sentence."""
    split = pair.split(radius)
    _, one, two, _ = split
    known, rows = sum(split), pair.first.words
    over = "" if known == len(pair.points) else f" over the {rows.counted(known)} that both decide"
    if not known:
        return f"No {rows.row} is decided by both at this radius: nothing to test."
    if one == two:
        alone = f"{rows.counted(one)} only by each" if one else f"no {rows.row} by one only"
        return f"Both hold equally many{over}: {alone}."
    p = mcnemar(one, two)
    better = (pair.first if one > two else pair.second).name
    text = f"is more than chance at 5 %, in favour of {better}" if p <= 0.05 else "may be chance"
    return f"The difference {text} (McNemar's exact test{over}, {_p(p)})."


def _p(p: float) -> str:
    return f"p {'=' if p == 1 else '≤'} {at_most(p)}"


def paired(pair: Pair, radii: Sequence[float]) -> Html:
    """The second against the first: counts at every radius, and at the largest the rows that differ."""
    first, second, words = pair.first, pair.second, pair.first.words
    splits, n = [(radius, pair.split(radius)) for radius in radii], len(pair.points)
    left = ["not decided by both"] if any(sum(split) < n for _, split in splits) else []
    only = f"only by {first.name}", f"only by {second.name}"
    test = word("McNemar's test", "mcnemar")
    head = (first.radius_name, "held by both", *only, "by neither", *left, test)
    rows = []
    for radius, split in splits:
        counts = [f"{k:,}" for k in (*split, *(n - sum(split) for _ in left))]
        rows.append((exactly(radius), *counts, _p(mcnemar(*split[1:3])) if sum(split) else ""))
    parts = [
        tag("h3", f"{second.name} against {first.name}"),
        tag("p", f"Held are {words.rows} that are {pair.held}. {chance(pair, radii[-1])}"),
        table(head, rows, "figures"),
    ]
    at = f"t radius {first.far(radii[-1])}"
    if differ := _rows_that_differ(pair, radii[-1]):
        return join(
            [*parts, tag("p", f"A{at}, these {words.rows} have another prediction or verdict:"), differ]
        )
    return join([*parts, tag("p", f"No {words.row} changes its prediction or its verdict a{at}.")])


def _rows_that_differ(pair: Pair, radius: float) -> Html:
    groups = pair.first, pair.second
    texts = [[_told(p, g, radius) for p, g in zip(both, groups, strict=True)] for both in pair.points]
    points = [both for both, (one, other) in zip(pair.points, texts, strict=True) if one != other]
    searched = all(p.found for both in points for p in both)
    head = [(pair.first.words.row, "text"), ("true", "choice")]
    for group in groups:
        head += [(f"with {group.name}", "choice"), ("probability", "number")]
        head += [("safe up to", "number")] if searched else []
    head.append(("held by", "choice"))
    rows = []
    for both in points:
        cells = [both[0].name, both[0].label or ""]
        for p, group in zip(both, groups, strict=True):
            cells += [_told(p, group, radius), p.certainty]
            cells += [radius_at_least(max(0.0, p.safe))] if searched else []
        names = [group.name for p, group in zip(both, groups, strict=True) if pair.holds(p, radius)]
        cells.append({0: "neither", 2: "both"}.get(len(names)) or names[0])
        rows.append([(cell, "") for cell in cells])
    return data_table(head, rows, noun=f"{pair.first.words.rows} that differ") if rows else Html("")


def _told(p: RowAnswers, group: ResultGroup, radius: float) -> str:
    return f"{p.predicted}, {group.called[p.status(radius)]}"


_NAMED = 3  # results that a sentence calls by their names
_LINES = 12  # of an index that is seen at a glance; longer ones sort and filter


def overview(groups: Sequence[ResultGroup]) -> tuple[str, bool]:
    """Several results in one sentence: how many rows each holds; whether all were asked the same."""
    shared = _on_shared_rows(groups)
    if not shared[0].points:
        none = f"{len(groups)} results, and no {groups[0].words.row} is in all of them"
        return f"{none}: each has a claim of its own, about its own {groups[0].words.rows}.", False
    some = _by_question(shared)[0]
    radii = _common_radii(some)
    if len(some) < 2 or not radii:
        why = "about different questions" if len(some) < 2 else "without a radius to compare them at"
        return f"{len(groups)} results {why}, each with a claim of its own.", False
    pairs, words = [Pair(some[0], other) for other in some[1:]], some[0].words
    radius, n = radii[-1], len(some[0].points)
    counts = [(pairs[0].counts(radius)[0], some[0]), *((p.counts(radius)[1], p.second) for p in pairs)]
    texts = [
        f"{k:,} with {group.name} ({percent(Fraction(k, n))}{_open(group, radius)})" for k, group in counts
    ]
    if len(texts) > _NAMED:
        least, most = min(counts, key=lambda pair: pair[0]), max(counts, key=lambda pair: pair[0])
        texts = [f"from {least[0]:,} with {least[1].name}", f"to {most[0]:,} with {most[1].name}"]
    moving = while_moving(some[0].region, exactly(radius), words)
    said = f"{moving[0].upper()}{moving[1:]}, of {words.counted(n)} these are {pairs[0].held}: "
    said += f"{', '.join(texts)}."
    return f"{said} {chance(pairs[0], radius)}" if len(pairs) == 1 else said, len(some) == len(groups)


def _open(group: ResultGroup, radius: float) -> str:
    """How many rows are neither proved nor refuted: they may still turn out to hold."""
    left = sum(not decided(p, radius) for p in group.points)
    return f"; {left:,} not decided" if left else ""


def comparison(groups: Sequence[ResultGroup]) -> Html:
    """An index of all models with their figures, their curves, their costs, and each against the first."""
    shared = _on_shared_rows(groups)
    comparable = _by_question(shared)
    parts = [tag("p", _about(groups, shared))]
    if not shared[0].points:
        return join([*parts, _index(groups)])
    parts.append(_index(shared))
    figures = [_curves(some, len(comparable) > 1) for some in comparable]
    parts.append(tag("div", *figures, class_="plots"))
    for some in comparable:
        radii = _common_radii(some)
        parts += [paired(Pair(some[0], other), radii) for other in some[1:] if radii]
    return join(parts)


def _on_shared_rows(groups: Sequence[ResultGroup]) -> list[ResultGroup]:
    """Each with the rows that all answered, so that shares are of the same rows."""
    rows = set.intersection(*({p.row for p in group.points} for group in groups))
    return [group.restricted(rows) for group in groups]


def _by_question(groups: Sequence[ResultGroup]) -> list[list[ResultGroup]]:
    """By the kind of question; a radius means the same only within one. The largest such set is first."""
    found: dict[str, list[ResultGroup]] = {}
    for group in groups:
        found.setdefault(group.question, []).append(group)
    return sorted(found.values(), key=lambda some: -len(some))


def _about(groups: Sequence[ResultGroup], shared: Sequence[ResultGroup]) -> str:
    words, comparable = groups[0].words, _by_question(groups)
    rows = {p.row for p in shared[0].points}
    every = all({p.row for p in group.points} == rows for group in groups)
    text = f"{len(groups)} results over the same data"
    if not rows:
        return f"{text}, but no {words.row} is in all of them: they cannot be compared one by one."
    which = "" if every else f" Compared are the {words.counted(len(rows))} that are in all of them."
    text = f"{text}, {words.counted(len(rows))}.{which}"
    scales = {str(group.document["settings"].get("scale")) for group in groups}
    if len(comparable) > 1:
        but = "figures at one radius are comparable only where they are the same"
        return f"{text} The questions differ in {differences(groups)}: {but}."
    if len(scales) > 1:
        return f"{text} The scales differ from model to model: the same radius is not quite the same region."
    return text


def _common_radii(groups: Sequence[ResultGroup]) -> list[float]:
    """The radii at which every group has a verdict of all its rows; where radii were searched for, the
    smallest that half of the rows reach: a larger one need not have been asked in all groups."""
    asked = [set(radii_decided(group.points)) for group in groups]
    common = sorted(set.intersection(*asked) - {0.0})
    if common or not all(p.found for group in groups for p in group.points):
        return common
    reached = [typical_radius(group.points) or 0.0 for group in groups]
    return [min(reached)] if min(reached) > 0 else []


def _curves(some: Sequence[ResultGroup], several: bool) -> Html:
    lines = [(group.name, ProvedShares(group.points)) for group in some]
    what = "certified accuracy" if all(shares.labelled for _, shares in lines) else "proved safe"
    title = f"Together: {some[0].shape}" if several else "Together"
    return together(lines, title, what, some[0].ends, some[0].radius_name)


def _index(groups: Sequence[ResultGroup]) -> Html:
    """A line for each group and radius: figures, what they cost, and a link to where the group begins."""
    numbers = ["rows", "accuracy", "radius", "proved safe", "certified accuracy", "accuracy under attack"]
    numbers += ["median certified radius", "seconds", "boxes searched"]
    head = [("result", "text"), ("written", "text"), ("region", "choice"), *((n, "number") for n in numbers)]
    rows = [row for k, group in enumerate(groups) for row in _lines(group, f"#part-{k + 1}")]
    texts = [any(row[j] for row in rows) for j in range(len(head))]
    texts[1] = len({(str(g.document["model"].get("sha256")), g.question) for g in groups}) < len(
        groups
    )  # runs
    texts[2] = len(rows) > _LINES and len({row[2] for row in rows}) > 1  # names tell, but do not filter
    filled = [j for j in range(len(head)) if texts[j]]
    shown = [[row[j] for j in filled] for row in rows]
    if len(rows) > _LINES:
        cells = [[(c, "") for c in row] for row in shown]
        return data_table([head[j] for j in filled], cells, (), "lines", common_threshold(groups))
    return table([head[j][0] for j in filled], shown, "figures")


def _lines(group: ResultGroup, link: str) -> list[list[str]]:
    """The figures of one group at each radius; its costs stand in the first."""
    shares, clean, middle = (
        ProvedShares(group.points),
        clean_accuracy(group.points),
        median_radius(group.points),
    )
    compared = {p.row for p in group.points}
    answers = [row.answer for row in group.rows if row.row in compared]
    seconds = sum(document["seconds"] for _, document, _ in group.results)
    costs = (
        f"{seconds:.1f}" if len(answers) == len(group.rows) else "",  # of all rows together: not of some
        f"{sum(getattr(answer, 'nodes', 0) for answer in answers)}",
    )
    made, decided = [], radii_decided(group.points)
    for k, radius in enumerate(sorted({*decided, *radii_attacked(group.points)}) or [None]):
        s = None if radius is None else shares.at(radius)
        known = s if radius in decided else None
        made.append(
            [
                tag("a", group.name, href=link),
                str(group.document["created"])[:16].replace("T", " "),
                group.shape,
                f"{len(group.points)}",
                "" if clean is None else percent(clean),
                "" if radius is None else group.far(radius),
                "" if known is None else percent(known.safe),
                "" if known is None or known.certified is None else percent(known.certified),
                "" if s is None or s.attacked is None else percent(s.attacked),
                "" if middle is None else f"{radius_at_least(middle)} {group.words.unit or ''}".rstrip(),
                *(costs if k == 0 else ("", "")),
            ]
        )
    return made
