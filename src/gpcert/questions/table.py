"""Verdicts for all rows of a table in one call: `certify_table`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpcert.answers import Answers
from gpcert.errors import InvalidInputError
from gpcert.posterior import Posterior
from gpcert.questions.asking import question
from gpcert.questions.balls import checked_balls
from gpcert.questions.certify import certify
from gpcert.questions.checks import Kept, checked_radii, class_indices
from gpcert.regions import Norm
from gpcert.results import Verdict
from gpcert.running import Listener
from gpcert.tables import column, column_names, framed, row_names
from gpcert.validation import composed, require


@question
def certify_table(
    post: Posterior,
    table: Any,
    target: str | None = None,
    radii: ArrayLike = (0.1,),
    norm: Norm = np.inf,
    features: Sequence[int | str] | None = None,
    domain: Any = None,
    scale: Any = None,
    *,
    id: str | None = None,
    threshold: float = 0.5,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Listener | bool | None = None,
    n_jobs: int | None = None,
    device: str = "auto",
    store: Kept = None,
) -> Answers[Verdict]:
    """A verdict of `certify` for every row of a table and every radius, row by row.

    Parameters
    ----------
    post : model
        Any model that `posterior_of` takes.
    table : table
        Named columns (pandas, polars, a mapping); columns that are neither the model's nor named here are not
        read.
    target : str, optional
        The column of the true labels.
    radii : float or sequence of float
        Radii of the balls, increasing.
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
    id : str, optional
        The column that names the rows; None: a table's index, or their positions.
    threshold : float
        The probability that the label has to exceed, in (0, 1); with several classes only 1/2.
    tolerance : float
        Width at which the margin counts as known; its sign is pursued further.
    max_seconds : float, optional
        Time limit for each verdict; None: no limit.
    max_nodes : int, optional
        Limit on the boxes bounded for each verdict; None: no limit.
    progress : callable or bool, optional
        True: a bar. A function is called with a `Progress`, as for `certify`; if it returns True, the call
        ends with what is known.
    n_jobs : int, optional
        Processes for a batch; None: all cores where that pays.
    device : str
        Where the regions of a batch are bounded together first: "cpu", "cuda", or "auto" (where it pays).
    store : path or Store, optional
        Keeps each answer as it comes; what it has is not computed again.

    Returns
    -------
    Answers
        Of each row, a verdict for each radius.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit({"dose": [0.0, 1.0, 2.0, 3.0]}, ["a", "a", "b", "b"])
    >>> rows = {"dose": [0.5, 2.5], "state": ["a", "b"]}
    >>> print(gc.certify_table(clf, rows, target="state", radii=[0.25]).summary().splitlines()[0])
    2 x Verdict: 2 safe, 0 unsafe, 0 unknown; right and safe: 100.0 %
    """
    target, id = composed(target), composed(id)
    frame, own = _columns(post, table, target, id)
    truth = None if target is None else column("target", frame, target)
    names = row_names(table) if id is None else column("id", frame, id)
    chosen = checked_radii(radii)
    shape = norm, float(chosen[-1]), features, domain, scale
    balls = checked_balls(post, {name: frame[name] for name in own}, *shape, what="table")
    m = len(balls.X)
    ids = range(m) if names is None else names
    labels = None if truth is None else class_indices(post, truth, m, "target")
    rows, names = np.repeat(np.arange(m), len(chosen)), [each for each in ids for _ in chosen]
    regions = balls.regions(rows, np.tile(chosen, m), names)
    found = certify.__wrapped__(  # what the door says of regions is said
        post,
        None,
        regions,
        threshold,
        tolerance=tolerance,
        max_seconds=max_seconds,
        max_nodes=max_nodes,
        progress=progress,
        n_jobs=n_jobs,
        device=device,
        store=store,
    )
    right = None if labels is None else [post.labels[c] for c in labels for _ in chosen]
    return Answers(found, regions.ids, post, right)


def _columns(post: Posterior, table: Any, target: str | None, id: str | None) -> tuple[Any, list[str]]:
    """The table by its columns, and which of them are features."""
    frame = framed("table", table)
    if frame is None:
        raise InvalidInputError(f"table must have named columns, got {type(table).__name__}: see gc.balls")
    known = column_names(frame) or []
    for what, name in (("target", target), ("id", id)):
        if name is not None:
            column(what, frame, name)  # the sentence of one that is not there comes first
        free = name is None or name not in (post.feature_names or ())
        require(free, f"{what} must be no feature of the model, got {name!r}")
    return frame, [
        name for name in known if name in (post.feature_names or known) and name not in (target, id)
    ]
