"""The state after any step is a valid answer: reports, limits, Ctrl-C at any moment, a full frontier."""

import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import gpcert as gc
import gpcert.search.frontier
from gpcert import clock
from gpcert.bounds.geometry.domain import BoxShape
from gpcert.bounds.interface import Certified, OneByOne
from gpcert.running import Progress
from gpcert.search import Minimiser
from helpers.exact import extreme_points, refute, small_model
from judge import Truth

LINKS = ["probit", "logit"]
HARD = gc.Box([-1.5, -1.5], [1.5, 1.5])
TRIVIAL = (0.0, 1.0, 0.0, 1.0)


def step(search, tolerance):
    """What the driver does with the boxes it is asked for."""
    if queries := search.ask(tolerance):
        search.tell(search.bound.over_many(queries), tolerance)


def numbers(answer):
    return answer.min.lower, answer.min.upper, answer.max.lower, answer.max.upper


def seed():
    return np.random.default_rng(0)


@pytest.mark.parametrize("likelihood", LINKS)
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("mean", [-1.0, 0.0, 1.0])
def test_reports_never_loosen_and_the_answer_is_no_looser(likelihood, label, mean):
    post = small_model(likelihood=likelihood, mean=mean)
    reports = []
    answer = gc.probability_range(post, HARD, label, tolerance=1e-3, max_nodes=150, progress=reports.append)
    assert {(p.index, p.total) for p in reports} == {(0, 1)}
    assert [p.done for p in reports] == [0] * (len(reports) - 1) + [1]
    columns = np.array([(p.lower, p.upper, p.nodes, p.seconds) for p in reports]).T
    lower, upper, nodes, seconds = columns
    for column in (lower, -upper, nodes, seconds):
        assert (np.diff(column) >= 0).all()
    assert answer.lower >= lower.max()
    assert answer.upper <= upper.min()
    assert answer.nodes >= nodes.max()
    assert len(reports) > 5
    # The tightest report is true, so all are.
    small, large = extreme_points(post, HARD, label, seed())
    assert Truth(post).at_least(small, label, lower[-1])
    assert Truth(post).at_most(large, label, upper[-1])


@pytest.mark.parametrize("likelihood", LINKS)
def test_more_boxes_never_loosen_the_answer(likelihood):
    post = small_model(likelihood=likelihood)
    answers = [gc.probability_range(post, HARD, tolerance=1e-4, max_nodes=n) for n in (0, 1, 2, 5, 20, 80)]
    for n, (less, more) in enumerate(pairwise(answers)):
        assert less.min.lower <= more.min.lower <= more.min.upper <= less.min.upper, n
        assert less.max.lower <= more.max.lower <= more.max.upper <= less.max.upper, n
        assert refute(post, HARD, more, seed()) == []


@pytest.mark.parametrize("max_nodes", [0, 1, 7, 30])
def test_the_node_limit_is_kept(max_nodes):
    answer = gc.probability_range(small_model(), HARD, tolerance=1e-6, max_nodes=max_nodes)
    assert answer.status == "node limit"
    assert answer.nodes <= max_nodes


def test_the_deadline_ends_the_search(monkeypatch):
    """Every look at the clock takes a millisecond, however busy the machine is."""
    looks = (1e-3 * look for look in count())
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=lambda: next(looks)))
    post = small_model(n=60, d=8)
    region = gc.Box(-np.ones(8), np.ones(8))
    answers = gc.probability_range(
        post, [region, gc.Ball(np.zeros(8), 0.0), region], tolerance=1e-6, max_seconds=0.2, n_jobs=1
    )
    assert [answer.status for answer in answers] == ["time limit", "converged", "time limit"]
    for answer in (answers[0], answers[2]):
        assert refute(post, region, answer, seed()) == []


