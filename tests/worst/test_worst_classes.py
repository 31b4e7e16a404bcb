"""Several classes where inequalities are equalities: precisions of one pair of centres and one combination of
classes, means made of finite differences (O1 to O3, M2 to M4, J16, T2, Y1, Y2, H11, H13).
"""

from __future__ import annotations

import math
from itertools import product
from unittest.mock import patch

import numpy as np
from flint import arb

import gpcert as gc
from gpcert.bounds.facts.classes import class_model_of
from gpcert.bounds.geometry.domain import BoxDomain
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.bounds.local.radial import functional as below
from gpcert.bounds.local.radial.slice import make_radial_slice
from gpcert.bounds.several.one_vs_rest import ClassMargin, ClassShare, OthersShare
from gpcert.bounds.several.tangents import functionals
from gpcert.bounds.several.tangents.expansion import expand_classes, latents_on, reaches_of
from gpcert.bounds.several.tangents.tangent import penalty, second
from gpcert.engine.backend import Backend
from gpcert.engine.labels import ClassFacts, Labelled
from gpcert.engine.root import Rows
from gpcert.likelihoods.integrals import correlated
from gpcert.likelihoods.integrals.correlated import mixture
from helpers.laws import TermLaws
from helpers.worst import column, exactly, lower, model, row_around_zero
from judge import Truth

#: s_k of Theorem 4 for the label 0, the rival 1 and the third class 2, and its eigenvectors of +-sqrt(3)/2.
B = 0.5 * np.array([[-1.0, 0.0, 1.0], [0.0, 1.0, -1.0], [1.0, -1.0, 0.0]])
VECTORS = np.linalg.eigh(B)[1]
ROOT = math.sqrt(0.75)


def aligned(sizes, end=1.0, share=1.0):
    """Three classes, centres at 0 and `end`; the precision is sum_l size_l b_l b_l^T x u u^T / |u|^2, u the
    kernel of `end` less a share of that of 0.
    """
    near = math.exp(-(end**2) / 2)
    u = column(-share, 1.0) / math.sqrt(1.0 - 2.0 * share * near + share**2)
    R = np.einsum("cl,l,el,i,j->ceij", VECTORS, np.array(sizes), VECTORS, u, u)
    return gc.Posterior(np.array([[0.0], [end]]), np.zeros((2, 3)), R, kernel=gc.RBF(np.ones(1), 1.0),
                        likelihood=gc.Softmax(), mean=np.array([0.4, 0.1, 0.0]))  # fmt: skip


ALIGNED = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, -1.0), (-1.0, 0.0, 1.0)


@exactly
def test_labels_of_rows():
    """J16 at the other centre."""
    for sizes in ALIGNED:
        post = aligned(sizes)
        at, _ = row_around_zero(model([[0.0], [1.0]], [0.0, 0.0]), [0.0], [1.0])
        end = column(0.0)[:, None]
        rows = Rows(end, end + 1.0, end, end + 1.0, np.zeros((1, 0)), column(0.0))
        labelled = Labelled(ClassFacts(Backend(), class_model_of(post)), rows, at, end, np.array([0]))
        for j, k in ((1, 2), (2, 1)):
            found = labelled.plane(np.array([j]), np.array([k]))
            for x in (0.0, 1.0):
                S = Truth(post).covariance([x])
                mean = [Truth(post).mean([x], c) for c in range(3)]
                exact = mean[0] - mean[j] - S[0][k] + S[j][k] + (S[0][0] - S[j][j]) / 2
                terms = (float(each[0]) for each in (found.still, found.constant, found.lost, found.bend))
                assert lower(post, found.b[0], [0.0], [x], *terms) <= exact


def test_functionals_of_classes():
    """M2 and M3: contractions, of either part, and the lift."""
    for sizes in ALIGNED:
        classes = class_model_of(aligned(sizes))
        found = classes.functional(np.zeros(3), B)
        assert found.contraction >= ROOT * (1.0 - min(sizes))
        assert classes.contraction >= max(sizes) - min(sizes)
    assert class_model_of(aligned((2.0, 0.0, 0.0))).lift >= 1.0


