"""Figures 5 and 6: which features raise and which lower a probability, by Delta and by LIME."""

from __future__ import annotations

import numpy as np

from gpcert.datasets import Dataset
from gpcert.posterior import Posterior
from gpcert.questions.explain import explain
from gpcert.validation import Float
from gpcert_paper.reproduce.draw import BLUE, GREY, ORANGE
from gpcert_paper.reproduce.job import Job, Table, Value
from gpcert_paper.reproduce.lime import lime_weights
from gpcert_paper.reproduce.models import Recipe, chosen_points, data_of, posterior_of
from gpcert_paper.reproduce.page import Claim, Findings, new_figure, paragraphs, save

__all__ = ["interpret_global"]

_RADII = (0.1, 0.5, 1.0, 2.0)
_TOLERANCE = 1e-3
#: LIME as it comes, and with a kernel so narrow that it sees the neighbourhood of the point only.
_WIDTHS = {"default": None, "narrow": 0.1}
#: Data set -> (label explained, evaluations). Our class 0 of Synthetic2D is the paper's class 1.
_SETTINGS = {"synthetic2d": (0, 20), "spam": (1, 40)}
_NOTES = """
Delta of a feature: the change of the largest plus the change of the smallest probability between moving it up
and moving it down by the radius, from enclosures to 0.001; averaged over 50 random test points.

LIME: the authors' package on the same points, features not discretised, 5,000 samples per point; weights per
unit of the feature, averaged. Once with the package's defaults, once with samples around the point and a
kernel of width 0.1. The paper used its own MATLAB version and does not give the width.

Both are scaled to norm 1 over the features, as in the paper. Laplace, probit; 20 evaluations (Synthetic2D),
40 (SPAM). Our class 0 of Synthetic2D is the paper's class 1: its mean lies further along the first axis.
"""


def interpret_global(job: Job) -> Findings:
    """Mean Delta and mean LIME weight of each feature on Synthetic2D and SPAM."""
    table = job.table("deltas", ("data", "radius", "point", "feature"), ("lower", "upper"))
    weights = job.table("lime", ("data", "width", "point", "feature"), ("weight",))
    for name, (label, evaluations) in _SETTINGS.items():
        data = data_of(name)
        post = posterior_of(job, Recipe(name, evaluations=evaluations))
        _measure(job, table, name, post, data, label)
        for width in _WIDTHS:
            _lime(job, weights, name, post, data, label, width)
    _draw(job, table, weights)
    return Findings(
        "Global interpretation (figure 6)",
        _claims(table, weights),
        [
            (
                "global",
                "Left: directions on Synthetic2D. Right: SPAM, feature by feature. All scaled to norm 1.",
            )
        ],
        paragraphs(_NOTES),
    )


def _measure(job: Job, table: Table, name: str, post: Posterior, data: Dataset, label: int) -> None:
    points = chosen_points(job, data)
    keys: list[tuple[Value, ...]] = [(name, radius, i, 0) for radius in _RADII for i in points]
    for _, radius, i, _ in job.steps(table.missing(keys), f"Delta on {name}"):
        e = explain(post, data.X_test[int(i)], float(radius), post.labels[label], tolerance=_TOLERANCE)
        for j in reversed(range(e.value.shape[1])):  # feature 0 last: its row says that the point is done
            table.add(name, radius, i, j, float(e.lower[0, j]), float(e.upper[0, j]))


def _lime(job: Job, table: Table, name: str, post: Posterior, data: Dataset, label: int, width: str) -> None:
    points = chosen_points(job, data)
    d = data.X_test.shape[1]
    keys: list[tuple[Value, ...]] = [(name, width, i, 0) for i in points]
    for _, _, i, _ in job.steps(table.missing(keys), f"LIME on {name}, {width}"):
        x = data.X_test[int(i)][None]
        train, samples = data.X_train[: post.n_centres], job.choose(5000, 500)
        found = lime_weights(post, train, x, label, samples, d, _WIDTHS[width])[0]
        for j in reversed(range(d)):
            table.add(name, width, i, j, float(found[j]))


