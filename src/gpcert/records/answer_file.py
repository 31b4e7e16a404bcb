"""Answers in a file: `save_answers`, and what `load_answers` reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpcert.classes import Label
from gpcert.errors import InvalidInputError
from gpcert.files import write_whole
from gpcert.formats import extension
from gpcert.records.results_file import ANSWERS, NAME, dumps, parsed, read_rows
from gpcert.results import Answer, answer_from_dict
from gpcert.validation import require
from gpcert.version import __version__


def save_answers(path: str | os.PathLike[str], answers: Answer | Sequence[Answer]) -> None:
    """Write answers to a file, whole or not at all; it replaces one.

    Numbers are written exactly: what `load_answers` reads makes the same claims, bit for bit. Names and
    true classes of rows, which a batch has, are kept as texts.

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
    entries = {} if ids == tuple(range(len(listed))) else {"ids": list(map(str, ids))}
    truth = None if isinstance(answers, Answer) else getattr(answers, "truth", None)
    entries |= {} if truth is None else {"truth": list(map(str, truth))}
    write_whole(Path(path), dumps({"format": ANSWERS, "version": __version__, **entries, "answers": listed}))


def read_answers(
    place: Path,
) -> tuple[list[Answer], list[str | int] | None, list[Label] | None]:
    """The answers in a file; what their rows are called, a text, or a position; their true classes. None: not
    known.
    """
    require(place.is_file(), f"{place} must be a file of answers, got no such file")
    document = parsed(place, (ANSWERS, NAME))
    if document["format"] == NAME:
        rows = read_rows(place, document)
        known: list[Answer] = [row.answer for row in rows]
        names = [row.row if row.id is None else row.id for row in rows]
        return known, names, _classes(known, [row.label for row in rows])
    listed, ids, truth = (document.get(name) for name in ("answers", "ids", "truth"))
    if not isinstance(listed, list) or set(document) - {"ids", "truth"} != {"format", "version", "answers"}:
        raise InvalidInputError(f"{place} must hold format, version and a list of answers, got other entries")
    for name, value in (("ids", ids), ("truth", truth)):
        texts = value is None or (isinstance(value, list) and all(isinstance(each, str) for each in value))
        require(
            texts and len(listed) == len(listed if value is None else value),
            f"{place}: {name} must be texts, one for each answer, got others",
        )
    found: list[Answer] = []
    for i, data in enumerate(listed):
        try:
            found.append(answer_from_dict(data))
        except InvalidInputError as error:
            raise InvalidInputError(f"{place}: answer {i}: {error}") from None
    return found, ids, None if truth is None else _classes(found, truth)


def _classes(answers: Sequence[Answer], texts: Sequence[str | None]) -> list[Label] | None:
    """The values of the models' classes that the texts mean; None where one is not known."""
    known = [{str(value): value for value in answer.about.classes} for answer in answers]
    parts = [values.get(text, text) for values, text in zip(known, texts, strict=True) if text is not None]
    return parts if parts and len(parts) == len(texts) else None
