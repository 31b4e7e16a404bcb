"""Random rows for the tests of the engine: models and boxes of `oracle`, as the batched products see them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from flint import arb

from gpcert.engine.backend import Backend
from gpcert.engine.boxes import Boxes, boxes
from gpcert.engine.facts import Facts, knows
from gpcert.engine.profiles import profile_of
from gpcert.engine.root import Rows
from gpcert.engine.values import Points, amplitudes, points
from gpcert.posterior import Posterior
from gpcert.regions import Ball
from helpers.oracle import half_square, random_box, random_posterior


@dataclass(frozen=True)
class Batch:
    """Rows with a reference each, and what the engine knows there."""

    post: Posterior
    facts: Facts
    rows: Rows
    references: np.ndarray
    at: Points
    boxes: Boxes

    def point(self, row: int, moving: np.ndarray) -> np.ndarray:
        """All features (D,) of a point of the row's slice."""
        x = np.empty(self.post.n_features)
        x[self.facts.rest], x[self.facts.features] = self.rows.standing[row], moving
        return x

    def inside(self, row: int, rng: np.random.Generator, count: int) -> list[np.ndarray]:
        """Points (D,) of the row's box: its vertices, its inside, the reference, and near it."""
        low, high, here = self.rows.lower[row], self.rows.upper[row], self.references[row]
        shape = (count, len(low))
        vertices = np.where(rng.random(shape) < 0.5, low, high)
        within = low + rng.random(shape) * (high - low)
        near = here + (within - here) * 10.0 ** rng.uniform(-6, 0, (count, 1))
        found = [np.clip(x, low, high) for x in (*vertices, *within, *near, here)]
        if self.rows.axes is not None:
            whole = np.flatnonzero(np.ones(len(low)))
            centre, axes = self.rows.centre[row], self.rows.axes[row]
            ball = Ball(centre, 1.0, 2.0, whole, (low, high), axes)
            found = [ball.project(x) for x in found]
        return [self.point(row, x) for x in found]

    def grown(self, row: int, x: np.ndarray) -> arb:
        """e^r at a point (D,) of the row's box, as a ball."""
        return half_square(x, self.point(row, self.references[row]), self.post).exp()


def random_batch(
    rng: np.random.Generator,
    backend: Backend | None = None,
    rows: int = 6,
    n: int = 12,
    d: int = 4,
    balls: bool = False,
    **model: object,
) -> Batch | None:
    """None: a model that the engine leaves alone; `balls`: rows are balls of norm 2 cut by boxes."""
    post = random_posterior(rng, int(rng.integers(1, n + 1)), int(rng.integers(1, d + 1)), **model)
    if not knows(post):
        return None
    profile = profile_of(post.kernel)
    count = int(rng.integers(1, post.n_features + 1))
    features = np.sort(rng.choice(post.n_features, count, replace=False))
    facts = Facts(backend or Backend(), post_model(post), features, post.centres.mean(axis=0), balls, profile)
    cases = [random_box(rng, post, largest=1.0) for _ in range(rows)]
    low, high, here = (
        np.stack([getattr(case, name)[features] for case in cases])
        for name in ("lower", "upper", "reference")
    )
    x = np.stack([case.reference for case in cases])
    sign = np.where(rng.random(rows) < 0.5, 1.0, -1.0)
    whole = Rows(low, high, low, high, x[:, facts.rest], sign)
    if balls:  # the reference in the ball, on the sphere for some; ends of the box beyond it and before it
        axes = np.maximum(high - low, 1e-9 * facts.lengths) * 10.0 ** rng.uniform(-0.5, 0.5, (rows, 1))
        centre = np.clip(here + 0.9 * axes * rng.standard_normal(low.shape) / low.shape[1] ** 0.5, low, high)
        whole = replace(whole, centre=centre, axes=axes)
    with np.errstate(all="ignore"):
        at = points(facts, here, amplitudes(facts, x[:, facts.rest]))
        return Batch(post, facts, whole, here, at, boxes(facts, whole, here))


def post_model(post: Posterior) -> object:
    """The verified model."""
    from gpcert.bounds.facts.model import model_of

    return model_of(post)
