"""Results files of every verb for the tests of the report, made up or from hostile strangers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.records.results_file import document, dumps
from gpcert.schema import LARGEST

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\"'&"
SHAPE = {"norm": "inf", "features": None, "domain": None, "scale": None}


def results(verb: str, answers: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A document with answers in short, whose entries are easily made up: `write` tells them in full."""
    features = more.pop("features", ["a", "b", "c", "d"])
    model = {"file": "m", "sha256": "0", "features": features, "classes": more.pop("classes", ["3", "8"])}
    data = {"file": "d.csv", "sha256": "1", "image_shape": more.pop("image_shape", None)}
    settings = SHAPE | more
    return document(
        verb,
        settings=settings,
        model=model,
        data=data,
        answers=answers,
        asked=len(answers),
        interrupted=False,
        seconds=1.0,
    )


def write(path: Path, made: dict[str, Any]) -> Path:
    """The file that a command would have written, and beside it what it was made of, for `edited`."""
    path.with_suffix(".made").write_text(json.dumps(made), encoding="utf-8")
    short = lambda told: isinstance(told, dict) and "answer" not in told  # noqa: E731
    rows = [row_of(made, told) if short(told) else told for told in made["answers"]]
    path.write_text(dumps(made | {"answers": rows}), encoding="utf-8")
    return path


def made_of(path: Path) -> dict[str, Any]:
    """The document with its answers in short; of a file that a command wrote, as it stands."""
    kept = path.with_suffix(".made")
    told: dict[str, Any] = json.loads((kept if kept.exists() else path).read_text(encoding="utf-8"))
    return told


def about(row: int, d: int = 4, classes: Sequence[str] = ("3", "8")) -> dict[str, Any]:
    random = np.random.default_rng(row)
    p = float(random.uniform(0.5, 1.0))
    label, predicted = (int(random.choice([0, 1])) for _ in range(2))
    told = [p, 1.0 - p] if predicted == 0 else [1.0 - p, p]
    x = random.uniform(size=d).tolist()
    names = {"label": classes[label], "predicted": classes[predicted]}
    effort = {"status": "converged", "nodes": 1, "tests": 1, "seconds": 0.1}
    return {"row": row, **names, "probability": told, "x": x, **effort}


def every_verb(folder: Path, n: int, side: int = 2, **more: Any) -> list[Path]:
    """One file for each verb about n images of side x side pixels, consistent with each other."""
    d = side * side
    made: dict[str, list[dict[str, Any]]] = {
        verb: [] for verb in ("range", "certify", "radius", "attack", "explain")
    }
    for row in range(n):
        base, random = about(row, d, more.get("classes", ("3", "8"))), np.random.default_rng([row, 1])
        safe, last = float(random.uniform(0.0, 0.2)), more.get("classes", ("3", "8"))[-1]
        other = np.clip(np.array(base["x"]) + random.uniform(-0.1, 0.1, size=d), 0.0, 1.0).tolist()
        made["radius"].append({**base, "safe": safe, "unsafe": 1.001 * safe, "counterexample": other})
        for radius in (0.05, 0.1):
            unsafe = safe < radius
            margin = [-0.1, -0.05] if unsafe else [0.05, 0.1]
            verdict = {"verdict": "unsafe" if unsafe else "safe", "margin": margin}
            found = other if unsafe else None
            made["certify"].append({**base, "radius": radius, **verdict, "counterexample": found})
        attack = {"radius": 0.1, "method": "pgd", "success": safe < 0.09, "attacked_probability": 0.4}
        made["attack"].append({**base, **attack, "attacked": other})
        low = float(random.uniform(0.0, 0.4))  # a range that decides nothing: both enclosures hold one half
        ends = {"min": [low, 0.51], "max": [0.49, 0.5 + low], "argmin": other, "argmax": other}
        made["range"].append(
            {**base, "radius": 0.02, "class": last, **ends, "status": "converged", "nodes": 1, "seconds": 0.1}
        )
        value = random.uniform(-1.0, 1.0, size=d)
        influence = {"value": value.tolist(), "lower": (value - 1).tolist(), "upper": (value + 1).tolist()}
        made["explain"].append({**base, "radius": 0.1, "class": last, **influence})
    names = more.pop("features", [f"pixel {j}" for j in range(d)])
    return [
        write(folder / f"{verb}.json", results(verb, rows, features=names, image_shape=[side, side], **more))
        for verb, rows in made.items()
    ]


def edited(path: Path, **changes: Any) -> Path:
    """The same file with other entries at the top level, or of its first answer."""
    told = made_of(path)
    for key, value in changes.items():
        (told["answers"][0] if key not in told else told)[key] = value
    return write(path, told)


def other_model(path: Path, **changes: Any) -> Path:
    """A copy of a results file about another model over the same rows; `changes`: of its answers, by row."""
    told = made_of(path)
    told["model"] |= {"file": "other", "sha256": "other"}
    for answer in told["answers"]:
        answer |= changes.get(str(answer["row"]), {})
    return write(path.with_name(f"other-{path.name}"), told)


_ROW = ("row", "id", "label", "predicted", "probability", "x", "radius")
_EFFORT = ("status", "nodes", "seconds")
_KINDS = {
    "range": "ProbabilityRange",
    "certify": "Verdict",
    "radius": "CertifiedRadius",
    "attack": "Attack",
    "explain": "Explanation",
}


def row_of(document: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """The entries of a `Row` from those of an answer made up here; what is wrong in them stays wrong."""
    get, settings, model, verb = told.get, document["settings"], document["model"], document["verb"]
    predicted, classes = get("predicted"), model.get("classes", [])
    limits = {name: _or(settings.get(name), "inf") for name in ("tolerance", "max_seconds", "max_nodes")}
    about = {"target": model.get("target", ""), "model": "", "classes": classes}
    about |= {"settings": {"kind": "Settings"} | limits}
    answer: dict[str, Any] = {
        "kind": _KINDS.get(verb, verb),
        "label": get("class", predicted),
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
        answer |= {"success": get("success"), "method": get("method"), "starts": 5, "rng": 0, "region": ball}
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
