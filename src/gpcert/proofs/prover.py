"""Proof files of answers: which claims of an answer go into its file, and what the answer says about it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from math import fsum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpcert.bounds.factory import BoundFactory
from gpcert.claims import around, one_sided
from gpcert.clock import OutOfTime
from gpcert.errors import InvalidInputError
from gpcert.files import write_whole
from gpcert.kernels import RBF, Kernel, Matern12, Matern32, Matern52, RationalQuadratic
from gpcert.likelihoods import FiveErf, Floored, Logit, OneVsRest, Probit, Softmax
from gpcert.likelihoods.prediction import TIE
from gpcert.model_file import file_digest
from gpcert.posterior import Posterior
from gpcert.proofs.facts import facts_of
from gpcert.proofs.file import ProofText
from gpcert.proofs.record import Tree
from gpcert.proofs.sparse import MOST_SUPPORTS, beyond, narrow, supports_of
from gpcert.regions import Ball, Region
from gpcert.results import (
    Answer,
    CertifiedRadius,
    ProbabilityRange,
    ProofFile,
    Unproved,
    Verdict,
    VerdictStatus,
)
from gpcert.rounding import down, up
from gpcert.schema import digest
from gpcert.validation import Float

#: Points of a side at which its extremes are looked for, besides those that a search has found; and how
#: often again between the neighbours of the most extreme one, where they do not do.
_NODES, _ROUNDS = 24, 5


class Range(NamedTuple):
    """Enclosures of the smallest and the largest P(label) on one side."""

    min_lower: float
    min_upper: float
    max_lower: float
    max_upper: float


class FeatureLine(NamedTuple):
    """The ranges below and above the centre along a feature; `seen`: where extremes were found along it."""

    feature: int
    below: Range
    above: Range
    seen: Sequence[float] = ()


def influence(
    text: ProofText, post: Posterior, label: int, ball: Ball, line: FeatureLine, ends: Float
) -> bool:
    """Claim that Delta lies between the ends (2,), or in what can be proved: whether it was the former.

    Only sums count: points more extreme than those of the answer make up for what bounds lack.
    """
    regions = one_sided(ball, line.feature, -1), one_sided(ball, line.feature, 1)
    sides = [_Side(text, post, label, region, line) for region in regions]
    with text.sharing(1):
        left = sides[0].proved(line.below)
    right = sides[1].proved(line.above)
    lower, upper = _balance(left, right)
    if lower < ends[0] or upper > ends[1]:
        left, right = sides[0].sharper(left), sides[1].sharper(right)
        lower, upper = _balance(left, right)
    lower, upper = min(max(lower, -2.0), float(ends[0])), max(min(upper, 2.0), float(ends[1]))
    terms = [(sign, extreme, regions[sign > 0]) for extreme in ("max", "min") for sign in (1, -1)]
    text.balance(label, terms, lower, upper)
    return bool(lower == ends[0] and upper == ends[1])


def _balance(left: Range, right: Range) -> tuple[float, float]:
    """What follows of Delta, rounded outward once: the sums of an answer have room for what claims lack."""
    least = fsum((right.max_lower, -left.max_upper, right.min_lower, -left.min_upper))
    most = fsum((right.max_upper, -left.max_lower, right.min_upper, -left.min_lower))
    return down(least), up(most)


class _Side:
    """P(label) on one side of a centre along a feature."""

    def __init__(
        self, text: ProofText, post: Posterior, label: int, region: Region, line: FeatureLine
    ) -> None:
        self._text, self._post, self._label, self._region = text, post, label, region
        inner = region.inner_box()
        self._line, self._feature = inner.lower, line.feature
        low, high = self._ends = float(inner.lower[line.feature]), float(inner.upper[line.feature])
        t = np.linspace(low, high, _NODES + 1)
        p = self._values(t)
        seen = [each for each in line.seen if low <= each <= high]
        self._low = min((float(t[p.argmin()]), *seen), key=lambda each: self._enclosed(each)[1])
        self._high = max((float(t[p.argmax()]), *seen), key=lambda each: self._enclosed(each)[0])

    def proved(self, known: Range) -> Range:
        text, where = self._text, (self._label, self._region)
        low, high = self._point(self._low), self._point(self._high)
        with text.sharing(1):
            least = text.at_least(*where, known.min_lower, low)
        return Range(
            least,
            text.point(*where, "<=", self._enclosed(self._low)[1], low),
            text.point(*where, ">=", self._enclosed(self._high)[0], high),
            text.at_most(*where, known.max_upper, high),
        )

    def sharper(self, known: Range) -> Range:
        text, where = self._text, (self._label, self._region)
        low, high = self._extreme(self._low, 1), self._extreme(self._high, -1)
        p, q = self._enclosed(low)[1], self._enclosed(high)[0]
        if p < known.min_upper:
            known = known._replace(min_upper=text.point(*where, "<=", p, self._point(low)))
        if q > known.max_lower:
            known = known._replace(max_lower=text.point(*where, ">=", q, self._point(high)))
        return known

    def _extreme(self, best: float, sign: int) -> float:
        """About where P times the sign is smallest, between the neighbours of a node."""
        reach = (self._ends[1] - self._ends[0]) / _NODES
        for _ in range(_ROUNDS):
            t = np.linspace(max(best - reach, self._ends[0]), min(best + reach, self._ends[1]), _NODES + 1)
            best, reach = float(t[(sign * self._values(t)).argmin()]), 2.0 * reach / _NODES
        return best

    def _enclosed(self, t: float) -> tuple[float, float]:
        """P(label) there, which may be known worse than an estimate suggests."""
        return self._text.value(self._label, self._region, self._point(t))

    def _point(self, t: float) -> Float:
        return np.asarray(self._points(np.array([t]))[0])

    def _points(self, t: Float) -> Float:
        points = np.tile(self._line, (len(t), 1))
        points[:, self._feature] = t
        return points

    def _values(self, t: Float) -> Float:
        return np.asarray(self._post.probability(self._points(t))[:, self._label])


#: What rows are called: all of them one name, or each by the bytes of its point.
RowNames = str | Mapping[bytes, str] | None
_LONGEST = 200  #: characters of such a name in a file


class ProofPath(os.PathLike[str]):
    """A path for proofs about a model file whose SHA-256 is known, and about rows with these names."""

    def __init__(self, path: str | os.PathLike[str], model: str, rows: RowNames = None) -> None:
        self._path, self.model, self.rows = os.fspath(path), model, rows

    def __fspath__(self) -> str:
        return self._path


@dataclass(frozen=True, eq=False)
class Prover:
    """Proves answers about one posterior; `target`: the file, or of a batch the folder with a file each."""

    post: Posterior
    model: str  #: SHA-256 of the model file
    target: Path
    batch: bool
    rows: RowNames = None

    def range(self, answer: ProbabilityRange, factory: BoundFactory, tree: Tree) -> ProofFile | Unproved:
        """Both ends on the whole region, and the points that attain the inner ones."""
        text, where = self._text(factory), (answer.column, answer.region)
        with text.sharing(1):
            lower = text.at_least(*where, answer.lower, tree.roots.get(0))
        upper = text.at_most(*where, answer.upper, tree.roots.get(1))
        exact = (lower, upper) == (answer.lower, answer.upper)
        if answer.argmin is not None:
            exact &= text.point(*where, "<=", answer.min.upper, answer.argmin) == answer.min.upper
        if answer.argmax is not None:
            exact &= text.point(*where, ">=", answer.max.lower, answer.argmax) == answer.max.lower
        return self._write(answer.region, list(answer.key), text, exact, lower, upper)

    def verdict(self, answer: Verdict, factory: BoundFactory, tree: Tree) -> ProofFile | Unproved:
        """Safe: the label holds on the whole region. Unsafe: a point where it does not. Else the margin."""
        text, where, threshold = (
            self._text(factory),
            (answer.column, answer.region),
            self._zero(answer.threshold),
        )
        value, root = _sum(threshold, answer.margin.lower, up), tree.roots.get(0)
        below, above = self._decisive(answer.threshold)
        safe = answer.status is VerdictStatus.SAFE
        lower = text.above(*where, min(above, value), value, root) if safe else -2.0
        if lower < threshold:
            lower = text.margin_at_least(*where, min(value, threshold), root)
        upper, most = 1.0, _sum(threshold, answer.margin.upper, down)
        if answer.argmin is not None:
            upper = text.margin_at(*where, "<=", most, answer.argmin)
        if answer.counterexample is not None:
            upper = min(upper, text.margin_at(*where, "<", below, answer.counterexample))
        ends = (
            answer.margin.lower if lower == value else down(lower - threshold),
            answer.margin.upper if upper <= most else _sum(upper, -threshold, up),
        )
        proved = lower == value and upper <= most
        return self._write(answer.region, list(answer.key), text, proved, *ends)

    def radius(
        self, answer: CertifiedRadius, factory: BoundFactory, trees: Mapping[float, Tree]
    ) -> ProofFile | Unproved:
        """The label on the largest safe ball, or a smaller one; a point of the unsafe ball without it."""
        text, asked = self._text(factory), (answer.column, partial(around, answer.ball), answer.safe)
        fewer = np.floor if answer.ball.norm == 0 else float  # norm 0 counts features
        tree, (below, above) = trees.get(answer.safe), self._decisive(answer.threshold)
        safe, unsafe = text.largest(*asked, above, tree, fewer) if answer.safe > 0 else 0.0, np.inf
        if answer.counterexample is not None:
            ball = around(answer.ball, answer.unsafe)
            if text.margin_at(answer.column, ball, "<", below, answer.counterexample) <= below:
                unsafe = answer.unsafe
        exact = (safe, unsafe) == (answer.safe, answer.unsafe)
        return self._write(answer.ball, list(answer.key), text, exact, safe, unsafe)

    def labels(
        self,
        label: int,
        threshold: float,
        factory: BoundFactory,
        safe: tuple[Region, Tree | None] | None,
        unsafe: tuple[Region, Float] | None,
    ) -> ProofFile | Unproved:
        """The label on one ball, and a point of another without it, where there are."""
        (below, above), text, exact = self._decisive(threshold), self._text(factory), True
        if safe is not None:
            exact = text.holds(label, safe[0], above, safe[1])
        if unsafe is not None:
            exact &= text.margin_at(label, unsafe[0], "<", below, unsafe[1]) <= below
        regions = [each[0] for each in (safe, unsafe) if each is not None]
        if not regions:
            return Unproved.NOTHING
        return self._write(regions[0], [label, threshold, [each.digest for each in regions]], text, exact)

    def influences(
        self, label: int, factory: BoundFactory, ball: Ball, lines: Sequence[FeatureLine], ends: Float
    ) -> ProofFile | Unproved:
        """Delta of every feature of a ball in `ends` (2, D), from ranges on both sides of its centre."""
        text, exact = self._text(factory), True
        for others, line in zip(reversed(range(len(lines))), lines, strict=True):
            with text.sharing(others):
                exact &= influence(text, self.post, label, ball, line, ends[:, line.feature])
        return self._write(ball, [label, ball.digest, "influences"], text, exact)

    def served(self, answer: Answer) -> Answer | None:
        """An answer that a store has, if its proof lies where it would be written; else it is asked again: a
        proof needs the tree of a search.
        """
        entry: Any = getattr(answer, "proof", None)
        files: tuple[ProofFile, ...] = entry if isinstance(entry, tuple) else (entry,) if entry else ()
        return answer if files and all(map(self._has, files)) else None

    def _has(self, file: ProofFile) -> bool:
        place = Path(file.path)
        if (place.parent if self.batch else place) != self.target or file.model != self.model:
            return False
        try:
            return sha256(place.read_bytes()).hexdigest() == file.digest
        except OSError:
            return False

    def _zero(self, threshold: float) -> float:
        """What decides the label is compared with it: of several classes their margin with 0."""
        return 0.0 if self.post.n_classes > 2 else threshold

    def _decisive(self, threshold: float) -> tuple[float, float]:
        """Below and above which a label is decided: apart next to 1/2 of scikit-learn's formula (D3)."""
        apart = TIE if threshold == 0.5 and isinstance(self.post.likelihood, FiveErf) else 0.0
        return self._zero(threshold) - apart, self._zero(threshold) + apart

    def _text(self, factory: BoundFactory) -> ProofText:
        """An empty file; where one of another question lies, it is gone, whatever comes of this one. (Of a
        batch a name stands for a question.)
        """
        if not self.batch:
            self.target.unlink(missing_ok=True)
        return ProofText(self.post, factory)

    def _write(
        self,
        region: Region,
        name: list[Any],
        text: ProofText,
        exact: bool,
        lower: float | None = None,
        upper: float | None = None,
    ) -> ProofFile | Unproved:
        if not text.claims:
            if text.cut:
                raise OutOfTime
            return Unproved.WEAK if text.tried else Unproved.NOTHING
        rows, x = self.rows, region.centre.tobytes()
        path, content = (
            self.target,
            text.text(self.model, rows if isinstance(rows, str) else (rows or {}).get(x)),
        )
        if self.batch:
            path = path / f"{digest([self.model, name])[:16]}.json"
        write_whole(path, content)
        hashed = sha256(content.encode()).hexdigest()
        return ProofFile(str(path), hashed, self.model, exact, lower, upper)


