"""The paper's experiments, runnable: `gpcert reproduce NAME --out DIR`."""

from gpcert_paper.reproduce.registry import EXPERIMENTS, reproduce

__all__ = ["EXPERIMENTS", "reproduce"]
