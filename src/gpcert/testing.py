"""Certificates as tests: an assertion for pytest that counts only what is proved."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpcert.adapters.models import posterior_of
from gpcert.classes import position, positions
from gpcert.numbers import exactly
from gpcert.posterior import Posterior
from gpcert.questions.evaluate import evaluate
from gpcert.records.batch import unit_of
from gpcert.results import Evaluation
from gpcert.results.wording import Words, lines, sentences, unit_tables
from gpcert.tables import check_labelled, read
from gpcert.validation import require

_SHOWN = 20  # rows named in a message


def assert_certified(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    radius: float,
    at_least: float = 0.9,
    *,
    label: Any = None,
    **options: Any,
) -> Evaluation:
    """Fail unless at least this share of rows is labelled right and proved safe at a radius.

    What was not decided counts as not proved.

    Parameters
    ----------
    model : model
        Any model that `posterior_of` takes.
    X : array of shape (m, d) or table
        The points.
    y : array of shape (m,)
        Their true classes.
    radius : float
        Radius of the balls, >= 0.
    at_least : float
        The share, in [0, 1], meant as its decimal: 9 of 10 rows are 0.9.
    label : class value, optional
        Only rows of this class count (its certified recall); None: all.
    **options
        Those of `evaluate`: norm, features, domain, scale, limits.

    Returns
    -------
    Evaluation
        What was found.

    Raises
    ------
    AssertionError
        If fewer are; the message names the rows.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> found = gc.testing.assert_certified(clf, [[0.5], [2.5]], ["a", "b"], radius=0.25, at_least=1.0)
    >>> float(found.certified[0])
    1.0
    """
    share = isinstance(at_least, Real) and not isinstance(at_least, bool) and 0 <= float(at_least) <= 1
    require(share, f"at_least must be in [0, 1], got {at_least!r}")
    check_labelled(X, y)
    points, names, ids = read("X", X)
    truth = np.asarray(y)
    text = f"y must have one class for each row of X, got shapes {truth.shape} and {points.shape}"
    require(points.shape[:1] == truth.shape, text)
    post = posterior_of(model)
    classes, rows, of = post.labels, np.arange(len(truth)), ""
    if label is not None:
        only = position(classes, label)
        rows = np.flatnonzero(np.array(positions(classes, truth.tolist(), "each label of y")) == only)
        of = f" of class {classes[only]!r}"
    require(len(rows) > 0, f"y must hold at least one row{of}, got none")
    own = points[rows]
    table = own if names is None else dict(zip(names, own.T, strict=True))
    found = evaluate(model, table, truth[rows], [radius], **options)
    count, wanted = round(float(found.certified[0]) * len(rows)), Fraction(repr(float(at_least)))
    if Fraction(count, len(rows)) < wanted:
        called = rows.tolist() if ids is None else [ids[i] for i in rows]
        raise AssertionError(_message(found, called, exactly(float(at_least)), post))
    return found


def _message(found: Evaluation, rows: Sequence[Any], wanted: str, post: Posterior) -> str:
    """What is proved, which rows are not, and what the radius is in the units of the features."""
    status = found.verdicts[:, 0]
    lost = [
        f"{i} ({'wrong' if not right else verdict})"
        for i, right, verdict in zip(rows, found.correct, status, strict=True)
        if not (right and verdict == "safe")
    ]
    more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
    words = Words(features=post.feature_names or (), unit=unit_of(post, found.balls[0].scale))
    text = f"Required: {wanted}. Not proved: rows {', '.join(lost[:_SHOWN])}{more}."
    units = lines(unit_tables(found.balls[:1], words, found.radii.tolist()))
    return "\n".join([f"{sentences([found], words)[0]} {text}", *units])
