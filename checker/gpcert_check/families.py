"""Which family a model belongs to, by its likelihood, and which facts about it are proved once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpcert_check.few import prove
from gpcert_check.indefinite import contractions
from gpcert_check.model_file import Model
from gpcert_check.reading import fields, need, reals
from gpcert_check.several import OneVsRest
from gpcert_check.softmax import Softmax
from gpcert_check.two_classes import TwoClasses

__all__ = ["holds_at", "prove", "subject_of", "verify"]


def subject_of(model: Model) -> Any:
    """Who proves claims about the model."""
    likelihood = model.likelihood
    name = likelihood.get("name") if isinstance(likelihood, dict) else None
    kind: Any = {"one_vs_rest": OneVsRest, "softmax": Softmax}.get(str(name), TwoClasses)
    need(kind is Softmax or model.blocks is None, "only a softmax has correlated latents")
    return kind(model)


def verify(model: Model, subject: Any, c: int, fact: Any) -> None:
    """V1, V1' or V11, by the kind of the fact about latent c."""
    latent = model.latents[c]
    if model.blocks is not None:
        subject.verify(fact)
    elif isinstance(fact, dict) and "jitter" in fact:
        contractions(latent, fact)
    else:
        W = model.witness[c] if fact is None else reals(fields(fact, "witness")[0], latent.n)
        need(W is not None, "V1: the model has no site precisions, and the proof no witness")
        latent.verify(W)


def holds_at(subject: Any, claim: Any, point: Sequence[float]) -> bool:
    """Whether a claim certainly holds at a point; of a softmax margins have signs only."""
    if isinstance(subject, Softmax):
        return subject.decided(claim, point)
    met: bool = claim.met(subject.value(claim, point))
    return met