def test_ratios_of_probabilities():
    """O1 to O3: the corners themselves."""
    low, high = column(0.2, 0.1, 0.3), column(0.6, 0.5, 0.4)
    corners = [np.array(p) for p in product(*zip(low, high, strict=True))]
    for quantity, value in (
        (ClassShare(0), lambda p: p[0] / p.sum()),
        (OthersShare(0), lambda p: 1 - p[0] / p.sum()),
        (ClassMargin(0), lambda p: 0.5 + 0.5 * min(p[0] - p[1], p[0] - p[2]) / p.sum()),
    ):
        values, (least, most) = [value(p) for p in corners], quantity.bounds(low, high)
        assert least <= min(values)
        assert most >= max(values)


def test_penalties():
    """Theorem 3 where all of E is negative; T2 at the largest s; M4's second derivative."""
    for nu in (0.01, 0.3, 0.9):
        assert penalty(nu) * nu**2 >= 0.5 * (-nu - math.log1p(-nu))
        assert second(column(nu))[0] * nu**2 / 2 >= math.expm1(nu) - nu
    cost = 12 * math.sqrt(3) * functionals._COST
    assert cost >= 1


@exactly
def test_distances_of_mixtures():
    """H11: chi^2 + 1 = sum_nm w_n w_m int N(z_n, I) N(z_m, I) / psi, in closed form."""
    for variances, most in (([0.5], 1), ([3.0], 5), ([0.4, 0.1], 7), ([1.0, 0.3, 0.1], 9)):
        nodes, weights, distance = mixture(np.array(variances), 1e-6, most)
        total = arb(-1)
        for (a, v), (b, w) in product(zip(nodes, weights, strict=True), repeat=2):
            term = arb(v) * arb(w)
            for s, x, y in zip(variances, a, b, strict=True):
                wide, x, y = 1 + arb(s), arb(x), arb(y)
                p = 2 - 1 / wide
                term *= (wide / p).sqrt() * ((x + y) ** 2 / (2 * p) - (x * x + y * y) / 2).exp()
            total += term
        assert arb(distance) ** 2 >= total
    cost = correlated._RAISED / (12 * math.sqrt(3))
    assert cost <= correlated._PER_CLASS


def differences(weights, step, tilt):
    """Three classes without a precision; the first mean is a finite difference of kernels around 0."""
    w = step * (np.arange(len(weights)) - 0.5 * (len(weights) - 1))
    alpha = np.zeros((len(w), 3))
    alpha[:, 0] = weights * np.exp(tilt * w * w / 2)
    return gc.Posterior(w[:, None], alpha, np.zeros((3, len(w), len(w))), kernel=gc.RBF(np.ones(1), 1.0),
                        likelihood=gc.Softmax())  # fmt: skip


def seen(post, h, make):
    """Its class model, slice, and the set [0, h] around 0."""
    classes = class_model_of(post)
    slice_ = make(classes.functional(np.zeros(3), np.zeros((3, 3))), np.zeros(1), np.array([0]))
    return classes, slice_, BoxDomain(column(0.0), column(h))


@exactly
def test_means_around_a_reference():
    """Y1: a mean whose third order is all that it has."""
    h, post = 0.1, differences(column(-1.0, 3.0, -3.0, 1.0), 0.1, 1.0)
    classes, slice_, domain = seen(post, h, make_slice)
    e = expand_classes(classes, slice_, domain, np.zeros(1))
    known = float(e.latents.mean[0] + e.mean_gradient[0, 0] * h + 0.5 * e.mean_hessian[0, 0, 0] * h * h)
    assert abs(Truth(post).mean([h], 0) - arb(known)) <= arb(e.mean_rest(column(1.0, 0.0, 0.0)))


