"""P along every coordinate line through one point at once: certified, with one product R (k v) for all.

On the line x + l_i u e_i, |u| <= U, mean and variance are e^{-u^2/2} and e^{-u^2} times power series whose
first coefficients are exact and whose rest is bounded; so are their derivatives. P is evaluated with its
error at equidistant points, and between two of them it leaves their values by at most |P''| step^2 / 8
(docs/maths/bounds.md, U1 and U2). n centres, f features (lines).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpcert.bounds.facts.model import Model, model_of
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.likelihoods import Logit, Probit
from gpcert.posterior import Posterior
from gpcert.rounding import TINY, UNDERFLOW, UNIT, gamma
from gpcert.validation import Float, Index

#: Points per side at which P is evaluated.
_STEPS = 24
#: max |phi^(j)|, j = 0..3, rounded up: derivatives of Phi(mu/sqrt(V)) in mu are at most these / V^((j+1)/2).
_NORMAL = (0.39895, 0.24198, 0.39895, 0.5507)
#: max |sigma^(j)| for j = 1..4 of the logistic, rounded up.
_LOGISTIC = (0.25, 0.09623, 0.125, 0.13)


class SideRanges(NamedTuple):
    """Enclosures of min and max of P(1) on one side of every line; four arrays (f,)."""

    min_lower: Float
    min_upper: Float
    max_lower: Float
    max_upper: Float


def line_ranges(
    post: Posterior, x: Float, features: Index, down: Float, up: Float
) -> tuple[SideRanges, SideRanges]:
    """Ranges on [x - down_i e_i, x] and on [x, x + up_i e_i] for each feature i; raw units, down, up (f,).

    They hold for all lengths within one rounding of `down` and `up`, inner ends too: U3.
    A line whose variance may reach 0 gets [0, 1]: the predictor clips there, and is not smooth; so does every
    line of a model whose numbers R7 does not cover.
    """
    assert isinstance(post.likelihood, Probit | Logit)
    model = model_of(post)
    if not model.moderate:
        nothing, all_of_it = np.zeros(len(features)), np.ones(len(features))
        unknown = SideRanges(nothing, all_of_it, nothing, all_of_it)
        return unknown, unknown
    with np.errstate(all="ignore"):
        lengthscale = model.lengthscale[features]
        reach = np.maximum(down, up) / lengthscale * (1.0 + 4 * UNIT)
        series = _series(model, x, features, reach)
        bend, slope = series.bend(post.likelihood)
        sides = []
        for far in (-down, up):
            share = np.arange(_STEPS + 1) / _STEPS
            u = (far / lengthscale)[:, None] * share
            lower, upper = series.probability(post.likelihood, u)
            width = np.abs(far) / lengthscale / _STEPS * (1.0 + 8 * UNIT)
            # U3: nodes are rounded, and so is the length: a node may lie some roundings beside its place.
            beside = (8 * UNIT * np.abs(far) / lengthscale + TINY) * slope + TINY
            between = 0.125 * bend * width * width * (1.0 + 1e-12) + beside
            known = np.isfinite(between) & np.isfinite(lower + upper).all(axis=1)
            sides.append(
                SideRanges(
                    np.where(known, np.maximum(lower.min(axis=1) - between, 0.0), 0.0),
                    np.where(known, np.minimum(upper.min(axis=1) + beside, 1.0), 1.0),
                    np.where(known, np.maximum(lower.max(axis=1) - beside, 0.0), 0.0),
                    np.where(known, np.minimum(upper.max(axis=1) + between, 1.0), 1.0),
                )
            )
    return sides[0], sides[1]


@dataclass(frozen=True, eq=False)
class _Series:
    """M(u) and q(u) of U1 on every line: coefficients (4, f), |rest| <= fourth u^4, rounding (f,)."""

    mean: float
    prior: float
    reach: Float  #: U (f,)
    M: Float
    M_fourth: Float
    M_error: Float
    q: Float
    q_fourth: Float
    q_error: Float

    def probability(self, link: Probit | Logit, u: Float) -> tuple[Float, Float]:
        """Enclosures of P(1) at u (f, m): U1 and the corner lemma L4."""
        mu, mu_error = self._at(u, self.M, self.M_fourth, self.M_error, 0.5)
        mu = self.mean + mu
        mu_error += 8 * UNIT * (abs(self.mean) + np.abs(mu))
        S, S_error = self._variance(u)
        low, high = mu - mu_error, mu + mu_error
        small, large = np.maximum(S - S_error, 0.0), np.maximum(S + S_error, 0.0)
        return (
            _one_sided(link, low, np.where(low >= 0, large, small), -1.0),
            _one_sided(link, high, np.where(high >= 0, small, large), 1.0),
        )

    def _variance(self, u: Float) -> tuple[Float, Float]:
        """S at u (f, m) and a bound of its error."""
        explained, error = self._at(u, self.q, self.q_fourth, self.q_error, 1.0)
        return self.prior - explained, error + 8 * UNIT * (abs(self.prior) + np.abs(explained))

    def _at(self, u: Float, c: Float, fourth: Float, error: Float, rate: float) -> tuple[Float, Float]:
        """e^{-rate u^2} (c_0 + c_1 u + c_2 u^2 + c_3 u^3) at u (f, m), and a bound of its error."""
        decay, size = np.exp(-rate * u * u), np.abs(u)
        value = c[0][:, None] + u * (c[1][:, None] + u * (c[2][:, None] + u * c[3][:, None]))
        total = sum(np.abs(c[p])[:, None] * size**p for p in range(4))
        bound = fourth[:, None] * size**4 + error[:, None] + gamma(60) * total
        return decay * value, bound * (1.0 + 1e-12) + UNDERFLOW

    def bend(self, link: Probit | Logit) -> tuple[Float, Float]:
        """U2: bounds of |P''| and |P'| in u on |u| <= U (f,); inf where the variance may reach 0."""
        U = self.reach
        M = [_sup(self.M, self.M_fourth, self.M_error, U, order) for order in range(3)]
        q = [_sup(self.q, self.q_fourth, self.q_error, U, order) for order in range(3)]
        mu1, mu2 = M[1] + U * M[0], M[2] + 2.0 * U * M[1] + (1.0 + U * U) * M[0]
        # S' = -e^{-u^2} (q' - 2u q) and S'' = -e^{-u^2} (q'' - 2q - 4u (q' - 2u q) - 4u^2 q): the large
        # constants of q and q''/2 nearly cancel, so they are taken together.
        c0, c1, c2 = np.abs(self.q[0]), np.abs(self.q[1]), np.abs(self.q[2])
        together = 2.0 * np.abs(self.q[0] - self.q[2]) + 1e-12 * (c0 + c2)
        moved = 2.0 * (q[0] - c0)
        S1 = c1 + U * together + (q[1] - c1 - 2.0 * c2 * U) + U * moved
        S2 = together + (q[2] - 2.0 * c2) + moved + 4.0 * U * S1 + 4.0 * U * U * q[0]
        S, S_error = self._variance(U[:, None] * np.linspace(-1.0, 1.0, 2 * _STEPS + 1))
        smallest = (S - S_error).min(axis=1) - S1 * U / _STEPS
        if isinstance(link, Probit):
            V = (1.0 / (link.scale * link.scale) + smallest) * (1.0 - 64 * UNIT)
            d1, d2, d3, d4 = (top / V ** (0.5 * (p + 1)) for p, top in enumerate(_NORMAL))
        else:
            d1, d2, d3, d4 = (np.full_like(U, top) for top in _LOGISTIC)
        second = d2 * mu1**2 + d3 * mu1 * S1 + 0.25 * d4 * S1**2 + d1 * mu2 + 0.5 * d2 * S2
        first = d1 * mu1 + 0.5 * d2 * S1
        smooth = smallest > 0
        return np.where(smooth, second * 1.0001, np.inf), np.where(smooth, first * 1.0001, np.inf)


