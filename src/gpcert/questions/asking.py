"""The one door of all questions: any model, regions and tables as users have them, one answer or a batch.

`question` turns (model, region) into (Posterior, Regions in the model's order) and what is found into an
answer or `Answers`; an option that does not exist is one sentence with the one that was perhaps meant.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from numpy.typing import ArrayLike

from gpcert.errors import InvalidInputError
from gpcert.posterior import Posterior
from gpcert.questions.checks import Kept, warn_of_impossible, warn_of_units
from gpcert.regions import Ball, Box, Region, Regions
from gpcert.results import Answer
from gpcert.running import made, one_thread
from gpcert.validation import Float, meant, require, shown

if TYPE_CHECKING:
    from gpcert.answers import Answers

P = ParamSpec("P")
A = TypeVar("A", bound=Answer, covariant=True)
R = TypeVar("R")


class UnknownOptionError(InvalidInputError, TypeError):
    """An argument that a question does not have, or one too many: also what Python raises for it."""


class OfRegions(Protocol[P, A]):
    """A question about a region, or about each of several."""

    __wrapped__: Any

    @overload
    def __call__(self, post: Any, region: Region, *args: P.args, **kwargs: P.kwargs) -> A: ...
    @overload
    def __call__(
        self, post: Any, region: Iterable[Region], *args: P.args, **kwargs: P.kwargs
    ) -> Answers[A]: ...


class OfPoints(Protocol[P, A]):
    """A question about a point and a region, or a region that has a centre; or about each of several."""

    __wrapped__: Any

    @overload
    def __call__(self, post: Any, x: Region, *args: P.args, **kwargs: P.kwargs) -> A: ...
    @overload
    def __call__(self, post: Any, x: ArrayLike, region: Region, *args: P.args, **kwargs: P.kwargs) -> A: ...
    @overload
    def __call__(self, post: Any, x: Iterable[Region], *args: P.args, **kwargs: P.kwargs) -> Answers[A]: ...
    @overload
    def __call__(
        self, post: Any, x: Any, region: Iterable[Region], *args: P.args, **kwargs: P.kwargs
    ) -> Answers[A]: ...


def about_regions(ask: Callable[Concatenate[Posterior, Regions, P], list[A]]) -> OfRegions[P, A]:
    """A question that is asked about regions."""
    return cast(OfRegions[P, A], _door(ask))


def of_points(ask: Callable[Concatenate[Posterior, Any, Regions, P], list[A]]) -> OfPoints[P, A]:
    """A question that is asked about points in regions; without a point: about the centre."""
    return cast(OfPoints[P, A], _door(ask))


def question(ask: Callable[Concatenate[Posterior, P], R]) -> Callable[Concatenate[Any, P], R]:
    """A question that reads its points itself."""
    return cast(Callable[Concatenate[Any, P], R], _door(ask))


def _door(ask: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(ask)

    @wraps(ask)
    def asked(*args: Any, **kwargs: Any) -> Any:
        given = _bound(ask.__name__, signature, args, kwargs)
        post = given["post"] = _posterior(given["post"])
        if "region" not in signature.parameters:
            with one_thread(post.n_centres, _rows(given.get("X", given.get("x")))):
                return ask(**given)
        if given.get("region") is None:
            given["region"], given["x"] = given.pop("x", None), None
        regions = given["region"] = _in_order(post, given["region"], given.get("x"))
        with one_thread(post.n_centres, len(regions)):
            found = ask(**given)
        return made(found[0], 0) if regions.single else batch(found, regions.ids, post, given.get("store"))

    # What `help` shows: `ask` gets a Posterior and Regions, a user gives what the docstring says.
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    shown_as = signature.replace(parameters=plain, return_annotation=signature.empty)
    asked.__signature__ = shown_as  # type: ignore[attr-defined]
    return asked


def _posterior(model: Any) -> Posterior:
    """As `posterior_of`; what reads other models is imported when there is one."""
    if isinstance(model, Posterior):
        return model
    from gpcert.adapters.models import posterior_of

    return posterior_of(model)


def batch(found: Sequence[Any], ids: Sequence[Any] | None, post: Posterior, store: Kept) -> Answers[Any]:
    """The answers about rows with these names, which a store keeps, too."""
    from gpcert.answers import Answers

    answers: Answers[Any] = Answers(found, ids, post)
    if store is not None and ids is not None:
        from gpcert.store.keeper import name_rows

        name_rows(store, zip(answers, map(str, ids), strict=True))
    return answers


def _rows(X: Any) -> int:
    """About how many points: one, or as many as there are rows."""
    shape = getattr(X, "shape", None)  # a sparse matrix has no length
    if shape is None:
        return len(X) if hasattr(X, "__len__") else 1
    return int(shape[0]) if len(shape) == 2 else 1


def _bound(name: str, signature: inspect.Signature, args: Any, kwargs: Any) -> dict[str, Any]:
    known = list(signature.parameters)
    for option in kwargs:
        if option not in known:
            raise UnknownOptionError(f"{name} has no option {option!r}{meant(option, known)}")
    try:
        given = dict(signature.bind_partial(*args, **kwargs).arguments)
        if given.get("region") is not None and "x" in known:
            given.setdefault("x", None)
    except TypeError as error:  # too many, or twice: as Python says it
        raise UnknownOptionError(f"{name}: {error}") from None
    needed = [n for n, p in signature.parameters.items() if p.default is p.empty and n not in given]
    if needed and needed != ["region"]:  # for which x may stand
        raise UnknownOptionError(f"{name} needs {needed[0]!r}, got none")
    return given


def _in_order(post: Posterior, region: Any, x: Any) -> Regions:
    """The regions in the order of the model's features."""
    if isinstance(x, Box | Ball) and not isinstance(region, Box | Ball):
        raise InvalidInputError(
            f"region must be a Box or a Ball, got {_told(region)}: x stands before region"
        )
    single = isinstance(region, Box | Ball)
    if isinstance(region, Regions) and region.batch is not None:
        return _checked(post, region.ordered(post.feature_names), region.batch.radius)
    try:
        if hasattr(region, "shape") or isinstance(region, str | Mapping):  # a point or a table
            raise TypeError
        given = [region] if single else list(region)
    except TypeError:
        raise InvalidInputError(
            f"region must be a Box, a Ball or a sequence of them, got {_told(region)}"
        ) from None
    for each in given:
        require(isinstance(each, Box | Ball), f"region must be a Box or a Ball, got {type(each).__name__}")
    made = [each.ordered(post.feature_names) for each in given]
    return _checked(post, Regions(made, region.ids if isinstance(region, Regions) else None, single))


def _checked(post: Posterior, regions: Regions, radii: Float | None = None) -> Regions:
    """The regions, of which those with radii (m,) are batch."""
    some = regions if radii is None or not len(radii) else regions[: int((radii > 0).argmax()) + 1]
    plain = (each for each in some if isinstance(each, Ball) and each.scale is None and each.radius > 0)
    first = next(plain, None)
    if first is not None and first.norm != 0:
        warn_of_units(post, first.features, first.domain, level=5)
    for each in regions if radii is None else some[:1]:
        n = each.n_features
        require(n == post.n_features, f"region must have {post.n_features} features, got {n}")
    warn_of_impossible(post, regions if regions.batch is None else regions.batch)
    return regions


def _told(value: object) -> str:
    plain = value is None or isinstance(value, str | int | float)
    return shown(value)[:60] if plain else type(value).__name__
