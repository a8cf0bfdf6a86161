"""Notebooks, tutorials and examples, run here, as Markdown with their output and as motions."""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import re
import runpy
import tempfile
from contextlib import redirect_stdout
from html import escape, unescape
from pathlib import Path
from typing import Any

import robomodel as rm

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "examples" / "notebooks"
SNIPPET = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def names() -> list[str]:
    """Of all notebooks, without their suffix."""
    return sorted(file.stem for file in FOLDER.glob("*.ipynb"))


def executed(name: str) -> tuple[str, dict[str, str]]:
    """The notebook as a page: its text, its code, and what that prints, returns and draws.

    And the pages that are shown in it, by the names of their files.
    """
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("agg")
    plt.close("all")  # figures that the process has open are not the notebook's
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    scope: dict[str, Any] = {"__name__": "__main__"}
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
        else:
            parts += [f"```python\n{text}\n```", *_run(text, scope)]
    pages: dict[str, str] = {}

    def apart(found: re.Match[str]) -> str:
        file = f"{name}-{len(pages) + 1}.html"
        pages[file] = unescape(found[1])
        return f'src="{file}"'

    text = re.sub(r'srcdoc="([^"]*)"', apart, "\n\n".join(parts) + "\n")
    return re.sub(r"\((\S+)\.ipynb\)", r"(\1.md)", text), pages


def with_output(page: str) -> tuple[str, str]:
    """A page of the documentation, with what its snippets print, in an empty folder.

    And a figure of their last robot.
    """
    scope: dict[str, Any] = {"__name__": "__main__"}

    def shown(found: re.Match[str]) -> str:
        return "\n\n".join([found[0].rstrip(), *_run(found[1], scope)]) + "\n"

    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        text = SNIPPET.sub(shown, text)
    *_, robot = (each for each in scope.values() if isinstance(each, rm.Model))
    return text, str(rm.views.page(robot, compact=True))


def motion(example: str, function: str) -> str:
    """The page of the motion that a function of an example returns."""
    made = runpy.run_path(str(ROOT / "examples" / f"{example}.py"))[function]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "motion.html")
        rm.views.play(made, path)
        return path.read_text(encoding="utf-8")


def _run(text: str, scope: dict[str, Any]) -> list[str]:
    """Output of a cell."""
    body = ast.parse(text).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), scope)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), scope)
    output = [_verbatim(printed.getvalue())] if printed.getvalue() else []
    figures = _figures()
    if value is not None and not figures:
        shown = getattr(value, "_repr_html_", None)
        output.append(shown() if shown else _verbatim(repr(value)))
    return [f'<div class="output">{each}</div>' for each in (*output, *figures)]


def _verbatim(text: str) -> str:
    """Text as an element of one line: an empty line would end it in Markdown."""
    lines = re.sub(r"\x1b\[[\d;]*m", "", text.rstrip()).split("\n")
    return f"<pre>{'&#10;'.join(map(escape, lines))}</pre>"


def _figures() -> list[str]:
    """Matplotlib's open figures, which are closed."""
    import matplotlib.pyplot as plt

    drawn = []
    for number in plt.get_fignums():
        stream = io.BytesIO()
        plt.figure(number).savefig(stream, format="png", dpi=130)
        data = base64.b64encode(stream.getvalue()).decode()
        drawn.append(f'<img alt="plot" src="data:image/png;base64,{data}">')
    plt.close("all")
    return drawn
