"""Prints what each proof file proves, or the first step that fails; exit status 0 only if all hold."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from gpcert_check.claims import Checker
from gpcert_check.reading import Reject, plain


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every file is proved. 1: one is not. 2: nothing was asked."""
    paths = list(sys.argv[1:] if arguments is None else arguments)
    if len(paths) < 2:
        print("usage: python -m gpcert_check MODEL PROOF...", file=sys.stderr)
        return 2
    checker = _tried(Checker, paths[0])
    return 1 if checker is None else int(None in [_tried(checker.check, path) for path in paths[1:]])


def _tried(what: Callable[[str], Any], path: str) -> Any:
    """What it returns, its sentences printed; None, with the reason printed, whatever happens."""
    try:
        found = what(path)
    except Exception as error:  # nothing is proved then
        text = str(error) if isinstance(error, Reject) else f"it cannot be checked ({error!r})"
        print(plain(f"{path}: REJECTED: {text[:300]}", sys.stdout.encoding), flush=True)
        return None
    if isinstance(found, list):
        sentences = [plain(each, sys.stdout.encoding) for each in (f"{path}: {found[0]}", *found[1:])]
        print(*sentences, sep="\n  ", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
