"""What every answer records besides what it states: the model, the settings, the version."""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.settings import Settings
from gpcert.version import __version__

__all__ = ["About", "Answer"]


@dataclass(frozen=True)
class About:
    """`target`: what is certified, in words; `model`: `Posterior.digest`; `version`: of this package."""

    target: str
    model: str
    settings: Settings
    version: str = __version__


class Answer:
    """An answer to a question; each has a record `about`, whose entries are its own attributes, too."""

    about: About

    @property
    def target(self) -> str:
        """What is certified: `Posterior.target`."""
        return self.about.target

    @property
    def model(self) -> str:
        """The digest of the model: `Posterior.digest`."""
        return self.about.model

    @property
    def settings(self) -> Settings:
        """What the question was asked with."""
        return self.about.settings

    @property
    def version(self) -> str:
        """The package that answered."""
        return self.about.version
