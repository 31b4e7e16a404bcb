"""What may be done to a proof file or its model, and whether a claim is still true afterwards."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bases import Base
from gpcert_check.balls import read_region
from gpcert_check.claims import Checker
from gpcert_check.reading import Reject, real
from making import Toy, sample

_SLACK = 1e-9  # the samples are floats


def accepted(checker: Checker, path: Path, text: str) -> bool:
    """Whether the checker takes the file; anything but a Reject is an error of the test."""
    path.write_text(text)
    try:
        checker.check(str(path))
    except Reject:
        return False
    return True


def true(toy: Toy, file: dict[str, Any], count: int = 200) -> bool:
    """Whether no sampled point contradicts a claim of the file."""
    rng = random.Random(1)
    regions = [read_region(each, toy.D) for each in file["regions"]]
    points = [[sample(region, rng) for _ in range(count)] for region in regions]
    return all(_holds(toy, claim, points) for claim in file["claims"])


def _holds(toy: Toy, claim: dict[str, Any], points: list[list[list[float]]]) -> bool:
    if claim["kind"] == "balance":
        return _balanced(toy, claim, points)
    tried = [[real(x) for x in claim["point"]]] if claim["kind"] == "at" else points[claim["region"]]
    up = claim["sense"] in (">=", ">")
    for z in tried:
        shares = toy.truth(z)
        own = shares.pop(claim["label"])
        value = own - max(shares) if claim["quantity"] == "margin" else own
        if (value - real(claim["value"])) * (1 if up else -1) < -_SLACK:
            return False
    return True


def _balanced(toy: Toy, claim: dict[str, Any], points: list[list[list[float]]]) -> bool:
    """Extremes of samples, right to the distance of samples only."""
    pick = {"max": max, "min": min}
    sums = [
        sum(
            t["sign"] * pick[t["extreme"]](toy.truth(z)[claim["label"]] for z in points[t["region"]])
            for t in terms
        )
        for terms in claim["sums"]
    ]
    return real(claim["lower"]) - 0.02 <= max(sums) / claim["count"] <= real(claim["upper"]) + 0.02


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field and every first and last entry of a list."""
    if isinstance(data, dict):
        for name in data:
            yield (*path, name)
            yield from places(data[name], (*path, name))
    elif isinstance(data, list):
        for i in sorted({0, len(data) - 1}) if data else ():
            yield (*path, i)
            yield from places(data[i], (*path, i))


def changed(
    file: dict[str, Any], path: tuple[Any, ...], change: Callable[[Any, Any], None]
) -> dict[str, Any]:
    """A copy of the file with one place changed."""
    fresh = copy.deepcopy(file)
    inside = fresh
    for step in path[:-1]:
        inside = inside[step]
    change(inside, path[-1])
    return fresh


def _put(value: Any) -> Callable[[Any, Any], None]:
    def change(inside: Any, key: Any) -> None:
        inside[key] = copy.deepcopy(value)

    return change


def _by(function: Callable[[float], float]) -> Callable[[Any, Any], None]:
    """Numbers moved; anything else becomes a text that is none."""

    def change(inside: Any, key: Any) -> None:
        try:
            inside[key] = function(real(inside[key])).hex()
        except (Reject, OverflowError):
            inside[key] = "0x1.0p+9999"

    return change


def _gone(inside: Any, key: Any) -> None:
    del inside[key]


def _twice(inside: Any, key: Any) -> None:
    if isinstance(inside, list):
        inside.insert(key, copy.deepcopy(inside[key]))
    else:
        inside["more"] = inside[key]


