"""Images as inline PNG: grey values, and signed changes as a heat map. The format by hand: no dependency.

Features are taken for an image where their number is a square, of 8 to 64, they have no names or are named
`pixel...`, and the values are those of pixels.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from gpcert.html import Html, tag
from gpcert.validation import Float

# Readable on white and on near-black, and to colour-blind readers: blue down, orange up.
_DOWN, _UP = (11, 132, 198), (224, 123, 0)
#: Sides of images: below are tables with a square number of columns, above no notebook stays small.
_SMALLEST, _LARGEST = 8, 64
_LOOK = "width:64px;height:64px;image-rendering:pixelated;border:1px solid #888;padding:0;border-radius:0"
_FIGURE = "display:inline-block;margin:2px 6px 2px 0;text-align:center;font-size:11px"


def image_shape(x: Float, names: Sequence[str] | None) -> tuple[int, int] | None:
    """Rows and columns of the image that the features (d,) are; None: they are none."""
    side = math.isqrt(x.size)
    square = _SMALLEST <= side <= _LARGEST and side * side == x.size
    pixels = names is None or all(name.startswith("pixel") for name in names)
    return (side, side) if square and pixels and x.min() >= 0.0 and x.max() <= 255.0 else None


def changes(x: Float, names: Sequence[str] | None, others: Iterable[tuple[str, Float]] = ()) -> Html:
    """For a notebook: the image x (d,), then others with what moved, each under its name; else nothing."""
    shape = image_shape(x, names)
    if shape is None:
        return Html("")
    shown = list(others)
    high = max(1.0, *(float(z.max()) for z in (x, *(z for _, z in shown))))
    parts = [_figure(grey_image(x.reshape(shape), 0.0, high, "image"), "image")]
    for name, z in shown:
        moved = (z - x).reshape(shape)
        parts.append(_figure(grey_image(z.reshape(shape), 0.0, high, name), name))
        parts.append(_figure(heat_image(moved, float(np.abs(moved).max()), f"change: {name}"), "change"))
    return tag("div", *parts)


def influence(value: Float, shape: tuple[int, int]) -> Html:
    """For a notebook: influences (d,) of the pixels of an image."""
    return _figure(heat_image(value.reshape(shape), float(np.abs(value).max()), "influence"), "influence")


def _figure(image: Html, name: str) -> Html:
    styled = Html(image.replace("<img ", f'<img style="{_LOOK}" ', 1))
    return tag("figure", styled, tag("figcaption", name), style=_FIGURE)


def grey_image(pixels: Float, low: float, high: float, description: str) -> Html:
    """An image (rows, columns), black at `low` and white at `high`."""
    seen = np.clip(pixels, low, high)  # before dividing by what may be tiny
    share = (seen - low) / (high - low) if high > low else np.zeros_like(pixels)
    bytes_ = np.round(255 * share).astype(np.uint8)
    return _image(bytes_[..., None], colour_type=0, description=description)


def heat_image(change: Float, most: float, description: str) -> Html:
    """Changes (rows, columns): blue down, orange up, full colour at `most`, transparent where none."""
    share = np.clip(np.abs(change) / most, 0.0, 1.0) if most > 0 else np.zeros_like(change)
    colours = np.where((change > 0)[..., None], np.array(_UP), np.array(_DOWN))
    alpha = np.round(255 * share)[..., None]
    return _image(np.concatenate([colours, alpha], axis=-1).astype(np.uint8), 6, description)


def _image(samples: NDArray[np.uint8], colour_type: int, description: str) -> Html:
    """8 bits per sample (rows, columns, channels) as a PNG file inside the page."""
    height, width, _ = samples.shape
    raw = b"".join(b"\0" + row.tobytes() for row in samples)
    head = struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    content = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, body) for name, body in parts)
    source = "data:image/png;base64," + base64.b64encode(content).decode("ascii")
    return tag("img", src=source, alt=description)


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
