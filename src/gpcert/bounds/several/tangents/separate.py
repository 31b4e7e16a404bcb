"""Independent latents with a kernel each, any kernels: means and variances around one reference.

Theorem K has no common factor in front, so pieces of different kernels add up (docs/maths/multiclass.md,
M5): an affine functional of all means and variances is one quadratic programme.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpcert.bounds.facts.model import Model, model_of
from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.local.forms import FunctionalBound, Loss, Pieces, Remainder, least
from gpcert.bounds.local.radial.expansion import RadialExpansion, expand_radial
from gpcert.bounds.local.radial.forms import RadialForms, forms_of
from gpcert.bounds.local.radial.functional import radial_pieces
from gpcert.bounds.local.radial.slice import RadialSlice, make_radial_slice
from gpcert.bounds.several.tangents.expansion import Latents
from gpcert.posterior import Posterior
from gpcert.rounding import UNIT, up
from gpcert.validation import Float, Index

#: A mean with a smaller share of a functional than this is bounded apart from the variance.
_SMALL = 1e-6


@dataclass(frozen=True, eq=False)
class SeparateLatents:
    """C independent latents on the slice of one query, in common units of displacement."""

    slices: tuple[RadialSlice, ...]

    @property
    def classes(self) -> int:
        return len(self.slices)

    @property
    def lengthscale(self) -> Float:
        """Common units (d,)."""
        return self.slices[0].lengthscale

    @property
    def priors(self) -> Float:
        """(C,)."""
        return np.array([each.model.prior for each in self.slices])

    @cached_property
    def contrasts(self) -> Float:
        """D (C - 1, C): differences with the last class."""
        C = self.classes
        return np.concatenate([np.eye(C - 1), -np.ones((C - 1, 1))], axis=1)

    def raised(self, by: Float) -> tuple[SeparateLatents, Float]:
        """With at least `by` (C,) >= 0 added to the prior variances, and what was added at most (C,)."""
        slices, moved = [], np.zeros(self.classes)
        for c, each in enumerate(self.slices):
            prior = up(each.model.prior + float(by[c])) if by[c] > 0.0 else each.model.prior
            slices.append(replace(each, model=replace(each.model, prior=prior)))
            moved[c] = (prior - each.model.prior) * (1.0 + 4 * UNIT)
        return SeparateLatents(tuple(slices)), moved

    def at(self, x: Float) -> Latents:
        """Means and variances (not clipped) at x (d,), raw units."""
        pairs = [each.latent(x) for each in self.slices]
        (mean, mean_error), (variance, error) = (_middles([pair[i] for pair in pairs]) for i in (0, 1))
        nothing = np.zeros((0, 0))
        return Latents(mean, np.diag(variance), mean_error, error, nothing)

    def gradients(self, x: Float) -> tuple[Float, Float, Float, Float]:
        """Means and variances (C,), gradients (C, d) in raw units, estimated."""
        parts = [each.gradient(x) for each in self.slices]
        return tuple(np.array([part[i] for part in parts]) for i in range(4))  # type: ignore[return-value]

    def expand(self, domain: Domain, reference: Float) -> SeparateExpansion:
        """Around `reference` (d,), raw units."""
        expansions = tuple(expand_radial(each, domain, reference) for each in self.slices)
        return SeparateExpansion(self, domain, self.at(reference), expansions)


def _middles(ends: list[tuple[float, float]]) -> tuple[Float, float]:
    """Middles (C,) of intervals, and the largest distance from them."""
    low, high = np.array(ends).T
    middle = 0.5 * low + 0.5 * high
    error = float(np.maximum(high - middle, middle - low).max()) * (1.0 + 8 * UNIT)
    return middle, error + 4 * UNIT * float(np.abs(middle).max())


@dataclass(frozen=True, eq=False)
class SeparateExpansion:
    """Every mean and variance as value + gradient.d + d^T Hessian d / 2 + rest; names of `ClassExpansion`."""

    model: SeparateLatents
    domain: Domain
    latents: Latents
    expansions: tuple[RadialExpansion, ...]

    def raised(self, by: Float) -> tuple[SeparateExpansion, Float]:
        """With at least `by` (C,) >= 0 added to the prior variances, and what was added at most (C,)."""
        model, moved = self.model.raised(by)
        expansions = tuple(replace(e, slice=s) for e, s in zip(self.expansions, model.slices, strict=True))
        lifted = self.latents.covariance + np.diag(model.priors - self.model.priors)
        return SeparateExpansion(
            model, self.domain, self.latents._replace(covariance=lifted), expansions
        ), moved

    @property
    def reach(self) -> Float:
        """The largest |d_j| (d,)."""
        return self.domain.reach

    def matrix(self, values: Float) -> Float:
        """(C, ...) to (C, C, ...), diagonal."""
        C = len(values)
        full = np.zeros((C, C, *values.shape[1:]))
        full[np.arange(C), np.arange(C)] = values
        return full

    @cached_property
    def mean_gradient(self) -> Float:
        """(C, d)."""
        return np.array([e.slice.weights @ e.U for e in self.expansions])

    @cached_property
    def mean_hessian(self) -> Float:
        """(C, d, d)."""
        return np.array([e.hessians[0] for e in self.expansions])

    @cached_property
    def covariance_gradient(self) -> Float:
        """(C, d)."""
        return np.array([-2.0 * (e.r @ e.U) for e in self.expansions])

    @cached_property
    def covariance_hessian(self) -> Float:
        """(C, d, d)."""
        return np.array([-2.0 * (e.hessians[1] + e.J) for e in self.expansions])

    @cached_property
    def _forms(self) -> tuple[tuple[RadialForms, RadialForms], ...]:
        """For each class, with the mean as it is and with its sign changed."""
        both = []
        for e in self.expansions:
            flipped = replace(e, slice=e.slice.flipped())
            both.append((forms_of(e, None), forms_of(flipped, None)))
        return tuple(both)

    @cached_property
    def _mean_rests(self) -> Float:
        """Sup of each mean beyond second order (C,), and what is not known of its value."""
        rests = [[radial_pieces(m, 1.0, 0.0, 0.0).rest(self.reach) for m in both] for both in self._forms]
        return np.asarray(np.max(rests, axis=1) + self.latents.mean_error)

    @cached_property
    def _variance_rests(self) -> Float:
        """The same of each variance."""
        signs = (1.0, -1.0)
        rests = [[radial_pieces(m, 0.0, t, 0.0).rest(self.reach) for t in signs] for m, _ in self._forms]
        return np.asarray(np.max(rests, axis=1) + self.latents.covariance_error)

    def mean_rest(self, a: Float) -> float:
        """Sup of a.m beyond second order."""
        return float(np.abs(a) @ self._mean_rests)

    def rest(self, a: Float, B: Float) -> float:
        """Sup of a.m + <B, Sigma> beyond second order."""
        return self.mean_rest(a) + float(np.abs(np.diagonal(B)) @ self._variance_rests)

    def covariance_rest(self, A: Float, gradient: Float, hessian: Float) -> float:
        """Sup of A Sigma A^T beyond second order, in Frobenius norm: |A_c A_c^T| = |A_c|^2."""
        return float((A * A).sum(axis=0) @ self._variance_rests)

    def covariance_reach(self, B: Float) -> float:
        """Sup of |<B, Sigma> - its value at the reference|."""
        weights = np.diagonal(B)
        slope = float(np.abs(weights @ self.covariance_gradient) @ self.reach)
        hessian = np.abs(np.tensordot(weights, self.covariance_hessian, 1))
        bend = 0.5 * float(self.reach @ hessian @ self.reach)
        return (slope + bend + float(np.abs(weights) @ self._variance_rests)) * (1.0 + 1e-9)

    def changes(self, mean: Float, covariance: Float) -> tuple[float, float]:
        means = np.abs(self.mean_gradient) @ self.reach + np.abs(self.latents.mean - mean) + self._mean_rests
        means += 0.5 * np.einsum("i,cij,j->c", self.reach, np.abs(self.mean_hessian), self.reach)
        units = np.eye(self.model.classes)
        variances = np.array([self.covariance_reach(np.diag(unit)) for unit in units])
        variances += np.abs(np.diagonal(self.latents.covariance - covariance))
        total = float(means.sum()) + float(variances.sum())
        return total * (1.0 + 1e-9), (2.0 * float(means.max()) + 4.0 * float(variances.max())) * (1.0 + 1e-9)

    def smallest(
        self, a: Float, B: Float, offset: float, less: Loss | None = None, enough: float = np.inf
    ) -> FunctionalBound:
        """A lower bound of a.m + <B, Sigma> - offset - less over the domain; B (C, C) diagonal."""
        still = Pieces(-offset, np.zeros_like(self.reach), [], [], 1e-14 * abs(offset))
        if less is not None:
            beyond = Remainder(2.0 * less.matrix, None, constant=less.constant)
            still = still._replace(g=-less.gradient, remainders=[beyond])
        bound = least(self.domain, [still, *self._pieces(a, np.diagonal(B))], (enough, 1e-6))
        return FunctionalBound(bound.value, bound.value, bound.point, bound.rounding, bound.loss)

    def _pieces(self, a: Float, b: Float) -> list[Pieces]:
        """a_c m_c + b_c S_c of every class, as Theorem K's a mu - tau S with a in {0, 1}, scaled."""
        small = _SMALL * float(np.abs(a).max(initial=0.0) + np.abs(b).max(initial=0.0))
        found = []
        for c, (plain, flipped) in enumerate(self._forms):
            mean, variance = float(a[c]), float(b[c])
            m = plain if mean >= 0 else flipped
            if mean != 0.0:
                joint = abs(mean) > small
                tau = -variance / abs(mean) if joint else 0.0
                pieces = radial_pieces(m, 1.0, tau, m.expansion.slice.mean).times(abs(mean))
                found.append(
                    pieces._replace(excess=pieces.excess + 4 * UNIT * abs(variance) * self._sizes[c])
                )
                if joint:
                    continue
            if variance != 0.0:
                found.append(radial_pieces(plain, 0.0, -np.sign(variance), 0.0).times(abs(variance)))
        return found

    @cached_property
    def _sizes(self) -> Float:
        """At least sup |S_c| (C,): what the rounding of tau is relative to."""
        units = np.eye(self.model.classes)
        reach = np.array([self.covariance_reach(np.diag(unit)) for unit in units])
        here = np.abs(np.diagonal(self.latents.covariance))
        return np.asarray(here + self.latents.covariance_error + reach)


def separate_models(post: Posterior) -> tuple[Model, ...]:
    """One verified model per latent of a posterior with independent latents, in common units.

    Centres that a latent does not use (their weights and precisions are 0) are left out.
    """
    models = []
    for c in range(post.n_latents):
        one = post.one_latent(c)
        used = (one.weights != 0.0) | (one.precision != 0.0).any(axis=1)
        used[0] = True  # at least one
        small = Posterior(
            one.centres[used],
            one.weights[used],
            one.precision[np.ix_(used, used)],
            kernel=one.kernel,
            likelihood=None,
            mean=one.mean,
        )
        models.append(model_of(small))
    common = np.min([model.lengthscale for model in models], axis=0)
    return tuple(replace(model, lengthscale=common) for model in models)


def separate_latents(models: tuple[Model, ...], x: Float, features: Index) -> SeparateLatents:
    """On the slice through x (D,) along `features`."""
    return SeparateLatents(tuple(make_radial_slice(model, x, features) for model in models))