#: What may happen to any place.
ANYWHERE: dict[str, Callable[[Any, Any], None]] = {
    "gone": _gone,
    "twice": _twice,
    "null": _put(None),
    "true": _put(True),
    "minus one": _put(-1),
    "a large integer": _put(10**9),
    "an empty list": _put([]),
    "an empty object": _put({}),
    "a text": _put("x"),
    "not a number": _put("nan"),
    "infinite": _put("inf"),
    "spaces": _put(" 0x1.0000000000000p+0"),
    "too many digits": _put("0x1.00000000000001p+0"),
    "below the doubles": _put("0x1.4p-1074"),
    "zero": _put((0.0).hex()),
    "huge": _put((1e300).hex()),
    "tiny": _put((5e-324).hex()),
    "sign": _by(lambda x: -x),
    "doubled": _by(lambda x: 2 * x),
    "one ulp up": _by(lambda x: math.nextafter(x, math.inf)),
    "a thousandth up": _by(lambda x: x + 1e-3),
    "a tenth down": _by(lambda x: x - 0.1),
}


def _alpha(toy: Toy) -> None:
    toy.alpha[0][0] *= 1.5


def _alpha_sign(toy: Toy) -> None:
    toy.alpha = [[-a for a in row] for row in toy.alpha]


def _mean(toy: Toy) -> None:
    toy.m0 = [m + 0.3 for m in toy.m0]


def _centre(toy: Toy) -> None:
    toy.X[0][0] += 0.1


def _precision(toy: Toy) -> None:
    toy.R = [[[1.01 * r for r in row] for row in R] for R in toy.R]


def _no_precision(toy: Toy) -> None:
    toy.R = [[[0.0 for _ in row] for row in R] for R in toy.R]


def _negative_precision(toy: Toy) -> None:
    toy.R = [[[-r for r in row] for row in R] for R in toy.R]


def _asymmetric(toy: Toy) -> None:
    toy.R[0][0][-1] *= 1 + 2**-50


def _sites(toy: Toy) -> None:
    toy.W = [[1.01 * w for w in W] for W in toy.W]


def _site_sign(toy: Toy) -> None:
    toy.W[0][0] *= -1


def _lengthscale(toy: Toy) -> None:
    toy.scale[0] *= 1.01


def _negative_lengthscale(toy: Toy) -> None:
    toy.scale[0] *= -1


def _variance(toy: Toy) -> None:
    toy.s2 *= 1.01


def _link(toy: Toy) -> None:
    toy.likelihood = {"name": "cauchy"}


def _scale(toy: Toy) -> None:
    inner = toy.likelihood.get("link", toy.likelihood)
    changed_link = {"name": "probit", "scale": (2.5).hex()}
    toy.likelihood = (
        changed_link if inner is toy.likelihood else {"name": "one_vs_rest", "link": changed_link}
    )


def _not_finite(toy: Toy) -> None:
    toy.alpha[0][0] = math.nan


#: What may happen to the model, the hash in the file being updated with it.
MODELS: list[Callable[[Toy], None]] = [
    _alpha,
    _alpha_sign,
    _mean,
    _centre,
    _precision,
    _no_precision,
    _negative_precision,
    _asymmetric,
    _sites,
    _site_sign,
    _lengthscale,
    _negative_lengthscale,
    _variance,
    _link,
    _scale,
    _not_finite,
]


def digits(text: str, rng: random.Random, count: int) -> str:
    """Some hexadecimal digits of the numbers in a file replaced by others."""
    spots = [i for i, c in enumerate(text) if c in "0123456789abcdef" and "0x" in text[max(0, i - 22) : i]]
    letters = list(text)
    for i in rng.sample(spots, count):
        letters[i] = rng.choice("0123456789abcdef")
    return "".join(letters)


def parsed(text: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(text)
    return data


def tampered_model(
    base: Base, change: Callable[[Toy], None], folder: Path
) -> tuple[Toy, Checker | None, dict[str, Any]]:
    """The changed toy, its checker (None: the file is refused), and the proof with the new hash."""
    toy = copy.deepcopy(base.toy)
    change(toy)
    path = folder / "tampered.safetensors"
    file = base.file | {"model": toy.write(path)}
    try:
        return toy, Checker(str(path)), file
    except Reject:
        return toy, None, file
