"""One model on one data set: trained, timed, and asked for what the page shows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpcert.datasets import Dataset, load
from gpcert.estimator import GPClassifier
from gpcert.kernels import Kernel
from gpcert.validation import Float

__all__ = ["Study", "study"]


@dataclass(frozen=True, eq=False)
class Study:
    """A fitted classifier with its data and its answers at the test points.

    `probability`: (n, C), columns in the order of `classes`; `predicted`: (n,) labels.
    """

    data: Dataset
    start: Kernel
    classifier: GPClassifier
    probability: Float
    predicted: NDArray[Any]
    seconds: float

    @property
    def classes(self) -> NDArray[Any]:
        """The labels, (C,)."""
        return np.asarray(self.classifier.classes_)

    @property
    def accuracy(self) -> float:
        """Share of test points whose predicted label is the true one."""
        return float(np.mean(self.predicted == self.data.y_test))

    def confusion(self) -> NDArray[np.intp]:
        """Counts of test points, (C, C): true class by row, predicted class by column."""
        rows = np.searchsorted(self.classes, self.data.y_test)
        columns = np.searchsorted(self.classes, self.predicted)
        counts = np.zeros((len(self.classes),) * 2, dtype=np.intp)
        np.add.at(counts, (rows, columns), 1)
        return counts


def study(name: str, kernel: Kernel, **settings: Any) -> Study:
    """Train a `GPClassifier` with these settings on the data set `name` and predict its test points."""
    data = load(name)
    begin = time.perf_counter()
    classifier = GPClassifier(kernel=kernel, **settings).fit(data.X_train, data.y_train)
    seconds = time.perf_counter() - begin
    return Study(
        data=data,
        start=kernel,
        classifier=classifier,
        probability=classifier.predict_proba(data.X_test),
        predicted=np.asarray(classifier.predict(data.X_test)),
        seconds=seconds,
    )
