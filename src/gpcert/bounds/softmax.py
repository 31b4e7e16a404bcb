"""Bounds of softmax probabilities over a box: one tangent, one functional, one quadratic programme."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from gpcert.bounds.anchor import Anchor, anchor_at
from gpcert.bounds.box import Certified
from gpcert.bounds.class_expansion import Latents, expand_classes, latents_at
from gpcert.bounds.class_model import ClassModel
from gpcert.bounds.clipping import most_clipped, probability_cost, variances_over
from gpcert.bounds.domain import Domain, Shape
from gpcert.bounds.expansion import expand
from gpcert.bounds.forms import Loss
from gpcert.bounds.functional import lower_bound
from gpcert.bounds.latent_cells import Coordinates, bound_over_cells
from gpcert.bounds.local import FunctionalBound
from gpcert.bounds.majorants import CHEAP_DIMENSIONS, Majorants, cheap, coarse, sharp
from gpcert.bounds.rbf import Builder
from gpcert.bounds.slice import Slice
from gpcert.bounds.tangent import tangent, weighted, whitening
from gpcert.errors import InvalidInputError
from gpcert.likelihoods import Softmax
from gpcert.rounding import UNIT, exp_up, up
from gpcert.validation import Float

__all__ = ["TOO_LARGE", "Local", "SoftmaxBound", "builders"]

#: Ranges only decide where cells lie: they need not be sharp.
_RANGE_ACCURACY = 0.05
#: Raising variances costs probability; beyond this it would settle nothing.
_WORTH_RAISING = 0.05
TOO_LARGE = 2.0  # size of a box in lengthscales beyond which expansions say nothing


@dataclass(frozen=True, eq=False)
class SoftmaxBound:
    """A `BoxBound` of 1 - sum_i beta_i p_i, 0 <= beta_i <= 1 (docs/maths-multiclass.md, section 4)."""

    model: ClassModel
    slice: Slice  #: of any functional of the model: geometry only
    shape: Shape
    beta: Float  #: (C,)

    @property
    def correlated(self) -> bool:
        """Whether latents of different classes are."""
        return len(self.model.pairs) > self.model.classes

    def at(self, x: Float) -> tuple[float, float]:
        """The predictor with its proved error, and what the rounding of means and covariances adds."""
        _, p, error = self.probabilities(x)
        value = float((1.0 - self.beta) @ p)  # probabilities sum to one
        blur = min(float((1.0 - self.beta) @ error), float(self.beta @ error)) + 1e-15 * len(p)
        if not math.isfinite(value + blur):
            return 0.0, 1.0
        return max(0.0, value - blur), min(1.0, value + blur)

    def probabilities(self, x: Float) -> tuple[Latents, Float, Float]:
        """Latents at x (d,), class probabilities (C,) and bounds of their errors (C,); inf: nothing known."""
        _, k, relative = self.slice.kernel(x)
        latents = latents_at(self.model, k, relative, self.slice.floor)
        C = self.model.classes
        spread = latents.clipped if self.correlated else np.diagonal(latents.clipped)
        try:
            p = Softmax().expectation(latents.mean[None], spread[None])[0]
            error = Softmax().expectation_error(latents.mean[None], spread[None])[0]
        except InvalidInputError:
            return latents, np.full(C, 1.0 / C), np.full(C, np.inf)
        moved = latents.mean_error + 0.1 * C * C * latents.covariance_error
        return latents, p, error + moved

    def objective(self, x: Float) -> tuple[float, Float]:
        """An estimate of the quantity and its gradient in raw units."""
        v, k, relative = self.slice.kernel(x)
        latents = latents_at(self.model, k, relative, self.slice.floor)
        covariance = latents.clipped
        anchor = anchor_at(latents.mean, covariance, self.correlated)
        if anchor is None:
            return 1.0, np.zeros(len(x))
        first, second = self.beta @ anchor.first, np.tensordot(self.beta, anchor.second, 1)
        moved = covariance - anchor.covariance
        value = 1.0 - float(self.beta @ anchor.p) - float(np.vdot(second, moved))
        slope = (self.model.weights @ first) * k
        for (c, e), one, two in zip(self.model.pairs, latents.products, latents.transposed, strict=True):
            slope -= second[c, e] * (1.0 if c == e else 2.0) * (one + two) * k
        return value, -(slope @ v) / self.slice.lengthscale

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`: of Sigma as it is, else of Sigma raised; less what the predictor's differs."""
        widths = (upper - lower) / self.slice.lengthscale
        if not float(np.linalg.norm(widths)) < TOO_LARGE:
            return Certified(0.0, reference, int(np.argmax(widths)), False)
        middle = 0.5 * lower + 0.5 * upper
        domain = self.shape.domain(lower, upper, middle, self.slice.lengthscale)
        if domain is None:
            return Certified(1.0, reference, int(np.argmax(widths)), False)
        expansion = partial(expand_classes, self.model, self.slice, domain, middle)
        loss = probability_cost(most_clipped(self.model, expansion))
        aim = min(target + loss, 0.5 + 0.5 * target)
        best = self._over(lower, upper, reference, aim, self.model.classes == 3)
        best = best._replace(probability=max(best.probability - loss, 0.0))
        if best.probability < target:
            raised = variances_over(expansion()).raising
            if raised.any() and probability_cost(raised) <= _WORTH_RAISING:
                other = self._raised(raised, lower, upper, reference, target)
                best = other if other.probability > best.probability else best
        return best

    def _raised(self, by: Float, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """M4 with variances raised by `by` (C,), so that they vary little relative to themselves."""
        model = self.model.raised(by)
        moved = (model.prior - self.model.prior) * (1.0 + 4 * UNIT)
        # Correlated latents: the predictor's matrix may have to be made definite, too.
        loss = probability_cost(np.maximum(moved, 2.0 * self.model.lift) if self.correlated else moved)
        aim = min(target + loss, 0.5 + 0.5 * target)
        answer = replace(self, model=model)._over(lower, upper, reference, aim, False)
        return answer._replace(probability=max(answer.probability - loss, 0.0))

    def _over(self, lower: Float, upper: Float, reference: Float, target: float, few: bool) -> Certified:
        """A bound with the expectation of Sigma itself, 0 where that is not proved to be definite.

        `few`: by cells of the few latent coordinates there are.
        """
        widths = (upper - lower) / self.slice.lengthscale
        best = Certified(0.0, reference, int(np.argmax(widths)), False)
        middle = 0.5 * lower + 0.5 * upper
        for build, retreat in attempts(len(lower)):
            start = np.clip(reference + retreat * (middle - reference), lower, upper)
            domain = self.shape.domain(lower, upper, start, self.slice.lengthscale)
            if domain is None:
                return Certified(1.0, reference, best.split, False)
            local = Local(self, domain, start, build)
            trial = local.cells(target) if few else local.form()
            if trial is None:
                continue
            trial = trial._replace(point=np.clip(start + trial.point * self.slice.lengthscale, lower, upper))
            if trial.probability > best.probability or best.probability <= 0.0:
                best = trial
            if best.probability >= target:
                break
        return best


@dataclass(frozen=True, eq=False)
class Local:
    """The bound around one reference over one domain."""

    whole: SoftmaxBound
    domain: Domain
    start: Float
    build: Builder

    def _functional(self, a: Float, B: Float) -> tuple[Majorants, float]:
        """Majorants of a.m + <B, Sigma> (tau = -1), and the kappa that adds a.mean less all rounding."""
        model = self.whole.model
        slice_ = replace(self.whole.slice, model=model.functional(a, B))
        means = float(a @ model.mean)
        error = model.functional_error(a, B, slice_.amplitude) + 1e-14 * float(np.abs(a) @ np.abs(model.mean))
        return self.build(expand(slice_, self.domain, self.start), None), means - error

    def smallest(self, a: Float, B: Float, offset: float, less: Loss | None = None) -> FunctionalBound:
        """A lower bound of a.m + <B, Sigma> - offset - less over the domain."""
        m, kappa = self._functional(a, B)
        return lower_bound(m, 1.0, -1.0, kappa - offset - 1e-14 * abs(offset), less=less)

    def form(self) -> Certified | None:
        """Theorem 3 with the convex part bounded by a quadratic form: any number of classes."""
        whole = self.whole
        x = expand_classes(whole.model, whole.slice, self.domain, self.start)
        anchor = anchor_at(x.latents.mean, x.latents.covariance, whole.correlated)
        line = None if anchor is None else tangent(x, anchor, whole.beta)
        if line is None:
            return None
        bound = self.smallest(-line.a, -line.B, -line.offset, line.loss)
        return _conclude(line.log_total - bound.latent, bound.point, int(np.argmax(bound.loss)))

    def cells(self, target: float) -> Certified | None:
        """Theorem 3 with the convex part bounded over cells: three classes."""
        whole, model = self.whole, self.whole.model
        _, k, relative = whole.slice.kernel(self.start)
        latents = latents_at(model, k, relative, whole.slice.floor)
        anchor = anchor_at(latents.mean, latents.covariance, whole.correlated)
        if anchor is None:
            return None
        D = model.contrasts
        V = D @ anchor.covariance @ D.T
        W = whitening(V)
        if W is None:
            return None
        # Whitened coordinates: all variances grow together away from the data, and little else changes.
        basis = _symmetric_basis(len(W))
        functionals = [_symmetric(D.T @ W.T @ S @ W @ D) for S in basis]
        ranges = [self.range(B, float(np.vdot(B, anchor.covariance))) for B in functionals]
        low, high = np.array(ranges).T
        rho = float(np.linalg.norm(np.maximum(-low, high))) * (1.0 + 1e-6)
        s = self.domain.norm(np.ones(len(self.start)))
        eta = float(np.linalg.norm([model.mean_norm(row) for row in W @ D])) * s * (1.0 + 1e-6)
        a, B, weights, total = weighted(anchor, whole.beta, float(np.linalg.norm(V, 2)) ** 0.5, eta, rho)
        if not math.isfinite(total + rho):
            return None
        mean = D.T @ (weights @ a), D.T @ np.tensordot(weights, B, 1) @ D
        share = None
        used = np.flatnonzero(weights)
        axes = [(np.zeros(model.classes), each) for each in functionals]
        if len(used) == 2:
            i, j = used
            across = D.T @ (a[i] - a[j]), D.T @ (B[i] - B[j]) @ D
            ends = [
                self.smallest(sign * across[0], sign * across[1], sign * _value(across, anchor)).latent
                for sign in (1.0, -1.0)
            ]
            low, high = np.append(low, ends[0]), np.append(high, -ends[1])
            axes.append(across)
            share = float(weights[i]), float(weights[j])
        if not np.isfinite(low).all() or not np.isfinite(high).all():
            return None
        losses: list[Float] = []

        def supremum(slopes: Float) -> tuple[float, Float]:
            first = mean[0] + sum(k * axis[0] for k, axis in zip(slopes, axes, strict=True))
            second = mean[1] + sum(k * axis[1] for k, axis in zip(slopes, axes, strict=True))
            bound = self.smallest(-first, -second, -_value((first, second), anchor))
            losses.append(bound.loss)
            return -bound.latent, bound.point

        goal = math.log(max(1.0 - target, 1e-300)) - math.log(total)
        top, point = bound_over_cells(Coordinates(basis, share), low, high, supremum, goal)
        if not losses or not math.isfinite(top):
            return None
        return _conclude(math.log(total) + top, point, int(np.argmax(losses[0])))

    def range(self, B: Float, offset: float) -> tuple[float, float]:
        """Certified range of <B, Sigma> - offset over the domain."""
        m, kappa = self._functional(np.zeros(len(B)), B)
        slack = 1e-14 * abs(offset) - kappa  # kappa is minus the rounding here
        low = lower_bound(m, 0.0, -1.0, 0.0, accuracy=_RANGE_ACCURACY).latent - offset - slack
        high = -lower_bound(m, 0.0, 1.0, 0.0, accuracy=_RANGE_ACCURACY).latent - offset + slack
        return min(low, 0.0), max(high, 0.0)


def _symmetric(A: Float) -> Float:
    return 0.5 * (A + A.T)


def _value(functional: tuple[Float, Float], anchor: Anchor) -> float:
    return float(functional[0] @ anchor.mean) + float(np.vdot(functional[1], anchor.covariance))


def _symmetric_basis(N: int) -> Float:
    """An orthonormal basis of the symmetric (N, N) matrices, the direction of the identity first."""
    basis = [np.eye(N) / math.sqrt(N)]
    for a in range(1, N):
        diagonal = np.concatenate([np.ones(a), [-float(a)], np.zeros(N - a - 1)])
        basis.append(np.diag(diagonal) / np.linalg.norm(diagonal))
    for a in range(N):
        for b in range(a):
            unit = np.zeros((N, N))
            unit[a, b] = unit[b, a] = math.sqrt(0.5)
            basis.append(unit)
    return np.stack(basis)


def _conclude(exponent: float, point: Float, split: int) -> Certified:
    """1 - e^exponent, rounded down."""
    probability = 1.0 - exp_up(up(exponent) + 1e-15 * abs(exponent)) if exponent < 0 else 0.0
    return Certified(max(0.0, probability - 1e-15), point, split, False)


def builders(d: int) -> tuple[Builder, ...]:
    """Majorants by rising price."""
    return (cheap,) if d <= CHEAP_DIMENSIONS else (coarse, sharp)


def attempts(d: int) -> Iterator[tuple[Builder, float]]:
    """Majorants by rising price, each with how far the reference retreats towards the middle."""
    if d <= CHEAP_DIMENSIONS:
        yield cheap, 0.0
        yield cheap, 0.4
        return
    yield coarse, 0.0
    yield sharp, 0.0
    yield sharp, 0.3
