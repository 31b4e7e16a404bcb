"""Proof files of links as other libraries have them: scikit-learn's formula, and floors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flint import arb
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpcert as gc
from gpcert.likelihoods.prediction import COEFFICIENTS, LAMBDAS, TIE
from gpcert.proofs.facts import Fact
from gpcert.proofs.five_erf import FiveErfAt, FiveErfLevels, Psi
from helpers.oracle import bits
from judge.proofs import rejected

RNG = np.random.default_rng(20)
X = RNG.normal(size=(30, 2))
Y = (X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.3).astype(int)


def imported(classes: int = 2) -> gc.Posterior:
    """The README's first example, in small."""
    model = make_pipeline(StandardScaler(), GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None))
    return gc.from_sklearn(model.fit(X, Y if classes == 2 else Y + (X[:, 1] > 0.5)))


def floored(link: str) -> gc.Posterior:
    post = gc.GPClassifier(gc.RBF([0.8, 1.3], 1.5), link, max_evals=0).fit(X, Y).posterior_
    return replace(post, likelihood=gc.Floored(post.likelihood, 0.01))


MODELS = {
    "scikit-learn": imported,
    "scikit-learn, three classes": lambda: imported(3),
    "floored probit": lambda: floored("probit"),
    "floored logit": lambda: floored("logit"),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_question_has_proofs(name: str, tmp_path: Path) -> None:
    post, x = MODELS[name](), X[0]
    balls = [gc.Ball(x, 0.1), gc.Ball(x, 0.3, norm=2), gc.Ball(x + 3.0, 0.5)]
    for answer in gc.probability_range(post, balls, label=1, proof=tmp_path):
        assert answer.proof.exact, answer
    verdicts = gc.certify(post, [x, x], [gc.Ball(x, 0.01), gc.Box(x - 2.0, x + 2.0)], proof=tmp_path)
    assert {str(verdict.status) for verdict in verdicts} == {"safe", "unsafe"}
    assert all(verdict.proof.exact for verdict in verdicts)
    assert gc.certified_radius(post, x, rtol=0.05, proof=tmp_path / "radius.json").proof.exact
    gc.explain(post, x, 0.2, label=1, proof=tmp_path)
    gc.evaluate(post, X[:3], Y[:3], radii=[0.01, 0.3], proof=tmp_path)
    gc.save(post, tmp_path / "model.safetensors")
    files = sorted(tmp_path.glob("*.json"))
    assert len(files) >= 8
    assert rejected(tmp_path / "model.safetensors", files) == []


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_safe_labels_of_either_class_have_proofs(sign: float, tmp_path: Path) -> None:
    """A label of class 0 is claimed for more than 1/2 by D3's room: by a level between TOTAL/2 and 1/2."""
    told = {"kernel": gc.RBF(1.0, 4.0), "likelihood": gc.FiveErf(), "mean": 0.5 * sign}
    post = gc.Posterior([[0.0], [2.0]], [0.2 * sign, 0.1 * sign], 0.1 * np.eye(2), **told)
    verdict = gc.certify(post, gc.Ball([1.0], 1.5), proof=tmp_path / "label.json")
    assert verdict.status == "safe"
    gc.save(post, tmp_path / "model.safetensors")
    assert rejected(tmp_path / "model.safetensors", [tmp_path / "label.json"]) == []


def test_files_of_labels_claim_what_decides_them(tmp_path: Path) -> None:
    """P > 1/2 of class 0 does not say what `predict` does (D3): more than TIE beyond 1/2 is claimed."""
    post = imported()
    gc.certified_radius(post, X[:4], rtol=0.05, proof=tmp_path)
    gc.evaluate(post, X[:4], Y[:4], radii=[0.01, 0.3], proof=tmp_path)
    gc.certify(post, gc.balls(X[:4], 3.0), proof=tmp_path)
    claims = [c for file in tmp_path.glob("*.json") for c in json.loads(file.read_text())["claims"]]
    values = [(c["kind"], float.fromhex(c["value"]) - 0.5) for c in claims if c["sense"] in ("<", ">")]
    assert {kind for kind, _ in values} == {"at", "everywhere"}
    assert all(abs(value) > 0.99 * TIE for _, value in values)
    gc.save(post, tmp_path / "model.safetensors")
    assert rejected(tmp_path / "model.safetensors", sorted(tmp_path.glob("*.json"))) == []


def formula(mean: arb, variance: arb) -> arb:
    terms = zip(COEFFICIENTS.tolist(), LAMBDAS.tolist(), strict=True)
    spread = [(c, arb(a) * mean / (1 + 2 * arb(a) * arb(a) * variance).sqrt()) for c, a in terms]
    return sum((c * (1 + z.erf()) / 2 for c, z in spread), arb(0))


@pytest.mark.parametrize("p", [1e-6, 0.01, 0.3, 0.5 - 8e-9, 0.5 - 3e-9, 0.5, 0.7, 0.99, 0.9999, 1 - 1e-7])
def test_psi_lies_above_the_level_and_touches_it(p: float) -> None:
    """Hints are checked elsewhere; here that they are good ones: none too low, none higher than its curve
    asks. Levels between P at the mean 0, 5e-9 below 1/2, and 1/2 need more mean the larger the variance.
    """
    level = FiveErfLevels(Fact(0.0, 0.0, None), 9.0).of(p, False, False)
    assert isinstance(level, FiveErfAt)
    number, touch = level.number
    assert (touch == 9.0) == (p >= 0.5 - 5e-9)
    assert (level.between((0.2, 4.0))[1]["line"][2] == 4.0) == (p >= 0.5 - 5e-9)
    psis = [Psi(number, 0.0, 0.0, 1.0, touch)]
    for rate, steep in ((0.3, 0.0), (0.0, 0.6)):
        psis.append(level._raised(Psi(0.0, rate, steep, 2.0, 1.0), (0.2, 4.0)))
    for i, psi in enumerate(psis):
        low, high = (0.2, 4.0) if i else (0.0, 9.0)
        S = np.append(np.linspace(low, high, 200), psi.touch).tolist()
        with bits(120):
            above = [formula(arb(float(psi.at(x))), arb(x)) - p for x in S]
            lower = formula(arb(float(psi.at(psi.touch)) - 1e-3), arb(psi.touch))
        assert all(value >= 0 for value in above)
        assert i or lower < p  # others bend, and are higher by a share of their bulge


def test_the_other_class_has_what_the_formula_leaves() -> None:
    """Of class 0 a level counts for 1e-8 more, and that much needs no proof."""
    own, other = FiveErfLevels(Fact(0.0, 0.0, None), 2.0), FiveErfLevels(Fact(0.0, 0.0, None), 2.0).other
    assert own.free == 0.0
    assert 0.9e-8 < other.free < 1.1e-8
    for value in (0.3, 0.7, 1.0 - 1e-9):
        told = other.of(value, False, False).entry["p"]
        assert 0.9e-8 < value - told < 1.1e-8
        assert value - 1e-15 < other.of(value, False, False).p <= value
