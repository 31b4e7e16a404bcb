"""What is assumed of scipy's normal law (docs/maths/likelihoods.md, H0), at the worst points a search finds.

Errors of a library jump from double to double: random points miss the worst by a factor. Here the best of
many are kept and their neighbourhoods searched again, ever more closely, in ball arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from flint import arb
from scipy.special import log_ndtr, ndtr

from gpcert.likelihoods import FiveErf, Probit
from gpcert.likelihoods.base import NDTR, UNIT
from gpcert.likelihoods.prediction import COEFFICIENTS, LAMBDAS
from helpers.oracle import bits, examples

#: The branches of the library meet at -1, -sqrt 2 and 0; below -38 Phi is subnormal.
PIECES = (
    (-1e-3, 1e-3),
    (-0.99, -0.3),
    (-1.42, -0.98),
    (-2.2, -1.41),
    (-6.0, -2.0),
    (-37.5, -6.0),
    (0.0, 9.0),
)


def distribution(z: arb) -> arb:
    return (-z / arb(2).sqrt()).erfc() / 2


def density(z: arb) -> arb:
    return (-z * z / 2).exp() / (2 * arb.pi()).sqrt()


def of_ndtr(z: float) -> arb:
    """The error in units of u (Phi + |z| phi)."""
    x = arb(z)
    exact = distribution(x)
    return abs(arb(float(ndtr(z))) - exact) / (exact + abs(x) * density(x)) / arb(UNIT)


def of_log_ndtr(z: float) -> arb:
    """The error in units of u (1 - log Phi + |z| phi / Phi)."""
    x = arb(z)
    exact = distribution(x)
    scale = 1 - exact.log() + abs(x) * density(x) / exact
    return abs(arb(float(log_ndtr(z))) - exact.log()) / scale / arb(UNIT)


def worst(error: Callable[[float], arb], low: float, high: float, seed: int) -> arb:
    """The largest error found on [low, high]."""
    rng = np.random.default_rng(seed)
    found = [(error(z), z) for z in rng.uniform(low, high, examples(300)).tolist()]
    width = 0.05 * (high - low)
    for _ in range(6):
        found = sorted(found, key=lambda pair: float(pair[0].mid()))[-8:]
        near = np.concatenate([z + rng.uniform(-width, width, examples(25)) for _, z in found])
        found += [(error(z), z) for z in np.clip(near, low, high).tolist()]
        width *= 0.1
    return max(found, key=lambda pair: float(pair[0].mid()))[0]


@pytest.mark.parametrize("error", [of_ndtr, of_log_ndtr])
@pytest.mark.parametrize("piece", PIECES, ids=str)
def test_the_library_keeps_to_the_constant(error, piece):
    """With a margin of two: another processor or version may find a worse point."""
    with bits(160):
        assert worst(error, *piece, seed=len(str(piece))) <= arb(NDTR) / 2


@pytest.mark.parametrize("piece", PIECES, ids=str)
def test_probit_keeps_to_its_bounds(piece):
    rng = np.random.default_rng(3)
    links = [(Probit(scale), var) for scale, var in ((1.0, 0.0), (0.3, 2.7), (7.1, 1e-3))]

    def excess(z: float) -> arb:
        """How much of its bound an error takes, at the mean that is about z deviations from 0."""
        link, var = links[int(rng.integers(len(links)))]
        mean = z * float(np.sqrt(link.scale**-2.0 + var))
        exact = distribution(arb(mean) / (arb(link.scale) ** -2 + arb(var)).sqrt())
        error = abs(arb(float(link.expectation(mean, var))) - exact)
        of_log = abs(arb(float(link.log_expectation(mean, var))) - exact.log())
        shares = (
            error / arb(float(link.expectation_error(mean, var))),
            of_log / arb(float(link.log_expectation_error(mean, var))),
        )
        return max(shares, key=lambda share: float(share.mid()))

    with bits(160):
        assert worst(excess, *piece, seed=4) <= 1


@pytest.mark.parametrize("piece", PIECES[1:5], ids=str)
def test_five_error_functions_keep_to_their_bound(piece):
    link, var = FiveErf(), 1.3

    def excess(z: float) -> arb:
        mean = z * 2.2
        deviations = [(1 / (2 * arb(float(s)) ** 2) + arb(var)).sqrt() for s in LAMBDAS]
        terms = zip(COEFFICIENTS.tolist(), deviations, strict=True)
        exact = sum((arb(c) * distribution(arb(mean) / s) for c, s in terms), arb(0))
        return abs(arb(float(link.expectation(mean, var))) - exact) / arb(
            float(link.expectation_error(mean, var))
        )

    with bits(160):
        assert worst(excess, *piece, seed=5) <= 1
