"""A recorder hears a cover: leaves that fill the region, each with a bound that holds, and the points."""

from __future__ import annotations

import numpy as np
import pytest

import gpcert as gc
from gpcert.bounds.factory import BoundFactory
from gpcert.questions.checks import about
from gpcert.questions.decision import _DecisionSearch as Decision
from gpcert.questions.latent import _LatentSearch as LatentQuery
from gpcert.questions.latent import _LatentTask as LatentTask
from gpcert.questions.ranges import _RangeSearch as RangeQuery
from gpcert.questions.ranges import _RangeTask
from gpcert.questions.tasks import Piece
from gpcert.search import Recorder, Why, run
from gpcert.settings import Settings
from helpers.exact import small_model
from judge import Truth


class Tree:
    """Keeps everything that was told of every side."""

    def __init__(self):
        self.boxes, self.parents, self.leaves, self.rest, self.points = {}, {}, {}, {}, {}

    def opened(self, side, box, parent):
        self.boxes[side, box.number] = box
        self.parents[side, box.number] = parent
        self.leaves[side, box.number] = box.bound, None

    def split(self, side, box, bound, elsewhere):
        del self.leaves[side, box.number]
        self.rest[side, box.number] = elsewhere

    def settled(self, side, box, bound, why):
        self.leaves[side, box.number] = bound, why

    def attained(self, side, point, upper):
        self.points[side] = point, upper

    def lower(self, side):
        """The smallest bound of all parts of the region."""
        ends = [bound for (each, _), (bound, _) in self.leaves.items() if each == side]
        ends += [bound for (each, _), bound in self.rest.items() if each == side]
        return min(ends)

    def reasons(self):
        return {why for _, why in self.leaves.values()}

    def gaps(self):
        """Splits whose parts do not fill their parent: two boxes that differ from it in one side each."""
        parts = {}
        for (side, number), parent in self.parents.items():
            if parent is not None:
                parts.setdefault((side, parent), []).append(self.boxes[side, number])
        return [key for key, children in parts.items() if not fills(children, self.boxes[key])]


def fills(parts, whole):
    if len(parts) != 2:
        return False
    left, right = sorted(parts, key=lambda box: tuple(box.lower))
    cut = np.flatnonzero(left.upper != whole.upper)
    if len(cut) != 1:
        return False
    (j,) = cut
    middle = whole.lower.copy()
    middle[j] = left.upper[j]
    same = np.array_equal(left.lower, whole.lower) and np.array_equal(right.upper, whole.upper)
    return same and np.array_equal(right.lower, middle) and whole.lower[j] < middle[j] < whole.upper[j]


def listened(post, region, nodes, label=1, tolerance=1e-3):
    tree: Recorder = Tree()
    settings = Settings(tolerance, max_nodes=nodes)
    query = RangeQuery(
        _RangeTask(post, settings, about(post, settings), None, "auto"), Piece([region], 0, label)
    )
    run(query, settings, recorder=tree)
    return tree, query.answer()


@pytest.mark.parametrize("nodes", [0, 1, 7, 60, 2000])
@pytest.mark.parametrize("likelihood", ["probit", "logit"])
def test_the_leaves_cover_the_region_and_their_bounds_are_the_answer(nodes, likelihood):
    post = small_model(likelihood=likelihood)
    region = gc.Box([-1.5, -1.5], [1.5, 1.5])
    tree, answer = listened(post, region, nodes)
    assert tree.gaps() == []
    for side in (0, 1):
        root = tree.boxes[side, 0]
        assert np.array_equal(root.lower, region.lower)
        assert np.array_equal(root.upper, region.upper)
    assert min(tree.lower(0), answer.min.upper) == answer.min.lower
    assert abs(1.0 - min(tree.lower(1), 1.0 - answer.max.lower) - answer.max.upper) < 1e-15
    assert np.array_equal(tree.points[0][0], answer.argmin)
    assert tree.points[0][1] == answer.min.upper
    if nodes == 2000:
        assert answer.status == "converged"
        assert len(tree.boxes) > 20  # the region is not settled at its root


def test_what_is_said_of_every_leaf_holds():
    """Each bound, of settled and of open boxes, in ball arithmetic at corners, centre and random points."""
    post, rng = small_model(), np.random.default_rng(3)
    tree, _ = listened(post, gc.Box([-1.5, -1.5], [1.5, 1.5]), 40)
    truth, asked = Truth(post), 0
    for (side, number), (bound, _) in tree.leaves.items():
        box = tree.boxes[side, number]
        for point in (box.lower, box.upper, *rng.uniform(box.lower, box.upper, (4, 2))):
            assert truth.at_least(point, 1 - side, bound)
            asked += 1
    assert asked > 100


def test_the_judge_of_covers_sees_a_hole():
    tree, _ = listened(small_model(), gc.Box([-1.5, -1.5], [1.5, 1.5]), 40)
    inner = next(key for key in tree.leaves if tree.parents[key] is not None)
    box = tree.boxes[inner]
    tree.boxes[inner] = box._replace(lower=box.lower + 1e-9)
    assert tree.gaps() == [(inner[0], tree.parents[inner])]


def test_a_ball_of_norm_0_names_pieces_and_the_rest():
    """Two of six coordinates move: parts need not fill a box, what they leave out is bounded."""
    post = small_model(n=20, d=6)
    region = gc.Ball(np.zeros(6), 2, norm=0, domain=(-1.0, 1.0))
    tree, answer = listened(post, region, 400)
    assert min(tree.lower(0), answer.min.upper) == answer.min.lower
    assert any(rest < np.inf for rest in tree.rest.values())


def test_reasons_are_told(monkeypatch):
    post = small_model(n=20)
    region = gc.Box([-1.5, -1.5], [1.5, 1.5])
    tree, _ = listened(post, region, 2000, tolerance=0.02)
    assert tree.reasons() - {None} == {Why.ENOUGH}  # None: open, and narrow enough as it is
    tree, _ = listened(post, gc.Box([0.5, 0.5], [0.5, 0.5]), 10)
    assert tree.reasons() == {Why.POINT}
    monkeypatch.setattr("gpcert.search.frontier.FRONTIER_LIMIT", 4)
    tree, _ = listened(post, region, 300, tolerance=1e-6)
    assert Why.MEMORY in tree.reasons()


def test_verdicts_and_latents_are_heard_too():
    post, settings = small_model(), Settings(1e-3, max_nodes=200)
    region = gc.Box([-0.5, -0.5], [0.5, 0.5])
    tree = Tree()
    search = Decision(post, BoundFactory(post), region, 1, 0.5, settings, None)
    run(search, settings, recorder=tree)
    found = search.result()
    assert min(tree.lower(0), found.smallest.upper) == found.smallest.lower
    tree = Tree()
    query = LatentQuery(LatentTask(post, settings, about(post, settings), None, None), region)
    run(query, settings, recorder=tree)
    assert {side for side, _ in tree.boxes} == {0, 1, 2, 3}
    assert min(tree.lower(0), query.answer().mean.min.upper) == query.answer().mean.min.lower
