"""`--proof DIR`: a proof file for each answer, which `python -m gpcert_check MODEL DIR/*.json` checks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from gpcert.cli.session import Model
from gpcert.errors import InvalidInputError
from gpcert.proofs.prover import ProofPath, check_provable
from gpcert.regions import Region


def add_proof(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    told = "write a proof file for each answer into this folder, for gpcert_check"
    parser.add_argument("--proof", type=Path, metavar="DIR", help=told)


def proof_paths(
    parsed: argparse.Namespace, model: Model, regions: Sequence[Region], rows: Sequence[str]
) -> list[ProofPath | None]:
    """One path for each answer, about a row with this name; what cannot be proved is told before the work."""
    folder: Path | None = parsed.proof
    if folder is None:
        return [None] * len(rows)
    check_provable(model.post, regions, "--proof")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"{folder} ({error.strerror})"
        raise InvalidInputError(f"--proof must be a folder that can be made, got {reason}") from None
    named = enumerate(rows)
    return [ProofPath(folder / f"{parsed.verb}-{k:04d}.json", model.sha256, row) for k, row in named]
