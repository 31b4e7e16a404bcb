"""Certified accuracy as a score: `certified_score` makes what scikit-learn's searches take."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.errors import GpcertError
from gpcert.questions.checks import check_device, check_level, checked_running, checked_settings
from gpcert.questions.evaluate import evaluate
from gpcert.regions import Ball, Norm
from gpcert.validation import require, shown


@dataclass(frozen=True)
class _Score:
    """A scorer: (model, X, y) -> the share of points that are right and are proved to stay so."""

    radius: float
    shape: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...]

    def __call__(self, model: Any, X: Any, y: Any) -> float:
        # A score of some of the points would be compared with one of all.
        with warnings.catch_warnings():
            warnings.filterwarnings("error", ".*are not answered", RuntimeWarning)
            try:
                found = evaluate(model, X, y, [self.radius], *self.shape, **dict(self.options))
            except RuntimeWarning as warning:
                raise GpcertError(f"certified_score needs an answer for every point, but {warning}") from None
        if None in found.labels.tolist():
            raise KeyboardInterrupt
        return float(found.certified[0])


def certified_score(
    radius: float,
    norm: Norm = np.inf,
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

    Parameters
    ----------
    radius : float
        Radius of the balls, >= 0.
    norm : float or "inf"
        inf, any p >= 1, or 0 (the radius is how many features may move).
    features : sequence, optional
        Features that move: positions, a mask or names; None: all.
    domain : pair (low, high), mapping or "data", optional
        Where inputs are valid: numbers, arrays (d,) or by name, None for an open end; balls are cut there;
        "data": from 0 on where no training value was negative, up to 1 where all were 0 or 1; None:
        everywhere.
    scale : float, array of shape (d,), mapping or "std", optional
        Units of the radius: one number, one for each feature, or by name; "std": standard deviations of the
        training data; None: 1.
    threshold : float
        The probability that the label has to exceed, in (0, 1); with several classes only 1/2.
    tolerance : float
        Width at which the smallest P(label) of a ball counts as known; the side of the threshold is pursued
        further.
    max_seconds : float, optional
        Time limit for each proof; None: no limit.
    max_nodes : int, optional
        Limit on the boxes bounded for each proof; None: no limit.
    n_jobs : int, optional
        Processes for a batch; None: all cores where that pays. 1 leaves them to the search for a model.
    device : str
        Where the regions of a batch are bounded together first: "cpu", "cuda", or "auto" (where it pays).

    Returns
    -------
    callable
        A scorer: (model, X, y) to a share in [0, 1].

    Raises
    ------
    KeyboardInterrupt
        By the scorer at Ctrl-C: half a score is none.
    GpcertError
        By the scorer where a worker died of a point.

    Examples
    --------
    >>> import gpcert as gc
    >>> from sklearn.model_selection import cross_val_score
    >>> data = gc.datasets.load("synthetic2d")
    >>> X, y = data.X_train[:60], data.y_train[:60]
    >>> clf = gc.GPClassifier(gc.RBF(1.0, 4.0), max_evals=0)
    >>> bool((cross_val_score(clf, X, y, cv=2, scoring=gc.certified_score(0.05)) > 0.4).all())
    True
    """
    # At once: scikit-learn turns the errors of a scorer into NaN.
    number = isinstance(radius, int | float | np.number) and not isinstance(radius, bool)
    require(number and 0.0 <= radius < np.inf, f"radius must be a number >= 0, got {shown(radius)}")
    Ball([0.0], radius, norm, domain=(0.0, 0.0))  # the sentences about norms
    check_level(threshold)
    checked_settings(tolerance, max_seconds, max_nodes)
    checked_running(None, n_jobs)
    check_device(device)
    options: dict[str, Any] = {"threshold": threshold, "tolerance": tolerance, "max_seconds": max_seconds}
    options |= {"max_nodes": max_nodes, "n_jobs": n_jobs, "device": device}
    return _Score(radius, (norm, features, domain, scale), tuple(options.items()))
