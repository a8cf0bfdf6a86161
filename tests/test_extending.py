"""The changes that docs/extending.md shows are made to a copy of the package, and tried."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = """
import numpy as np
import robomodel as rm
from robomodel.kernels.plain import source
from robomodel.vocabulary.schema import MOTOR

LINK = (
    '<link name="{}"><inertial><origin xyz="0.1 0.2 0.3"/><mass value="2"/>'
    '<inertia ixx="0.2" iyy="0.3" izz="0.25" ixy="0.01" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = (
    '<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><axis xyz="0.6 0 0.8"/>'
    '<limit lower="-9" upper="9" effort="1" velocity="1"/></joint>'
)

def robot(*parts):
    links = '<link name="base"/><link name="between"/>' + LINK.format("tip")
    return rm.load('<robot name="one">' + links + "".join(parts) + "</robot>")

def joints(base, base_type, tip, tip_type):
    return (
        JOINT.format(base, base_type, "base", "between"),
        JOINT.format(tip, tip_type, "between", "tip"),
    )

one = robot(*joints("f", "fixed", "c", "cylindrical"))
two = robot(*joints("t", "continuous", "p", "prismatic"))
assert one.dof_names == ("c.0", "c.1") and two.dof_names == ("t", "p")
q, v, a = np.random.default_rng(0).normal(size=(3, 2))
tau = rm.rnea(one, q, v, a)
np.testing.assert_allclose(tau, rm.rnea(two, q, v, a), atol=1e-12)
np.testing.assert_allclose(rm.aba(one, q, v, tau), a, atol=1e-12)
np.testing.assert_allclose(one.difference(q, one.integrate(q, v)), v, atol=1e-12)
rm.write_urdf(one, "one.urdf")
np.testing.assert_allclose(rm.rnea(rm.load("one.urdf"), q, v, a), tau, atol=1e-12)

model = rm.robots.load("four_bar")
q, v, a = model.neutral(), np.ones(1), np.array([0.5])
for backend in ("compiled", "numpy"):
    power = rm.power(model, q, v, a, backend=backend)
    np.testing.assert_allclose(power, v @ rm.rnea(model, q, v, a), atol=1e-12)
assert "f_ext:" in rm.power.__doc__

names = {}
exec(source("aba", rm.compile(model, "aba").program), names)
np.testing.assert_allclose(names["aba"]([*q, *v, *a]), rm.aba(model, q, v, a), atol=1e-12)

hinge = JOINT.format("h", "revolute", "base", "tip").replace("</joint>", "{}</joint>")
text = '<robot name="one"><link name="base"/>' + LINK.format("tip") + hinge + "</robot>"
motor = rm.load(text.format('<motor effort="2" inductance="0.002"/>'))
for write, name in ((rm.write_urdf, "m.urdf"), (rm.write_sdf, "m.sdf"), (rm.write_mjcf, "m.xml")):
    write(motor, name)
    (*_, h) = rm.load(name).description.joints
    driven = [each.actuators[0].motor for each in rm.load(name).description.transmissions]
    assert [each.inductance for each in (h.motor, *driven)] == [0.002] * (1 + len(driven)), name
try:
    rm.load(text.format('<motor inductance="-1"/>'))
except rm.DescriptionError as error:
    assert "inductance of <motor> is -1; it is positive" in str(error)
else:
    raise AssertionError("not refused")
assert "| `inductance` | number > 0, H | none | L of a DC motor |" in MOTOR.rows()
"""


@pytest.mark.slow
def test_the_changes_are_all_that_it_takes(tmp_path: Path) -> None:
    text = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    changes = re.findall(r"```diff\n(.*?)```", text, re.DOTALL)
    assert len(changes) == 4
    shutil.copytree(ROOT / "robomodel", tmp_path / "robomodel")
    for change in changes:
        subprocess.run(
            ["git", "apply", "-C1", "--recount", "-"], cwd=tmp_path, input=change, text=True,
            check=True,
        )  # fmt: skip
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=environment, check=True)
