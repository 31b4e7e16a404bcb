"""Figure 5: which pixels of a digit raise and which lower its class's probability, with three classes."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import label as components

from gpcert.posterior import Posterior
from gpcert.questions.explain import explain
from gpcert.validation import Float, Index
from gpcert_paper.reproduce.draw import heat_map, pixels
from gpcert_paper.reproduce.job import Job, Table
from gpcert_paper.reproduce.lime import lime_weights
from gpcert_paper.reproduce.models import Recipe, data_of, posterior_of
from gpcert_paper.reproduce.page import Claim, Findings, new_figure, paragraphs, save

__all__ = ["interpret_mnist358"]

_RADIUS = 0.5
_TOLERANCE = 1e-3
_PAPER = 0.58  # the probability of the paper's 3 before whitening
_KEPT = 60  # pixels that LIME may call relevant
_SHARE = 0.3  # pixels of the patch: at least this share of the most negative Delta
_NOTES = """
Softmax likelihood, Laplace's method, 10 evaluations, 500 training images from the 10,000-image file, one
lengthscale. Shown is, of each digit, the correctly classified test image of a probability nearest to 0.58.

Delta with radius 0.5, pixels in [0, 1], from enclosures to 0.001. Red raises the probability of the digit
shown, blue lowers it.

The blue patch: the largest connected set of pixels whose Delta is at least 30 % of the most negative one.
Whitening sets its pixels to 1.

LIME: the authors' package, pixel by pixel, 5,000 samples; pixels beyond the 60 most important are grey.
"""


def interpret_mnist358(job: Job) -> Findings:
    """Heat maps of Delta and LIME, and what whitening the blue patch does."""
    data = data_of("mnist358")
    shape = data.image_shape
    assert shape is not None
    post = posterior_of(job, Recipe("mnist358", evaluations=10, likelihood="softmax"))
    table = job.table("pixels", ("digit", "image", "pixel"), ("lower", "upper", "lime"))
    figure = new_figure(8.0, 8.0)
    panels = figure.subplots(3, 3)
    claims = []
    for column, index in enumerate(_images(post)):
        x, label = data.X_test[index], int(post.probability(data.X_test[index : index + 1])[0].argmax())
        digit = int(data.y_test[index])
        _measure(job, table, post, digit, index, label)
        rows = sorted(table.select(digit=digit, image=index), key=lambda row: int(row["pixel"]))
        values, lime = np.zeros(x.size), np.zeros(x.size)
        for row in rows:
            values[int(row["pixel"])] = 0.5 * (float(row["lower"]) + float(row["upper"]))
            lime[int(row["pixel"])] = float(row["lime"])
        patch = _blue_patch(values, shape)
        pixels(panels[0, column], x, shape, patch)
        heat_map(panels[1, column], values, shape, "Delta")
        heat_map(panels[2, column], lime, shape, "LIME")
        claims.append(_whitening(post, x, label, digit, patch))
    save(figure, job.folder, "pixels")
    return Findings(
        "Local interpretation of MNIST358 (figure 5)",
        claims,
        [("pixels", "The digits with the blue patch marked; Delta; LIME.")],
        paragraphs(_NOTES),
    )


def _images(post: Posterior) -> list[int]:
    """One test image per digit."""
    data = data_of("mnist358")
    p = post.probability(data.X_test)
    right = np.asarray(post.classes)[p.argmax(axis=1)] == data.y_test
    chosen = []
    for digit in (3, 5, 8):
        rows = np.flatnonzero(right & (data.y_test == digit))
        chosen.append(int(rows[np.argmin(np.abs(p[rows].max(axis=1) - _PAPER))]))
    return chosen


def _measure(job: Job, table: Table, post: Posterior, digit: int, index: int, label: int) -> None:
    data = data_of("mnist358")
    x = data.X_test[index]
    keys = table.missing([(digit, index, j) for j in range(0, x.size, job.choose(1, 5))])
    if not keys:
        return
    samples = job.choose(5000, 500)
    lime = lime_weights(post, data.X_train[: post.n_centres], x[None], label, samples, _KEPT)[0]
    for key in job.steps(keys, f"Delta of a {digit}"):
        j = int(key[2])
        e = explain(
            post, x, _RADIUS, post.labels[label], features=[j], domain=data.domain, tolerance=_TOLERANCE
        )
        table.add(*key, float(e.lower[0, j]), float(e.upper[0, j]), float(lime[j]))


def _blue_patch(values: Float, shape: tuple[int, int]) -> Index:
    """Flat indices of the largest connected set of strongly negative pixels."""
    blue = (values <= _SHARE * values.min()) & (values < 0)
    found, count = components(blue.reshape(shape), structure=np.ones((3, 3)))
    if count == 0:
        return np.array([], dtype=np.intp)
    sizes = np.bincount(found.ravel())[1:]
    return np.flatnonzero(found.ravel() == 1 + int(sizes.argmax()))


def _whitening(post: Posterior, x: Float, label: int, digit: int, patch: Index) -> Claim:
    white = x.copy()
    white[patch] = 1.0
    before, after = (float(p[label]) for p in post.probability(np.stack([x, white])))
    paper = {3: "0.58 to 0.40", 5: "lowered", 8: "a patch of 3 pixels, towards a 3"}[digit]
    return Claim(
        f"digit {digit}: whitening the blue patch lowers its probability",
        paper,
        f"{before:.3f} to {after:.3f}, patch of {len(patch)} pixels",
        after < before,
    )
