"""A hook of mkdocs: every notebook of `examples/` becomes a page of the site, beside the file itself.

Pages show the outputs that are stored; `make test-full` runs the notebooks and compares. Text and code become
Markdown, so that they look, scroll, copy and are found as on every other page; markup that an object showed
is set in as it is, after Markdown is done.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

FOLDER = Path(__file__).resolve().parents[1] / "examples"
_PLACE = re.compile(r"<p>@output (\S+) (\d+) (\d+)@</p>")
_outputs: dict[str, list[list[str]]] = {}


def on_files(files: Files, config: Any) -> Files:
    """Add a page, and the notebook to take away, for each."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        text = path.read_text(encoding="utf-8")
        notebook = json.loads(text)
        files.append(File.generated(config, f"notebooks/{path.name}", content=text))
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=page(path.stem, notebook)))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Set the stored markup in where the page left room for it."""
    return _PLACE.sub(lambda at: _outputs[at[1]][int(at[2])][int(at[3])], html)


def page(name: str, notebook: dict[str, Any]) -> str:
    """The Markdown of a notebook; what it shows as markup is kept for `on_page_content`."""
    _outputs[name] = shown = []
    parts: list[str] = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source.replace("](../docs/", "](../"))
            continue
        parts.append(f"```python\n{source}\n```")
        shown.append([])
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text", "")})
            if markup := _markup(data):
                parts.append(f"@output {name} {len(shown) - 1} {len(shown[-1])}@")
                shown[-1].append(f'<div class="notebook-output">{markup}</div>')
            else:
                parts.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    parts.insert(1, f"[The notebook, to run it yourself]({name}.ipynb){{ .notebook-file }}")
    return "\n\n".join(parts) + "\n"


def _markup(data: dict[str, Any]) -> str:
    """What an output shows, if it is more than text."""
    if "image/png" in data:
        source = "".join(data["image/png"]).replace("\n", "")
        return f'<img src="data:image/png;base64,{source}" alt="figure">'
    return "".join(data.get("text/html", ""))
