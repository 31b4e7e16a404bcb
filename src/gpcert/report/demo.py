"""`make demo`: from shipped data to one HTML page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from gpcert.kernels import RBF
from gpcert.report import sections
from gpcert.report.figures import require_matplotlib
from gpcert.report.html import Html, join, page, tag
from gpcert.report.study import Study, study

__all__ = ["write_demo"]

# Lengthscales of the order of the distances between points (14 x 14 images: about 6), where the search for
# better ones has a slope to follow.
_START = {
    "mnist38": RBF(lengthscale=5.0, variance=10.0),
    "synthetic2d": RBF(lengthscale=1.0, variance=10.0),
    "spam": RBF(lengthscale=3.0, variance=10.0),
}
_MODEL = {"likelihood": "probit", "inference": "laplace", "max_evals": 40, "random_state": 0}


def write_demo(folder: Path, say: Callable[[str], None] = lambda text: None) -> Path:
    """Train on the shipped two-class data and write `folder/index.html`; return its path.

    `say` is told each step. The folder is made if it is missing.
    """
    require_matplotlib()
    folder.mkdir(parents=True, exist_ok=True)
    studies = []
    for name, kernel in _START.items():
        say(f"training on {name}")
        studies.append(study(name, kernel, **_MODEL))
        say(f"  accuracy {100 * studies[-1].accuracy:.1f} %, {studies[-1].seconds:.1f} s")
    document = page("gpcert: Gaussian-process classifiers on the shipped data", _sections(studies))
    path = folder / "index.html"
    path.write_text(document, encoding="utf-8")
    return path


def _sections(studies: Sequence[Study]) -> list[tuple[str, Html]]:
    """Headings and contents, in the order of the page."""
    images, plane, _ = studies
    return [
        ("Models", join([tag("p", _INTRODUCTION), sections.headline(studies)])),
        ("Handwritten threes and eights", _images(images)),
        ("Two classes in the plane", join([sections.decision_plane(plane), sections.confusion(plane)])),
        ("Settings", sections.settings(studies)),
        ("Versions", sections.versions()),
    ]


def _images(images: Study) -> Html:
    """Confusion, then the test images the model is least sure of, then the first ones."""
    doubt = np.argsort(np.abs(images.probability[:, 1] - 0.5), kind="stable")
    return join(
        [
            sections.confusion(images),
            sections.gallery(images, "Least certain test images", doubt[:16].tolist()),
            sections.gallery(images, "First test images", range(16)),
        ]
    )


_INTRODUCTION = (
    "Two-class Gaussian-process classifiers, trained by maximising the marginal likelihood. Accuracy is "
    "measured on test points that took no part in training."
)
