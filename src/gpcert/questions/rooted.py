"""The regions of a batch at the root, all at once (`gpcert.engine`): what is settled, and hints for the rest.

Only boxes and balls of norm inf and 2, and only models and batches for which that pays; everything else is
asked one by one, as a single question is. A hint is true: certified ends of both sides, and points of the
region where they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpcert.bounds.levels.registry import curves_of
from gpcert.clock import now
from gpcert.engine.apart import kept_apart, parts_of
from gpcert.engine.backend import chosen
from gpcert.engine.facts import Facts, facts_of, knows
from gpcert.engine.labels import classes_of, kept_labels, knows_labels
from gpcert.engine.root import Settled, attained, smallest, verdicts
from gpcert.engine.rows import Around, Rows
from gpcert.engine.signs import signs
from gpcert.likelihoods import BinaryLikelihood, OneVsRest
from gpcert.posterior import Posterior
from gpcert.regions import BallBatch, Hulls, Region, Regions, half_axes, hulls_of
from gpcert.settings import Settings
from gpcert.validation import Float, Index, Mask

#: Regions that share their moving features; fewer do not pay for the arrays they need.
FEWEST = 16
#: Seconds per region below which the limit is left to the search, which looks at the clock between boxes.
_SECONDS = 0.2
#: Features that stand still in some regions of a group may move in others, up to this share of all.
_SHARED = 1.5


#: Boxes that are bounded if one is split once, twice, three times; after that the search, which splits what
#: is worst, is cheaper.
_SPLIT = 3, 5, 7
#: Norms whose balls are rows.
_NORMS = (np.inf, 2.0)
#: Half axes of balls, and their reciprocals, below this: their squares are doubles.
_AXIS = 1e100
#: Above this, ends of balls might overflow: they are looked at one by one.
_FAR = 1e300


def lots(count: int, asked: Container[int], device: str) -> Iterator[range]:
    """The numbers of regions that are bounded together, where one of them is asked about."""
    step = chosen(device, count).lot
    for first in range(0, count, step):
        lot = range(first, min(first + step, count))
        if any(i in asked for i in lot):
            yield lot


#: Targets above a threshold lie so far above it; other links look for theirs on a grid of this width.
_ABOVE, _FINE = 1e-9, 1e-9


@dataclass(frozen=True, eq=False)
class Root:
    """One side of one region: lower <= min P <= upper, where `upper` holds at the point (D,)."""

    lower: float
    upper: float
    point: Float
    nodes: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Roots:
    """What is known of some regions, by their numbers (m,): a column per side, or two; `point`, `nodes` and
    `sides` are of one of them, by its place among these.
    """

    numbers: Index
    settled: Settled  #: (sides, m)
    rows: Rows | Around
    facts: Facts
    seconds: float  #: of one region

    @property
    def lower(self) -> Float:
        return self.settled.lower

    @property
    def upper(self) -> Float:
        return self.settled.upper

    def points(self, side: int, at: Index | int) -> Float:
        """Where the upper ends hold, (D,) or (k, D)."""
        facts, witness = self.facts, self.settled.witness[side, at]
        if not len(facts.rest):
            return np.array(witness)
        found = np.empty((*witness.shape[:-1], len(facts.features) + len(facts.rest)))
        found[..., facts.rest], found[..., facts.features] = self.rows.still(at), witness
        return found

    def sides(self, at: int) -> tuple[Root, ...]:
        lower, upper, _, nodes = self.settled
        return tuple(
            Root(
                float(lower[s, at]), float(upper[s, at]), self.points(s, at), int(nodes[s, at]), self.seconds
            )
            for s in range(len(lower))
        )


def classes(post: Posterior, X: Float, device: str) -> Index:
    """The classes of points X (m, D) with a clear one, whatever the predictor rounds; -1: ask it."""
    symmetric = isinstance(post.likelihood, BinaryLikelihood) and post.likelihood.symmetric
    if len(X) < FEWEST or not symmetric or not knows(post):
        return np.full(len(X), -1)
    facts = facts_of(post, np.arange(X.shape[1]), chosen(device, len(X)))
    clear = signs(facts, curves_of(post.likelihood), X)
    return np.where(clear == 0, -1, clear > 0).astype(np.intp)


def ranges(
    post: Posterior, regions: Sequence[Region], labels: Index, settings: Settings, device: str
) -> Iterator[Roots]:
    """What one plane per side tells of min P(label) and of min 1 - P(label)."""
    side = np.where(labels == 1, 1.0, -1.0)
    for which, rows, facts in _groups(post, regions, side, settings, device, sides=2):
        start = now()
        splits = _splits(settings.max_nodes / 2)
        found = smallest(facts, curves_of(post.likelihood), rows, settings.tolerance, sides=2, splits=splits)
        yield _roots(which, rows, facts, found, start)


def decisions(
    post: Posterior,
    regions: Sequence[Region],
    labels: Index,
    threshold: float,
    settings: Settings,
    device: str,
    fewest: int = FEWEST,
    prove: bool = True,
) -> Iterator[Roots]:
    """The same of min P(label) alone, as sharp as the threshold asks; `fewest`: regions that pay;
    `prove=False`: counterexamples only.
    """
    if post.n_classes > 2:
        yield from _kept(post, regions, labels, settings, device, fewest if prove else len(regions) + 1)
        return
    side = np.where(labels == 1, 1.0, -1.0)
    for which, rows, facts in _groups(post, regions, side, settings, device, sides=1, fewest=fewest):
        curves, start, splits = curves_of(post.likelihood), now(), _splits(settings.max_nodes)
        if not prove:
            found = attained(facts, curves, rows, None if threshold == 0.5 else curves.noise)
        elif threshold == 0.5:
            found = verdicts(facts, curves, rows, splits)
        else:
            found = smallest(facts, curves, rows, _FINE, threshold + _ABOVE, splits=splits)
        yield _roots(which, rows, facts, found, start)


def _kept(
    post: Posterior, regions: Sequence[Region], labels: Index, settings: Settings, device: str, fewest: int
) -> Iterator[Roots]:
    """Several classes: where the label is proved to win, or to lose at a point, of (1 + its lead) / 2."""
    if not knows_labels(post):
        return
    sign, parts = labels.astype(np.float64), parts_of(post) if isinstance(post.likelihood, OneVsRest) else ()
    seen = parts[0] if parts else post
    for which, rows, facts in _groups(seen, regions, sign, settings, device, 1, fewest, lambda _: True):
        start = now()
        found = kept_apart(parts, facts, rows) if parts else kept_labels(facts, classes_of(post, facts), rows)
        yield _roots(which, rows, facts, found, start)


def _splits(nodes: float) -> int:
    """How many times a box may be split if so many may be bounded."""
    return sum(nodes >= count for count in _SPLIT)


def _roots(which: Index, rows: Rows | Around, facts: Facts, found: Settled, start: float) -> Roots:
    share = (now() - start) / len(rows)
    columns = Settled(*(column.reshape(-1, len(rows), *column.shape[1:]) for column in found))
    return Roots(which, columns, rows, facts, share)


def _groups(
    post: Posterior,
    regions: Sequence[Region],
    side: Float,
    settings: Settings,
    device: str,
    sides: int,
    fewest: int = FEWEST,
    known: Callable[[Posterior], bool] = knows,
) -> Iterator[tuple[Index, Rows | Around, Facts]]:
    """Regions that move the same features: their numbers, their rows, and the facts."""
    time_for_it = settings.max_nodes >= sides and settings.max_seconds >= _SECONDS
    if len(regions) < fewest or not time_for_it or not known(post):
        return
    batch = regions.batch if isinstance(regions, Regions) else None
    if batch is None or batch.kind.scale is not None or not _near(batch):
        yield from _grouped(post, regions, side, device, sides, fewest)
    elif batch.kind.norm in _NORMS:
        which, j = np.flatnonzero(batch.radius > 0), np.flatnonzero(batch.kind.moving())
        if len(which) >= fewest and j.size:
            backend, domain = chosen(device, sides * len(which)), batch.kind.domain
            facts = facts_of(post, j, backend, batch.kind.norm == 2)
            x = batch.x if len(which) == len(batch) else batch.x[which]
            ends = None if domain is None else (domain[0][j], domain[1][j])
            radius = batch.radius[which]
            yield which, Around(x, radius, ends, side[which], j, facts.rest, facts.round), facts


def _near(batch: BallBatch) -> bool:
    domain = batch.kind.domain
    bounded = domain is not None and np.isfinite(domain).all()
    ends = np.array(domain) if bounded else batch.x
    far = max(-ends.min(), ends.max(), batch.radius.max()) >= _FAR
    moves = batch.radius[batch.radius > 0] if batch.kind.norm == 2 else np.ones(1)
    return not far and bool(((moves > 1.0 / _AXIS) & (moves < _AXIS)).all())


def _grouped(
    post: Posterior, regions: Sequence[Region], side: Float, device: str, sides: int, fewest: int
) -> Iterator[tuple[Index, Rows, Facts]]:
    norms = np.array([each.norm for each in regions])
    for norm in _NORMS:
        which = np.flatnonzero(norms == norm)
        if len(which) >= fewest:
            yield from _of_one_norm(post, regions, which, norm == 2, side, device, sides, fewest)


def _of_one_norm(
    post: Posterior,
    regions: Sequence[Region],
    which: Index,
    round_: bool,
    side: Float,
    device: str,
    sides: int,
    fewest: int,
) -> Iterator[tuple[Index, Rows, Facts]]:
    some = [regions[i] for i in which.tolist()]
    columns = hulls_of(some)
    with np.errstate(all="ignore"):  # a row with a side of unknown width is left to the search, whole
        fits = np.isfinite(columns.upper - columns.lower).all(axis=1)
        axes = half_axes(some) if round_ else None
        if axes is not None:
            fits &= ((axes > 1.0 / _AXIS) & (axes < _AXIS)).all(axis=1)
    which, columns = which[fits], Hulls(*(end[fits] for end in columns))
    axes = None if axes is None else axes[fits]
    moving = columns.lower < columns.upper
    for rows in _sharing(moving, fewest):
        features = np.flatnonzero(moving[rows].any(axis=0))
        low, high, inner_low, inner_high = (end[rows][:, features] for end in columns)
        facts = facts_of(post, features, chosen(device, sides * len(rows)), round_)
        standing = columns.inner_lower[rows][:, facts.rest]
        ends = low, high, inner_low, inner_high, standing, side[which[rows]]
        if axes is None:
            yield which[rows], Rows(*ends), facts
        else:
            centre = np.stack([regions[i].centre for i in which[rows].tolist()])
            yield which[rows], Rows(*ends, centre[:, features], axes[rows][:, features]), facts


def _sharing(moving: Mask, fewest: int) -> Iterator[Index]:
    """Rows (m,) whose features are bounded together: all of them, or those with the very same ones."""
    if len(moving) < fewest:
        return
    count = moving.sum(axis=1)
    groups = [np.arange(len(moving))]
    if np.count_nonzero(moving.any(axis=0)) > _SHARED * max(float(count.mean()), 1.0):
        _, group = np.unique(moving, axis=0, return_inverse=True)
        groups = [np.flatnonzero(group == each) for each in range(int(group.max()) + 1)]
    for rows in groups:
        rows = rows[count[rows] > 0]
        if len(rows) >= fewest:
            yield rows
