"""Who uses the package under mypy's strict rules sees its types: ``py.typed`` is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import numpy as np
import robomodel as rm

model = rm.robots.load("four_bar")
q = model.configuration({"joint1": 0.8})
tau = rm.rnea(model, q, np.ones(1), np.zeros(1))
reveal_type(tau)
reveal_type(model.joint_positions(q))
reveal_type(rm.compile(model, "aba"))
rm.rnea(model, q)
rm.aba(model, q, q, q, method="none")
rm.write_mjcf(model, "four_bar.xml", approximate=True, drop=True, meshes="keep")
rm.write_mjcf(model, "four_bar.xml", meshes="none")
rm.write_usd(model, "four_bar.usda", aproximate=True)
"""


@pytest.mark.slow
def test_a_users_script_is_checked(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "script.py").write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "script.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = run.stdout.splitlines()
    assert "ndarray" in next(line for line in lines if ":8:" in line)
    assert "dict[str" in next(line for line in lines if ":9:" in line)
    assert "Kernel" in next(line for line in lines if ":10:" in line)
    errors = [line for line in lines if ": error:" in line]
    assert [line.split(":")[1] for line in errors] == ["11", "12", "14", "15"], run.stdout
