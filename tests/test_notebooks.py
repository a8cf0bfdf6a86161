"""Notebooks: kept without output, and run."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import few

import robomodel as rm

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import notebooks  # noqa: E402

NAMES = notebooks.names()


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_are_kept_without_output(name: str) -> None:
    notebook = json.loads((notebooks.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert 10 <= len(notebook["cells"]) <= 15
    for cell in code:
        ast.parse("".join(cell["source"]))
    first = notebook["cells"][0]["source"][0]
    assert first.startswith("# ")
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert f"notebooks/{name}.md" in navigation


@pytest.mark.parametrize("name", few(NAMES))
def test_notebooks_run(name: str) -> None:
    pytest.importorskip("matplotlib")
    text, pages = notebooks.executed(name)
    assert text.count('class="output"') >= 6
    assert pages
    assert all(page.startswith("<!DOCTYPE html>") for page in pages.values())


@pytest.mark.slow
def test_models_reports_and_motions_show_themselves() -> None:
    model = rm.robots.load("four_bar")
    table = model._repr_html_()
    assert "<th colspan=2>four_bar</th>" in table
    assert "1: &#x27;joint1&#x27;" in table
    motion = rm.simulate(model, model.neutral(), v=np.ones(1), duration=0.05)
    for shown in (motion, rm.views.page(model), rm.actuation(model)):
        html = shown._repr_html_()
        assert html.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
        assert html.count('"') == 6  # nothing ends the attribute early
