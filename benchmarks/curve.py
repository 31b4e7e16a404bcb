"""Certified accuracy of MNIST 3/8 over radii: all 984 images outside the training set, all 196 pixels.

Draws docs/images/accuracy.png; half a minute on one core, training included. Every pixel moves by up to the
radius inside [0, 1]. `GPCERT_BENCH_POINTS` takes fewer images. With
`GPCERT_BENCH_DEVICE=cuda` a GPU is asked twice, and the seconds are those of the clock, the second time.
"""

from __future__ import annotations

import os
import pathlib
import time

import numpy as np

import gpcert as gc

TITLE = "Certified accuracy over radii: MNIST 3/8, images outside the training set, all pixels in [0, 1]"
ROOT = pathlib.Path(__file__).resolve().parents[1]
POINTS = int(os.environ.get("GPCERT_BENCH_POINTS", "984"))
DEVICE = os.environ.get("GPCERT_BENCH_DEVICE", "cpu")
RADII = np.linspace(0.0, 0.2, 41)

Row = dict[str, str | float]


def evaluation() -> tuple[gc.Evaluation, float]:
    """The answer, and the seconds it took: of the CPU on one core, or of a GPU's clock."""
    data = gc.datasets.load("mnist38")
    post = gc.GPClassifier(max_evals=40).fit(data.X_train, data.y_train).posterior_
    X, y = np.concatenate([data.X_test, data.X_extra]), np.concatenate([data.y_test, data.y_extra])
    clock = time.process_time if DEVICE == "cpu" else time.perf_counter
    for _ in range(1 if DEVICE == "cpu" else 2):
        start = clock()
        answer = gc.evaluate(post, X[:POINTS], y[:POINTS], RADII, domain=data.domain, n_jobs=1, device=DEVICE)
    return answer, clock() - start


def table(answer: gc.Evaluation, seconds: float) -> list[Row]:
    total: Row = {
        "radius": "all",
        "clean": answer.clean,
        "largest gap": float(answer.gap.max()),
        "unknown": float((answer.verdicts == "unknown").mean()),
        ("CPU seconds" if DEVICE == "cpu" else "seconds"): round(seconds, 2),
        "images": len(answer.labels),
    }
    columns = {name: values[::4] for name, values in answer.table().items()}
    return [
        *({name: float(values[i]) for name, values in columns.items()} for i in range(len(RADII[::4]))),
        total,
    ]


def measure() -> list[Row]:
    return table(*evaluation())


def draw() -> None:
    answer, seconds = evaluation()
    print(*table(answer, seconds), sep="\n")
    title = f"MNIST 3/8: {len(answer.labels)} images outside the training set"
    figure = gc.plots.accuracy_curve(answer, title=title)
    figure.savefig(ROOT / "docs" / "images" / "accuracy.png", dpi=110)


if __name__ == "__main__":
    draw()
