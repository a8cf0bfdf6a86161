#!/usr/bin/env bash
# Pinocchio 4.1.0 reads an MJCF file without a word on what it leaves out: settotalmass, a joint's spring
# (stiffness, springref), gravcomp and MuJoCo 4.0's armature of actuators. A joint's armature, damping,
# frictionloss and ref are read. MuJoCo 4.0.0 has them all. Seen: 2 kg for 6 kg, 0.14 kg m2 for 0.51, at rest
# a torque of 3.92 N m for 10.03; nothing printed.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pin==4.1.0 mujoco==4.0.0 numpy==2.4.6
cd "$work"
cat > robot.xml <<'XML'
<mujoco model="r"><compiler angle="radian" settotalmass="6"/><worldbody>
<body name="l" gravcomp="1"><joint name="j" axis="0 1 0" frictionloss="0.2" damping="0.1" stiffness="3" springref="0.4"/>
<inertial pos="0.1 0 0" mass="1" diaginertia=".02 .03 .04"/>
<body name="k" pos=".2 0 0"><joint name="k" axis="0 1 0" ref="0.3" armature="0.1"/>
<inertial pos="0.1 0 0" mass="1" diaginertia=".01 .01 .01"/></body></body></worldbody>
<actuator><motor name="m" joint="j" gear="3" armature="0.01"/></actuator></mujoco>
XML
"$work/venv/bin/python" -c "import pinocchio; pinocchio.buildModelFromMJCF('robot.xml')" > said 2>&1
cat said
test ! -s said
"$work/venv/bin/python" - <<'PY'
import mujoco
import numpy as np
import pinocchio as pin

theirs = mujoco.MjModel.from_xml_path("robot.xml")
state = mujoco.MjData(theirs)
mujoco.mj_forward(theirs, state)
mass = np.zeros((2, 2))
mujoco.mj_fullM(theirs, state, mass)
still = state.qfrc_bias - state.qfrc_passive  # gravity and gravcomp, with the spring at 0.4 rad
model = pin.buildModelFromMJCF("robot.xml")
q = np.array([0.0, 0.3])  # both in MuJoCo's coordinates: ref counts
upper = pin.crba(model, model.createData(), q)
gravity = pin.computeGeneralizedGravity(model, model.createData(), q)
total = float(sum(inertia.mass for inertia in model.inertias))
print("pin", pin.__version__, "mujoco", mujoco.__version__, "mass", total, theirs.body_mass.sum(),
      "inertia", upper[0, 0], mass[0, 0], "at rest", gravity[0], still[0])
assert np.isclose(theirs.body_mass.sum(), 6) and np.isclose(total, 2)
links = 3 * upper[0, 0]  # MuJoCo scales both links to the total mass
assert np.isclose(mass[0, 0], links + 3**2 * 0.01)
assert np.isclose(mass[1, 1], 3 * (upper[1, 1] - 0.1) + 0.1)
assert np.allclose(model.armature, [0, 0.1]) and np.allclose(model.damping, [0.1, 0]) and np.allclose(model.friction, [0.2, 0])
assert np.isclose(abs(gravity[0]), 9.81 * (0.1 + 0.3))
assert np.isclose(still[0], -3 * 9.81 * 0.3 - 3 * 0.4)
PY
