"""The text of a proof file (docs/proof.md): JSON whose reals are the hexadecimal strings of doubles."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpcert.proofs.cover import Cut, Envelope
from gpcert.proofs.leaf import Leaf, LeafForms, Multipliers
from gpcert.proofs.levels import ProofLevel
from gpcert.regions import Ball, Box, Region
from gpcert.validation import Float

FORMAT = "gpcert-proof-1"


def real(x: float) -> str:
    """One double."""
    return float(x).hex()


def reals(xs: Float | Sequence[float]) -> list[str]:
    """Doubles."""
    return [real(x) for x in np.asarray(xs, dtype=np.float64).tolist()]


def document(
    model: str,
    names: Mapping[str, str | list[str] | None],
    facts: Sequence[dict[str, Any] | None],
    regions: list[Any],
    claims: list[Any],
) -> str:
    """The whole file; `model`: the SHA-256 of the model file, `names`: what it is about, for people."""
    entry = [None if fact is None else _serialized(fact) for fact in facts]
    about = {name: each for name, each in names.items() if each is not None}
    whole = {"format": FORMAT, "model": model, "about": about, "facts": entry, "regions": regions}
    whole["claims"] = claims
    return json.dumps(whole, allow_nan=False, separators=(",", ":"))


def region_entry(region: Region) -> dict[str, Any]:
    """The exact set."""
    if isinstance(region, Box):
        return {"kind": "box", "lower": reals(region.lower), "upper": reals(region.upper)}
    domain, features = region.domain, region.features
    return {
        "kind": "ball",
        "x": reals(region.x),
        "radius": real(region.radius),
        "norm": f"{region.norm:g}",
        "features": None if features is None else list(features),
        "domain": None if domain is None else [[_end(x) for x in ends.tolist()] for ends in domain],
        "scale": None if region.scale is None else reals(region.scale),
    }


def everywhere(
    label: int, region: int, sense: str, value: float, proof: Any, quantity: str = "probability"
) -> dict[str, Any]:
    """A claim about a whole region."""
    return _claim("everywhere", quantity, label, region, sense, value) | {"proof": proof}


def at(
    label: int, region: int, sense: str, value: float, point: Float, quantity: str = "probability"
) -> dict[str, Any]:
    """A claim about one point of a region."""
    return _claim("at", quantity, label, region, sense, value) | {"point": reals(point)}


def balance(label: int, terms: Sequence[tuple[int, str, int]], lower: float, upper: float) -> dict[str, Any]:
    """A claim about a sum of extremes over regions."""
    entry = [{"sign": sign, "extreme": extreme, "region": region} for sign, extreme, region in terms]
    claim = {"kind": "balance", "label": label, "sums": [entry], "count": 1}
    return claim | {"lower": real(lower), "upper": real(upper)}


def proof_entry(level: ProofLevel, nodes: Sequence[Cut | Leaf | Envelope], region: Region) -> dict[str, Any]:
    """A level, and nodes in preorder; a leaf that has another level says so."""
    entry: dict[str, Any] = _serialized(level.entry)
    tree = [split_entry(n) if isinstance(n, Cut) else part_entry(n, region, level) for n in nodes]
    return entry | {"tree": tree}


def split_entry(split: Cut) -> dict[str, Any]:
    """Where a box is halved."""
    return {"split": split.j, "at": real(split.at)}


def part_entry(leaf: Leaf | Envelope, region: Region, common: ProofLevel | None = None) -> dict[str, Any]:
    """A leaf, with its level unless that is the common one."""
    assert leaf.level is not None
    entry: dict[str, Any] = {} if leaf.level is common else _serialized(leaf.level.entry)
    if isinstance(leaf, Envelope):
        entry |= _serialized(leaf.hints)
        return entry | {"envelope": True}
    entry |= (
        {"ref": reals(leaf.reference)} | programme_entry(leaf.programme, region) | _serialized(leaf.hints)
    )
    return entry | forms_entry(leaf.forms)


def programme_entry(programme: Multipliers, region: Region) -> dict[str, Any]:
    """Multipliers of V5 and V7; the checker's u is not divided by the radius."""
    entry: dict[str, Any] = {"D": reals(programme.D), "y": reals(programme.y)}
    if programme.square or programme.norm:
        radius = region.radius if isinstance(region, Ball) else 1.0
        entry["ball"] = reals([programme.square / radius / radius, programme.norm / radius])
    return entry


def forms_entry(forms: LeafForms | None) -> dict[str, Any]:
    """Which orders are forms (V2), if any."""
    if forms is None:
        return {}
    return {"forms": {"metric": reals(forms.metric), "thetas": reals(forms.thetas), "own": forms.own}}


def class_entry(level: ProofLevel, hints: dict[str, Any], forms: LeafForms | None) -> dict[str, Any]:
    """A class of a comparison (V9')."""
    entry: dict[str, Any] = _serialized(level.entry) | _serialized(hints)
    return entry | forms_entry(forms)


def _claim(kind: str, quantity: str, label: int, region: int, sense: str, value: float) -> dict[str, Any]:
    about = {"kind": kind, "quantity": quantity, "label": label, "region": region}
    return about | {"sense": sense, "value": real(value)}


def _serialized(value: Any) -> Any:
    """Doubles as strings, wherever they are."""
    if isinstance(value, dict):
        return {name: _serialized(each) for name, each in value.items()}
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return [reals(row) for row in value]
    if isinstance(value, list | np.ndarray):
        return reals(value)
    return value if isinstance(value, bool) else real(value)


def _end(x: float) -> str:
    return str(x) if np.isinf(x) else real(x)
