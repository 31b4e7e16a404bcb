"""Answers in a file: `save_answers`, `load_answers`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gpcert.errors import InvalidInputError
from gpcert.files import write_whole
from gpcert.records.documents import dumps, parsed
from gpcert.records.results_file import NAME, read_rows
from gpcert.results import Answer, answer_from_dict
from gpcert.validation import require
from gpcert.version import __version__

__all__ = ["load_answers", "save_answers"]

_NAME = "gpcert answers"


def save_answers(path: str | os.PathLike[str], answers: Answer | Sequence[Answer]) -> None:
    """Write answers, one or several of any kinds, to a file, whole or not at all; it replaces one.

    Numbers are written exactly: what `load_answers` reads makes the same claims, bit for bit.

    `path`: the file, written whole or not at all.

    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "answers.json")
    >>> gc.save_answers(path, gc.certify(clf, gc.Ball([2.5], 0.25)))
    >>> gc.load_answers(path)[0].status
    <VerdictStatus.SAFE: 'safe'>
    """
    listed = [answers] if isinstance(answers, Answer) else list(answers)
    for answer in listed:
        require(isinstance(answer, Answer), f"answers must be answers, got {type(answer).__name__}")
    write_whole(Path(path), dumps({"format": _NAME, "version": __version__, "answers": listed}))


def load_answers(path: str | os.PathLike[str]) -> list[Answer]:
    """The answers in a file of `save_answers`, or in the results of a command; nothing in it is executed.

    A file that is damaged, foreign or newer, or that holds what no answer can be, is one InvalidInputError
    that names the file, the answer and the rule. Whether claims are true of a model is not looked at.

    `path`: the file.

    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "answers.json")
    >>> gc.certify(clf, gc.balls([[0.5], [2.5]], 0.25)).save(path)
    >>> len(gc.load_answers(path))
    2
    """
    place = Path(path)
    require(place.is_file(), f"{place} must be a file of answers, got no such file")
    document = parsed(place, (_NAME, NAME))
    if document["format"] == NAME:
        return [row.answer for row in read_rows(place, document)]
    listed = document.get("answers")
    if not isinstance(listed, list) or set(document) != {"format", "version", "answers"}:
        raise InvalidInputError(f"{place} must hold format, version and a list of answers, got other entries")
    found = []
    for i, data in enumerate(listed):
        try:
            found.append(answer_from_dict(data))
        except InvalidInputError as error:
            raise InvalidInputError(f"{place}: answer {i}: {error}") from None
    return found
