"""Which models expansions may be used for: those whose numbers stay far from the ends of the doubles (R7).

All others keep the enclosures at points and the envelopes of boxes, which hold for all finite doubles.
"""

from __future__ import annotations

import numpy as np

from gpcert.kernels import Kernel
from gpcert.rounding import LARGEST
from gpcert.validation import Float


def is_moderate(kernel: Kernel, lengthscale: Float, centres: Float, *numbers: Float | float) -> bool:
    """Whether `numbers` and the centres (n, d), in units of `lengthscale` (d,), are at most LARGEST, and the
    variances of all parts of the kernel at least 1/LARGEST, too.
    """
    spread = np.abs(centres).max(initial=0.0) <= 2.0**900 and np.ptp(centres, axis=0) <= LARGEST * lengthscale
    theta = zip(kernel.parameter_names, np.exp(kernel.theta).tolist(), strict=True)
    variances = [value for name, value in theta if name.endswith("variance")]
    return bool(
        np.all(spread)
        and all(1.0 <= value * LARGEST <= LARGEST * LARGEST for value in (*variances, kernel.prior_variance))
        and all(np.abs(each).max(initial=0.0) <= LARGEST for each in numbers)
    )
