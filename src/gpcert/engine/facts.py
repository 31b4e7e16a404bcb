"""One model on one set of moving features, as the batched products need it; made once and kept.

Coordinates are z = (x - origin) / lengthscale on the moving features, origin the mean of the centres.
Distances come from products of these, not from differences: E2 with the errors of J1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from weakref import WeakKeyDictionary

import numpy as np

from gpcert.bounds.facts.classes import class_model_of
from gpcert.bounds.facts.definite import block_contraction
from gpcert.bounds.facts.model import Model, kept, model_of
from gpcert.bounds.levels.registry import curves_of
from gpcert.engine.backend import Array, Backend
from gpcert.engine.fewer import Fewer, fewer_of
from gpcert.engine.profiles import GAUSSIAN, Gaussian, Profile, profile_of
from gpcert.engine.sketch import Sketch, sketch_of
from gpcert.engine.thin import Thin, basis_of, between, thin_of
from gpcert.kernels import Kernel
from gpcert.likelihoods import FiveErf, Floored, Logit, Probit
from gpcert.posterior import Posterior
from gpcert.rounding import UNIT
from gpcert.validation import Float, Index

#: J1: what the numbers of a model may be, so that underflow changes less than 2^-400 in any bound.
_LARGEST = 2.0**30
#: J2: |L^-1 z|^2 stays below this, for the same reason.
_WIDEST = 50.0
#: Features up to which the metric of the tails is isotropic.
FEW = 32
#: Planes are for models whose variance is negative by rounding alone: this share of the prior variance.
_DEEPEST = 1e-3
#: J21: floors of links.
_FLOOR = 0.25
#: Sets of features kept per model.
_KEPT = 3


@dataclass(frozen=True, eq=False)
class Facts:
    """The arrays of a backend; n centres, d moving features. Names as in docs/maths/batches.md."""

    backend: Backend
    model: Model
    features: Index
    origin: Float  #: of all features (D,)
    round: bool = False  #: for balls of norm 2, not for boxes
    profile: Profile = GAUSSIAN  #: of the kernel
    which: Index | None = None  #: only these centres, for sums over them

    @cached_property
    def moving(self) -> Float:
        """Centred and scaled centres on the moving features (n, d)."""
        return self._scaled[:, self.features]

    @cached_property
    def _scaled(self) -> Float:
        centres = self.model.centres if self.which is None else self.model.centres[self.which]
        return np.asarray((centres - self.origin) / self.model.lengthscale)

    def scaled(self, x: Array, standing: bool = False) -> Array:
        """Scaled coordinates of raw points (N, d) of the moving, or of the standing, features."""
        origin, length = self._frames[standing]
        return (x - origin) / length

    @property
    def lengths(self) -> Array:
        """Lengthscales of the moving features (d,)."""
        return self._frames[0][1]

    @cached_property
    def _frames(self) -> list[tuple[Array, Array]]:
        """Origin and lengthscales of the moving, and of the standing features."""
        array, model = self.backend.array, self.model
        return [(array(self.origin[j]), array(model.lengthscale[j])) for j in (self.features, self.rest)]

    @cached_property
    def Z(self) -> Array:
        """`moving` on the device."""
        return self.backend.array(self.moving)

    @cached_property
    def half(self) -> Array:
        """|z_i|^2 / 2 on the moving features (n,)."""
        return 0.5 * self.backend.xp.sum(self.Z * self.Z, axis=1)

    @cached_property
    def reach(self) -> float:
        """At least max |z_i| on the moving features."""
        return _longest(self.moving)

    @cached_property
    def rest(self) -> Index:
        """The features that stand still."""
        return np.setdiff1d(np.arange(self.model.centres.shape[1]), self.features)

    @cached_property
    def standing(self) -> tuple[Array, Array, float]:
        """The same three for the features that stand still."""
        Z = self.backend.array(self._scaled[:, self.rest])
        return Z, 0.5 * self.backend.xp.sum(Z * Z, axis=1), _longest(self._scaled[:, self.rest])

    @cached_property
    def alpha(self) -> Array:
        """(n,)."""
        return self.backend.array(self.model.weights)

    @cached_property
    def precision(self) -> Array:
        """R (n, n)."""
        return self.backend.array(self.model.precision)

    @cached_property
    def row_weight(self) -> Array:
        """F2 (n,)."""
        return self.backend.array(self.model.row_weight)

    @cached_property
    def defect(self) -> Array:
        """F1 (n,)."""
        defect = np.broadcast_to(self.model.parts.defect, self.model.weights.shape)
        return self.backend.array(np.array(defect))

    @cached_property
    def lift(self) -> float:
        """F3: S >= -lift everywhere, for the stored precision, definite or not."""
        model = self.model
        if model.definite:
            return model.deepest
        c = min(
            model.contraction_precision, block_contraction(model.precision, *model.unit_gram, model.variance)
        )
        return max(0.0, c * model.variance - model.prior) + 4 * UNIT * (abs(model.prior) + model.variance)

    @property
    def has_planes(self) -> bool:
        """G1: S is negative by rounding alone."""
        return self.lift <= _DEEPEST * self.model.prior

    @cached_property
    def metric(self) -> Float:
        """J2: L^2 (d,); any is sound. Coordinates that hardly vary need not pay for those that do."""
        spread = self.moving.std(axis=0)
        few = self.round or len(spread) <= FEW  # in a ball the widest coordinate pays for all
        share = np.ones(len(spread)) if few else np.maximum(spread / max(spread.max(), 1e-300), 0.02) ** 0.5
        metric = (2.56 if few else 4.0) * share
        longest = _longest(self.moving / np.sqrt(metric)) ** 2
        return np.asarray(metric * max(1.0, longest / _WIDEST))

    @cached_property
    def metrics(self) -> tuple[Array, Array]:
        """`metric` and its inverse on the device."""
        return self.backend.array(self.metric), self.backend.array(1.0 / self.metric)

    @cached_property
    def tilted(self) -> Array:
        """z L^-2 (n, d): p = y . this."""
        return self.backend.array(self.moving / self.metric)

    @cached_property
    def exponentials(self) -> Array:
        """J2: exp(z_i L^-2 z_j) (n, n)."""
        units = self.moving / np.sqrt(self.metric)
        return self.backend.array(np.exp(units @ units.T))

    @cached_property
    def sizes(self) -> tuple[Array, float]:
        """J2: exp(|L^-1 z_i|^2 / 2) (n,), and at least max |L^-1 z_i|."""
        units = self.moving / np.sqrt(self.metric)
        half = 0.5 * np.einsum("ij,ij->i", units, units)
        return self.backend.array(np.exp(half)), _longest(units)

    @cached_property
    def gram(self) -> tuple[Array, float]:
        """K / s2 (n, n) of all features, and a bound of its entries' errors."""
        return self.backend.array(self.model.unit_gram[0]), self.model.unit_gram[1]

    @cached_property
    def triangle(self) -> tuple[Array, Array, Array]:
        """Rows and columns of a packed triangle, and where each entry of the full matrix is in it (d d,)."""
        d = len(self.features)
        rows, columns = np.triu_indices(d)
        place = np.zeros((d, d), dtype=np.int64)
        place[rows, columns] = place[columns, rows] = np.arange(len(rows))
        return tuple(self.backend.indices(each) for each in (rows, columns, place.ravel()))

    @cached_property
    def pairs(self) -> Array:
        """Products z_ij z_ik, packed (n, d (d + 1) / 2)."""
        Z = self.moving
        packed = np.empty((len(Z), Z.shape[1] * (Z.shape[1] + 1) // 2))
        start = 0
        for j in range(Z.shape[1]):
            stop = start + Z.shape[1] - j
            np.multiply(Z[:, j : j + 1], Z[:, j:], out=packed[:, start:stop])
            start = stop
        return self.backend.array(packed)

    @cached_property
    def thin(self) -> Thin | None:
        """J17: predictors of few directions, where they pay."""
        basis = basis_of(self.model, self._between)
        return None if basis is None else thin_of(self.model, basis, self.lift, self.backend)

    def _between(self) -> Float:
        return self.model.variance * between(self._scaled, self.profile)

    @cached_property
    def fewer(self) -> tuple[Facts, Fewer] | None:
        """J23: the facts of a few centres that stand for all, where that pays."""
        if not isinstance(self.profile, Gaussian):
            return None
        found = fewer_of(self.model, basis_of(self.model, self._between), self._between)
        return None if found is None else (replace(self, which=found.which), found.on(self.backend))

    @cached_property
    def sketch(self) -> Sketch:
        """For the search."""
        return sketch_of(self.model, self.moving, self.backend)


def _longest(rows: Float) -> float:
    """At least the largest length of a row."""
    d = rows.shape[1]
    longest = float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max(initial=0.0)))
    return float(longest * (1.0 + (d + 16) * UNIT))


