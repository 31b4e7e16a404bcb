"""Run what pages show and write its output under it: the task `pages` of environments.toml, or pages named.

A Python block prints into the text block that follows it, a command of a session (`$ gpcert ...`) under
itself; notebooks keep what they show. Blocks of a page run one after the other, in an empty folder. A page
whose outputs differ in times and digests only is left as it is.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?"
    r"|^```console\n(?P<session>\$ .*?)^```\n",
    flags=re.MULTILINE | re.DOTALL,
)
#: A command of a session, continued by a backslash at the end of a line, and its output.
COMMAND = re.compile(r"^\$ (?P<command>(?:.*\\\n)*.*\n)(?P<shown>(?:(?!\$ ).*\n)*)", flags=re.MULTILINE)
#: Commands that are run; the others set up an environment.
RUNNABLE = ("gpcert ", "gpcert-check ", "head ")
#: What differs from run to run: times, digests of files and questions, which say the version, and how sharp a
#: claim an export proves, which has so much time.
VARIES = re.compile(
    r"(?<=answered in )(?:\d+ (?:s|min|h) ?)+|\b[0-9a-f]{64}\b|(?<=/)[0-9a-f]{16}(?=\.json)"
    r"|(?<=\) [<>] )0\.\d{9,}(?= everywhere)|(?<=\) <= )0\.\d{9,}(?= at )"
)
#: Pages that need a library of an environment of its own, by that library.
ELSEWHERE = ("gpytorch", "gpflow")


def settled(text: str) -> str:
    """What is the same in every run."""
    return VARIES.sub("...", text)


def document(path: Path) -> str:
    """The text of a document with the outputs it has now."""
    text, namespace = path.read_text(encoding="utf-8"), {"__name__": "__main__"}

    def block(found: re.Match[str]) -> str:
        if found["session"]:
            return f"```console\n{COMMAND.sub(_session, found['session'])}```\n"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(found["code"], str(path), "exec"), namespace)
        output = f"\n```text\n{_ended(printed.getvalue())}```\n" if printed.getvalue() else ""
        return f"```python\n{found['code']}```\n{output}"

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return BLOCK.sub(block, text)


def _session(found: re.Match[str]) -> str:
    """A command and what it prints."""
    if not found["command"].startswith(RUNNABLE):
        return found[0]
    return f"$ {found['command']}{_ended(_printed(found['command']))}"


def _printed(command: str) -> str:
    """Standard output of one command."""
    from gpcert.cli import main

    words = shlex.split(command.replace("\\\n", " "), comments=True)
    if words[0] == "gpcert-check":  # need not be installed beside gpcert
        words = ["env", f"PYTHONPATH={ROOT / 'checker'}", sys.executable, "-m", "gpcert_check", *words[1:]]
    if words[0] != "gpcert":
        return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = main(words[1:])
    assert status == 0, command
    return printed.getvalue()


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def notebook(path: Path) -> Any:
    """A notebook with the outputs it has now, run by the interpreter that runs this."""
    import nbformat
    from nbclient import NotebookClient

    found = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(found, timeout=600, resources=resources, record_timing=False).execute()
    found.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    for cell in found.cells:
        if cell.cell_type == "code":
            cell.outputs = _merged(cell.outputs)
    return found


def _merged(outputs: list[Any]) -> list[Any]:
    """What is printed in one piece, however busy the machine was; of what is shown as markup or as a picture
    not the plain text as well, which also says seconds and addresses."""
    kept: list[Any] = []
    for output in outputs:
        if kept and output.output_type == "stream" and kept[-1].get("name") == output.name:
            kept[-1].text += output.text
            continue
        if len(output.get("data", {})) > 1:
            output.data.pop("text/plain", None)
        kept.append(output)
    return kept


def here() -> list[Path]:
    """What an environment without GPyTorch and GPflow runs."""
    pages = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.ipynb")])
    return [path for path in pages if path.stem not in ELSEWHERE]


def main() -> None:
    """Write the outputs into the files."""
    for path in [Path(name) for name in sys.argv[1:]] or here():
        before = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            import nbformat

            after = nbformat.writes(notebook(path)) + "\n"
        else:
            after = document(path)
        if settled(after) != settled(before):
            path.write_text(after, encoding="utf-8")
            print(f"{path}: written")


if __name__ == "__main__":
    main()
