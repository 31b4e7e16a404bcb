"""Likelihoods: how latent values become class probabilities, and their Gaussian expectations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpcert.errors import InvalidInputError
from gpcert.likelihoods.base import BinaryLikelihood, LogLikelihood, Tilted
from gpcert.likelihoods.binary import Logit, Probit
from gpcert.likelihoods.prediction import FiveErf, Floored, Link
from gpcert.likelihoods.several import OneVsRest, Softmax

__all__ = [
    "BY_NAME",
    "BinaryLikelihood",
    "FiveErf",
    "Floored",
    "Likelihood",
    "Link",
    "LogLikelihood",
    "Logit",
    "OneVsRest",
    "Probit",
    "Softmax",
    "Tilted",
    "likelihood_from",
    "likelihood_from_dict",
]

Likelihood = BinaryLikelihood | Softmax | OneVsRest

#: What a name in the place of a likelihood stands for, and those that a file describes by their name alone.
BY_NAME: dict[str, Callable[[], Likelihood]] = {"probit": Probit, "logit": Logit, "softmax": Softmax}
_WITHOUT_PARAMETERS = {kind.name: kind for kind in (Logit(), Softmax(), FiveErf())}


def likelihood_from(spec: str | Likelihood) -> Likelihood:
    """The likelihood itself, or the one called "probit", "logit" or "softmax"."""
    if isinstance(spec, BinaryLikelihood | Softmax | OneVsRest):
        return spec
    if isinstance(spec, str) and spec in BY_NAME:
        return BY_NAME[spec]()
    raise InvalidInputError(
        f"likelihood must be one of {sorted(BY_NAME)} or a likelihood object, got {spec!r}"
    )


def likelihood_from_dict(description: Mapping[str, Any]) -> Likelihood:
    """The likelihood that `to_dict` described; nothing is executed, any other description is an error."""
    try:
        name = description["name"]
        if name == "probit" and set(description) == {"name", "scale"}:
            return Probit(scale=float.fromhex(description["scale"]))
        if name in _WITHOUT_PARAMETERS and set(description) == {"name"}:
            return _WITHOUT_PARAMETERS[name]
        if name == "one_vs_rest" and set(description) == {"name", "link"}:
            return OneVsRest(_link_from_dict(description["link"]))
        if name == "floored" and set(description) == {"name", "link", "floor"}:
            return Floored(_link_from_dict(description["link"]), float.fromhex(description["floor"]))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        pass
    raise InvalidInputError(f"likelihood description must come from to_dict, got {str(description)[:80]}")


def _link_from_dict(description: Mapping[str, Any]) -> BinaryLikelihood:
    """The two-class likelihood described; another kind is an error."""
    link = likelihood_from_dict(description)
    if isinstance(link, BinaryLikelihood):
        return link
    raise InvalidInputError(f"link must be a two-class likelihood, got {link!r}")
