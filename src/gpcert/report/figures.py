"""Pictures as markup: plots as SVG in the colours of the page, images as inline PNG."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpcert.errors import GpcertError
from gpcert.report.html import Html, tag
from gpcert.validation import Float

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PlaneBox", "difference_image", "grey_image", "plane", "require_matplotlib"]

# Readable on white and on near-black, and to colour-blind readers.
_COLOURS = ("#0b84c6", "#e07b00")
# Drawn in place of black and then replaced by the page's text colour: one picture serves light and dark.
_INK = "#010203"


class PlaneBox(NamedTuple):
    """A box to draw: corners (2,), the points (2,) of its smallest and largest value if known, and a text."""

    lower: Float
    upper: Float
    least: Float | None
    greatest: Float | None
    text: str


def require_matplotlib() -> None:
    """Say what to install, before any work is done, where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise GpcertError("the page of pictures needs matplotlib: pip install 'gpcert[plots]'") from None


def plane(
    axes: tuple[Float, Float],
    probability: Float,
    points: Mapping[str, Float],
    names: tuple[str, str],
    scale: str,
    boxes: Sequence[PlaneBox] = (),
) -> Html:
    """Filled contours of a probability over the plane, with the points of two classes or none, and boxes.

    `axes`: (m,) and (k,) grid lines; `probability`: (k, m), named `scale`; `points`: class label -> (n, 2).
    """

    def paint(figure: Figure) -> None:
        ax = figure.subplots()
        levels = np.linspace(0.0, 1.0, 11)
        filled = ax.contourf(*axes, probability, levels=levels, colors=_shades(levels))
        ax.contour(*axes, probability, levels=[0.5], colors=_INK, linewidths=1.2)
        for (label, X), colour, marker in zip(points.items(), _COLOURS, "o^", strict=False):
            look: dict[str, Any] = {"color": colour, "marker": marker, "edgecolors": _INK}
            ax.scatter(X[:, 0], X[:, 1], s=18.0, linewidths=0.4, label=label, **look)
        for box in boxes:
            _draw_box(ax, box)
        ax.set(xlabel=names[0], ylabel=names[1])
        if points:
            figure.legend(frameon=False, loc="outside upper center", ncols=2)
        figure.colorbar(filled, ax=ax, label=scale)

    return _svg(paint, 7.2, 4.8)


def grey_image(pixels: Float, description: str) -> Html:
    """An image, (rows, columns) of values in [0, 1], as an inline PNG with its description."""
    return _png(pixels, description, cmap="gray", vmin=0.0, vmax=1.0)


def difference_image(change: Float, description: str) -> Html:
    """Changes (rows, columns) in [-1, 1] as an inline PNG: blue down, orange up, transparent where none."""
    from matplotlib.colors import to_rgb

    colours = np.array([to_rgb(colour) for colour in _COLOURS])
    alpha = np.minimum(np.abs(change), 1.0)[..., None]
    return _png(np.concatenate([colours[(change > 0).astype(int)], alpha], axis=-1), description)


def _png(pixels: Float, description: str, **look: Any) -> Html:
    from matplotlib.image import imsave

    content = io.BytesIO()
    imsave(content, pixels, format="png", **look)
    source = "data:image/png;base64," + base64.b64encode(content.getvalue()).decode("ascii")
    return tag("img", src=source, alt=description)


def _draw_box(ax: Axes, box: PlaneBox) -> None:
    from matplotlib.patches import Rectangle

    width, height = (box.upper - box.lower).tolist()
    ax.add_patch(Rectangle(box.lower.tolist(), width, height, fill=False, edgecolor=_INK, linewidth=1.4))
    for point, marker in ((box.least, "v"), (box.greatest, "^")):
        if point is not None:
            ax.plot(*point.tolist(), marker=marker, markersize=7.0, color=_INK)
    # A little above the box, clear of triangles on its upper side.
    place = (float(box.lower[0]), float(box.upper[1]))
    ax.annotate(box.text, place, xytext=(0.0, 7.0), textcoords="offset points", fontsize=9.0)


def _shades(levels: Float) -> list[tuple[str, float]]:
    """One colour per band between levels: a class's colour, the stronger the surer, faint at one half."""
    middles = (levels[1:] + levels[:-1]) / 2
    return [(_COLOURS[int(p > 0.5)], 0.06 + 0.55 * abs(2 * p - 1)) for p in middles.tolist()]


def _svg(paint: Callable[[Figure], None], width: float, height: float) -> Html:
    """What `paint` draws, outside pyplot's global state; labels are texts, never formulas."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    inked = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    style: dict[Any, Any] = {"svg.fonttype": "none", "text.parse_math": False, "font.family": "sans-serif"}
    content = io.StringIO()
    with mpl.rc_context(style | dict.fromkeys(inked, _INK)):
        figure = Figure(figsize=(width, height), layout="constrained")
        paint(figure)
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(content, format="svg", transparent=True, metadata=nothing)
    text = content.getvalue()
    return Html(text[text.index("<svg") :].replace(_INK, "currentColor"))
