"""Claims: strict and not, of either class, at points and everywhere, and each only once it is proved."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from bases import bases
from gpcert_check.model import Latent
from gpcert_check.reading import Reject
from gpcert_check.work import Work
from making import Prover, Toy, at, box, everywhere, hexed
from tampers import accepted, true


def fair(folder: Path) -> Prover:
    """A model whose probability is 1/2 everywhere."""
    toy = Toy(1, 2, 1)
    toy.alpha, toy.m0 = [[0.0, 0.0]], [0.0]
    return Prover(toy, folder / "m")


@pytest.mark.parametrize(("sense", "holds"), [(">=", True), (">", False), ("<=", True), ("<", False)])
def test_strict_claims_are_strict(sense: str, holds: bool, tmp_path: Path) -> None:
    prover = fair(tmp_path)
    claim = everywhere(1, sense, 0.5, {"t": (0.0).hex(), "tree": [{"envelope": True}]})
    file = prover.file([box([0.0], [1.0])], [claim])
    assert accepted(prover.checker, tmp_path / "p", json.dumps(file)) is holds
    for label in (0, 1):
        point = prover.file([box([0.0], [1.0])], [at(label, sense, 0.5, [0.25])])
        assert accepted(prover.checker, tmp_path / "p", json.dumps(point)) in (
            {holds, False} if holds else {False}
        )


def test_values_beyond_the_point_are_not_attained(tmp_path: Path) -> None:
    base = bases()[1]
    for i in (2, 3):
        claim = base.file["claims"][i]
        step = 1e-6 if claim["sense"] == ">=" else -1e-6
        better = claim | {"value": (float.fromhex(claim["value"]) + step).hex()}
        assert not accepted(base.prover.checker, tmp_path / "p", json.dumps(base.file | {"claims": [better]}))


def test_a_point_outside_the_region_says_nothing(tmp_path: Path) -> None:
    base = bases()[1]
    claim = at(1, ">=", 0.0, [5.0, 0.0])
    assert base.toy.truth([5.0, 0.0])[1] > 0.01
    assert not accepted(base.prover.checker, tmp_path / "p", json.dumps(base.file | {"claims": [claim]}))


def test_a_balance_uses_only_what_stands_before_it(tmp_path: Path) -> None:
    base = next(each for each in bases() if each.name == "lines")
    order = base.file["claims"]
    i = next(i for i, claim in enumerate(order) if claim["kind"] == "balance")
    tight = order[i] | {"lower": (-1.5).hex(), "upper": (1.5).hex()}
    file = base.file | {"claims": [*order[:i], tight]}
    assert accepted(base.prover.checker, tmp_path / "p", json.dumps(file))
    assert not accepted(
        base.prover.checker, tmp_path / "p", json.dumps(base.file | {"claims": [tight, *order[:i]]})
    )


def test_a_precision_that_is_not_symmetric_is_refused() -> None:
    kernel = {"type": "rbf", "lengthscale": (1.0).hex(), "variance": (1.0).hex()}
    with pytest.raises(Reject, match="symmetric"):
        Latent([[0.0], [1.0]], kernel, [0.0, 0.0], [1.0, 0.5, 0.25, 1.0], 0.0)


def test_facts_are_proved_anew_where_they_differ(tmp_path: Path) -> None:
    """A refused fact leaves nothing behind that a later file could use."""
    base = next(each for each in bases() if each.name == "witness")
    bad = base.file | {"facts": [{"witness": hexed([1.0] * base.toy.n)}]}
    assert not accepted(base.prover.checker, tmp_path / "p", json.dumps(bad))
    assert not accepted(base.prover.checker, tmp_path / "p", json.dumps(bad))
    assert accepted(base.prover.checker, tmp_path / "p", json.dumps(base.file))
    assert true(base.toy, base.file)


def test_a_trivial_end_needs_no_proof_and_no_other_end_goes_without(tmp_path: Path) -> None:
    base = bases()[1]
    for value, sense, holds in (
        (0.0, ">=", True),
        (1.0, "<=", True),
        (0.0, ">", False),
        (1e-300, ">=", False),
        (0.999, "<=", False),
    ):
        file = base.file | {"claims": [everywhere(1, sense, value, None)]}
        assert accepted(base.prover.checker, tmp_path / "p", json.dumps(file)) is holds


@pytest.mark.parametrize("own", [False, True])
def test_a_metric_is_not_taken_for_features(own: bool, tmp_path: Path) -> None:
    """The Gram matrix of feature 0 in the metric 1.0 is not that of the features 0 and 1 (V1's)."""
    toy = Toy(1, n=2, D=2)
    toy.X, toy.scale, toy.s2 = [[1.5, 1.5], [1.5, -1.5]], [1.0, 1.0], 1.0
    toy.alpha, toy.m0, toy.W = [[-0.5 * math.exp(2.25)] * 2], [2.9], [[1.0, 1.0]]
    toy.likelihood, toy.R = {"name": "probit", "scale": (1.0).hex()}, [toy._inverse([1.0, 1.0])]
    prover = Prover(toy, tmp_path / "m", facts=[None])
    forms = {"metric": hexed([1.0]), "thetas": [], "own": own}
    leaf = {"ref": hexed([0.0]), "D": hexed([0.0]), "y": hexed([1.5]), "forms": forms}
    claim = everywhere(1, ">=", 0.5, {"t": (0.0).hex(), "tree": [leaf]})
    assert toy.truth([1.5, 0.0])[1] < 0.45
    file = prover.file([box([0.0, 0.0], [1.5, 0.0])], [claim])
    assert not accepted(prover.checker, tmp_path / "p", json.dumps(file))


def test_work_is_counted_for_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, spent = bases()[1], []
    for claims in (base.file["claims"], base.file["claims"] * 2, base.file["claims"] * 2):
        assert accepted(base.prover.checker, tmp_path / "p", json.dumps(base.file | {"claims": claims}))
        spent.append(Work.spent)
    assert 0 < spent[0] < spent[1] == spent[2]
    latent, before = base.prover.checker.model.latents[0], Work.spent
    latent.gram([0], [0.5])
    assert Work.spent > before
    monkeypatch.setattr("gpcert_check.work.MOST_WORK", spent[1] - 1)
    with pytest.raises(Reject, match="more work than this checker"):
        base.prover.checker.check(str(tmp_path / "p"))