def _sum(a: float, b: float, further: Callable[[float], float]) -> float:
    """a + b rounded up or down: the same number, or the next one on that side."""
    found = a + b
    rest = fsum((a, b, -found))
    return further(found) if (further(found) - found) * rest > 0.0 else found


def checked_prover(
    post: Posterior,
    proof: str | os.PathLike[str],
    regions: Sequence[Region],
    batch: bool,
    ids: Sequence[Any] | None = None,
    X: Float | None = None,
) -> Prover:
    """Who proves the answers about rows X (m, d), by default the centres of the regions, called `ids`. What
    cannot be proved yet is an error, before any work.
    """
    if not isinstance(proof, str | os.PathLike):
        raise InvalidInputError(f"proof must be a path, got {type(proof).__name__}")
    check_provable(post, regions, "proof")
    target = Path(proof)
    folder = target if batch else target.parent
    try:
        folder.mkdir(parents=batch, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"proof must be a path that can be written, got {target}: {error.strerror}"
        ) from None
    if not batch and target.is_dir():
        raise InvalidInputError(f"proof must be a file for one region, got the folder {target}")
    if isinstance(proof, ProofPath):
        return Prover(post, proof.model, target, batch, proof.rows)
    rows = None if ids is None else row_names(ids, [region.centre for region in regions] if X is None else X)
    return Prover(post, file_digest(post), target, batch, rows)


