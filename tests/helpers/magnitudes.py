"""Random models and boxes at all magnitudes of the doubles, and the judge of what is claimed about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from flint import arb

from gpcert.kernels import RBF, Kernel, Matern12, Matern32, Matern52, RationalQuadratic
from gpcert.posterior import Posterior
from gpcert.questions.certify import certify
from gpcert.questions.latent import latent_range
from gpcert.questions.ranges import probability_range
from gpcert.regions import Ball, Box, Region
from judge import Truth, at_rising_precision

_LARGEST, _SMALLEST = 1.7e308, 5e-324
Interval = tuple[float, float]
FAMILIES = (RBF, Matern12, Matern32, Matern52, RationalQuadratic)


class Query(NamedTuple):
    """A posterior of one latent, and a region."""

    post: Posterior
    region: Region


def magnitude(rng: np.random.Generator, span: float) -> float:
    """A positive double: mostly ordinary, else anywhere within 10^+-span, else at an end of all doubles."""
    kind = rng.integers(10)
    if kind < 4:
        return float(10.0 ** rng.uniform(-1, 1))
    if kind < 9 or span < 290:
        return float(10.0 ** rng.uniform(-span, span))
    return float(rng.choice([_SMALLEST, 3e-310, 2.3e-308, 1e300, _LARGEST]))


def _kernel(rng: np.random.Generator, d: int, span: float, depth: int) -> Kernel:
    if depth and rng.random() < 0.5:
        parts = [_kernel(rng, d, span, depth - 1) for _ in range(int(rng.integers(2, 4)))]
        total = parts[0]
        product = rng.random() < 0.5
        for part in parts[1:]:
            total = total * part if product else total + part
        return total
    family = FAMILIES[rng.integers(len(FAMILIES))]
    lengthscale = magnitude(rng, span)
    scales = np.array([lengthscale * 10.0 ** rng.uniform(-1, 1) for _ in range(d)])
    scales = np.clip(scales if rng.random() < 0.3 else np.full(d, lengthscale), _SMALLEST, _LARGEST)
    if rng.random() < 0.2:
        scales[rng.integers(d)] = magnitude(rng, span)
    extra = {"alpha": magnitude(rng, span)} if family is RationalQuadratic else {}
    variance = magnitude(rng, span)
    return family(scales if rng.random() < 0.5 else float(scales[0]), variance, **extra)


def random_query(seed: int) -> Query:
    """The query of a seed; `span` (decades) is drawn first, so that some models are nearly ordinary."""
    rng = np.random.default_rng(seed)
    span = float(rng.choice([3.0, 40.0, 160.0, 290.0]))
    n, d = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    while True:
        kernel = _kernel(rng, d, span, 2)
        if 0.0 < kernel.prior_variance < np.inf:
            break
    l = _a_lengthscale(kernel, rng)
    unit = l if rng.random() < 0.7 else magnitude(rng, span)
    with np.errstate(over="ignore"):
        centres = _doubles(rng.standard_normal((n, d)) * unit)
        s2 = kernel.prior_variance
        weights = rng.standard_normal(n) * (
            magnitude(rng, 3) / s2 if rng.random() < 0.5 else magnitude(rng, span)
        )
        sizes = [0.0, 1.0 / s2, magnitude(rng, span), -1.0 / s2]
        root = rng.standard_normal((n, n))
        R = (root @ root.T) * sizes[rng.integers(len(sizes))]
        mean = float(rng.choice([0.0, 0.0, 1.0, magnitude(rng, span)]) * rng.choice([-1.0, 1.0]))
        post = Posterior(centres, _doubles(weights), _doubles(R), kernel=kernel, mean=mean)
        return Query(post, _region(rng, centres, l, unit, span))


def _a_lengthscale(kernel: Kernel, rng: np.random.Generator) -> float:
    names = [i for i, name in enumerate(kernel.parameter_names) if "lengthscale" in name]
    return float(np.exp(kernel.theta[rng.choice(names)]))


def _doubles(x: np.ndarray) -> np.ndarray:
    return np.clip(np.nan_to_num(x, posinf=_LARGEST, neginf=-_LARGEST), -_LARGEST, _LARGEST)


def _region(rng: np.random.Generator, centres: np.ndarray, l: float, unit: float, span: float) -> Region:
    d = centres.shape[1]
    x = (
        centres[rng.integers(len(centres))]
        + rng.standard_normal(d) * float(rng.choice([0.0, 0.1, 1.0, 30.0])) * l
    )
    place = rng.integers(6)
    if place == 0:
        x = rng.standard_normal(d) * magnitude(rng, span)
    if place == 1:
        x = x + 1e15 * rng.choice([l, unit])
    width = float(rng.choice([0.0, 1e-18, 1e-6, 0.1, 1.0, 10.0, 1e3])) * float(rng.choice([l, unit]))
    if rng.random() < 0.1:
        width = magnitude(rng, span)
    widths = np.where(rng.random(d) < 0.7, width, 0.0)
    x = _doubles(x)
    if rng.random() < 0.2 and 0.0 < width < 1e300:
        return Ball(x, width, float(rng.choice([1.0, 2.0, 3.0, np.inf])))
    return Box(_doubles(x - rng.random(d) * widths), _doubles(x + rng.random(d) * widths))


def points_of(region: Region, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Points of the region (d,): corners and middles of faces of its box, the centre, others."""
    box = region.inner_box()
    d = len(box.lower)
    shares = [np.zeros(d), np.ones(d), np.full(d, 0.5), rng.random(d), rng.integers(0, 3, d) / 2.0]
    for share in (*shares, *(0.5 + 0.5 * np.eye(d))):
        x = np.clip((1.0 - share) * box.lower + share * box.upper, box.lower, box.upper)
        if region.contains(x):
            yield x


