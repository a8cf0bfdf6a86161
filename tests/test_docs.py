"""What the README and the documentation show is run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import robomodel as rm

ROOT = Path(__file__).parent.parent
EXAMPLES = re.findall(r"```xml\n(.*?)```", (ROOT / "docs/format.md").read_text(), re.DOTALL)


def test_the_readme_snippet_runs() -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(compile(snippet, "README.md", "exec"), {})


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
@pytest.mark.filterwarnings("ignore:.*moves no mass:robomodel.DescriptionWarning")
def test_the_format_examples_load(number: int) -> None:
    model = rm.load(EXAMPLES[number])
    for seed in range(3):
        q = model.random_configuration(seed)
        assert abs(model.residual(q)).max(initial=0.0) < 1e-10


def test_there_are_examples_of_every_loop_type() -> None:
    shown = set(re.findall(r'<loop [^>]*type="(\w+)"', "\n".join(EXAMPLES)))
    assert shown >= {
        "revolute", "continuous", "prismatic", "planar", "fixed", "spherical", "universal", "rod"
    } - {"continuous"}  # fmt: skip