def stopper(call: int, action: Callable[[], object], reports: list[Progress]):
    """A progress callback that records its reports and acts at the given call."""

    def progress(p: Progress) -> object:
        reports.append(p)
        return action() if len(reports) == call else None

    return progress


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("call", [1, 2, 3, 10, 30])
@pytest.mark.parametrize(
    "action", [lambda: True, lambda: np.True_, interrupt], ids=["True", "np.True_", "Ctrl-C"]
)
def test_stopped_at_a_report_the_answer_is_that_report(call, action):
    post, reports = small_model(), []
    answer = gc.probability_range(post, HARD, tolerance=1e-6, progress=stopper(call, action, reports))
    assert len(reports) == call
    assert answer.status == "interrupted"
    assert (answer.lower, answer.upper) == (reports[-1].lower, reports[-1].upper)
    assert refute(post, HARD, answer, seed()) == []


@pytest.mark.parametrize("value", [None, False, 0, 1, "stop"])
def test_only_true_stops(value):
    answer = gc.probability_range(small_model(), HARD, progress=lambda *_: value)
    assert answer.status == "converged"


def test_an_error_of_the_callback_is_the_callers():
    def fail(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        gc.probability_range(small_model(), HARD, progress=fail)


def test_ctrl_c_in_a_batch_keeps_what_is_known():
    post, reports = small_model(), []
    easy = gc.Box([0.0, 0.0], [0.01, 0.01])
    regions = [easy, HARD, HARD, easy]
    gc.probability_range(post, easy, progress=reports.append)
    call = len(reports) + 12
    reports.clear()
    answers = gc.probability_range(post, regions, tolerance=1e-5, progress=stopper(call, interrupt, reports))
    assert [answer.status for answer in answers] == ["converged", *["interrupted"] * 3]
    assert numbers(answers[0]) == numbers(gc.probability_range(post, easy, tolerance=1e-5))
    assert answers[1].lower > 0
    assert refute(post, HARD, answers[1], seed()) == []
    for answer in answers[2:]:
        assert numbers(answer) == TRIVIAL
        assert answer.argmin is None
        assert answer.argmax is None
        assert answer.nodes == 0


def checks_arguments(frame):
    """Whether the call belongs to the check of arguments: nothing has begun, and Ctrl-C is raised."""
    while frame is not None and frame.f_code.co_name != "check_certifiable":
        frame = frame.f_back
    return frame is not None


class Injector:
    """Raises KeyboardInterrupt at one function call in the given files: there Python looks for signals."""

    def __init__(self, at: int, *files: str) -> None:
        self.calls, self._at, self._files = 0, at, files

    def __call__(self, frame, event, _):
        inside = event == "call" and any(part in frame.f_code.co_filename for part in self._files)
        if inside and not checks_arguments(frame):
            self.calls += 1
            if self.calls == self._at:
                raise KeyboardInterrupt

    def __enter__(self):
        sys.settrace(self)
        return self

    def __exit__(self, *_):
        sys.settrace(None)


@pytest.mark.parametrize("likelihood", LINKS)
def test_ctrl_c_at_any_call_returns_what_is_known(likelihood):
    post = small_model(likelihood=likelihood, n=6)
    files = tuple(str(Path("gpcert") / part) for part in ("bounds", "search"))
    options = {"tolerance": 0.01, "max_nodes": 8}

    def fresh():  # facts about a posterior are kept with it: a new one repeats that work too
        return gc.Posterior(
            post.centres, post.weights, post.precision, kernel=post.kernel, likelihood=likelihood
        )

    gc.probability_range(fresh(), HARD, **options)  # tables that are made once in a process
    with Injector(0, *files) as whole:
        gc.probability_range(fresh(), HARD, **options)
    assert whole.calls > 100
    for at in [1, 2, 5, 10, 20, 50, *range(100, whole.calls, max(1, whole.calls // 25))]:
        model = fresh()
        try:
            with Injector(at, *files):
                answer = gc.probability_range(model, HARD, **options)
        except KeyboardInterrupt:  # would end the whole test run
            pytest.fail(f"the first Ctrl-C raised instead of returning what is known, at call {at}")
        assert answer.status == "interrupted", at
        assert refute(model, HARD, answer, seed()) == []


class Waves(OneByOne):
    """A stand-in for a model: P is known, its bound over a box is Lipschitz, its local search is poor."""

    shape = BoxShape(np.zeros(1), np.full(1, 2.0))

    def value(self, x: np.ndarray) -> float:
        return float(0.5 + 0.2 * np.cos(9 * x[0]) - 0.1 * np.cos(3 * x[0] - 2))

    def at(self, x: np.ndarray) -> tuple[float, float]:
        return self.value(x) - 1e-12, self.value(x) + 1e-12

    def objective(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        return self.value(x), np.zeros_like(x)

    def over(self, lower: np.ndarray, upper: np.ndarray, reference: np.ndarray, target: float) -> Certified:
        half = 0.5 * (upper - lower)
        return Certified(max(0.0, self.value(lower + half) - 2.1 * half[0]), reference, 0, False)


SMALLEST, ARGMIN = min((Waves().value(np.array([x])), x) for x in np.linspace(0.0, 2.0, 20001))


class ManyWaves(Waves):
    """Likes three boxes at a time."""

    batch = 3


class LyingWaves(Waves):
    """Proves too much of one box."""

    def over(self, lower: np.ndarray, upper: np.ndarray, reference: np.ndarray, target: float) -> Certified:
        return Certified(0.9, reference, 0, False)


def test_a_bound_that_a_value_contradicts_is_given_up_and_told():
    search = Minimiser(LyingWaves(), np.zeros(1), np.full(1, 2.0))
    search.start()
    step(search, 0.01)
    with pytest.warns(gc.ContradictionWarning, match="nothing is claimed"):
        assert search.lower == 0.0


def waves(tolerance: float, steps: int, at: int = 0, bound: type[Waves] = Waves) -> tuple[Minimiser, int]:
    """The search stopped after so many boxes or at call number `at`, and how many calls it made."""
    zero, two = np.zeros(1), np.full(1, 2.0)
    search = Minimiser(bound(), zero, two)
    # dataclasses compile their methods, comparisons among them, as <string>
    with Injector(at, str(Path("search") / "frontier.py"), "<string>") as injector:
        try:
            search.start()
            while not search.exhausted and search.upper - search.lower > tolerance and search.nodes < steps:
                step(search, tolerance)
        except KeyboardInterrupt:
            pass
    return search, injector.calls


@pytest.mark.parametrize("bound", [Waves, ManyWaves])
def test_the_loop_encloses_a_known_minimum(bound):
    for steps in range(60):
        search, _ = waves(0.01, steps, bound=bound)
        assert search.lower <= SMALLEST <= search.upper
    converged, _ = waves(0.01, 1000, bound=bound)
    assert converged.upper - converged.lower <= 0.01


@pytest.mark.parametrize("bound", [Waves, ManyWaves])
def test_ctrl_c_at_any_call_of_the_loop_loses_no_box(bound):
    """Comparisons of boxes included: a heap operation cut short must not leave a false smallest bound."""
    _, calls = waves(0.01, 1000, bound=bound)
    assert calls > 500
    for at in range(1, calls + 1):
        search, _ = waves(0.01, 1000, at, bound)
        assert search.lower <= SMALLEST <= search.upper, at


def test_a_search_that_was_cut_short_goes_on():
    """Boxes asked about, and never told of, are open again: the same enclosure is reached in the end."""
    search, _ = waves(0.01, 1000, 300, ManyWaves)
    assert search.upper - search.lower > 0.01
    while not search.exhausted and search.upper - search.lower > 0.01:
        step(search, 0.01)
    assert search.lower <= SMALLEST <= search.upper
    assert search.upper - search.lower <= 0.01


@pytest.mark.parametrize("limit", [4, 8])
def test_a_full_frontier_coarsens_and_ends(monkeypatch, limit):
    """Boxes given up cap the bound for good: once nothing open can improve it, the search is over."""
    monkeypatch.setattr(gpcert.search.frontier, "FRONTIER_LIMIT", limit)
    post = small_model(n=20)
    answer = gc.probability_range(post, HARD, tolerance=1e-6, max_nodes=3000)
    assert answer.status == "memory limit"
    assert refute(post, HARD, answer, seed()) == []


def test_a_search_ends_when_no_open_box_can_improve_it():
    """Around its minimum P is at rounding level: that bound caps the answer, the rest cannot improve it."""

    class Blocked(Waves):
        def over(self, lower, upper, reference, target):
            blocked = lower[0] <= ARGMIN <= upper[0] and upper[0] - lower[0] < 0.3
            return super().over(lower, upper, reference, target)._replace(at_rounding=bool(blocked))

    zero, two = np.zeros(1), np.full(1, 2.0)
    search = Minimiser(Blocked(), zero, two)
    search.start()
    while not search.exhausted and search.nodes < 2000:
        step(search, 1e-9)
    assert search.lower <= SMALLEST <= search.upper
    assert search.nodes < 2000


class OnlySigns(Waves):
    """Values are known to be above the goal or not, no better; so are bounds (as for labels, Theorem 4)."""

    goal = SMALLEST - 0.05

    def at(self, x):
        return float(np.nextafter(self.goal, 1.0)), 1.0

    def over(self, lower, upper, reference, target):
        answer = super().over(lower, upper, reference, target)
        above = float(np.nextafter(self.goal, 1.0)) if answer.value > self.goal else 0.0
        return answer._replace(value=above)


def test_a_goal_is_proved_though_no_value_is_known():
    """The enclosure at the best point is as wide as can be: what is asked is only whether P > goal."""
    search = Minimiser(OnlySigns(), np.zeros(1), np.full(1, 2.0), goal=OnlySigns.goal)
    search.start()
    while not search.exhausted and search.nodes < 1000:
        step(search, 0.02)
    assert search.lower > OnlySigns.goal
    assert 1 < search.nodes < 1000


def test_a_goal_that_the_best_point_may_miss_ends_the_search():
    """No bound can be better than the value at a point: where that holds the goal, boxes need not shrink."""

    class Unknown(OnlySigns):
        def at(self, x):
            return 0.0, 1.0

        def over(self, lower, upper, reference, target):
            return Certified(0.0, reference, 0, False)

    search = Minimiser(Unknown(), np.zeros(1), np.full(1, 2.0), goal=OnlySigns.goal)
    search.start()
    step(search, 0.02)
    assert search.exhausted
    assert search.lower == 0.0


LONG = """
import sys
import numpy as np
import gpcert as gc
sys.path.insert(0, {tests!r})
from helpers.exact import refute, small_model

def progress(p):
    if p.nodes == 5:
        print("searching", flush=True)

post = small_model(n=60, d=6)
region = gc.Box(-np.ones(6), np.ones(6))
answer, never = gc.probability_range(post, [region, region], tolerance=1e-9, progress=progress)
false = refute(post, region, answer, np.random.default_rng(0))
print(answer.status, never.status, (never.lower, never.upper) == (0.0, 1.0), answer.nodes >= 5, false)
"""


def test_a_real_ctrl_c_returns_what_is_known():
    script = LONG.format(tests=str(Path(__file__).parents[1]))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "searching\n"
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=120)
    assert output == "interrupted interrupted True True []\n"
    assert process.returncode == 0


@pytest.mark.parametrize("tolerance", [0.02, 0.2])
def test_a_goal_near_the_smallest_value_is_pursued_beyond_the_tolerance(tolerance):
    """Below the goal or above it is the question: a value known to the tolerance does not answer it."""
    goal = SMALLEST - 0.002
    search = Minimiser(Waves(), np.zeros(1), np.full(1, 2.0), goal)
    search.start()
    while not search.exhausted and not search.lower > goal and search.nodes < 2000:
        step(search, tolerance)
    assert goal < search.lower <= SMALLEST + 1e-6
