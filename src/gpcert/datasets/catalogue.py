"""What is shipped: one entry per data set, with the checksum of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Entry:
    """One data set: the file it is read from and what the numbers in it mean.

    `labels` maps a stored integer to the label a user sees; `unit` turns stored integers into values
    (`values / unit`, correctly rounded); `columns` are the variables used unless all are asked for.
    """

    file: str
    sha256: str
    labels: Mapping[int, int | str]
    feature_names: tuple[str, ...]
    description: str
    unit: float = 1.0
    columns: tuple[int, ...] | None = None
    domain: tuple[float, float] | None = None
    image_shape: tuple[int, int] | None = None


_SPAM_WORDS = (
    "make address all 3d our over remove internet order mail receive will people report addresses free "
    "business email you credit your font 000 money hp hpl george 650 lab labs telnet 857 data 415 85 "
    "technology 1999 parts pm direct cs meeting original project re edu table conference"
)
SPAM_NAMES = (
    *(f"word_freq_{word}" for word in _SPAM_WORDS.split()),
    *(f"char_freq_{character}" for character in ";([!$#"),
    "capital_run_length_average",
    "capital_run_length_longest",
    "capital_run_length_total",
)
"""The 57 variables of Spambase, in the UCI order."""

SPAM_COLUMNS = (6, 15, 20, 22, 24, 26, 45, 51, 52, 55, 56)
"""The 11 selected variables, as positions in the UCI order from 0; why these: docs/datasets.md."""

_PIXELS = tuple(f"pixel_{row}_{column}" for row in range(14) for column in range(14))
_MNIST_FILE = ("mnist.npz", "cdfd42636886d51bab4ba17e576a071b3e50aca22ec1c6f52af6abf1dda05fc3")
_MNIST_TEXT = (
    "from the MNIST test file, 28 x 28 pixels averaged over 2 x 2 blocks to 14 x 14, grey values in [0, 1]; "
    "MNIST, Y. LeCun, C. Cortes, C. Burges, CC BY-SA 3.0"
)

CATALOGUE: Mapping[str, Entry] = MappingProxyType(
    {
        "synthetic2d": Entry(
            file="synthetic2d.npz",
            sha256="9c05b6be7fe2395779b1ea91b4e02c0cc818e52b7230f355192186676c339cc9",
            labels={0: 0, 1: 1},
            feature_names=("x1", "x2"),
            description=(
                "Two standard normals in the plane, shifted by 5 along the first (class 0) or second axis "
                "(class 1), 600 points each, standardised with training statistics; generated"
            ),
        ),
        "spam": Entry(
            file="spam.npz",
            sha256="d5bb72af45f2ba40076e7dbd948e4cfd8939363c64d89390292a50ff08082bc9",
            labels={0: "ham", 1: "spam"},
            feature_names=SPAM_NAMES,
            description=(
                "Spambase: 4,601 mails, frequencies of words and characters in per cent, and lengths of runs "
                "of capital letters, standardised with training statistics, equal mails on one side of the "
                "split; M. Hopkins, E. Reeber, G. Forman, J. Suermondt, UCI repository, CC BY 4.0"
            ),
            unit=1000.0,
            columns=SPAM_COLUMNS,
        ),
        "mnist38": Entry(
            file=_MNIST_FILE[0],
            sha256=_MNIST_FILE[1],
            labels={3: 3, 8: 8},
            feature_names=_PIXELS,
            description=f"Handwritten threes and eights {_MNIST_TEXT}",
            unit=1020.0,
            domain=(0.0, 1.0),
            image_shape=(14, 14),
        ),
        "mnist358": Entry(
            file=_MNIST_FILE[0],
            sha256=_MNIST_FILE[1],
            labels={3: 3, 5: 5, 8: 8},
            feature_names=_PIXELS,
            description=f"Handwritten threes, fives and eights {_MNIST_TEXT}",
            unit=1020.0,
            domain=(0.0, 1.0),
            image_shape=(14, 14),
        ),
    }
)
"""The data sets by name."""
