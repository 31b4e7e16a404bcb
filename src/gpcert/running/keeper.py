"""Who keeps answers as they come, and knows some already; here nobody."""

from __future__ import annotations

from typing import Any

from gpcert.running.pieces import Pieces


class Keeper:
    """Nobody: nothing is known before, and nothing is kept."""

    def divided(self, pieces: Pieces) -> tuple[Pieces, dict[int, Any]]:
        """Pieces, or what is left of them, that have to be asked; and the answers to the others."""
        return pieces.copy(), {}

    def at(self, i: int, at: int) -> int:
        """Which region of the whole piece is number `at` of what was left of it."""
        return at

    def whole(self, i: int, answer: Any) -> Any:
        """The answer to a piece, from the answer to what was left of it."""
        return answer

    def lose(self, i: int, reason: str) -> None:
        """A piece has no answer."""

    def close(self) -> None:
        """No answer comes any more."""
