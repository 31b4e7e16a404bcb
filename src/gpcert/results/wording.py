"""What answers prove, in one sentence for people: the same on the page, in a summary and on a terminal.

Counted shares are rounded to the nearest, bounds outward.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from gpcert.numbers import (
    Exact,
    at_least,
    at_most,
    between,
    exact_mean,
    exactly,
    percent,
    radius_at_least,
)
from gpcert.regions import Ball, Region
from gpcert.results.about import Answer
from gpcert.results.answers import Attack, CertifiedRadius, LatentRange, ProbabilityRange, Robustness, Verdict
from gpcert.results.summaries import Evaluation, Explanation
from gpcert.validation import printable

#: How a sentence ends that cannot say how far each feature moves.
SEE = " (see the table of units)"
_FEW = 3  # features that are called by their names


@dataclass(frozen=True)
class Words:
    """The names that sentences use: of classes, features, what a feature is, radius 1, what a row is.

    `mixed`: regions differ from row to row in more than their centres; `partly`: some have no answer.
    """

    classes: Sequence[str] = ()
    features: Sequence[str] = ()
    noun: str = "features"
    unit: str | None = None
    rows: str = "rows"
    mixed: bool = False
    partly: bool = False

    @property
    def row(self) -> str:
        """One of the rows."""
        return self.rows.removesuffix("s")

    def counted(self, n: int) -> str:
        """A number of rows."""
        return f"{n:,} {self.row if n == 1 else self.rows}"

    def feature(self, j: int) -> str:
        """The feature at a position."""
        return self.features[j] if j < len(self.features) else f"x{j}"


PLAIN = Words()


def while_moving(region: Region | None, radius: str, words: Words = PLAIN) -> str:
    """The region around a row, in words: what moves, how far, within which limits."""
    if not isinstance(region, Ball) or words.mixed:
        return f"while the {words.row} is anywhere in its {'region' if words.mixed else 'box'}"
    moving = np.flatnonzero(region.moving())
    if not len(moving):
        return "while nothing moves"
    which, one = _which(moving.tolist(), region.n_features, words), len(moving) == 1
    reach, within = far(radius, words, region), within_limits(region, words)
    if region.norm == 0:
        see = SEE if has_table(region, words) else ""
        return _some(radius, len(moving), which, within) + see
    how = {
        math.inf: f"by up to {reach}" + ("" if one else " each, in any combination"),
        2.0: f"by a Euclidean distance of up to {reach.removesuffix(',')}",
        1.0: f"by up to {reach} in sum",
    }.get(region.norm, f"by up to {reach} in the {region.norm:g}-norm")
    how = "by any amount" if radius == "Infinity" else how
    see = SEE if has_table(region, words) else ""
    return f"while {which} {'is' if one else 'are'} off {how}{within}{see}"


def has_table(ball: Ball, words: Words) -> bool:
    """Whether a sentence cannot say how far each feature moves, or within which limits."""
    moving = np.flatnonzero(ball.moving())
    scale = None if ball.norm == 0 else ball.scale
    given = [each for each in (scale, *(ball.domain or ())) if each is not None]
    many = len(moving) > _FEW and any(len(set(each[moving].tolist())) > 1 for each in given)
    return bool(len(moving)) and (many or (words.unit is not None and scale is not None))


def _some(radius: str, n: int, which: str, within: str) -> str:
    """Up to `radius` of n features: half a feature is none."""
    if radius.startswith("the "):
        return f"while as many of {which} as {radius} says take any values{within}"
    count = math.floor(min(float(radius), n))
    if count == 0:
        return "while nothing moves"
    many = f"up to {count} of " if count < n else ""
    return f"while {many}{which} take{'s' if n == 1 else ''} any values{within}"


def far(radius: str, words: Words, ball: Ball) -> str:
    """A radius with its unit: 2 standard deviations, 1 times the scale, or what a table has."""
    named = words.unit and words.unit.removesuffix("s" if radius == "1" else "")
    if named and radius.startswith("the "):
        return f"{radius} (in {named})"
    if named or ball.scale is None:
        return f"{radius} {named or ''}".rstrip()
    moving = np.flatnonzero(ball.moving()).tolist()
    texts = [exactly(float(ball.scale[j])) for j in moving]
    if each := _each(texts, moving, words):
        return f"{radius} times the scale{each}"
    if ball.norm != math.inf:
        return f"{radius}, counted in their own units,"
    if radius.startswith("the "):
        return f"{radius} (in the feature's unit)"
    return f"{radius} unit{'' if radius == '1' else 's'}"


def _each(texts: list[str], moving: list[int], words: Words) -> str:
    """Numbers of features, in brackets: one for all, or of a few each; many are among the settings."""
    if len(set(texts)) == 1:
        return f" ({texts[0]})"
    named = (f"“{words.feature(j)}”: {text}" for j, text in zip(moving, texts, strict=True))
    return f" ({', '.join(named)})" if len(texts) <= _FEW else ""


def _which(moving: list[int], d: int, words: Words) -> str:
    if len(moving) < d and len(moving) <= _FEW:
        *most, last = (f"“{words.feature(j)}”" for j in moving)
        return f"{', '.join(most)} and {last}" if most else last
    if len(moving) == d:
        return f"“{words.feature(0)}”" if d == 1 else f"{'both' if d == 2 else f'all {d}'} {words.noun}"
    return f"{len(moving)} of {d} {words.noun}"


def within_limits(ball: Ball, words: Words) -> str:
    """The limits that the features that move keep to, to follow how far they move; "" without."""
    moving = np.flatnonzero(ball.moving()).tolist()
    if ball.domain is None or not moving:
        return ""
    pairs = [
        (float(low), float(high)) for low, high in zip(*(end[moving] for end in ball.domain), strict=True)
    ]
    if len(set(pairs)) > 1:
        texts = [between_ends(low, high) for low, high in pairs]
        return f", each within its own limits{_each(texts, moving, words)}"
    low, high = pairs[0]
    if math.isinf(low) and math.isinf(high):
        return ""
    if math.isinf(high):
        return f", staying at or above {exactly(low)}"
    return f", staying {'at or below' if math.isinf(low) else f'between {exactly(low)} and'} {exactly(high)}"


def between_ends(low: float, high: float) -> str:
    """The limits of one feature."""
    if math.isinf(low) and math.isinf(high):
        return "none"
    if math.isinf(high):
        return f"from {exactly(low)} on"
    return f"up to {exactly(high)}" if math.isinf(low) else f"{exactly(low)} to {exactly(high)}"


_COLUMNS = 4  # columns; of more radii only what radius 1 is
_TABLES = 8  # of balls; of more each row has a region of its own
_LINES = 12  # features of a table on a terminal
_HUGE = 2**1023  # a float has it
_SHORT = 6  # digits of a number that somebody typed

#: Heading and cells by feature.
UnitTable = tuple[tuple[str, ...], list[tuple[str, ...]]]


def unit_tables(
    regions: Sequence[Region | None], words: Words, radii: Iterable[float] | None = None
) -> list[UnitTable]:
    """The tables that the sentences about these regions point to, one for each kind of ball; of very many
    kinds nothing is said. `radii`: where they are not those of the balls.
    """
    kinds: dict[Hashable, list[Ball]] = {}
    for ball in regions:
        if isinstance(ball, Ball) and has_table(ball, words):
            limits = None if ball.domain is None else tuple(end.tobytes() for end in ball.domain)
            unit = None if ball.scale is None else ball.scale.tobytes()
            kinds.setdefault((ball.norm, ball.features, unit, limits), []).append(ball)
    many = words.mixed or len(kinds) > _TABLES
    return (
        []
        if many
        else [
            _table(some[0], {ball.radius for ball in some} if radii is None else radii, words)
            for some in kinds.values()
        ]
    )


def _table(ball: Ball, radii: Iterable[float], words: Words) -> UnitTable:
    moving = np.flatnonzero(ball.moving()).tolist()
    asked = sorted({float(r) for r in radii if 0 < r < math.inf})
    scale = np.ones(ball.n_features) if ball.scale is None else ball.scale
    unit = words.unit.removesuffix("s") if words.unit else "radius"
    alone = "up to" if ball.norm == math.inf else "alone up to"
    head, columns = ["feature"], [[words.feature(j) for j in moving]]
    if ball.norm != 0:
        head.append(f"1 {unit}" if words.unit else "radius 1")
        columns.append([_number(1.0, float(scale[j])) for j in moving])
        for radius in asked if len(asked) <= _COLUMNS else ():
            head.append(f"at {exactly(radius)}: {alone}")
            columns.append([_number(radius, float(scale[j])) for j in moving])
    if ball.domain is not None and any(np.isfinite(end[moving]).any() for end in ball.domain):
        head.append("limits")
        columns.append([between_ends(float(ball.domain[0][j]), float(ball.domain[1][j])) for j in moving])
    return tuple(head), list(zip(*columns, strict=True))


def lines(tables: Sequence[UnitTable]) -> list[str]:
    """The tables for a terminal."""
    return [line for k, table in enumerate(tables) for line in _lines(table, k + 1, len(tables))]


def _lines(table: UnitTable, k: int, of: int) -> list[str]:
    """One of them; of many features the first."""
    head, rows = table
    shown = [head, *rows[:_LINES]]
    widths = [max(len(row[k]) for row in shown) for k in range(len(head))]
    texts = ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in shown]
    more = len(rows) - _LINES
    which = "Units:" if of == 1 else f"Units {k} of {of}, in the order of the sentences:"
    return [which, *texts, *([f"  ... {more} more features, which a report shows"] if more > 0 else [])]


def _number(radius: float, scale: float) -> str:
    """Radius times unit, as they are written: rounded down, for what is proved is proved of no more."""
    product = Fraction(repr(radius)) * Fraction(repr(scale))
    if not 0 < product < _HUGE:
        return radius_at_least(product)
    text = exactly(float(product))
    short = Fraction(text) == product and len(text.lstrip("-0.").replace(".", "")) <= _SHORT
    return text if short else radius_at_least(product)


_RADII = 8  # more than these are "the radius of its row", where every row has one


def median(values: Sequence[Exact], upper: bool = False) -> Exact:
    """What half of the values reach: the lower of two middles, the `upper` of bounds from above."""
    return sorted(values)[(len(values) - (not upper)) // 2]


def proved(count: int, n: int, labelled: bool, threshold: float, moving: str, words: Words = PLAIN) -> str:
    """The claim of verdicts: `count` of `n` rows are safe, and right where labels are known."""
    right = "is right and " if labelled else ""
    what = f"the predicted class {right}{'is ' if not right else ''}proved not to change"
    if threshold != 0.5:
        what = f"the predicted class {right}has a probability proved to stay above {exactly(threshold)}"
    return f"For {_share(count, n, words)} {what} {moving}."


def _share(count: int, n: int, words: Words) -> str:
    of = f"{count:,} of {words.counted(n)}{' answered' if words.partly else ''}"
    if n == 1:
        return of
    from scipy.stats import binomtest  # takes a quarter of a second

    ends = binomtest(count, n).proportion_ci(method="wilson")
    interval = f"{at_least(100 * ends.low, 1)} to {at_most(100 * ends.high, 1)}"
    return f"{of} ({percent(Fraction(count, n))}, 95 % Wilson interval {interval} %)"


def sentences(
    answers: Sequence[Answer],
    words: Words = PLAIN,
    right: Sequence[bool | None] | None = None,
    radii: Sequence[float | None] | None = None,
    rows: Sequence[Hashable] | None = None,
    predicted: Sequence[str | None] | None = None,
) -> list[str]:
    """One sentence for the answers of each kind, model, radius and kind of region.

    `right`: whether the predicted label of each is the true one; `radii`: as they were asked, where the
    answers do not tell; `rows`: what each is about, default its centre; `predicted`: the name of the class
    there, which an attack need not be on. Radii are pooled only where no row has two: a share is one of rows,
    never one of answers.
    """
    known = [None] * len(answers) if right is None else list(right)
    given = [getattr(_first(a), "radius", None) for a in answers] if radii is None else list(radii)
    about = [_place(a) for a in answers] if rows is None else list(rows)
    once = len({*zip(map(type, answers), about, strict=True)}) == len(answers)
    many = once and len(set(given)) > _RADII
    shapes = [_shape(a) for a in answers]
    seen = {shape: k for k, shape in enumerate(dict.fromkeys(shapes))}
    if once and len(seen) > _RADII:
        words = replace(words, mixed=True)
    classes = [None] * len(answers) if predicted is None else list(predicted)
    groups: dict[tuple[int, int, str, float], list[int]] = {}
    for i, (answer, radius) in enumerate(zip(answers, given, strict=True)):
        if type(answer) not in _KINDS:
            continue
        # One label for all where the predicted one is meant.
        own = "" if isinstance(answer, Verdict | CertifiedRadius) else getattr(answer, "label", "")
        own = "" if isinstance(answer, Attack) and str(own) == classes[i] else own
        more = f"{own} {getattr(answer, 'method', '')} {getattr(answer, 'threshold', '')} {answer.model}"
        pooled = words.mixed and not isinstance(answer, CertifiedRadius | Explanation)  # they tell a radius
        kind, place = list(_KINDS).index(type(answer)), 0 if pooled else seen[shapes[i]]
        groups.setdefault((kind, place, more, -1.0 if many or radius is None else radius), []).append(i)
    found: list[str] = []
    for (kind, _, _, radius), members in sorted(groups.items()):
        reach = f"the radius of its {words.row}" if many else exactly(radius)
        say = list(_KINDS.values())[kind]
        first = answers[members[0]]
        if isinstance(first, Attack) and classes[members[0]] != str(first.label):
            say = _tried
        found += say([answers[i] for i in members], [known[i] for i in members], reach, words)
    return found


def few(texts: Sequence[str]) -> list[str]:
    """The first and the last of many sentences, for those who read no page."""
    if len(texts) <= _RADII:
        return list(texts)
    return [texts[0], f"... {len(texts) - 2} more sentences, which a report shows", texts[-1]]


def _place(answer: Answer) -> Hashable:
    """The point that an answer is about; of several points, or of none that is known, the answer itself."""
    centre = getattr(getattr(answer, answer.subject), "centre", None)
    return id(answer) if centre is None else np.asarray(centre).tobytes()


def _first(answer: Answer) -> Any:
    """The region it is about, the first of several of one kind."""
    return next(iter(answer.regions), None)


def _shape(answer: Answer) -> Hashable:
    """What a sentence says of a region, its radius excepted, and would be false of another."""
    region = _first(answer)
    if not isinstance(region, Ball):
        return None
    limits = (region.scale, *(region.domain or ()))
    return (
        region.norm,
        region.moving().tobytes(),
        *(None if each is None else each.tobytes() for each in limits),
    )


def _where(answer: Any, radius: str, words: Words) -> str:
    return while_moving(getattr(answer, answer.subject), radius, words)


_Sentences = Iterator[str]
_Right = list[bool | None]


def _verdicts(some: list[Any], right: _Right, radius: str, words: Words) -> _Sentences:
    labelled = None not in right
    count = sum(a.status == "safe" and r is not False for a, r in zip(some, right, strict=True))
    yield proved(count, len(some), labelled, some[0].threshold, _where(some[0], radius, words), words)


def _evaluated(some: list[Evaluation], right: _Right, radius: str, words: Words) -> _Sentences:
    for a in some:
        for k, asked in enumerate(a.radii.tolist()):
            moving = while_moving(a.balls[0] if a.balls else None, exactly(asked), words)
            count = round(float(a.certified[k]) * len(a.truth))
            yield proved(count, len(a.truth), True, a.threshold, moving, words)


def _radii(some: list[CertifiedRadius], right: _Right, radius: str, words: Words) -> _Sentences:
    safe, threshold, who = [a.safe for a in some], some[0].threshold, words.counted(len(some))
    what = "the predicted class"
    if threshold != 0.5:
        what = f"a probability of the predicted class above {exactly(threshold)}"
    most = max(map(_reach, some))
    asked = (
        f"({f'radii up to {radius_at_least(most)}' if math.isfinite(most) else 'all radii'} were searched)"
    )
    if not median(safe) > 0:  # not even a row itself is proved to have it
        found = f"For {np.count_nonzero(safe):,} of {who}" if len(some) > 1 else "For no row"
        yield f"{found} a radius is proved within which {what} is kept {asked}."
        return
    moving = _where(some[0], radius_at_least(float(median(safe))), replace(words, mixed=False))
    every = f"; for all of them up to {radius_at_least(min(safe))}" if 0 < min(safe) < math.inf else ""
    every = every if len(some) > 1 else ""
    who = f"At least half of {who} keep" if len(some) > 1 else f"{who} keeps"
    yield f"{who} {what}, proved, {moving}{every} {asked}."


def _reach(answer: CertifiedRadius) -> float:
    """The largest radius asked; of a count of features no more than there are."""
    ball = _first(answer)
    counted = isinstance(ball, Ball) and ball.norm == 0
    return min(answer.max_radius, float(np.count_nonzero(ball.moving()))) if counted else answer.max_radius


def _ranges(some: list[Any], right: _Right, radius: str, words: Words) -> _Sentences:
    searched = [a.range if isinstance(a, Robustness) else a for a in some]
    widths = [Fraction(a.upper) - Fraction(a.lower) for a in searched]
    ended = all(a.status == "converged" for a in searched)
    near = f" (each end known to within {exactly(max(a.tolerance for a in some))})" if ended else ""
    what = f"the probability of {_name(some[0])}"
    yield _moves(what, widths, _where(some[0], radius, words), words, near)


def _latents(some: list[LatentRange], right: _Right, radius: str, words: Words) -> _Sentences:
    for name in ("mean", "variance"):
        ends = [getattr(a, name) for a in some]
        finite = [Fraction(e.upper) - Fraction(e.lower) for e in ends if math.isfinite(e.upper - e.lower)]
        if len(finite) == len(ends):
            yield _moves(f"the latent {name}", finite, _where(some[0], radius, words), words)


def _moves(what: str, widths: Sequence[Fraction], moving: str, words: Words, near: str = "") -> str:
    most, n, who = at_most(max(widths)), len(widths), words.counted(len(widths))
    if n == 1:
        return f"For {who} {what} is proved to stay in an interval of width {most} {moving}{near}."
    half = at_most(median(widths, upper=True))
    return (
        f"For each of {who} {what} is proved to stay in an interval {moving}: "
        f"of width at most {half} for half of the {words.rows}, at most {most} for all{near}."
    )


def _attacks(some: list[Attack], right: _Right, radius: str, words: Words) -> _Sentences:
    labelled, n = None not in right, len(some)
    stood = sum(not a.success and r is not False for a, r in zip(some, right, strict=True))
    changed = sum(a.success for a in some)
    held = "is right and withstood it" if labelled else "withstood it"
    yield (
        f"An attack ({some[0].method}) looked for a change of the predicted class "
        f"{_where(some[0], radius, words)}, and found one for {changed:,} of {words.counted(n)}; for "
        f"{_share(stood, n, words)} the class {held}: evidence, no proof."
    )


def _name(answer: ProbabilityRange | Robustness | Attack | Explanation) -> str:
    return f"“{printable(str(answer.label))}”"


def _tried(some: list[Attack], right: _Right, radius: str, words: Words) -> _Sentences:
    """Attacks on a class that was named: perhaps it is not the predicted one."""
    yield (
        f"An attack ({some[0].method}) looked for another class than {_name(some[0])} "
        f"{_where(some[0], radius, words)}, and found one for {sum(a.success for a in some):,} of "
        f"{words.counted(len(some))}, whatever their predicted class: evidence, no proof."
    )


def _explained(some: list[Explanation], right: _Right, radius: str, words: Words) -> _Sentences:
    balls, texts = [ball for a in some for ball in a.balls], [a for a in some if a.balls]
    moving = np.flatnonzero(balls[0].moving()).tolist() if balls else []
    if not moving:
        return
    # A mean over points is as many rows as it has points.
    lower, upper = (
        np.vstack(
            [np.repeat(end, len(a.balls) // len(end), axis=0) for a in texts for end in [getattr(a, name)]]
        )
        for name in ("lower", "upper")
    )
    ends = [(exact_mean(lower[:, j].tolist()), exact_mean(upper[:, j].tolist())) for j in moving]
    best = max(range(len(ends)), key=lambda k: abs(ends[k][0] + ends[k][1]))
    certain = sum(low > 0 or high < 0 for low, high in ends)
    one = f"one of {len(ends)} {words.noun}" if len(ends) > 1 else f"“{words.feature(moving[0])}”"
    see = SEE if has_table(balls[0], words) else ""
    reach = f"{far(radius, words, balls[0])}{within_limits(balls[0], words)}{see}"
    every = f"all {len(ends)}" if certain == len(ends) > 1 else f"{certain} of {len(ends)}"
    yield (
        f"While {one} alone is off by up to {reach}, its mean influence on the probability of "
        f"{_name(some[0])} over {words.counted(len(balls))} is enclosed by proof: "
        f"the direction is certain for {every}, and the largest is that of "
        f"“{words.feature(moving[best])}”, in {between(*ends[best])}."
    )


_KINDS: dict[type[Answer], Callable[[list[Any], _Right, str, Words], _Sentences]] = {
    Verdict: _verdicts,
    Evaluation: _evaluated,
    CertifiedRadius: _radii,
    ProbabilityRange: _ranges,
    Robustness: _ranges,
    LatentRange: _latents,
    Attack: _attacks,
    Explanation: _explained,
}