def _sup(c: Float, fourth: Float, error: Float, U: Float, order: int) -> Float:
    """A bound of the derivative of that order of c_0 + c_1 u + c_2 u^2 + c_3 u^3 + rest on |u| <= U (f,)."""
    falling = [[1.0, 1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 2.0, 6.0, 12.0]][order]
    total = sum(falling[p] * np.abs(c[p]) * U ** max(p - order, 0) for p in range(order, 4))
    rounding = falling[3] * error / np.maximum(U, TINY) ** order  # errors of c_p are at most error / U^p
    return np.asarray(total + falling[4] * fourth * U ** (4 - order) + rounding)


def _one_sided(link: Probit | Logit, mu: Float, S: Float, side: float) -> Float:
    """E sigma moved outward by its proved error; nan where an argument is."""
    good = np.isfinite(mu) & np.isfinite(S)
    m, v = np.where(good, mu, 0.0), np.where(good, S, 1.0)
    value = link.expectation(m, v) + side * link.expectation_error(m, v) * (1.0 + 8 * UNIT)
    return np.where(good, np.clip(np.nextafter(value, side * np.inf), 0.0, 1.0), np.nan)


def _series(model: Model, x: Float, features: Index, U: Float) -> _Series:
    """U1 at x (d,) for the lines along `features` (f,), |u| <= U (f,)."""
    slice_ = make_slice(model, x, np.arange(len(x)))
    all_v, k, relative = slice_.kernel(x)
    v = all_v[:, features] if len(features) < len(x) else all_v
    n = len(k)
    unit = (relative + gamma(n + 60))[:, None]
    kv, v2 = k[:, None] * v, v * v
    r, Y = model.precision @ k, model.precision @ kv
    ak, rk = model.weights * k, r * k
    grown = (k + slice_.tiny)[:, None] * np.exp(np.abs(v) * U) * (1.0 + 2.0 * relative + 64 * UNIT)[:, None]
    weight, outward = model.row_weight, 1.0 + 4.0 * gamma(n + 20)
    absolute, grown4 = np.abs(model.weights), grown * v2 * v2
    half = 0.5 * grown * v2  # bounds |kappa_{>=2}| / u^2
    half_squares = half * half
    defect = model.parts.defect @ half_squares
    smooth = 0.5 * model.contraction * model.variance * np.exp(U * U) * (1.0 + 2.0 * U * U + 0.5 * U**4)
    square = np.minimum(weight @ half_squares, smooth * (1.0 + 64 * UNIT) + defect)
    error_r = np.sqrt(weight @ (grown * unit) ** 2)
    error_Y = np.sqrt(weight @ (np.abs(kv) * unit + slice_.tiny) ** 2)
    third = grown * np.abs(v) * v2 / 6.0
    linear = (np.abs(r) @ grown4) / 12.0 + error_r * np.sqrt(weight @ grown4**2) / 12.0
    cross = np.einsum("ij,ij->j", np.abs(Y), third) + error_Y * np.sqrt(weight @ third**2)
    return _Series(
        mean=model.mean,
        prior=model.prior,
        reach=U,
        M=np.stack([np.full(len(U), ak.sum()), ak @ v, 0.5 * (ak @ v2), (ak @ (v2 * v)) / 6.0]),
        M_fourth=(absolute @ grown4) / 24.0 * outward,
        M_error=(absolute @ (grown * unit)) * 1.01 * outward,
        q=np.stack(
            [
                np.full(len(U), rk.sum()),
                2.0 * (rk @ v),
                rk @ v2 + np.einsum("ij,ij->j", kv, Y),
                (rk @ (v2 * v)) / 3.0 + np.einsum("ij,ij->j", Y, k[:, None] * v2),
            ]
        ),
        q_fourth=(linear + 2.0 * cross + square) * 1.01 * outward,
        q_error=2.02 * error_r * np.sqrt(weight @ grown**2) * outward + 8 * UNIT * np.abs(rk).sum(),
    )
