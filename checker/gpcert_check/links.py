"""The links that this checker knows, by their names."""

from __future__ import annotations

from typing import Any

from gpcert_check.five_erf import FiveErf
from gpcert_check.floored import Floored
from gpcert_check.logit import Logit
from gpcert_check.planes import Probit
from gpcert_check.reading import need

_LINKS: dict[str, Any] = {"probit": Probit, "logit": Logit, "five_erf": FiveErf}


def link_of(description: Any) -> Any:
    """The link that a likelihood names; P > `floor` of it, and 1 - P(f) = P(-f) + `spare`."""
    name = description.get("name") if isinstance(description, dict) else None
    need(name in _LINKS, f"this checker does not know the likelihood {str(name)[:40]}")
    return _LINKS[str(name)](description)


def two_class_link(description: Any) -> Any:
    """The same of two classes, which may have a floor."""
    floored = isinstance(description, dict) and description.get("name") == "floored"
    return Floored(description, link_of) if floored else link_of(description)
