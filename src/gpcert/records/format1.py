"""Results files of format 1, which told answers in part: each as the data that `Row` reads today."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from gpcert.schema import LARGEST

_ROW = ("row", "id", "label", "predicted", "probability", "x", "radius")
_EFFORT = ("status", "nodes", "seconds")
_KINDS = {
    "range": "ProbabilityRange",
    "certify": "Verdict",
    "radius": "CertifiedRadius",
    "attack": "Attack",
    "explain": "Explanation",
}


def upgraded(document: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """The entries of a `Row`, still to be checked. The digest of the model is not known: ""."""
    get, settings, model, verb = told.get, document["settings"], document["model"], document["verb"]
    predicted, classes = get("predicted"), model.get("classes", [])
    limits = {name: _or(settings.get(name), "inf") for name in ("tolerance", "max_seconds", "max_nodes")}
    about = {"target": model.get("target", ""), "model": "", "settings": {"kind": "Settings"} | limits}
    answer: dict[str, Any] = {
        "kind": _KINDS.get(verb, verb),
        "label": get("class", classes.index(predicted) if predicted in classes else None),
        "about": about | {"version": document["versions"].get("gpcert", "")},
    }
    ball = _ball(document, told)
    if verb in ("range", "certify", "radius"):
        answer |= {name: get(name) for name in _EFFORT}
    if verb in ("certify", "radius"):
        answer |= {"counterexample": get("counterexample"), "probability": None}
        answer |= {"threshold": settings.get("threshold", 0.5)}
    if verb == "range":
        box = {"kind": "Box", "lower": get("lower"), "upper": get("upper")}
        answer |= {name: _enclosure(get(name)) for name in ("min", "max")}
        answer |= {name: get(name) for name in ("argmin", "argmax")}
        answer |= {"method": settings.get("method", "auto"), "region": ball if "radius" in told else box}
    elif verb == "certify":
        answer |= {"margin": _enclosure(get("margin")), "argmin": get("counterexample"), "region": ball}
        answer |= {"ended": get("status"), "status": get("verdict")}
    elif verb == "radius":
        answer |= {"safe": get("safe"), "unsafe": _or(get("unsafe"), "inf"), "tests": get("tests")}
        answer |= {name: settings.get(name, 1.0) for name in ("max_radius", "rtol")}
        answer |= {"ball": ball | {"radius": 0.0}}
    elif verb == "attack":
        answer |= {"x": get("attacked"), "probability": get("attacked_probability"), "start": get("x")}
        answer |= {"success": get("success"), "method": get("method"), "starts": 5, "seed": 0, "region": ball}
    elif verb == "explain":
        answer |= _explanation(ball, told) | {"feature_names": model.get("features")}
    return {name: get(name) for name in _ROW} | {"answer": answer}


def _explanation(ball: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    lower, upper, signs = told.get("lower"), told.get("upper"), None
    with suppress(TypeError, ValueError):  # what is no list of numbers is refused when the data are read
        signs = [(low > 0) - (high < 0) for low, high in zip(lower or (), upper or (), strict=True)]
    radius, scale = ball["radius"], ball["scale"]
    if isinstance(scale, list) and radius and all(map(_is_double, [radius, *scale])):
        # Features moved one by one, each by its own radius, a double.
        ball |= {"radius": 1.0, "scale": [float(radius) * float(unit) for unit in scale]}
    rows = {"value": [told.get("value")], "lower": [lower], "upper": [upper], "sign": [signs]}
    return rows | {"radius": ball["radius"], "balls": [ball]}


def _ball(document: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    settings, names = document["settings"], document["model"].get("features", [])
    shape = {name: settings.get(name) for name in ("norm", "features", "domain", "scale")}
    with suppress(TypeError, ValueError):
        shape["features"] = [names.index(name) for name in shape["features"]]
    with suppress(TypeError, ValueError):
        low, high = shape["domain"]
        shape["domain"] = [[_or(v, "-inf") for v in low], [_or(v, "inf") for v in high]]
    return {"kind": "Ball", "x": told.get("x"), "radius": told.get("radius")} | shape


def _enclosure(pair: Any) -> Any:
    return {"lower": pair[0], "upper": pair[1]} if isinstance(pair, list) and len(pair) == 2 else pair


def _is_double(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= LARGEST


def _or(value: Any, otherwise: str) -> Any:
    return otherwise if value is None else value
