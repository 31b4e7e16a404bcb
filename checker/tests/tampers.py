"""What may be done to a proof file or its model, and whether a claim is still true afterwards."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from bases import Base, bases
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
    """Every field; every entry of a list of objects, of other lists the first and the last."""
    if isinstance(data, dict):
        for name in data:
            yield (*path, name)
            yield from places(data[name], (*path, name))
    elif isinstance(data, list):
        every = range(len(data)) if any(isinstance(each, dict) for each in data) else {0, len(data) - 1}
        for i in sorted(every) if data else ():
            yield (*path, i)
            yield from places(data[i], (*path, i))


def field_of(path: tuple[Any, ...]) -> str:
    """What a place is called: its field and the one around it; "[]" for an entry of a list."""
    return ".".join([step for step in path if isinstance(step, str)][-2:]) + "[]" * isinstance(path[-1], int)


def value_at(file: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        file = file[step]
    return file


@cache
def fields_of_bases() -> dict[str, dict[str, list[tuple[Any, ...]]]]:
    """Where each field occurs: its places in every base that has it, by the base's name."""
    found: dict[str, dict[str, list[tuple[Any, ...]]]] = {}
    for base in bases():
        for path in places(base.file):
            found.setdefault(field_of(path), {}).setdefault(base.name, []).append(path)
    return found


def is_real(file: Any, path: tuple[Any, ...]) -> bool:
    try:
        real(value_at(file, path))
    except Reject:
        return False
    return True


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
    """A number moved."""

    def change(inside: Any, key: Any) -> None:
        inside[key] = function(real(inside[key])).hex()

    return change


def _gone(inside: Any, key: Any) -> None:
    del inside[key]


def _twice(inside: Any, key: Any) -> None:
    if isinstance(inside, list):
        inside.insert(key, copy.deepcopy(inside[key]))
    else:
        inside["more"] = inside[key]


def _names(text: str) -> list[str]:
    return text.split()


#: The fields of the format, as they occur in `bases`; `REALS` are those that hold real numbers. A kind of
#: tampering is a field with one of `ANYWHERE` or, of a real number, one of `NUMBERS`; or one of `MODELS`; or,
#: in `test_tampering`, one of `MEANT`.
FIELDS = _names("""
    claims claims.count claims.kind claims.label claims.point claims.proof claims.quantity claims.region
    claims.sense claims.sums claims.sums[] claims[] classes.curve classes.lower classes.rate classes.tangent
    classes.upper classes.line classes.root curve.S curve.m facts
    facts.witness facts[] format forms.metric forms.own forms.thetas joint.classes joint.classes[]
    joint.programmes joint.programmes[] joint.ref lower.D lower.ref lower.y model programmes.D
    programmes.ball programmes.y proof.curve proof.tree proof.tree[] regions regions.domain
    regions.features regions.features[]
    regions.kind regions.lower regions.norm regions.scale regions.upper regions.x regions[] sums.extreme
    sums.region sums.sign tree.D tree.ball tree.classes tree.classes[] tree.envelope tree.forms tree.ref
    tree.joint tree.joint[] tree.line tree.outside tree.root tree.split tree.spread tree.tangent tree.y
    upper.D upper.ref upper.y
    facts.sites proof.supports proof.supports[]
    supports.features supports.features[] supports.proof tree.rivals tree.rivals[] rivals.D rivals.ref
    rivals.y
""")
REALS = _names("""
    claims.lower claims.point[] claims.upper claims.value classes.nu classes.p classes.rate[] classes.t
    classes.line[] classes.root[] classes.tangent[] classes.tau joint.ref[]
    programmes.D[] programmes.ball[] programmes.y[] curve.S[]
    curve.c curve.m[] facts.contraction
    facts.jitter facts.negative facts.witness[] forms.metric[] forms.thetas[] lower.D[] lower.ref[] lower.t
    lower.tau lower.y[] proof.p proof.t regions.domain[] regions.lower[] regions.radius regions.scale[]
    regions.upper[] regions.x[] tree.D[] tree.at tree.ball[] tree.line[] tree.nu tree.root[]
    tree.ref[] tree.t tree.tangent[]
    tree.tau tree.value tree.y[] upper.D[] upper.ref[] upper.t upper.tau upper.y[]
    facts.sites[] rivals.D[] rivals.ref[]
    rivals.y[] tree.touch
""")

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
}

#: What may happen to a real number.
NUMBERS: dict[str, Callable[[Any, Any], None]] = {
    "sign": _by(lambda x: -x),
    "doubled": _by(lambda x: 2 * x),
    "one ulp up": _by(lambda x: math.nextafter(x, math.inf)),
    "a thousandth up": _by(lambda x: x + 1e-3),
    "a tenth down": _by(lambda x: x - 0.1),
}


def _set(name: str, change: Callable[[Any], Any]) -> Callable[[Toy], None]:
    """One entry of a toy replaced by a function of itself."""
    return lambda toy: setattr(toy, name, change(getattr(toy, name)))


def _each(change: Callable[[float], float]) -> Callable[[Any], Any]:
    """All numbers of nested lists changed."""
    return lambda data: [*map(_each(change), data)] if isinstance(data, list) else change(data)


def _first(change: Callable[[float], float]) -> Callable[[Any], Any]:
    """The first number of nested lists changed."""
    return lambda data: [_first(change)(data[0]), *data[1:]] if isinstance(data, list) else change(data)


def _asymmetric(R: Any) -> Any:
    return [[[*R[0][0][:-1], R[0][0][-1] * (1 + 2**-50)], *R[0][1:]], *R[1:]]


def _rescaled(likelihood: Any) -> Any:
    probit = {"name": "probit", "scale": (2.5).hex()}
    return {"name": "one_vs_rest", "link": probit} if "link" in likelihood else probit


#: What may happen to the model, the hash in the file being updated with it.
MODELS: dict[str, Callable[[Toy], None]] = {
    "a weight": _set("alpha", _first(lambda a: 1.5 * a)),
    "the weights' sign": _set("alpha", _each(lambda a: -a)),
    "a weight that is no number": _set("alpha", _first(lambda a: math.nan)),
    "the prior mean": _set("m0", _each(lambda m: m + 0.3)),
    "a centre": _set("X", _first(lambda x: x + 0.1)),
    "the precision": _set("R", _each(lambda r: 1.01 * r)),
    "no precision": _set("R", _each(lambda r: 0.0)),
    "the precision's sign": _set("R", _each(lambda r: -r)),
    "an asymmetric precision": _set("R", _asymmetric),
    "the site precisions": _set("W", _each(lambda w: 1.01 * w)),
    "a site precision's sign": _set("W", _first(lambda w: -w)),
    "a lengthscale": _set("scale", _first(lambda s: 1.01 * s)),
    "a negative lengthscale": _set("scale", _first(lambda s: -s)),
    "the variance": _set("s2", lambda s2: 1.01 * s2),
    "an unknown link": _set("likelihood", lambda _: {"name": "cauchy"}),
    "the link's scale": _set("likelihood", _rescaled),
}


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
