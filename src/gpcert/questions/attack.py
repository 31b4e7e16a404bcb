"""A point of a region with small P(label), found by local search: `attack`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from gpcert.attacks import Careful, LogOdds, Sets, gpfgs, gpjm, pgd, settle
from gpcert.posterior import Posterior
from gpcert.questions.asking import about_regions
from gpcert.questions.checks import (
    Label,
    about,
    check_classifier,
    check_count,
    check_method,
    check_seed,
    checked_labels,
    checked_points,
)
from gpcert.regions import Ball, Region, Regions
from gpcert.results import Attack
from gpcert.settings import Settings
from gpcert.validation import Float, Index

__all__ = ["attack", "strongest"]


@about_regions
def attack(
    post: Posterior,
    region: Regions,
    x: ArrayLike | None = None,
    label: Label | Sequence[Label] | None = None,
    method: str = "pgd",
    *,
    starts: int = 5,
    seed: int = 0,
) -> list[Attack]:
    """The point with the smallest P(label) that local search finds in a region, or in each of a sequence.

    `x`: where the attack starts, default the region's centre; `label`: default the label the model gives x.
    `method`: "pgd" (projected gradients on P(label), `starts` starts), "gpfgs" (one step against the sign of
    the latent mean's gradient) or "gpjm" (one feature after the other, most salient first). Never a
    guarantee: what is found is evidence, what is not found proves nothing.

    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> gc.attack(clf, gc.Ball([1.75], 0.5)).success
    True
    """
    check_classifier(post)
    check_method(method, "pgd", "gpfgs", "gpjm")
    check_count("starts", starts)
    check_seed(seed)
    X = checked_points(post, x, region)
    labels = checked_labels(post, label, X)
    if not region:
        return []
    points = strongest(post, region, X, labels, method, starts=starts, seed=seed)
    p = post.probability(points)
    asked = method, int(starts), int(seed)
    told = about(post, Settings())
    return [
        Attack(z, float(row[c]), bool(row.argmax() != c), int(c), *asked, start, each, told)
        for z, row, c, start, each in zip(points, p, labels, X, region, strict=True)
    ]


def strongest(
    post: Posterior,
    regions: Sequence[Region],
    X: Float,
    labels: Index,
    method: str = "pgd",
    *,
    starts: int = 5,
    seed: int = 0,
) -> Float:
    """Points (m, d), each in its region as a real number; X (m, d) where nothing better was found."""
    points = np.array(X)
    norms = np.array([region.norm if isinstance(region, Ball) else np.inf for region in regions])
    with np.errstate(all="ignore"):
        for norm in np.unique(norms):
            rows = np.flatnonzero(norms == norm)
            sets = Sets.of([regions[int(i)] for i in rows])
            if method == "pgd":
                found, _ = pgd(Careful(LogOdds(post)), sets, labels[rows], starts=starts, seed=seed)
            elif method == "gpfgs":
                found = gpfgs(post, sets, labels[rows], X[rows])
            else:
                found = gpjm(post, sets, labels[rows])
            points[rows] = [settle(regions[int(i)], point) for i, point in zip(rows, found, strict=True)]
    at = np.arange(len(labels))
    worse = ~(post.probability(points)[at, labels] < post.probability(X)[at, labels])
    points[worse] = X[worse]
    return points
