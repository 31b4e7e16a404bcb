"""A batch of answers: a sequence that comes back as a table, a file, a page, or a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, SupportsIndex, TypeVar, overload

import numpy as np

from gpcert.posterior import Posterior
from gpcert.results import Answer
from gpcert.validation import require

__all__ = ["Answers"]

A = TypeVar("A", bound=Answer, covariant=True)


class Answers(Sequence[A], Generic[A]):
    """Answers in the order asked; equal to any sequence of the same answers.

    `ids`: what the rows are called that were asked about (a table's index, or its ids), default 0, 1, ...;
    `post`: the model, None if it is not known (answers from a file); `truth`: class indices of the rows.
    """

    def __init__(
        self,
        answers: Iterable[A],
        ids: Sequence[Any] | None = None,
        post: Posterior | None = None,
        truth: Sequence[int] | None = None,
    ) -> None:
        self._answers = tuple(answers)
        n = len(self._answers)
        self.ids: tuple[Any, ...] = tuple(range(n)) if ids is None else tuple(ids)
        self.post = post
        self.truth = None if truth is None else tuple(truth)
        for name, values in (("ids", self.ids), ("truth", self.truth)):
            require(values is None or len(values) == n, f"{name} must have length {n}, one for each answer")

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[A]:
        return iter(self._answers)

    @overload
    def __getitem__(self, at: SupportsIndex) -> A: ...
    @overload
    def __getitem__(self, at: Any) -> Answers[A]: ...
    def __getitem__(self, at: Any) -> Any:
        """One answer by position; several by a slice, a mask, or positions."""
        if isinstance(at, SupportsIndex) and not isinstance(at, np.ndarray):
            return self._answers[at]
        chosen = np.arange(len(self))[at]
        pick = chosen.tolist()
        return Answers(
            [self._answers[i] for i in pick],
            [self.ids[i] for i in pick],
            self.post,
            None if self.truth is None else [self.truth[i] for i in pick],
        )

    def filter(self, keep: Callable[[A], bool]) -> Answers[A]:
        """Those of which `keep` is true: `answers.filter(lambda a: a.status == "unsafe")`."""
        kept: Answers[A] = self[np.array([bool(keep(answer)) for answer in self], dtype=bool)]
        return kept

    def __add__(self, other: Iterable[A]) -> Answers[A]:
        more = other if isinstance(other, Answers) else Answers(other)
        same = self.post is not None and more.post is not None and self.post.digest == more.post.digest
        truth = None if self.truth is None or more.truth is None else self.truth + more.truth
        return Answers([*self, *more], self.ids + more.ids, self.post if same else None, truth)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]