@exactly
def test_reaches_of_classes():
    """Y2: means that are g or g_2 themselves, covariances whose precision sees g alone."""
    one = column(1.0, 0.0, 0.0)
    for weights, h, step in ((column(-1.0, 1.0), 0.05, 0.05), (column(1.0, -2.0, 1.0), 0.03, 0.03)):
        post = differences(weights, step, 0.0)
        centre = post.centres[0] if len(weights) == 2 else np.zeros(1)
        classes, slice_, _ = seen(post, h, make_radial_slice)
        domain = BoxDomain(column(0.0), column(h))
        found = reaches_of(classes, slice_, domain, centre, latents_on(classes, slice_, centre))
        for sign in (1.0, -1.0):
            assert arb(found.least_mean(sign * one)) <= arb(sign) * Truth(post).mean(centre + h, 0)
    for sizes in ALIGNED:
        post = aligned(sizes, 0.3, math.exp(-0.045))  # R k(xh) = 0
        classes = class_model_of(post)
        slice_ = make_radial_slice(
            classes.functional(np.zeros(3), np.zeros((3, 3))), np.zeros(1), np.array([0])
        )
        domain = BoxDomain(column(0.0), column(0.3))
        with patch.object(below, "_TOUCH", 1.0):  # any is sound
            found = reaches_of(classes, slice_, domain, np.zeros(1), latents_on(classes, slice_, np.zeros(1)))
        for sign in (1.0, -1.0):
            S = Truth(post).covariance([0.3])
            exact = sum(arb(sign * B[c, e]) * S[c][e] for c, e in np.ndindex(3, 3))
            assert arb(float(found.largest(sign * B[None])[0])) >= exact


LABELS, FACTS, RATIOS = "engine/labels.py", "bounds/facts/classes.py", "bounds/several/one_vs_rest.py"
REACH, EXPAND = "bounds/several/tangents/expansion.py", "bounds/several/tangents/expansion.py"
TANGENT, CLIP = "bounds/several/tangents/tangent.py", "bounds/several/tangents/functionals.py"
ROWS, KNOWN, CORNERS = "test_labels_of_rows", "test_functionals_of_classes", "test_ratios_of_probabilities"
PEN, MEANS, FAR = "test_penalties", "test_means_around_a_reference", "test_reaches_of_classes"
MIXED = "test_distances_of_mixtures"
TERMS = [
    ("J16", LABELS, "_TRACE = {0.8661|0.78}", ROWS),
    ("J16", LABELS, "W[own] - W[j] + {2.0|1.8} * r", ROWS),
    ("J16", LABELS, "zero, gap - {|0.9 * }form, lost", ROWS),
    ("J16", LABELS, "(own, own, -{0.5|0.45}), (j, j, 0.5)", ROWS),
    ("J16", LABELS, "_TRACE * ({|0.9 * }model.contraction_positive +", ROWS),
    ("J16", LABELS, "model.contraction_positive + {|0.9 * }model.contraction_negative", ROWS),
    ("O1", RATIOS, "value = {|1.1 * }float(part / total) * (1.0 + direction", CORNERS),
    ("O3", RATIOS, "value = 0.5 + {0.5|0.45} * float(pull", CORNERS),
    ("Theorem 3", TANGENT, "return {0.5|0.45} * (-s - math.log1p(-s))", PEN),
    ("T2", TANGENT, "np.asarray({2.0|1.8} * (np.expm1(s) - s)", PEN),
    ("H11", "likelihoods/integrals/correlated.py", "{|0.9 * }distance * (1.0 + 1e-12)", MIXED),
    ("H13", "likelihoods/integrals/correlated.py", "1e-5, {0.05|0.045}e-5", MIXED),
    ("M4", CLIP, "_COST = {0.0482|0.0434}", PEN),
    ("M4", FACTS, "lift={|0.9 * }max(max(facts", KNOWN),
    ("Y1", EXPAND, "rest += {|0.9 * }self.model.mean_norm(a)", MEANS),
    ("Y1", FACTS, "return {|0.9 * }float(np.sqrt(max(square, 0.0) * self.variance))", MEANS),
    ("Y2", REACH, "first = {|0.9 * }float(np.sqrt(2.0 * away", FAR),
    ("Y2", REACH, "square += {0.75|0.6} * curves[0]", FAR),
    ("Y2", REACH, "norm = {|0.9 * }total * np.sqrt", FAR),
    ("Y2", REACH, "square = plus * ({|0.9 * }model.contraction_negative", FAR),
    ("Y2", REACH, "minus * ({|0.9 * }model.contraction_positive", FAR),
]  # fmt: skip


class TestTerms(TermLaws):
    terms = TERMS
