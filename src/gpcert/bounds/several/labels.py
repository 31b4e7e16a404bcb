"""Does a class stay the most probable one on a box? Softmax, mostly without an integral.

`LabelBound` bounds (1 + min_j (P_c - P_j)) / 2, j != c, which is above 1/2 exactly where class c wins.
With D = f_c - f_j, s_k = Cov(D, f_k - (f_c + f_j)/2): if E D > 0 and E D >= max_k s_k then P_c > P_j
(docs/maths/multiclass.md, Theorem 4). Only where that fails are probabilities bounded.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np

from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.interface import Certified, OneByOne
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.several.known import Known
from gpcert.bounds.several.softmax import SoftmaxBound
from gpcert.bounds.several.tangents.expansion import ClassExpansion, Latents, Reaches
from gpcert.bounds.several.tangents.functionals import View, most_clipped
from gpcert.bounds.several.weighted import WeightedBound
from gpcert.likelihoods.integrals.correlated import TARGET
from gpcert.rounding import down, up
from gpcert.validation import Float, Mask

#: Stands for "P_c > P_j for every j": a margin above 0 of unknown size.
_WINS, _LOSES = up(0.5), down(0.5)
#: Of probabilities at points, in place of `TARGET`: a third of their nodes.
_ROUGHLY = 2e-4
#: A functional that is at least this is positive: no more is asked of its programme.
_CLEAR = 1e-9


class Comparison(OneByOne):
    """A `BoxBound` of (1 + min_j (P_c - P_j)) / 2; a value of 1/2 and one ulp means "above 1/2"."""

    softmax: WeightedBound  #: its beta is not used
    label: int

    @property
    def shape(self) -> Shape:
        return self.softmax.shape

    @property
    def rivals(self) -> list[int]:
        """The other classes."""
        return [j for j in range(len(self.softmax.beta)) if j != self.label]

    def at(self, x: Float) -> tuple[float, float]:
        """Probabilities with their errors, rough ones where they settle the sign."""
        lower, upper = self._at(x, _ROUGHLY)
        return (lower, upper) if lower > 0.5 or upper < 0.5 else self._at(x, TARGET)

    def _at(self, x: Float, target: float) -> tuple[float, float]:
        """The same with the accuracy of `target`, and the sign by Theorem 4 where that is certain."""
        latents, p, error = self.softmax.probabilities(x, target)
        c = self.label
        lower, upper = 1.0, 1.0
        for j in self.rivals:
            value, blur = 0.5 + 0.5 * (p[c] - p[j]), 0.5 * (error[c] + error[j]) + 1e-15
            low, high = max(0.0, value - blur), min(1.0, value + blur)
            gap = latents.mean[c] - latents.mean[j]
            shared = [0.0, *(_shared(latents.clipped, c, j, k) for k in self.rivals if k != j)]
            unsure = (4.0 * latents.covariance_error + 2.0 * latents.mean_error) * (1.0 + 1e-9)
            if gap > np.max(shared) + unsure:  # NaN stays NaN, and decides nothing
                low, high = max(low, _WINS), max(high, _WINS)
            elif gap < np.min(shared) - unsure:
                low, high = min(low, _LOSES), min(high, _LOSES)
            lower, upper = min(lower, low), min(upper, high)
        return float(lower), float(upper)

    @abstractmethod
    def objective(self, x: Float) -> tuple[float, Float]:
        """The smallest difference of means: nearly the sign of the margin, without covariances."""

    @abstractmethod
    def undecided(self, lower: Float, upper: Float, reference: Float) -> tuple[list[int], Float | None]:
        """The rivals that Theorem 4 does not settle on the box, and where one seems to win, scaled."""

    @np.errstate(all="ignore")  # overflow and NaN end as 0, never as a bound
    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """Theorem 4 for every rival; those it does not settle by their probabilities."""
        lengthscale = self.softmax.lengthscale
        widths = (upper - lower) / lengthscale
        split = int(np.argmax(widths))
        # The means and the s_k are smallest at different points: seen from the middle both move least.
        middle = 0.5 * lower + 0.5 * upper
        if self.shape.domain(lower, upper, middle, lengthscale) is None:
            return Certified(1.0, reference, split, False)
        rivals, point = self.rivals, reference
        if float(np.linalg.norm(widths)) < self.softmax.largest:
            rivals, step = self.undecided(lower, upper, reference)
            if step is not None:
                point = np.clip(middle + step * lengthscale, lower, upper)
        probability = _WINS
        for group in self._groups(rivals, reference):
            beta = np.full(len(self.softmax.beta), 0.5)
            beta[group], beta[self.label] = 1.0, 0.0
            answer = self.softmax.weighing(beta).over(lower, upper, reference, max(target, 0.5 + 1e-9))
            if not answer.value >= probability:
                probability, split = answer.value, answer.split
            if not probability > 0.0:
                break
        return Certified(max(0.0, probability), point, split, False)  # in this order: NaN is 0

    def _groups(self, rivals: list[int], reference: Float) -> list[list[int]]:
        """Rivals that are bounded together: P_c - P_j >= P_c - (sum of P over the group) for each of them.

        At the reference a group weighs no more than half of the strongest rival, or a quarter of the class:
        then it is not what decides.
        """
        if len(rivals) < 2:
            return [[j] for j in rivals]
        p = self.softmax.shares(reference)
        most = max(0.25 * float(p[self.label]), 0.5 * float(p[rivals].max(initial=0.0)))
        groups: list[list[int]] = []
        for j in sorted(rivals, key=lambda j: -p[j]):
            room = (group for group in groups if p[group].sum() + p[j] <= most)
            group = next(room, None)
            if group is None:
                groups.append([j])
            else:
                group.append(j)
        return groups


@dataclass(frozen=True, eq=False)
class LabelBound(Comparison):
    """Latents with one kernel, correlated or not."""

    softmax: SoftmaxBound
    label: int
    #: Theorem 4: E D >= s_k for (j, k); all k: E D > 0.
    known: Known = field(default_factory=Known, repr=False)

    def objective(self, x: Float) -> tuple[float, Float]:
        model, slice_ = self.softmax.model, self.softmax.slice
        k, _ = slice_.values(x)
        gaps = [
            float(k @ (model.weights[:, self.label] - model.weights[:, j]))
            + float(model.mean[self.label] - model.mean[j])
            for j in self.rivals
        ]
        j = self.rivals[int(np.argmin(gaps))]
        return min(gaps), slice_.pull(x, (model.weights[:, self.label] - model.weights[:, j])[None])[0]

    def undecided(self, lower: Float, upper: Float, reference: Float) -> tuple[list[int], Float | None]:
        whole, C = self.softmax, self.softmax.model.classes
        known = self.known.on(lower, upper, C, C)
        open_ = [j for j in self.rivals if not known[j].all()]
        if not open_:
            return [], None
        most = most_clipped(whole.model, lambda: whole.variances(lower, upper))
        views = whole.views(lower, upper)
        shared = whole.expansion(lower, upper) if isinstance(whole.slice, Slice) else None
        here = whole.latents(views[0].start) if shared is None else shared.latents
        crude = shared or whole.reaches(views[0], here)
        seen = here, whole.latents(reference)
        rivals = [j for j in open_ if all(self._beats(latents, j) for latents in seen)]
        found = {j: self._loses(views, shared, crude, most, j, known[j]) for j in rivals}
        self.known.add(lower, upper, known)
        losing = {j: where for j, where in found.items() if where is not None}
        hopeless = [j for j in open_ if j not in rivals]
        return hopeless + list(losing), next(reversed(losing.values()), None)

    def _beats(self, here: Latents, j: int) -> bool:
        """Whether Theorem 4 applies at a point: if not, it need not be tried on a box around it."""
        others = [k for k in self.rivals if k != j]
        most = np.max([0.0, *(_shared(here.covariance, self.label, j, k) for k in others)])
        return bool(here.mean[self.label] - here.mean[j] > most)

    def _loses(
        self,
        views: list[View],
        x: ClassExpansion | None,
        crude: ClassExpansion | Reaches,
        most: Float,
        j: int,
        known: Mask,
    ) -> Float | None:
        """None if class c certainly beats j on the domain; else where it seems not to, scaled.

        `most` (C,): how far the predictor may raise each variance; `x`: cheap forms, Gaussian kernel only;
        `known` (C,): the k with E D >= s_k, which are added to; all, if c beats j.
        """
        c, C = self.label, self.softmax.model.classes
        a = np.zeros(C)
        a[c], a[j] = 1.0, -1.0
        clipped = 0.5 * max(most[c], most[j]) * (1.0 + 1e-9)  # M4: how far that moves any s_k
        others = [k for k in self.rivals if k != j]
        others.sort(key=lambda k: -_shared(crude.latents.covariance, c, j, k))  # what fails, fails soon
        forms = np.array([_shared_functional(C, c, j, k) for k in others]).reshape(-1, C, C)
        if not self.softmax.correlated:  # the same for every k
            forms = forms[:1] * np.eye(C)
        largest = crude.largest(forms) + clipped
        if crude.least_mean(a) > largest.max(initial=0.0):
            known[:] = True
            return None
        for view in views:
            mean = view.mean(a)
            if mean.latent > 0.0:
                break
        else:
            return mean.point
        excess = _Excess(views[-1], x, a, clipped)
        for k, B, by_mean in zip(others, forms, mean.latent > largest, strict=False):
            where = None if known[k] or by_mean else excess.fails(B)
            if where is not None:
                return where
            known[k] = True
        known[:] = True
        return None


@dataclass(eq=False)
class _Excess:
    """Whether E D - s_k - clipped is positive on a domain, by rising price."""

    sharp: View
    x: ClassExpansion | None
    a: Float  #: (C,): E D = a.m
    clipped: float
    lost: float = 0.0  #: by Y1, from the reference to the minimum, for another k that it did not settle

    def fails(self, B: Float) -> Float | None:
        """None if it is, with s_k = <B, Sigma>; else where it seems not to be, scaled."""
        a, x, lost = self.a, self.x, self.lost
        if x is not None:
            value = float(a @ x.latents.mean) - float(np.vdot(B, x.latents.covariance)) - self.clipped
            if value > lost:
                both = x.smallest(a, -B, self.clipped, enough=_CLEAR)
                if both.latent > 0.0:
                    return None
                if not both.latent + x.rest(a, B) > 0.0:
                    return both.point
                lost = value - both.latent
        both = self.sharp.smallest(a, -B, self.clipped, enough=_CLEAR)
        if not both.latent > 0.0:
            return both.point
        self.lost = lost
        return None


def _shared(covariance: Float, c: int, j: int, k: int) -> float:
    """s_k = Cov(f_c - f_j, f_k - (f_c + f_j)/2)."""
    return float(covariance[c, k] - covariance[j, k] - 0.5 * (covariance[c, c] - covariance[j, j]))


def _shared_functional(C: int, c: int, j: int, k: int) -> Float:
    """B with <B, Sigma> = s_k."""
    B = np.zeros((C, C))
    B[c, k] = B[k, c] = 0.5
    B[j, k] = B[k, j] = -0.5
    B[c, c], B[j, j] = -0.5, 0.5
    return B
