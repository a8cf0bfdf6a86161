"""Scripts of findings/: what pages say of other software, shown by that software itself.

Each installs pinned packages in a folder of its own, which takes minutes and a package index:
``python -m pytest -m findings``.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted((ROOT / "findings").glob("*.sh"))


@pytest.mark.findings
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_other_software_is_as_the_script_says(script: Path) -> None:
    done = subprocess.run(["bash", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_pin_what_they_install_and_fail_on_errors(script: Path) -> None:
    text = script.read_text("utf-8")
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in text
    assert "mktemp -d" in text
    for line in re.findall(r"pip\" install --quiet (.*)", text):
        assert all("==" in package for package in line.split()), line


def test_pages_name_scripts_that_exist() -> None:
    named = {
        name
        for page in (ROOT / "docs").rglob("*.md")
        for name in re.findall(r"`findings/([\w-]+\.sh)`", page.read_text("utf-8"))
    }
    assert named
    assert named <= {script.name for script in SCRIPTS}
