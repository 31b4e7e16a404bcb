"""Results files of format 1, which told answers in part: each as today's data, completed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

__all__ = ["upgraded"]

_ROW = ("row", "id", "label", "predicted", "probability", "x", "radius")
_SETTINGS = ("tolerance", "max_seconds", "max_nodes")


def upgraded(document: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """The entries of a `Row`, still to be checked. The digest of the model is not known: ""."""
    settings, classes = document["settings"], document["model"].get("classes", [])
    predicted = told.get("predicted")
    common = {
        "label": told.get("class", classes.index(predicted) if predicted in classes else None),
        "about": {
            "target": document["model"].get("target", ""),
            "model": "",
            "settings": {"kind": "Settings"} | {name: _or_inf(settings.get(name)) for name in _SETTINGS},
            "version": document["versions"].get("gpcert", ""),
        },
    }
    effort = {name: told.get(name) for name in ("status", "nodes", "seconds")}
    answer = _UPGRADES.get(document["verb"], _unknown)(document, told)
    answer |= common | (effort if document["verb"] in ("range", "certify", "radius") else {})
    if document["verb"] == "certify":
        answer |= {"ended": effort["status"], "status": told.get("verdict")}
    return {name: told.get(name) for name in _ROW} | {"answer": answer}


def _range(document: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    ends = {name: _enclosure(told.get(name)) for name in ("min", "max")}
    points = {name: told.get(name) for name in ("argmin", "argmax")}
    region = {"kind": "Box", "lower": told.get("lower"), "upper": told.get("upper")}
    if told.get("lower") is None:
        region = _ball(document, told)
    method = document["settings"].get("method", "auto")
    return {"kind": "ProbabilityRange", **ends, **points, "method": method, "region": region}


def _certify(document: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    other = told.get("counterexample")
    return {
        "kind": "Verdict",
        "threshold": document["settings"].get("threshold", 0.5),
        "margin": _enclosure(told.get("margin")),
        "argmin": other,
        "counterexample": other,
        "probability": None,
        "region": _ball(document, told),
    }


def _radius(document: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "CertifiedRadius",
        "safe": told.get("safe"),
        "unsafe": _or_inf(told.get("unsafe")),
        "counterexample": told.get("counterexample"),
        "probability": None,
        "threshold": 0.5,
        "max_radius": document["settings"].get("max_radius", 1.0),
        "rtol": document["settings"].get("rtol", 1e-3),
        "tests": told.get("tests"),
        "ball": _ball(document, told | {"radius": 0.0}),
    }


def _attack(document: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "Attack",
        "x": told.get("attacked"),
        "probability": told.get("attacked_probability"),
        "success": told.get("success"),
        "method": told.get("method"),
        "starts": 5,
        "seed": 0,
        "start": told.get("x"),
        "region": _ball(document, told),
    }


def _explain(document: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    value, lower, upper = (told.get(name) for name in ("value", "lower", "upper"))
    ball, signs = _ball(document, told), None
    with suppress(TypeError, ValueError):  # what is no list of numbers is refused when the data are read
        signs = [(low > 0) - (high < 0) for low, high in zip(lower or (), upper or (), strict=True)]
    with suppress(TypeError):  # features moved one by one, each by its own radius, a double
        if ball["scale"] and ball["radius"]:
            ball |= {"radius": 1.0, "scale": [ball["radius"] * unit for unit in ball["scale"]]}
    return {
        "kind": "Explanation",
        "value": [value],
        "lower": [lower],
        "upper": [upper],
        "sign": [signs],
        "radius": ball["radius"],
        "feature_names": document["model"].get("features"),
        "balls": [ball],
    }


def _unknown(document: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    return {"kind": document["verb"]}


_UPGRADES = {
    "range": _range,
    "certify": _certify,
    "radius": _radius,
    "attack": _attack,
    "explain": _explain,
}


def _ball(document: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    settings, names = document["settings"], document["model"].get("features", [])
    features, domain = settings.get("features"), settings.get("domain")
    with suppress(TypeError, ValueError):
        features = None if features is None else [names.index(name) for name in features]
    with suppress(TypeError, ValueError):
        low, high = domain
        domain = [[_or_inf(v, "-inf") for v in low], [_or_inf(v) for v in high]]
    return {
        "kind": "Ball",
        "x": told.get("x"),
        "radius": told.get("radius"),
        "norm": settings.get("norm", "inf"),
        "features": features,
        "domain": domain,
        "scale": settings.get("scale"),
    }


def _enclosure(pair: Any) -> Any:
    return {"lower": pair[0], "upper": pair[1]} if isinstance(pair, list) and len(pair) == 2 else pair


def _or_inf(value: Any, otherwise: str = "inf") -> Any:
    return otherwise if value is None else value
