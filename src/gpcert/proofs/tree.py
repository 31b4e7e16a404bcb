"""What a search did to one region, as a tree, kept while it runs; and what is to be proved from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from gpcert.regions import Region
from gpcert.search import OpenBox, Recorder, Why
from gpcert.validation import Float

#: Splitting is given up where a box lacks more than this share of what one twice as wide lacked.
_LESS = 0.75


@dataclass(eq=False)
class Node:
    """A box; `bound`: the best that was proved of it as a whole."""

    lower: Float
    upper: Float
    reference: Float
    bound: float = -math.inf
    halved: bool = False
    short: float = -math.inf  #: what a leaf lacked on the last box around it that `stuck` looked at
    generation: int = 0  #: halvings since the box that the search had
    parts: list[Node] = field(default_factory=list)

    def stuck(self, lack: float) -> bool:
        """Whether halves of every side did not help enough; what is lacking (< 0) is remembered."""
        if self.generation % max(len(self.lower), 1):
            return False
        before, self.short = self.short, lack
        return lack < _LESS * before

    @property
    def halves(self) -> list[Node]:
        """Two halves whose union it is; none where the search did not split it so, or was cut short."""
        return self.parts if self.bound > -math.inf and len(self.parts) == 2 and self.halved else []


class Tree(Recorder):
    """Listens; `roots`: the whole region, for each side."""

    def __init__(self) -> None:
        self.roots: dict[int, Node] = {}
        self._nodes: dict[tuple[int, int], Node] = {}

    def opened(self, side: int, box: OpenBox, parent: int | None) -> None:
        node = Node(box.lower, box.upper, box.reference)
        self._nodes[side, box.number] = node
        if parent is None:
            self.roots[side] = node
        else:
            self._nodes[side, parent].parts.append(node)

    def split(self, side: int, box: OpenBox, bound: float, elsewhere: float) -> None:
        node = self._nodes[side, box.number]
        node.bound, node.halved = bound, elsewhere == math.inf  # other parts than halves leave a rest

    def settled(self, side: int, box: OpenBox, bound: float, why: Why) -> None:
        self._nodes[side, box.number].bound = bound

    def attained(self, side: int, point: Float, upper: float) -> None:
        """The answer has the points."""


class Goal(NamedTuple):
    """P(label) >= value on the region, or <= where `upper`; `flat`: of what decides the label, sharp there;
    `start`: a box of the search, or a point to begin with; `only`: less is of no use; `patient`: boxes are
    split as long as time and many splits last, whether or not that seems to help.
    """

    label: int
    region: Region
    upper: bool
    value: float
    start: Node | Float | None
    flat: bool
    only: bool = False
    patient: bool = False
