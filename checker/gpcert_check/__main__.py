"""Prints what each proof file proves, or the first step that fails; exit status 0 only if all hold."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gpcert_check.claims import Checker
from gpcert_check.reading import Reject

_USAGE = "usage: python -m gpcert_check MODEL PROOF..."


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every file is proved. 1: one is not. 2: nothing was asked."""
    paths = list(sys.argv[1:] if arguments is None else arguments)
    if len(paths) < 2:
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        checker = Checker(paths[0])
    except Exception as error:  # whatever happens, nothing is proved
        print(f"{paths[0]}: REJECTED: {_sentence(error)}")
        return 1
    return max([_one(checker, path) for path in paths[1:]])


def _one(checker: Checker, path: str) -> int:
    try:
        sentences = checker.check(path)
    except Exception as error:
        print(f"{path}: REJECTED: {_sentence(error)}", flush=True)
        return 1
    print(f"{path}: PROVED for the model {checker.model.sha256}:", *sentences, sep="\n  ", flush=True)
    return 0


def _sentence(error: Exception) -> str:
    """One line, whatever the file had put into it."""
    text = (
        str(error) if isinstance(error, Reject) else f"it cannot be checked ({type(error).__name__}: {error})"
    )
    return "".join(c if c.isprintable() else "?" for c in text)[:300]


if __name__ == "__main__":
    sys.exit(main())
