"""The parts of the page: each turns a study into markup, and knows nothing of the others."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from gpcert.report.figures import grey_image, plane
from gpcert.report.html import Html, join, table, tag
from gpcert.report.study import Study
from gpcert.validation import Float

__all__ = ["confusion", "decision_plane", "gallery", "headline", "probability_plane", "settings", "versions"]

_PACKAGES = ("gpcert", "numpy", "scipy", "python-flint", "safetensors", "matplotlib")
_THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def headline(studies: Iterable[Study]) -> Html:
    """One line per model: sizes, accuracy, log marginal likelihood, seconds."""
    head = ("data", "training", "test", "features", "accuracy", "log marginal likelihood", "training time")
    rows = [
        (
            s.data.name,
            *(f"{size:,}" for size in (len(s.data.X_train), len(s.data.X_test), s.data.X_train.shape[1])),
            f"{100 * s.accuracy:.1f} %",
            f"{s.classifier.log_marginal_likelihood_:.3f}",
            f"{s.seconds:.1f} s ({s.classifier.n_evals_} evaluations)",
        )
        for s in studies
    ]
    return table(head, rows)


def confusion(study: Study) -> Html:
    """True against predicted class, counts of test points."""
    labels = [str(label) for label in study.classes]
    rows = [
        (f"true {label}", *(str(count) for count in counts))
        for label, counts in zip(labels, study.confusion().tolist(), strict=True)
    ]
    return table(("", *(f"predicted {label}" for label in labels)), rows)


def gallery(study: Study, title: str, order: Iterable[int]) -> Html:
    """The test images at these positions: true label, probability of the second class, errors marked."""
    shape = study.data.image_shape
    if shape is None:
        raise ValueError(f"{study.data.name} has no images")
    pictures = []
    for i in order:
        true, predicted = study.data.y_test[i], study.predicted[i]
        told = f"P({study.classes[1]}) = {study.probability[i, 1]:.3f}"
        mark = "" if predicted == true else tag("div", f"predicted {predicted}", class_="wrong")
        image = grey_image(study.data.X_test[i].reshape(shape), f"test image {i}, class {true}, {told}")
        caption = tag("figcaption", f"{true}: {told}", mark)
        pictures.append(tag("figure", image, caption))
    return join([tag("h3", title), tag("div", *pictures, class_="gallery")])


def probability_plane(study: Study, steps: int = 121) -> tuple[tuple[Float, Float], Float]:
    """Grid lines around the test points of a data set with two features, and the probability of the second
    class on the grid, (steps, steps).
    """
    X = study.data.X_test
    low, high = X.min(axis=0) - 0.7, X.max(axis=0) + 0.7
    axes = (np.linspace(low[0], high[0], steps), np.linspace(low[1], high[1], steps))
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    return axes, study.classifier.predict_proba(grid)[:, 1].reshape(steps, steps)


def decision_plane(study: Study) -> Html:
    """The probability over the plane of a data set with two features, and the test points."""
    X, names = study.data.X_test, study.data.feature_names
    axes, p = probability_plane(study)
    points = {f"class {label}": X[study.data.y_test == label] for label in study.classes}
    picture = plane(axes, p, points, (names[0], names[1]), f"P(class {study.classes[1]})")
    caption = "Test points and the probability of the second class; the line is probability one half."
    return tag("figure", picture, tag("figcaption", caption), class_="plot")


def settings(studies: Iterable[Study]) -> Html:
    """Everything needed to train the same models again."""
    parts = []
    for s in studies:
        told = {
            "data": s.data.description,
            "kernel at the start": repr(s.start),
            "kernel after training": repr(s.classifier.posterior_.kernel),
            **{name: repr(value) for name, value in s.classifier.get_params().items() if name != "kernel"},
        }
        rows = [(name, tag("code", value) if name != "data" else value) for name, value in told.items()]
        parts += [tag("h3", s.data.name), table((), rows)]
    return join(parts)


def versions() -> Html:
    """Packages, interpreter, machine and the number of threads."""
    told = {"Python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    told |= {name: _version(name) for name in _PACKAGES}
    told |= {name: os.environ.get(name, "not set") for name in _THREAD_SETTINGS}
    return table((), list(told.items()))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
