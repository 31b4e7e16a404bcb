"""A batch of answers: a sequence that comes back as a table, a file, a page, or a summary."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Generic, SupportsIndex, TypeVar, overload

import numpy as np

from gpcert.classes import Label, positions
from gpcert.errors import InvalidInputError
from gpcert.extras import extra
from gpcert.files import write_whole
from gpcert.formats import TABLES, extension, write_table
from gpcert.html import tag
from gpcert.numbers import percent
from gpcert.posterior import Posterior
from gpcert.records.answer_file import read_answers, save_answers
from gpcert.records.batch import batch_document, image_of, region_of, shape_told, unit_of
from gpcert.records.results_file import dumps, nouns
from gpcert.records.rows import columns, flat
from gpcert.regions import Ball
from gpcert.results import Answer, Attack, Verdict, VerdictStatus
from gpcert.results.wording import PLAIN, UnitTable, Words, few, lines, sentences, unit_tables
from gpcert.running import Lot, made
from gpcert.tables import same_rows
from gpcert.validation import as_path, require, shown

A = TypeVar("A", bound=Answer, covariant=True)
_SHOWN = 10  # answers in a repr


class Answers(Sequence[A], Generic[A]):
    """Answers in the order asked; equal to any sequence of the same answers.

    `answers[3]` is one of them; a slice, a mask or positions pick several; `+` joins two batches.

    Parameters
    ----------
    answers : iterable of Answer
        The answers.
    ids : sequence, optional
        What the rows are called; None: 0, 1, ...
    post : Posterior, optional
        The model; None: not known (answers from a file).
    truth : sequence of class values, optional
        The true classes of the rows.

    Attributes
    ----------
    ids : tuple (n)
        What the rows are called.
    post : Posterior or None
        The model, where it is known.
    truth : tuple of class values (n) or None
        The true classes, where they are known.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> answers = gc.certify(clf, gc.balls([[0.5], [1.5], [2.5]], 0.25))
    >>> answers.summary().splitlines()[0]
    '3 x Verdict: 2 safe, 0 unsafe, 1 unknown'
    >>> len(answers[:1] + answers.filter(lambda a: a.status == "safe"))
    3
    """

    def __init__(
        self,
        answers: Iterable[A],
        ids: Sequence[Any] | None = None,
        post: Posterior | None = None,
        truth: Sequence[Label] | None = None,
    ) -> None:
        self._answers: list[Any] = list(answers)
        n = len(self._answers)
        for kind in set(map(type, self._answers)):
            require(issubclass(kind, Answer | Lot), f"answers must be answers, got {kind.__name__}")
        self.ids: tuple[Any, ...] = tuple(range(n)) if ids is None else tuple(ids)
        self.post = post
        self.truth = None if truth is None else tuple(truth)
        if truth is not None and post is not None:
            places = positions(post.labels, list(truth), "each label of truth")
            self.truth = tuple(post.labels[c] for c in places)
        for name, values in (("ids", self.ids), ("truth", self.truth)):
            require(values is None or len(values) == n, f"{name} must have length {n}, one for each answer")

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[A]:
        return (self[i] for i in range(len(self)))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_answers": list(self)}

    @overload
    def __getitem__(self, at: SupportsIndex) -> A: ...
    @overload
    def __getitem__(self, at: Any) -> Answers[A]: ...
    def __getitem__(self, at: Any) -> Any:
        """One answer by position; several by a slice, a mask, or positions."""
        if _is_position(at):
            answer = self._answers[at]
            if isinstance(answer, Lot):
                answer = self._answers[at] = made(answer, range(len(self))[at])
            return answer
        same_rows("positions", at, self.ids, "the answers")
        try:
            places = np.arange(len(self))[at]
            if places.ndim != 1:
                raise IndexError
            pick = places.tolist()
        except IndexError:
            rule = f"a position, a slice, positions or a mask of length {len(self)}"
            raise InvalidInputError(f"answers are picked by {rule}, got {shown(at)[:60]}") from None
        return Answers(
            [self[i] for i in pick],
            [self.ids[i] for i in pick],
            self.post,
            None if self.truth is None else [self.truth[i] for i in pick],
        )

    def filter(self, keep: Callable[[A], bool]) -> Answers[A]:
        """Some of the answers.

        Parameters
        ----------
        keep : callable
            An answer to True or False: `answers.filter(lambda a: a.status == "unsafe")`.

        Returns
        -------
        Answers
            Those of which `keep` is true.
        """
        texts = [keep(answer) for answer in self]
        odd = next((each for each in texts if not isinstance(each, bool | np.bool_)), True)
        require(isinstance(odd, bool | np.bool_), f"keep must say True or False, got {shown(odd)[:60]}")
        kept: Answers[A] = self[np.array(texts, dtype=bool)]
        return kept

    def __add__(self, other: Iterable[A]) -> Answers[A]:
        more = other if isinstance(other, Answers) else Answers(other)
        same = self.post is not None and more.post is not None and self.post.digest == more.post.digest
        if not len(more):
            return self[:]
        truth = self.truth + more.truth if self.truth and more.truth else None
        return Answers([*self, *more], self.ids + more.ids, self.post if same else None, truth)

    def __radd__(self, other: object) -> Answers[A]:
        return self[:] if other == 0 else NotImplemented  # sum() begins with 0

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def columns(self) -> dict[str, list[Any]]:
        """The answers as columns by name; points are left out.

        Returns
        -------
        dict of lists
            `id`, `true` where it is known, then what the answer says: `min_lower` is `answer.min.lower`, and
            so on.
        """
        lines = []
        for i, answer in enumerate(self):
            known = {"id": self.ids[i]} | ({} if self.truth is None else {"true": self.truth[i]})
            lines += [known | line for line in flat(answer)]
        return columns(lines)

    def to_pandas(self) -> Any:
        """A data frame of pandas.

        Returns
        -------
        DataFrame
            One line for each answer, its index the ids of the rows.
        """
        frame = extra("pandas", "to_pandas").DataFrame(self.columns())
        return frame.set_index("id") if len(frame) else frame

    def to_polars(self) -> Any:
        """A data frame of polars.

        Returns
        -------
        DataFrame
            One line for each answer.
        """
        return extra("polars", "to_polars").DataFrame(self.columns(), strict=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, whole or not at all: .csv, .parquet and .xlsx hold `columns`, .json everything.

        No text becomes a formula of a spreadsheet: in .csv an apostrophe stands before what would be one.

        A JSON file is read by `load_answers` and, of ranges, verdicts, radii and attacks of a known model, by
        `gpcert report`.

        Parameters
        ----------
        path : path
            The file; its extension says the format.
        """
        place = Path(path)
        if extension("path", place, ".json", *TABLES) in TABLES:
            write_table(place, self.columns())
            return
        try:
            require(self.post is not None, "")
            ((document, _),) = self._documents({})
            write_whole(place, dumps(document))
        except InvalidInputError:  # no page can be made of them; they are answers all the same
            save_answers(place, self)

    def _documents(self, order: dict[Any, int]) -> list[tuple[dict[str, Any], Any]]:
        """One; of answers from files one for each model, kind of answer and kind of region."""
        if self.post is not None:
            return [batch_document(self.post, tuple(self), self.ids, self.truth, order)]
        groups: dict[str, list[int]] = {}
        for i, answer in enumerate(self):
            region = region_of(answer)
            drawn = isinstance(region, Ball)
            shape = shape_told(region, [str(j) for j in range(region.n_features)]) if drawn else None
            groups.setdefault(repr((type(answer), answer.model, shape)), []).append(i)
        parts = [self[some] for some in groups.values()]
        return [batch_document(None, tuple(part), part.ids, part.truth, order) for part in parts]

    def report(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """Write the HTML page of `gpcert report`.

        Parameters
        ----------
        path : path
            The file.
        title : str, optional
            The heading; None: one that fits.
        """
        report(self, path, title)

    def summary(self) -> str:
        """How many answers of which kind say what; then, sentence by sentence, what is proved.

        Returns
        -------
        str
            Some lines.
        """
        said, tables = self._said()
        return "\n".join([self._counts(), *few(said), *lines(tables)])

    def _counts(self) -> str:
        n = len(self)
        if not n:
            return "no answers"
        found = Counter(str(getattr(answer, "status", "")) for answer in self)
        verdicts = [answer for answer in self if isinstance(answer, Verdict)]
        if len(verdicts) == n:
            found = Counter({str(status): found[status] for status in VerdictStatus})
        kinds = ", ".join(sorted({type(answer).__name__ for answer in self}))
        counts = ", ".join(f"{count} {status}" for status, count in found.items() if status)
        line = f"{n} x {kinds}: {counts}" if counts else f"{n} x {kinds}"
        if len(verdicts) == n == len(set(self.ids)) and self.truth is not None:  # a share of rows
            pairs = zip(verdicts, self.truth, strict=True)
            right = sum(v.status is VerdictStatus.SAFE and v.label == true for v, true in pairs)
            line += f"; right and safe: {percent(Fraction(right, n))}"
        return line

    def sentences(self) -> list[str]:
        """What is proved, as the page says it.

        Returns
        -------
        list of str
            One sentence for each kind of answer and radius.
        """
        return self._said()[0]

    def _said(self) -> tuple[list[str], list[UnitTable]]:
        """The sentences, and the tables of units that they point to."""
        labels = [getattr(answer, "label", None) for answer in self]
        right = None if self.truth is None else [a == b for a, b in zip(labels, self.truth, strict=True)]
        regions: list[Any] = [getattr(answer, answer.subject) for answer in self]
        if self.post is None or not len(self):
            return sentences(list(self), right=right), unit_tables(regions, PLAIN)
        centres = np.stack([region.centre for region in regions])
        noun, rows = nouns(image_of(self.post.feature_names, centres))
        attacked = any(isinstance(answer, Attack) for answer in self)
        predicted = list(map(str, self.post.predict(centres).tolist())) if attacked else [None] * len(self)
        units: dict[str | None, list[int]] = {}
        for i, region in enumerate(regions):
            units.setdefault(unit_of(self.post, getattr(region, "scale", None)), []).append(i)
        texts: list[str] = []
        tables: list[UnitTable] = []
        for unit, some in units.items():  # a radius of 1 is not the same for all of them
            names = self.post.feature_names or ()
            words = Words(list(map(str, self.post.labels)), names, noun, unit, rows)
            given = None if right is None else [right[i] for i in some]
            asked = [self[i] for i in some], words, given
            texts += sentences(*asked, predicted=[predicted[i] for i in some])
            tables += unit_tables([regions[i] for i in some], words)
        return texts, tables

    def __repr__(self) -> str:
        shown = [f"{self.ids[i]}: {self[i]}" for i in range(min(_SHOWN, len(self)))]
        more = [f"... {len(self) - len(shown)} more"] if len(self) > len(shown) else []
        lines = [" ".join(text.split()) for text in shown]
        texts = [line if len(line) <= 200 else line[:197] + "..." for line in lines]
        return "\n".join([f"Answers ({self._counts()})", *texts, *more])

    def _repr_html_(self) -> str:
        rows = [
            tag("tr", tag("td", str(self.ids[i])), tag("td", self[i].pictures()), tag("td", str(self[i])))
            for i in range(min(_SHOWN, len(self)))
        ]
        more = f"{len(self) - len(rows)} more" if len(self) > len(rows) else ""
        return tag("div", tag("b", self._counts()), tag("table", tag("tbody", *rows)), tag("div", more))


def _is_position(at: object) -> bool:
    """Whole numbers first: whether something is a `SupportsIndex` takes Python 3.11 longer than the rest."""
    if type(at) is int:
        return True
    return isinstance(at, SupportsIndex) and not isinstance(at, np.ndarray | np.bool_ | bool)


def load_answers(path: str | os.PathLike[str]) -> Answers[Answer]:
    """The answers in a file of `save_answers` or `Answers.save`, or in the results of a command.

    Nothing in it is executed. Whether claims are true of a model is not looked at.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Answers
        Their `ids` are those of the file, as texts, or positions of rows; their `truth` its true classes, if
        it has them.

    Raises
    ------
    InvalidInputError
        If the file is damaged, foreign or newer, or holds what no answer can be; the message names the file,
        the answer and the rule.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "answers.json")
    >>> gc.certify(clf, gc.balls({"dose": [0.5, 2.5], "who": ["Ann", "Bo"]}, 0.25, id="who")).save(path)
    >>> gc.load_answers(path).ids
    ('Ann', 'Bo')
    """
    answers, ids, truth = read_answers(as_path("path", path))
    return Answers(answers, ids, truth=truth)


def report(
    answers: Answers[Answer] | Sequence[Answers[Answer]],
    path: str | os.PathLike[str],
    title: str | None = None,
) -> None:
    """Write one HTML page about a batch, or several batches about the same rows; of several models, compared.

    The page is that of `gpcert report`: the claim, each class, curves, a table that sorts and filters.

    Parameters
    ----------
    answers : Answers or list of them
        A batch, or several.
    path : path
        The file.
    title : str, optional
        The heading; None: one that fits.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> answers = gc.certify(clf, gc.balls([[0.5], [2.5]], 0.25))
    >>> page = pathlib.Path(tempfile.mkdtemp(), "report.html")
    >>> gc.report(answers, page, title="Two rows")
    >>> "Two rows" in page.read_text(encoding="utf-8")
    True
    """
    from gpcert.pages import report_on  # a page is dear to import, and most batches become none

    batches: list[Answers[Answer]] = list(answers) if type(answers) in (list, tuple) else [answers]  # type: ignore[arg-type, list-item]
    for each in batches:
        found = type(each).__name__
        require(isinstance(each, Answers), f"answers must be one batch of answers, or several, got {found}")
    require(title is None or isinstance(title, str), f"title must be a text, got {shown(title)[:60]}")
    require(bool(batches), "answers must be one batch of answers, or several, got none")
    extension("path", path, ".html", ".htm")
    order: dict[Any, int] = {}
    made = [each for batch in batches for each in batch._documents(order)]
    require(bool(made), "answers must be at least one, got none")
    named = [(Path(document["verb"]), document, rows) for document, rows in made]
    write_whole(Path(path), report_on(named, title))
