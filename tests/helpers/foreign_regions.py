"""Containment for foreign models: no random region's range excludes what the library itself predicts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import gpcert as gc

Predict = Callable[[np.ndarray], np.ndarray]


def excluded(
    predict: Predict, post: gc.Posterior, seed: int, units: np.ndarray, allowed: float, nodes: int = 6
) -> list[str]:
    """One random region: values of `predict` (m, C) outside the certified range by more than `allowed`."""
    random = np.random.default_rng(seed)
    label = seed % post.n_classes
    x = post.centres[random.integers(len(post.centres))] + units * random.normal(size=len(units)) * 0.5
    region = gc.Ball(x, 10.0 ** random.uniform(-3.0, 0.3), scale=units)
    r = gc.probability_range(post, region, label=post.labels[label], max_nodes=nodes)
    box = region.inner_box()
    inside = random.uniform(box.lower, box.upper, (50, len(units)))
    corners = np.where(random.random((20, len(units))) < 0.5, box.lower, box.upper)
    assert r.argmin is not None
    assert r.argmax is not None
    theirs = predict(np.concatenate([[r.argmin, r.argmax], inside, corners]))[:, label]
    found = []
    if not (r.lower - allowed <= theirs.min() and theirs.max() <= r.upper + allowed):
        found.append(f"seed {seed}: {theirs.min()} to {theirs.max()} outside {r}")
    if not (theirs[0] <= r.min.upper + allowed and theirs[1] >= r.max.lower - allowed):
        found.append(f"seed {seed}: the witnesses give {theirs[:2]}, not what {r} says")
    return found


def all_excluded(
    models: list[tuple[Predict, gc.Posterior]], count: int, units: np.ndarray, nodes: int = 6
) -> list[str]:
    """`count` random regions, the models in turn, within the deviation recorded for each."""
    found = []
    for seed in range(count):
        predict, post = models[seed % len(models)]
        found += excluded(predict, post, seed, units, post.training["deviation"]["probability"], nodes)
    return found
