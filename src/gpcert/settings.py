"""What a question is asked with besides its subject: plain data, recorded in every answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpcert.schema import NotNegative, Record


@dataclass(frozen=True)
class Settings(Record):
    """How narrow an answer has to be and what it may cost, per region; inf: nothing was asked, no limit."""

    tolerance: NotNegative = math.inf
    max_seconds: NotNegative = math.inf
    max_nodes: NotNegative = math.inf
