"""Results files of every verb for the tests of the report, made up or from hostile strangers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.records.documents import dumps
from gpcert.records.results_file import document

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\"'&"
SHAPE = {"norm": "inf", "features": None, "domain": None, "scale": None}


def results(verb: str, answers: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A document of format 1, whose entries are easily made up; today's are what commands write."""
    features = more.pop("features", ["a", "b", "c", "d"])
    model = {"file": "m", "sha256": "0", "features": features, "classes": more.pop("classes", ["3", "8"])}
    data = {"file": "d.csv", "sha256": "1", "image_shape": more.pop("image_shape", None)}
    settings = SHAPE | more
    made = document(
        verb,
        settings=settings,
        model=model,
        data=data,
        answers=answers,
        asked=len(answers),
        interrupted=False,
        seconds=1.0,
    )
    return made | {"format_version": 1}


def write(path: Path, made: dict[str, Any]) -> Path:
    path.write_text(dumps(made), encoding="utf-8")
    return path


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
        safe = float(random.uniform(0.0, 0.2))
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
            {**base, "radius": 0.02, "class": 1, **ends, "status": "converged", "nodes": 1, "seconds": 0.1}
        )
        value = random.uniform(-1.0, 1.0, size=d)
        influence = {"value": value.tolist(), "lower": (value - 1).tolist(), "upper": (value + 1).tolist()}
        made["explain"].append({**base, "radius": 0.1, "class": 1, **influence})
    names = more.pop("features", [f"pixel {j}" for j in range(d)])
    return [
        write(folder / f"{verb}.json", results(verb, rows, features=names, image_shape=[side, side], **more))
        for verb, rows in made.items()
    ]


def edited(path: Path, **changes: Any) -> Path:
    """The same file with other entries at the top level, or of its first answer."""
    told = json.loads(path.read_text(encoding="utf-8"))
    for key, value in changes.items():
        (told["answers"][0] if key not in told else told)[key] = value
    path.write_text(json.dumps(told), encoding="utf-8")
    return path


def other_model(path: Path, **changes: Any) -> Path:
    """A copy of a results file about another model over the same rows; `changes`: of its answers, by row."""
    told = json.loads(path.read_text(encoding="utf-8"))
    told["model"] |= {"file": "other", "sha256": "other"}
    for answer in told["answers"]:
        answer |= changes.get(str(answer["row"]), {})
    return write(path.with_name(f"other-{path.name}"), told)