def _delta_direction(table: Table, name: str, radius: float) -> Float:
    """Mean Delta of every feature, scaled to norm 1."""
    rows = table.select(data=name, radius=radius)
    d = 1 + max(int(row["feature"]) for row in rows)
    means = [
        np.mean([0.5 * (float(r["lower"]) + float(r["upper"])) for r in rows if r["feature"] == j])
        for j in range(d)
    ]
    return _unit(np.array(means))


def _lime_direction(table: Table, name: str, width: str = "default") -> Float:
    rows = table.select(data=name, width=width)
    d = 1 + max(int(row["feature"]) for row in rows)
    return _unit(
        np.array([np.mean(table.column("weight", data=name, width=width, feature=j)) for j in range(d)])
    )


def _unit(v: Float) -> Float:
    return np.asarray(v / max(float(np.linalg.norm(v)), 1e-300))


def _draw(job: Job, table: Table, weights: Table) -> None:
    figure = new_figure(11.0, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.8))
    shades = dict(zip(_RADII, ("#9bd0ee", "#4aa3d6", BLUE, "#063e5f"), strict=True))
    for width, colour in (("default", ORANGE), ("narrow", "#f2b27a")):
        end = _lime_direction(weights, "synthetic2d", width)
        left.annotate("", end, (0, 0), arrowprops={"color": colour, "width": 2})
        left.plot([], [], color=colour, label=f"LIME, {width}")
    for radius in _RADII:
        end = _delta_direction(table, "synthetic2d", radius)
        left.annotate("", end, (0, 0), arrowprops={"color": shades[radius], "width": 2})
        left.plot([], [], color=shades[radius], label=f"Delta, radius {radius:g}")
    left.axhline(0, color=GREY, linewidth=0.6)
    left.axvline(0, color=GREY, linewidth=0.6)
    left.set(
        xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), xlabel="x1", ylabel="x2", aspect="equal", title="Synthetic2D"
    )
    left.legend(fontsize=7)
    names = [
        name.replace("word_freq_", "").replace("char_freq_", "").replace("capital_run_length", "capitals")
        for name in data_of("spam").feature_names
    ]
    series = {"LIME": (_lime_direction(weights, "spam"), ORANGE)}
    series |= {f"Delta, radius {r:g}": (_delta_direction(table, "spam", r), shades[r]) for r in _RADII}
    for k, (text, (values, colour)) in enumerate(series.items()):
        right.bar(np.arange(len(values)) + 0.16 * (k - 2), values, 0.16, color=colour, label=text)
    right.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8)
    right.axhline(0, color=GREY, linewidth=0.6)
    right.set(title="SPAM, P(spam)")
    right.legend(fontsize=7)
    save(figure, job.folder, "global")


def _claims(table: Table, weights: Table) -> list[Claim]:
    def text(v: Float) -> str:
        return f"({v[0]:+.2f}, {v[1]:+.2f})"

    lime, narrow = (_lime_direction(weights, "synthetic2d", width) for width in _WIDTHS)
    wrong = [bool(v[0] < 0 < v[1]) for v in (lime, narrow)]
    small, large = (_delta_direction(table, "synthetic2d", r) for r in (_RADII[0], _RADII[-1]))
    spam = [float(_delta_direction(table, "spam", r) @ _lime_direction(weights, "spam")) for r in _RADII]
    cosines = ", ".join(f"{c:.2f}" for c in spam)
    return [
        Claim(
            "Synthetic2D: LIME points to lower x1 and higher x2, the wrong way",
            "(-, +)",
            f"{text(lime)} by default, {text(narrow)} with a narrow kernel",
            wrong[0] if wrong[0] == wrong[1] else None,
            "direction of a higher probability of the class further along x1; it depends on LIME's width",
        ),
        Claim(
            "Synthetic2D: Delta at a small radius is similar to LIME",
            "similar",
            f"{text(small)} at radius 0.1; cosines {small @ lime:.2f}, {small @ narrow:.2f} (narrow)",
            bool(small @ narrow > 0.5),
        ),
        Claim(
            "Synthetic2D: Delta at radius 2 has the right direction",
            "(+, -)",
            text(large),
            bool(large[0] > 0 > large[1]),
        ),
        Claim(
            "SPAM: local analysis reflects the global picture",
            "similar for LIME and every radius",
            f"cosines of Delta with LIME at radii 0.1, 0.5, 1, 2: {cosines}",
            bool(min(spam) > 0.8),
        ),
    ]
