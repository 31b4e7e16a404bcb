"""From the tree of a search to a cover by leaves that a checker can repeat (docs/maths/proof.md, V6).

The tree is cut where the search had proved what is claimed of a whole box. Where the simple form of a leaf
proves less than the search did, the box is split further, as the search did or else across its widest side;
where that does not pay, the leaf proves a lower level, and the claim is the lowest of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np

from gpcert.clock import check
from gpcert.proofs.boxes import FEW, BoxProver, Envelope
from gpcert.proofs.leaf import Leaf
from gpcert.proofs.levels import Level
from gpcert.proofs.tree import Node
from gpcert.validation import Float

_Leaf = TypeVar("_Leaf")

#: Splits beyond those of the search, at first and of a patient export.
_SPLITS, _MANY = 64, 2048


class Split(NamedTuple):
    """The box below `at` in coordinate `j` comes next, then the one above."""

    j: int
    at: float


class Cover(NamedTuple):
    """Nodes in preorder; every leaf proves at least the level t; -inf: one of them proves nothing."""

    nodes: list[Split | Leaf | Envelope]
    t: float


def cover(prover: BoxProver, root: Node, level: Level) -> Cover:
    """The leaves that prove the level on the region, or as much as they can."""
    scale, patient = prover.bound.lengthscale, prover.patient

    def leaf(node: Node, anything: bool) -> Leaf | Envelope | None:
        return prover.proof(node, level, anything)

    nodes: list[Split | Leaf | Envelope] = list(walk(root, level.p, scale, leaf, patient))
    return Cover(nodes, min(_proved(node) for node in nodes))


def walk(
    root: Node,
    enough: float,
    lengthscale: Float,
    leaf_of: Callable[[Node, bool], _Leaf | None],
    patient: bool,
) -> Iterator[Split | _Leaf]:
    """Nodes in preorder; no recursion: trees may be deep.

    `leaf_of(node, anything)` makes a leaf where the search had proved `enough`; None: split it.
    """
    left, stack = _MANY if patient else _SPLITS, [root]
    while stack:
        check()
        node = stack.pop()
        halves = node.halves
        if not halves or node.bound >= enough:
            whole = len(node.lower) > FEW and not patient
            final = not halves and (left == 0 or whole or not _divisible(node, lengthscale))
            leaf = leaf_of(node, final)
            if leaf is not None:
                yield leaf
                continue
            left -= 0 if halves else 1
        split, parts = _split_of(node) if halves else _middle(node, lengthscale)
        yield split
        stack += parts[::-1]


def _proved(node: Split | Leaf | Envelope) -> float:
    if isinstance(node, Split):
        return np.inf
    failed = isinstance(node, Leaf) and not node.passes
    return -np.inf if node.level is None or failed else node.level.t


def _split_of(node: Node) -> tuple[Split, list[Node]]:
    """The split that the search made: in one coordinate the upper end of one part is the other's lower."""
    first, second = node.parts
    j = int(np.flatnonzero(first.upper != node.upper)[0])
    return Split(j, float(first.upper[j])), [first, second]


def _divisible(node: Node, lengthscale: Float) -> bool:
    """Whether there is a double strictly inside the widest side."""
    j = int(np.argmax((node.upper - node.lower) / lengthscale))
    return bool(node.lower[j] < 0.5 * node.lower[j] + 0.5 * node.upper[j] < node.upper[j])


def _middle(node: Node, lengthscale: Float) -> tuple[Split, list[Node]]:
    """Two halves across the widest side."""
    j = int(np.argmax((node.upper - node.lower) / lengthscale))
    at = float(0.5 * node.lower[j] + 0.5 * node.upper[j])
    left, right = node.upper.copy(), node.lower.copy()
    left[j] = right[j] = at
    ends = (node.lower, left), (right, node.upper)
    return Split(j, at), [
        Node(low, high, np.clip(node.reference, low, high), short=node.short, generation=node.generation + 1)
        for low, high in ends
    ]