def once(ask: Callable[[Posterior], bool]) -> Callable[[Posterior], bool]:
    """The same answer, found once for every posterior: it looks at n n numbers, and every batch asks."""
    answers: WeakKeyDictionary[Posterior, bool] = WeakKeyDictionary()

    @wraps(ask)
    def known(post: Posterior) -> bool:
        if post not in answers:
            answers[post] = ask(post)
        return answers[post]

    return known


@once
def knows(post: Posterior) -> bool:
    """Whether the engine has bounds for the model: two classes, probit, logit, either with a floor, or
    scikit-learn's link (J21), one stationary kernel with a slope at 0 (not Matern 1/2), and numbers far from
    the ends of the doubles (J1).
    """
    one = isinstance(post.kernel, Kernel) and profile_of(post.kernel) is not None
    if not (one and _knows_link(post.likelihood)):
        return False
    model, noise = model_of(post), curves_of(post.likelihood).noise
    arrays = np.array([noise, 1.0 / noise, model.mean]), model.weights, model.precision, model.row_weight
    return model.moderate and within_reach(model.variance, *arrays)


def _knows_link(link: object) -> bool:
    if isinstance(link, Floored):
        return link.floor <= _FLOOR and isinstance(link.link, Probit | Logit)
    return isinstance(link, Probit | Logit | FiveErf)


