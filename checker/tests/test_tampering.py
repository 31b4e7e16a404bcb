"""Whoever changes a proof or a model is caught, or has changed nothing that matters."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from bases import Base, bases
from tampers import (
    ANYWHERE,
    FIELDS,
    MODELS,
    NUMBERS,
    REALS,
    accepted,
    changed,
    digits,
    fields_of_bases,
    is_real,
    parsed,
    tampered_model,
    true,
)


@pytest.mark.parametrize("base", bases(), ids=lambda base: base.name)
def test_an_untouched_file_is_accepted_and_true(base, tmp_path: Path) -> None:
    assert accepted(base.prover.checker, tmp_path / "p", json.dumps(base.file))
    assert true(base.toy, base.file)


#: A kind that changes nothing.
NOTHING = {("tree.envelope", "true"), ("tree.outside", "true"), ("tree.spread", "true")}
CHANGES = ANYWHERE | NUMBERS


def kinds(change: str) -> set[tuple[str, str]]:
    """The kinds of tampering with a field that the list promises."""
    return {(name, change) for name in REALS + FIELDS * (change in ANYWHERE)} - NOTHING


def tampered(base: Base, paths: list[tuple[Any, ...]], change: str) -> dict[str, Any] | None:
    """The file with one of these places changed, the first where the change is one."""
    for path in paths:
        if change in ANYWHERE or is_real(base.file, path):
            file = changed(base.file, path, CHANGES[change])
            if json.dumps(file) != json.dumps(base.file):  # 1 == True, but not in JSON
                return file
    return None


def tried(change: str, most: int, folder: Path) -> set[tuple[str, str]]:
    """The kinds of a change that were tried, in so many bases each: refused, or the claims still true."""
    found = set()
    for name, occurrences in fields_of_bases().items():
        files = [(base, tampered(base, occurrences.get(base.name, []), change)) for base in bases()]
        for base, file in [(base, file) for base, file in files if file is not None][:most]:
            found.add((name, change))
            if accepted(base.prover.checker, folder / "p", json.dumps(file)):
                assert true(base.toy, file, 60), (base.name, name, change)
    return found


def test_the_list_of_fields_is_complete() -> None:
    assert len(FIELDS + REALS) == len({*FIELDS, *REALS})
    assert {*FIELDS, *REALS} == {*fields_of_bases()}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_field_is_refused_or_harmless(change: str, tmp_path: Path) -> None:
    """Every kind of the list is tried."""
    assert tried(change, 2, tmp_path) == kinds(change)


@pytest.mark.full
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_field_is_refused_or_harmless_in_all_bases(change: str, tmp_path: Path) -> None:
    assert tried(change, len(bases()), tmp_path) == kinds(change)


@pytest.mark.parametrize("change", MODELS)
def test_a_changed_model_is_refused_or_the_claim_still_true(change: str, tmp_path: Path) -> None:
    tried = 0
    for base in bases():
        toy, checker, file = tampered_model(base, MODELS[change], tmp_path)
        if file == base.file:
            continue  # the model has nothing of this kind
        tried += 1
        assert not accepted(base.prover.checker, tmp_path / "p", json.dumps(file))  # another hash
        if checker is not None and accepted(checker, tmp_path / "p", json.dumps(file)):
            assert true(toy, file), base.name
    assert tried >= 12


def changed_digits(tmp_path: Path, count: int, seed: int) -> tuple[int, int]:
    """How many of these files with changed digits are refused, and accepted: those must be true."""
    rng, refused = random.Random(seed), 0
    for i in range(count):
        base = bases()[i % len(bases())]
        text = digits(json.dumps(base.file), rng, rng.choice([1, 1, 3]))
        if not accepted(base.prover.checker, tmp_path / "p", text):
            refused += 1
        else:
            assert true(base.toy, parsed(text), 40), (base.name, text)
    return refused, count - refused


def test_random_digits(tmp_path: Path) -> None:
    refused, kept = changed_digits(tmp_path, 400, 0)
    assert refused > 100  # most digits matter
    assert kept > 20  # the last digits of hints do not: the test says something about accepted files


@pytest.mark.full
def test_ten_thousand_random_digits(tmp_path: Path) -> None:
    refused, _ = changed_digits(tmp_path, 10_000, 1)
    assert refused > 2_500


def _claims_swapped(file):
    a, b = file["claims"][:2]
    return file | {"claims": [a | {"proof": b["proof"]}, b | {"proof": a["proof"]}, *file["claims"][2:]]}


def _first(file, **entries):
    return file | {"claims": [file["claims"][0] | entries, *file["claims"][1:]]}


def _tree(file, nodes):
    return _first(file, proof=file["claims"][0]["proof"] | {"tree": nodes})


def _nodes(file):
    return file["claims"][0]["proof"]["tree"]


def _better(file, amount: float):
    """A stronger claim, its level raised to match."""
    from making import level_down

    value = float.fromhex(file["claims"][0]["value"]) + amount
    proof = file["claims"][0]["proof"] | {"t": level_down(value).hex()}
    return _first(file, value=value.hex(), proof=proof)


#: Changes with a meaning, to the tree of five nodes and to the ends; all of them make the proof no proof.
MEANT = {
    "proofs of the two sides exchanged": _claims_swapped,
    "the other label": lambda file: _first(file, label=0),
    "a label that is none": lambda file: _first(file, label=2),
    "the other sense": lambda file: _first(file, sense="<="),
    "a sense that is none": lambda file: _first(file, sense="=="),
    "a margin of two classes": lambda file: _first(file, quantity="margin"),
    "a quantity that is none": lambda file: _first(file, quantity="mean"),
    "no proof": lambda file: _first(file, proof=None),
    "a stronger claim, the level kept": lambda file: _first(file, value=(0.75).hex()),
    "a false claim, the level raised": lambda file: _better(file, 0.05),
    "a claim above 1": lambda file: _first(file, value=(1.5).hex()),
    "another region": lambda file: _first(file, region=1),
    "a region that is none": lambda file: _first(file, region=-1),
    "the region widened": lambda file: (
        file | {"regions": [file["regions"][0] | {"upper": [(2.0).hex()] * 2}]}
    ),
    "the region moved": lambda file: file | {"regions": [file["regions"][0] | {"lower": [(-3.0).hex()] * 2}]},
    "the region empty": lambda file: file | {"regions": [file["regions"][0] | {"lower": [(1.0).hex()] * 2}]},
    "the region of another dimension": lambda file: (
        file | {"regions": [{"kind": "box", "lower": [(0.0).hex()], "upper": [(1.0).hex()]}]}
    ),
    "no regions": lambda file: file | {"regions": []},
    "no claims": lambda file: file | {"claims": []},
    "no facts": lambda file: file | {"facts": []},
    "facts of another model": lambda file: file | {"facts": [{"witness": [(1.0).hex()] * 4}]},
    "the last leaf missing": lambda file: _tree(file, _nodes(file)[:-1]),
    "the first leaf missing": lambda file: _tree(file, _nodes(file)[:1] + _nodes(file)[2:]),
    "the split missing": lambda file: _tree(file, _nodes(file)[1:]),
    "no nodes": lambda file: _tree(file, []),
    "the first leaf alone": lambda file: _tree(file, [each for each in _nodes(file) if "ref" in each][:1]),
    "a leaf twice": lambda file: _tree(file, [*_nodes(file), _nodes(file)[-1]]),
    "leaves in reverse": lambda file: _tree(file, _nodes(file)[::-1]),
    "only splits": lambda file: _tree(file, _nodes(file)[:1] * 5),
    "the split beyond its box": lambda file: _tree(
        file, [_nodes(file)[0] | {"at": (7.0).hex()}, *_nodes(file)[1:]]
    ),
    "the split at the edge": lambda file: _tree(
        file, [_nodes(file)[0] | {"at": (0.8).hex()}, *_nodes(file)[1:]]
    ),
    "the split of another feature": lambda file: _tree(
        file, [_nodes(file)[0] | {"split": 2}, *_nodes(file)[1:]]
    ),
    "the split of feature -1": lambda file: _tree(file, [_nodes(file)[0] | {"split": -1}, *_nodes(file)[1:]]),
    "a leaf that is a split, too": lambda file: _tree(file, [_nodes(file)[0] | _nodes(file)[-1]]),
    "an envelope that does not hold": lambda file: _tree(file, [{"envelope": True}]),
    "an envelope that is false": lambda file: _tree(file, [{"envelope": False}]),
    "a ball's multipliers on a box": lambda file: _tree(
        file,
        [
            _nodes(file)[0],
            *(each | {"ball": [(0.0).hex()] * 2} if "ref" in each else each for each in _nodes(file)[1:]),
        ],
    ),
    "a balance out of nothing": lambda file: (
        file
        | {
            "claims": [
                {
                    "kind": "balance",
                    "label": 1,
                    "sums": [[{"sign": 1, "extreme": "max", "region": 0}]],
                    "count": 1,
                    "lower": (0.5).hex(),
                    "upper": (0.6).hex(),
                }
            ]
        }
    ),
    "another format": lambda file: file | {"format": "gpcert-proof-2"},
    "another hash": lambda file: file | {"model": "0" * 64},
}


@pytest.mark.parametrize("kind", MEANT)
def test_a_meaningful_change_is_refused(kind: str, tmp_path: Path) -> None:
    base = next(each for each in bases() if each.name == "tree")
    assert len(_nodes(base.file)) >= 3
    assert not accepted(base.prover.checker, tmp_path / "p", json.dumps(MEANT[kind](base.file)))


def test_the_list_of_tampering_is_long() -> None:
    """Kinds, counted as a field with a change, each of which the tests above try; 150 were asked for."""
    assert sum(len(kinds(change)) for change in CHANGES) + len(MODELS) + len(MEANT) >= 1_800
