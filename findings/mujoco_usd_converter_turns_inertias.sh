#!/usr/bin/env bash
# mujoco-usd-converter 0.8.0 keeps the orientation of an <inertial> where MJCF has it as quat or fullinertia; where it is
# euler, axisangle, xyaxes or zaxis, physics:principalAxes is the identity: moments are about the body's axes. The
# armature and damping of actuators are left out. Nothing is said. Expected was what MuJoCo 3.16.0, with which it reads
# the file, compiles. Seen: four of six bodies alike in MuJoCo are turned by 90 degrees, 0.02 kg m2 about a hinge for 0.04.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet mujoco-usd-converter==0.8.0 mujoco==3.16.0 numpy==2.4.6
cd "$work"
cat > run.py <<'PY'
from importlib.metadata import version
from pathlib import Path

import mujoco
import mujoco_usd_converter
import numpy as np
from pxr import Gf, Usd

WAYS = {"quat": 'diaginertia=".04 .03 .02" quat="1 0 1 0"', "fullinertia": 'fullinertia=".02 .03 .04 0 0 0"',
        "euler": 'diaginertia=".04 .03 .02" euler="0 90 0"', "axisangle": 'diaginertia=".04 .03 .02" axisangle="0 1 0 90"',
        "xyaxes": 'diaginertia=".04 .03 .02" xyaxes="0 0 -1 0 1 0"', "zaxis": 'diaginertia=".04 .03 .02" zaxis="1 0 0"'}
Path("robot.xml").write_text('<mujoco model="r"><worldbody>' + "".join(
    f'<body name="{name}"><joint name="j_{name}" axis="0 0 1"/><inertial pos="0 0 0" mass="1" {words}/></body>'
    for name, words in WAYS.items())
    + '</worldbody><actuator><motor name="m" joint="j_quat" gear="3" armature="0.01" damping="0.2"/></actuator></mujoco>')
model = mujoco.MjModel.from_xml_path("robot.xml")
mujoco_usd_converter.Converter().convert("robot.xml", "stage")
stage = Usd.Stage.Open("stage/r.usda")
prims = {prim.GetName(): prim for prim in stage.Traverse()}
print("mujoco-usd-converter", version("mujoco-usd-converter"), "mujoco", mujoco.__version__)


def about_z(quaternion, moments):
    turned = np.zeros(9)
    mujoco.mju_quat2Mat(turned, quaternion)
    return float((turned.reshape(3, 3) * moments @ turned.reshape(3, 3).T)[2, 2])


for name in WAYS:
    body, axes = model.body(name), prims[name].GetAttribute("physics:principalAxes").Get()
    theirs = about_z(np.array([axes.GetReal(), *axes.GetImaginary()], float),
                     np.array(prims[name].GetAttribute("physics:diagonalInertia").Get()))
    exact = about_z(body.iquat, body.inertia)
    print(name, "moment about z in USD", round(theirs, 6), "in MuJoCo", round(exact, 6))
    assert abs(exact - 0.04) < 1e-9
    assert abs(theirs - (0.04 if name in ("quat", "fullinertia") else 0.02)) < 1e-6
    assert name in ("quat", "fullinertia") or axes == Gf.Quatf(1)
motor = {each.GetName(): each.Get() for each in prims["m"].GetAuthoredAttributes()}
print("the motor in USD", motor, "in MuJoCo armature", model.actuator_armature, "damping", model.actuator_damping)
assert motor["mjc:gear"][0] == 3 and not any("rmature" in name or "amping" in name for name in motor)
assert model.actuator_armature[0] == 0.01 and model.dof_M0[0] > 0.04
PY
"$work/venv/bin/python" run.py > said 2>&1
grep -v "^Status" said
! grep -qi warning said