def within_reach(variance: float, *arrays: Float) -> bool:
    """J1: whether no number of a model, with its largest arrays, is so large that underflow could matter."""
    largest = max(variance, 1.0 / variance, *(float(np.abs(each).max()) for each in arrays))
    return max(map(len, arrays)) < 2**20 and bool(largest <= _LARGEST)


@dataclass(eq=False)
class _Kept:
    facts: dict[bytes, Facts] = field(default_factory=dict)


_facts: WeakKeyDictionary[Posterior, _Kept] = WeakKeyDictionary()


def _geometry(post: Posterior) -> Model:
    """Of several latents with one kernel: the functional that is 0."""
    C = post.n_latents
    return class_model_of(post).functional(np.zeros(C), np.zeros((C, C)))


def facts_of(post: Posterior, features: Index, backend: Backend, round_: bool = False) -> Facts:
    """Of a model on its moving features (d,), for boxes or for balls, kept as long as the posterior lives."""
    cache = _facts.setdefault(post, _Kept()).facts

    def make() -> Facts:
        assert isinstance(post.kernel, Kernel)
        model = model_of(post) if post.n_latents == 1 else _geometry(post)
        profile = profile_of(post.kernel)
        assert profile is not None
        return Facts(backend, model, features, model.centres.mean(axis=0), round_, profile)

    return kept(cache, f"{backend.name} {round_}".encode() + features.tobytes(), _KEPT, make)
