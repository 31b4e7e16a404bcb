"""Pixels of the strongest SIFT features of a small image, by scikit-image.

Features are found on the image enlarged fourfold (14 x 14 pixels are too few for a scale space). A feature is
the stronger, the higher the contrast threshold at which it is still found; ties go to the larger scale.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gpcert.validation import Float, Index

__all__ = ["strongest_patch", "strongest_pixels"]

_ENLARGE = 4
_MARGIN = 2
_THRESHOLDS = (0.2, 0.15, 0.12, 0.1, 0.08, 0.06, 0.04, 0.02, 0.01, 0.005, 0.001)


def strongest_pixels(image: Float, count: int) -> Index:
    """Flat indices (count,) of pixels: those of the features by falling strength, then their neighbours."""
    features = _features(image)
    own = [_flat(row, column, image.shape) for row, column, _ in features]
    distances = _distances(image.shape, features)
    order = [*own, *np.argsort(distances, kind="stable").tolist()]
    return np.array(list(dict.fromkeys(order))[:count], dtype=np.intp)


def strongest_patch(image: Float) -> Index:
    """Flat indices of the pixels within max(1, 2 scales) of the strongest feature."""
    feature = _features(image)[:1]
    radius = max(1.0, 2.0 * feature[0, 2])
    return np.flatnonzero(_distances(image.shape, feature) <= radius)


def _features(image: Float) -> Float:
    """Rows (row, column, scale) in pixels of the image, strongest first; the brightest pixel if none."""
    return _detect(image.tobytes(), image.shape)


@lru_cache(maxsize=256)
def _detect(content: bytes, shape: tuple[int, ...]) -> Float:
    from skimage.feature import SIFT
    from skimage.transform import resize

    image = np.frombuffer(content).reshape(shape)
    padded = np.pad(image, _MARGIN)
    large = resize(padded, [_ENLARGE * side for side in padded.shape], order=3)
    found: dict[tuple[int, int], tuple[float, float, float]] = {}
    for threshold in _THRESHOLDS:
        detector = SIFT(c_dog=threshold)
        try:
            detector.detect(large)
        except RuntimeError:  # scikit-image: no features found
            continue
        places = (detector.positions + 0.5) / _ENLARGE - 0.5 - _MARGIN
        inside = ((places > -0.5) & (places < np.array(image.shape) - 0.5)).all(axis=1)
        rows = np.column_stack([places, detector.sigmas / _ENLARGE])[inside]
        for row, column, scale in rows[np.argsort(-rows[:, 2], kind="stable")]:
            found.setdefault((round(row), round(column)), (row, column, scale))
    if not found:
        row, column = np.unravel_index(int(image.argmax()), image.shape)
        return np.array([[row, column, 0.5]], dtype=np.float64)
    return np.array(list(found.values()))


def _distances(shape: tuple[int, ...], features: Float) -> Float:
    """Distance of every pixel (flat) to the nearest feature."""
    rows, columns = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
    pixels = np.column_stack([rows, columns])
    gaps = np.linalg.norm(pixels[:, None, :] - features[None, :, :2], axis=2)
    return np.asarray(gaps.min(axis=1))


def _flat(row: float, column: float, shape: tuple[int, ...]) -> int:
    return round(row) * shape[1] + round(column)
