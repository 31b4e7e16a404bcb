"""The command: prints what each proof file proves, or the first step that fails.

Exit status 0: every file is proved. 1: one is not, or the model is not the expected one. 2: the command is
not understood.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from gpcert_check.claims import Checker
from gpcert_check.model_file import MOST_BYTES
from gpcert_check.reading import Reject, content, need
from gpcert_check.words import plain

_ENDING = """
exit status: 0 every file is proved; 1 a file is refused, or the model is not the expected one; 2 the command
is not understood. What is proved is about the model with the printed SHA-256, on the printed regions; names
of rows are those that whoever wrote the file gave them.
"""


class Outcome(NamedTuple):
    """Of one file: what it proves, or why it is refused."""

    path: str
    reason: str | None
    row: str | None = None
    sentences: Sequence[str] = ()
    claims: Sequence[Any] = ()
    regions: Sequence[Any] = ()

    def told(self) -> dict[str, Any]:
        """As JSON."""
        known = {name: value for name, value in self._asdict().items() if value not in (None, ())}
        return {"proved": self.reason is None, **known}


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    try:
        return _run(_parsed(arguments))
    except SystemExit as ended:  # of argparse, which has said why
        return int(ended.code or 0)
    except (BrokenPipeError, KeyboardInterrupt):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing more is said at exit
        return 1


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "gpcert-check", description="Verify proof files of gpcert.", epilog=_ENDING
    )
    parser.add_argument(
        "model", metavar="MODEL", help="the model file (.safetensors) that the proofs are about"
    )
    parser.add_argument("proofs", metavar="PROOF", nargs="+", help="proof files, or folders with .json files")
    expected = "its SHA-256, or another copy of it: nothing is checked if the model is not the same"
    parser.add_argument("--expect-model", metavar="DIGEST|FILE", help=expected)
    parser.add_argument("--json", action="store_true", help="print one JSON object in place of sentences")
    parsed = parser.parse_args(arguments)
    digest = parsed.expect_model
    if digest is not None and re.fullmatch("[0-9a-fA-F]{64}", digest) is None:
        digest, reason = _tried(lambda: hashlib.sha256(content(parsed.expect_model, MOST_BYTES)).hexdigest())
        if reason is not None:
            parser.error(
                plain(f"--expect-model must be a SHA-256 or a file, got {parsed.expect_model}", None)
            )
    parsed.digest = digest and digest.lower()
    return parsed


def _run(parsed: argparse.Namespace) -> int:
    checker, reason = _tried(lambda: _model(parsed.model, parsed.digest))
    say: Callable[..., None] = (lambda *_: None) if parsed.json else _say
    if reason is not None:
        say(f"{parsed.model}: REJECTED: {reason}")
    found = []
    for path in _files(parsed.proofs) if reason is None else ():
        found.append(_outcome(checker, path))
        say(*_lines(found[-1]))
    digest = None if reason is not None else checker.model.sha256
    proved, claims = sum(each.reason is None for each in found), sum(len(each.claims) for each in found)
    if reason is None:
        say(f"{proved} of {len(found)} files proved, with {claims} claims, for the model {digest}")
    if parsed.json:
        model = {"path": parsed.model, "sha256": digest, "reason": reason}
        files = [each.told() for each in found]
        print(json.dumps({"model": model, "proved": proved, "refused": len(found) - proved, "files": files}))
    return int(reason is not None or proved < len(found))


def _model(path: str, expected: str | None) -> Checker:
    """The model, if it is the expected one."""
    if expected is not None:
        here = hashlib.sha256(content(path, MOST_BYTES)).hexdigest()
        need(here == expected, f"its SHA-256 is {here}, expected {expected}")
    checker = Checker(path)
    need(expected in (None, checker.model.sha256), "the file has changed meanwhile")
    return checker


def _files(paths: Sequence[str]) -> Iterator[str]:
    """The files; of folders all that end in .json, in the order of their names."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        inside = [os.path.join(at, name) for at, _, names in os.walk(path) for name in names]
        found = sorted(each for each in inside if each.endswith(".json"))
        yield from found or [path]


def _outcome(checker: Checker, path: str) -> Outcome:
    if os.path.isdir(path):
        return Outcome(path, "the folder holds no .json file")
    sentences, reason = _tried(lambda: checker.check(path))
    if reason is not None:
        return Outcome(path, reason)
    claims = [{name: each for name, each in claim.items() if name != "proof"} for claim in checker.claims]
    told = (list(map(_numbers, each)) for each in (claims, checker.regions))
    return Outcome(path, None, checker.names.row, sentences, *told)


def _tried(what: Callable[[], Any]) -> tuple[Any, str | None]:
    """What it returns, or the reason why it does not."""
    try:
        return what(), None
    except Exception as error:  # nothing is proved then
        text = str(error) if isinstance(error, Reject) else f"it cannot be checked ({error!r})"
        return None, text[:300]


def _lines(outcome: Outcome) -> Iterator[str]:
    if outcome.reason is not None:
        yield f"{outcome.path}: REJECTED: {outcome.reason}"
        return
    head, *sentences = outcome.sentences
    yield f"{outcome.path}: {head}"
    if outcome.row is not None:
        yield f"  for the row that the file calls {outcome.row!r}:"
    yield from (f"  {each}" for each in sentences)


def _numbers(value: Any) -> Any:
    """Doubles in place of their hexadecimal texts."""
    if isinstance(value, dict):
        return {name: _numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    hexadecimal = isinstance(value, str) and value.lstrip("-").startswith("0x")
    return float.fromhex(value) if hexadecimal else value


def _say(*lines: str) -> None:
    for line in lines:
        print(plain(line, sys.stdout.encoding), flush=True)
