"""A figure that notebooks show by itself: IPython knows matplotlib's only after pyplot or a magic command."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class Shown(Figure):
    """matplotlib's figure, with the picture that IPython asks for."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=100)
        return file.getvalue()
