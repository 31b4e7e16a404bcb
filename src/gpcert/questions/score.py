"""Certified accuracy as a score: `certified_score` makes what scikit-learn's searches take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.adapters import posterior_of
from gpcert.posterior import Posterior
from gpcert.questions.balls import Balls, checked_balls
from gpcert.questions.certify import settled_verdicts
from gpcert.questions.checks import class_indices
from gpcert.questions.evaluate import evaluate
from gpcert.results import VerdictStatus
from gpcert.tables import same_rows
from gpcert.validation import Index

__all__ = ["certified_score"]


@dataclass(frozen=True)
class _Score:
    """A scorer: (model, X, y) -> the share of points that are right and are proved to stay so."""

    radius: float
    shape: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...]

    def __call__(self, model: Any, X: Any, y: Any) -> float:
        post, options = posterior_of(model), dict(self.options)
        norm, features, domain, scale = self.shape
        balls = checked_balls(post, X, norm, self.radius, features, domain, scale, what="X")
        same_rows("y", y, X)
        truth = class_indices(post, y, len(balls.X))
        proved = self._settled(post, balls, truth) if options["threshold"] == 0.5 else {}
        rest = np.array([i for i in range(len(truth)) if i not in proved], dtype=np.intp)
        count = sum(proved.values())
        if rest.size:
            some = balls.X[rest], np.asarray(y)[rest], [self.radius]
            shape: tuple[Any, ...] = (balls.norm, balls.features, balls.domain, balls.scale)
            count += round(float(evaluate(post, *some, *shape, **options).certified[0]) * len(rest))
        return count / len(truth)

    def _settled(self, post: Posterior, balls: Balls, truth: Index) -> dict[int, bool]:
        """Whether points are right and safe, where the roots of all balls together tell it: no attack."""
        options = dict(self.options)
        limits = {
            name: options[name] for name in ("threshold", "device", "tolerance", "max_seconds", "max_nodes")
        }
        regions = [balls.ball(i, balls.whole(self.radius)) for i in range(len(balls.X))]
        found = settled_verdicts(post, balls.X, regions, store=None, **limits)
        safe = VerdictStatus.SAFE
        return {i: v.status is safe and v.label == truth[i] for i, v in found.items()}


def certified_score(
    radius: float,
    norm: float = np.inf,
    features: Sequence[int | str] | None = None,
    domain: Any = None,
    scale: Any = None,
    *,
    threshold: float = 0.5,
    tolerance: float = 1e-3,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    n_jobs: int | None = 1,
    device: str = "auto",
) -> _Score:
    """Certified accuracy at one radius as a scikit-learn scorer, for `GridSearchCV`, `cross_val_score`.

    The share of points that the fitted model labels correctly and whose whole ball is proved to keep the
    label: `evaluate(model, X, y, [radius], ...).certified`. What a limit leaves undecided does not count.

    `norm`, `features`, `domain`, `scale`: as for `Ball`; `threshold`, `tolerance`, `max_seconds`,
    `max_nodes`, `n_jobs` and `device`: as for `evaluate`.

    >>> import gpcert as gc
    >>> from sklearn.model_selection import cross_val_score
    >>> data = gc.datasets.load("synthetic2d")
    >>> X, y = data.X_train[:60], data.y_train[:60]
    >>> clf = gc.GPClassifier(gc.RBF(1.0, 4.0), max_evals=0)
    >>> bool((cross_val_score(clf, X, y, cv=2, scoring=gc.certified_score(0.05)) > 0.4).all())
    True
    """
    options: dict[str, Any] = {"threshold": threshold, "tolerance": tolerance, "max_seconds": max_seconds}
    options |= {"max_nodes": max_nodes, "n_jobs": n_jobs, "device": device}
    return _Score(radius, (norm, features, domain, scale), tuple(options.items()))
