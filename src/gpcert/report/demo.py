"""`make demo`: from shipped data to one HTML page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpcert.kernels import RBF
from gpcert.regions import Box
from gpcert.report import certified_boxes, certified_images, sections
from gpcert.report.asked import ask, ask_image
from gpcert.report.figures import require_matplotlib
from gpcert.report.html import Html, join, page, tag
from gpcert.report.study import Study, study
from gpcert.results import Status

__all__ = ["write_demo"]

# Lengthscales of the order of the distances between points (14 x 14 images: about 6), where the search for
# better ones has a slope to follow.
_START = {
    "mnist38": RBF(lengthscale=5.0, variance=10.0),
    "synthetic2d": RBF(lengthscale=1.0, variance=10.0),
    "spam": RBF(lengthscale=3.0, variance=10.0),
}
_MODEL = {"likelihood": "probit", "inference": "laplace", "max_evals": 40, "random_state": 0}


# Ranks of test images, the least certain first: from the boundary between the classes to certainty.
_CERTAINTY_RANKS = (0, 4, 10, 20, 40, 80, 140, 199)
_RADII = (0.05, 0.1)
# Corners in standardised units: inside each class, across the boundary, and where there are no data.
_BOXES = (
    Box([-1.3, 0.6], [-0.5, 1.4]),
    Box([0.6, -1.5], [1.4, -0.7]),
    Box([-0.4, -0.6], [0.5, 0.2]),
    Box([-2.2, -2.4], [-1.0, -1.7]),
    Box([1.4, 0.8], [2.2, 1.6]),
)


def write_demo(folder: Path, say: Callable[[str], None] = lambda text: None) -> Path:
    """Train on the shipped two-class data, certify ranges, write `folder/index.html`; return its path.

    `say` is told each step. The folder is made if it is missing.
    """
    require_matplotlib()
    folder.mkdir(parents=True, exist_ok=True)
    studies = []
    for name, kernel in _START.items():
        say(f"training on {name}")
        studies.append(study(name, kernel, **_MODEL))
        say(f"  accuracy {100 * studies[-1].accuracy:.1f} %, {studies[-1].seconds:.1f} s")
    document = page("gpcert: guaranteed ranges of Gaussian-process classifiers", _sections(studies, say))
    path = folder / "index.html"
    path.write_text(document, encoding="utf-8")
    return path


def _sections(studies: Sequence[Study], say: Callable[[str], None]) -> list[tuple[str, Html]]:
    """Headings and contents, in the order of the page."""
    images, plane, _ = studies
    return [
        ("Models", join([tag("p", _INTRODUCTION), sections.headline(studies)])),
        ("Certified ranges of whole images", _certified_images(images, say)),
        ("Certified ranges of boxes in the plane", _certified_boxes(plane, say)),
        ("Handwritten threes and eights", _images(images)),
        ("Two classes in the plane", join([sections.decision_plane(plane), sections.confusion(plane)])),
        ("Settings", sections.settings(studies)),
        ("Versions", sections.versions()),
    ]


def _certified_images(images: Study, say: Callable[[str], None]) -> Html:
    """Ranges, worst cases and verdicts of images between the least and the most certain."""
    chosen = _from_doubt(images)[list(_CERTAINTY_RANKS)].tolist()
    say(f"certifying {len(chosen)} images, all {images.data.X_test.shape[1]} pixels moving")
    asked = {i: ask_image(images, i, _RADII) for i in chosen}
    ranges = [one.range for radii in asked.values() for one in radii.values()]
    converged = sum(found.status is Status.CONVERGED for found in ranges)
    say(f"  {converged} of {len(ranges)} ranges converged, {sum(found.seconds for found in ranges):.1f} s")
    counts = certified_images.verdict_counts(list(asked.values()))
    cards = [certified_images.image_card(images, i, radii) for i, radii in asked.items()]
    return join([certified_images.introduction(), counts, *cards])


def _certified_boxes(plane: Study, say: Callable[[str], None]) -> Html:
    say(f"certifying {len(_BOXES)} boxes in the plane")
    return certified_boxes.boxes_in_plane(plane, [ask(plane, box, label=1) for box in _BOXES])


def _images(images: Study) -> Html:
    """Confusion, then the test images the model is least sure of, then the first ones."""
    return join(
        [
            sections.confusion(images),
            sections.gallery(images, "Least certain test images", _from_doubt(images)[:16].tolist()),
            sections.gallery(images, "First test images", range(16)),
        ]
    )


def _from_doubt(images: Study) -> NDArray[np.intp]:
    """Positions of the test images, (n,), the least certain first."""
    return np.argsort(np.abs(images.probability[:, 1] - 0.5), kind="stable")


_INTRODUCTION = (
    "Two-class Gaussian-process classifiers, trained by maximising the marginal likelihood. Accuracy is "
    "measured on test points that took no part in training."
)
