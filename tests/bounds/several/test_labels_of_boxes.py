"""What a box proves of a softmax's label, rival by rival: Theorem 4, in ball arithmetic."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.several.labels import LabelBound
from helpers.oracle import examples
from helpers.several import Setting, random_box, random_model
from judge import Truth
from judge.latents import Latents


def margin(post: gc.Posterior, label: int, box: gc.Box) -> LabelBound:
    moving = box.lower < box.upper
    bound = BoundFactory(post).margin(label, shape_of(box, moving), box.lower, moving)
    assert isinstance(bound, LabelBound)
    return bound


@given(
    kind=st.sampled_from(["correlated", "independent"]),
    classes=st.sampled_from([3, 3, 4, 6]),
    width=st.sampled_from([1e-6, 0.05, 0.2]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=examples(30), deadline=None)
def test_what_is_known_of_rivals_holds_at_points(kind, classes, width, seed):
    """A row of all: the label is more probable; else E D >= s_k, one by one; and parts know as much."""
    setting = Setting(kind, classes, 6, 2, width, seed)
    post, rng = random_model(setting), np.random.default_rng(seed)
    box = random_box(setting, post)
    if not (box.lower < box.upper).all():
        return
    label = int(post.probability(box.centre[None])[0].argmax())
    bound = margin(post, label, box)
    bound.undecided(box.lower, box.upper, box.centre)
    known = bound.known.on(box.lower, box.upper, classes, classes)
    exact, truth = Latents(post), Truth(post)
    for x in box.lower + rng.random((3, 2)) * (box.upper - box.lower):
        z = np.clip(x, box.lower, box.upper)
        m, S = exact.all(z)
        p = truth.probabilities(z)
        for j in bound.rivals:
            if known[j].all():
                assert not bool(p[label] <= p[j])
                continue
            for k in np.flatnonzero(known[j]):
                s = S[label][k] - S[j][k] - (S[label][label] - S[j][j]) / 2
                assert not bool(m[label] - m[j] < s)
    half = box.lower + 0.5 * (box.upper - box.lower)
    assert not set(bound.undecided(box.lower, half, box.lower)[0]) & set(np.flatnonzero(known.all(axis=1)))
