"""`--proof DIR`: a proof file for each answer, which `python -m gpcert_check MODEL DIR/*.json` checks."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpcert.cli.session import LoadedModel
from gpcert.proofs.prover import ProofPath, check_provable, row_names
from gpcert.regions import Region
from gpcert.validation import Float


def add_proof(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    told = "write a proof file for each answer into this folder, for gpcert_check"
    parser.add_argument("--proof", type=Path, metavar="DIR", help=told)


def proof_folder(
    parsed: argparse.Namespace,
    model: LoadedModel,
    regions: Sequence[Region],
    names: Sequence[str],
    X: Iterable[Float],
) -> ProofPath | None:
    """The folder, with the names of the rows X; what cannot be proved is an error before the work."""
    if parsed.proof is None:
        return None
    check_provable(model.post, regions, "--proof")
    return ProofPath(parsed.proof, model.sha256, row_names(names, X))
