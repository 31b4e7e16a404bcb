"""Every way of bounding the higher orders of a Gaussian expansion, whatever the number of features."""

from unittest.mock import patch

from gpcert.bounds.local.gaussian import functional


def sharp_as(name, **dimensions):
    """`sharp` as it is with other numbers of features."""

    def build(e):
        with patch.multiple(functional, **dimensions):
            return functional.sharp(e)

    build.__name__ = name
    return build


BUILDERS = (
    functional.coarse,
    functional.sharp,
    sharp_as("middling", COLUMN_DIMENSIONS=0),
    sharp_as("many", COLUMN_DIMENSIONS=0, CHEAP_DIMENSIONS=0),
)