def certainly(value: Callable[[], arb], compare: Callable[[arb], tuple[bool, bool]]) -> bool:
    """Whether a comparison holds, decided at rising precision; an undecided one is an error."""
    for _ in at_rising_precision():
        yes, no = compare(value())
        if yes or no:
            return yes
    raise AssertionError(f"undecided: {value()}")


def _within(value: Callable[[], arb], claimed: Interval, known: Interval = (-np.inf, np.inf)) -> bool:
    """Whether the value lies in the claimed interval; what is `known` of it needs no proof."""
    (lower, upper), (least, most) = claimed, known
    above = lower <= least or certainly(value, lambda v: (v >= lower, v < lower))
    return above and (upper >= most or certainly(value, lambda v: (v <= upper, v > upper)))


def _has_label(exact: Truth, x: np.ndarray, label: int, or_tie: bool = False) -> bool:
    """P > 1/2 exactly where the mean is positive, whatever the variance: its sign needs no integral."""
    sign = 1 if label == 1 else -1
    if or_tie:
        return not certainly(lambda: sign * exact.latent(x)[0], lambda v: (v < 0, v >= 0))
    return certainly(lambda: sign * exact.latent(x)[0], lambda v: (v > 0, v <= 0))


def falsehoods(query: Query, seed: int, max_nodes: int = 12) -> list[str]:
    """All that is claimed about the query and not true at some point tried."""
    post, region = query
    rng = np.random.default_rng(seed)
    exact = Truth(post)
    with np.errstate(all="ignore"):
        p = probability_range(post, region, max_nodes=max_nodes)
        latent = latent_range(post, region, max_nodes=max_nodes)
        x = region.inner_box().centre
        predicted = all(
            np.isfinite(part).all() for part in post.latent([x])
        )  # else there is no label to prove
        verdict = certify(post, x, region, max_nodes=max_nodes) if predicted else None
    found = []
    P, mean, variance = (0.0, 1.0), (-np.inf, np.inf), (0.0, np.inf)  # what is known beforehand
    S = latent.variance
    for x in points_of(region, rng):
        if not _within(partial(exact.probability, x, 1), (p.lower, p.upper), P):
            found.append(f"P not in [{p.lower!r}, {p.upper!r}] at {x!r}")
        if not _within(lambda x=x: exact.latent(x)[0], (latent.mean.lower, latent.mean.upper), mean):
            found.append(f"mean not in [{latent.mean.lower!r}, {latent.mean.upper!r}] at {x!r}")
        if not _within(lambda x=x: exact.latent(x)[1].nonnegative_part(), (S.lower, S.upper), variance):
            found.append(f"variance not in [{S.lower!r}, {S.upper!r}] at {x!r}")
        if verdict is not None and verdict.status == "safe" and not _has_label(exact, x, verdict.label):
            found.append(f"label {verdict.label} is not safe at {x!r}")
    inner = (
        (p.argmin, lambda x: exact.probability(x, 1), (-np.inf, p.min.upper), P),
        (p.argmax, lambda x: exact.probability(x, 1), (p.max.lower, np.inf), P),
        (latent.mean.argmin, lambda x: exact.latent(x)[0], (-np.inf, latent.mean.min.upper), mean),
        (latent.mean.argmax, lambda x: exact.latent(x)[0], (latent.mean.max.lower, np.inf), mean),
    )
    unsafe = None if verdict is None else verdict.counterexample
    if unsafe is not None and not _has_label(exact, unsafe, 1 - verdict.label, or_tie=True):
        found.append(f"label {verdict.label} is no wrong one at {unsafe!r}")
    for x, value, claimed, known in inner:
        if x is not None and not _within(partial(value, x), claimed, known):
            found.append(f"not in {claimed!r} at the witness {x!r}")
    return found