def row_names(ids: Sequence[Any], X: Iterable[Float]) -> dict[bytes, str]:
    """What rows are called, by their points (d,); of equal rows all names."""
    found: dict[bytes, str] = {}
    for name, x in zip(ids, X, strict=True):
        known = found.get(x.tobytes())
        found[x.tobytes()] = (str(name) if known is None else f"{known}, {name}")[:_LONGEST]
    return found


def check_provable(post: Posterior, regions: Sequence[Region], name: str) -> None:
    """Whether there are proof files for questions about these regions; else an error about `name`."""
    covered, found = _flaw(post, regions) or ("", None)
    if found is not None:
        raise InvalidInputError(f"{name} must be given with what proof files cover, {covered}, got {found}")


def _flaw(post: Posterior, regions: Sequence[Region]) -> tuple[str, str] | None:
    """What files cover, and what is asked about in place of it."""
    link = post.likelihood
    if isinstance(link, Softmax) and (post.n_classes < 3 or not isinstance(post.kernel, Kernel)):
        return "a softmax of three or more classes with one kernel", "one of two, or a kernel for each"
    one = not isinstance(link, OneVsRest | Softmax)
    others = (Matern12, Matern32, Matern52, RationalQuadratic) if one else ()
    strange = next((kernel for kernel in post.kernels if not isinstance(kernel, (RBF, *others))), None)
    if strange is not None:
        known = "RBF, Matern and RationalQuadratic kernels" if one else "RBF kernels of several classes"
        return known, repr(strange)
    inner = link.link if isinstance(link, OneVsRest | Floored) else link
    if not isinstance(inner, Probit | Logit | Softmax | FiveErf):
        return "the likelihoods probit, logit, softmax and scikit-learn's", repr(link)
    if not all(np.isfinite(fact.lift) for fact in facts_of(post)):
        sizes = "numbers too large or too small, or a precision unlike its kernel"
        return "models whose precision belongs to their kernel", sizes
    balls = [region for region in regions if isinstance(region, Ball)]
    norms = {ball.norm for ball in balls} - {np.inf, 0.0, 1.0, 2.0}
    if norms:
        return "balls of norm inf, 2, 1 and 0", f"norm {min(norms):g}"
    few = [ball for ball in balls if ball.norm == 0]
    if any(supports_of(ball, ball.radius or None) > MOST_SUPPORTS for ball in few):
        return f"balls of norm 0 with up to {MOST_SUPPORTS} sets of features that may move", "more"
    size = next(filter(None, (*map(beyond, balls), *map(narrow, balls))), None)
    return None if size is None else ("balls of a size that doubles tell", size)
