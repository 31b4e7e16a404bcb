"""Softmax over independent latents with a kernel each: ranges, and safety of the label."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpcert.bounds.interface import Certified
from gpcert.bounds.several.labels import Comparison
from gpcert.bounds.several.softmax import WORTH_RAISING, conclude
from gpcert.bounds.several.tangents.anchor import anchor_at
from gpcert.bounds.several.tangents.expansion import Latents
from gpcert.bounds.several.tangents.functionals import probability_cost, variances_over
from gpcert.bounds.several.tangents.separate import SeparateExpansion, SeparateLatents
from gpcert.bounds.several.tangents.tangent import largest, whitened
from gpcert.bounds.several.weighted import WeightedBound
from gpcert.validation import Float

_TOO_LARGE = 4.0


@dataclass(frozen=True, eq=False)
class SeparateBound(WeightedBound):
    """Independent latents with a kernel each (T2 and M5)."""

    latents: SeparateLatents

    @property
    def correlated(self) -> bool:
        return False

    @property
    def lengthscale(self) -> Float:
        return self.latents.lengthscale

    @property
    def largest(self) -> float:
        return _TOO_LARGE if all(each.moderate for each in self.latents.slices) else 0.0

    def latents_at(self, x: Float) -> tuple[Latents, float]:
        latents = self.latents.at(x)
        unknown = np.full(self.latents.classes, latents.covariance_error)
        return latents, latents.mean_error + probability_cost(unknown)

    def shares(self, x: Float) -> Float:
        here = self.latents.at(x)
        anchor = anchor_at(here.mean, np.maximum(here.covariance, 1e-12 * np.eye(len(here.mean))), False)
        return np.full(len(self.beta), 1.0 / len(self.beta)) if anchor is None else anchor.p

    def objective(self, x: Float) -> tuple[float, Float]:
        mean, variance, slopes, curves = self.latents.gradients(x)
        anchor = anchor_at(mean, np.diag(np.maximum(variance, 1e-12)), False)
        if anchor is None:
            return 1.0, np.zeros(len(x))
        first, second = self.beta @ anchor.first, np.tensordot(self.beta, anchor.second, 1)
        value = 1.0 - float(self.beta @ anchor.p)
        return value, -(first @ slopes + np.diagonal(second) @ curves)

    @np.errstate(all="ignore")  # overflow and NaN end as 0, never as a bound
    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`: T2, of the variances as they are, else raised (M4)."""
        scale = self.latents.lengthscale
        widths = (upper - lower) / scale
        best = Certified(0.0, reference, int(np.argmax(widths)), False)
        if not float(np.linalg.norm(widths)) < self.largest:
            return best
        middle = 0.5 * lower + 0.5 * upper
        for retreat in (0.0, 0.5):
            start = np.clip(reference + retreat * (middle - reference), lower, upper)
            domain = self.shape.domain(lower, upper, start, scale)
            if domain is None:
                return Certified(1.0, reference, best.split, False)
            x = self.latents.expand(domain, start)
            for trial in (self._bounded(x, 0.0 * self.beta, target), self._raised(x, target)):
                if trial is None:
                    continue
                trial = trial._replace(point=np.clip(start + trial.point * scale, lower, upper))
                if trial.value > best.value or best.value <= 0.0:
                    best = trial
                if best.value >= target:
                    return best
        return best

    def _raised(self, x: SeparateExpansion, target: float) -> Certified | None:
        """The same with raised variances, where they are small against their own change."""
        by = variances_over(x).raising
        if not by.any() or probability_cost(by) > WORTH_RAISING:
            return None
        return self._bounded(x, by, target)

    def _bounded(self, x: SeparateExpansion, by: Float, target: float) -> Certified | None:
        """M4, T2: variances raised by `by` (C,), less what that or the clipping costs; None: not proved."""
        if by.any():
            x, moved = x.raised(by)
        else:
            moved = variances_over(x).most(np.inf)
        anchor = anchor_at(x.latents.mean, x.latents.covariance, False)
        seen = None if anchor is None else whitened(x, anchor)
        aim = math.log(max(1.0 - target - probability_cost(moved), 1e-300)) - 1e-12
        found = None if seen is None else largest(seen, self.beta, aim, x.smallest)
        if found is None:
            return None
        exponent, bound = found
        answer = conclude(exponent, bound.point, int(np.argmax(bound.loss)))
        return answer._replace(value=max(0.0, answer.value - probability_cost(moved)))


@dataclass(frozen=True, eq=False)
class SeparateLabel(Comparison):
    """Independent latents with a kernel each."""

    softmax: SeparateBound
    label: int

    def objective(self, x: Float) -> tuple[float, Float]:
        mean, _, slopes, _ = self.softmax.latents.gradients(x)
        j = min(self.rivals, key=lambda j: mean[self.label] - mean[j])
        return float(mean[self.label] - mean[j]), slopes[self.label] - slopes[j]

    def undecided(self, lower: Float, upper: Float, reference: Float) -> tuple[list[int], Float | None]:
        middle = 0.5 * lower + 0.5 * upper
        domain = self.shape.domain(lower, upper, middle, self.softmax.lengthscale)
        assert domain is not None
        x = self.softmax.latents.expand(domain, middle)
        losing = {j: where for j in self.rivals if (where := self._loses(x, j)) is not None}
        return list(losing), list(losing.values())[-1] if losing else None

    def _loses(self, x: SeparateExpansion, j: int) -> Float | None:
        """None if class c certainly beats j on the domain; else where it seems not to, scaled.

        s_k = -(Sigma_cc - Sigma_jj) / 2 for every k.
        """
        c, C = self.label, self.softmax.latents.classes
        a, B = np.zeros(C), np.zeros((C, C))
        a[c], a[j] = 1.0, -1.0
        if C == 2:
            alone = x.smallest(a, B, 0.0)
            return None if alone.latent > 0.0 else alone.point
        B[c, c], B[j, j] = 0.5, -0.5  # -s_k, which is more than 0 or not
        most = variances_over(x).most(np.inf)
        clipped = 0.5 * max(most[c], most[j]) * (1.0 + 1e-9)
        for minus_s, less in ((B, clipped), (np.zeros((C, C)), 0.0)):
            both = x.smallest(a, minus_s, less)
            if not both.latent > 0.0:
                return both.point
        return None
