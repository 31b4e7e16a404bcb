"""Pictures of answers, as matplotlib figures (`pip install 'gpcert[plots]'`); readable in black and white.

Every function takes answers, not models (but for the plane, whose background is the model), and returns a
`matplotlib.figure.Figure`: `figure.savefig("name.png")`.
"""

from gpcert.plots.curves import Trace, accuracy_curve, gap_over_time, robustness_boxes, safety_curve
from gpcert.plots.features import feature_bars, heat_map
from gpcert.plots.plane import arrows, contour

__all__ = [
    "Trace",
    "accuracy_curve",
    "arrows",
    "contour",
    "feature_bars",
    "gap_over_time",
    "heat_map",
    "robustness_boxes",
    "safety_curve",
]
