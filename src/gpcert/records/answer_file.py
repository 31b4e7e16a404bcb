"""Answers in a file: `save_answers`, and what `load_answers` reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpcert.errors import InvalidInputError
from gpcert.files import write_whole
from gpcert.formats import extension
from gpcert.records.documents import dumps, parsed
from gpcert.records.results_file import NAME, read_rows
from gpcert.results import Answer, answer_from_dict
from gpcert.validation import require
from gpcert.version import __version__

_NAME = "gpcert answers"


def save_answers(path: str | os.PathLike[str], answers: Answer | Sequence[Answer]) -> None:
    """Write answers to a file, whole or not at all; it replaces one.

    Numbers are written exactly: what `load_answers` reads makes the same claims, bit for bit. Names of rows,
    which a batch has, are kept as texts.

    Parameters
    ----------
    path : path
        A .json file.
    answers : Answer or sequence of them
        One or several, of any kinds.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "answers.json")
    >>> gc.save_answers(path, gc.certify(clf, gc.Ball([2.5], 0.25)))
    >>> gc.load_answers(path)[0].status
    <VerdictStatus.SAFE: 'safe'>
    """
    require(isinstance(answers, Answer | Iterable), f"answers must be answers, got {type(answers).__name__}")
    listed = [answers] if isinstance(answers, Answer) else list(answers)
    for answer in listed:
        require(isinstance(answer, Answer), f"answers must be answers, got {type(answer).__name__}")
    extension("path", path, ".json")
    ids = tuple(getattr(answers, "ids", range(len(listed))))
    told = {} if ids == tuple(range(len(listed))) else {"ids": list(map(str, ids))}
    write_whole(Path(path), dumps({"format": _NAME, "version": __version__, **told, "answers": listed}))


def read_answers(place: Path) -> tuple[list[Answer], list[str | int] | None]:
    """The answers in a file, and what their rows are called: a text, or a position; None: nothing."""
    require(place.is_file(), f"{place} must be a file of answers, got no such file")
    document = parsed(place, (_NAME, NAME))
    if document["format"] == NAME:
        rows = read_rows(place, document)
        return [row.answer for row in rows], [row.row if row.id is None else row.id for row in rows]
    listed, ids = document.get("answers"), document.get("ids")
    if not isinstance(listed, list) or set(document) - {"ids"} != {"format", "version", "answers"}:
        raise InvalidInputError(f"{place} must hold format, version and a list of answers, got other entries")
    texts = ids is None or (isinstance(ids, list) and all(isinstance(each, str) for each in ids))
    require(
        texts and len(listed) == len(listed if ids is None else ids),
        f"{place}: ids must be texts, one for each answer, got others",
    )
    found = []
    for i, data in enumerate(listed):
        try:
            found.append(answer_from_dict(data))
        except InvalidInputError as error:
            raise InvalidInputError(f"{place}: answer {i}: {error}") from None
    return found, ids
