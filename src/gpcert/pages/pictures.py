"""Images as inline PNG: grey values, and signed changes as a heat map. The format by hand: no dependency."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from gpcert.html import Html, tag
from gpcert.validation import Float

__all__ = ["grey_image", "heat_image"]

# Readable on white and on near-black, and to colour-blind readers: blue down, orange up.
_DOWN, _UP = (11, 132, 198), (224, 123, 0)


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
