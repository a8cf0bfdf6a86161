#!/usr/bin/env bash
# MuJoCo 4.0.0: mj_rne with flg_acc=1 leaves out armature, of joints and of actuators, while qM, mj_mulM,
# mj_inverse and the kinetic energy count it. Its documentation says M(qpos)*qacc + C(qpos,qvel).
# Computed-torque control with mj_rne misses the rotors. Seen on a geared joint: 3.01 N m for 1 N m.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet mujoco==4.0.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import mujoco
import numpy as np

model = mujoco.MjModel.from_xml_string("""<mujoco><option gravity="0 0 0"><flag energy="enable"/></option><worldbody>
<body><joint name="j" axis="0 0 1" armature="0.3"/><geom size=".1"/><body pos="0.12 0 0"><joint name="k" axis="0 0 1"/>
<geom size=".1" pos=".2 0 0"/></body></body></worldbody>
<actuator><motor joint="j" gear="5" armature="0.01"/></actuator></mujoco>""")
data = mujoco.MjData(model)
data.qvel[:], data.qfrc_applied[:] = [1.0, 0.5], [1.0, 2.0]
mujoco.mj_forward(model, data)
mass, product, rne = np.zeros((2, 2)), np.zeros(2), np.zeros(2)
mujoco.mj_fullM(model, data, mass)
mujoco.mj_mulM(model, data, product, data.qacc)
mujoco.mj_rne(model, data, 1, rne)
mujoco.mj_inverse(model, data)
armature = np.array([0.3 + 5**2 * 0.01, 0.0])
print("mujoco", mujoco.__version__, "mj_rne", rne, "mj_inverse", data.qfrc_inverse, "M qacc + bias", product + data.qfrc_bias)
assert np.allclose(product, mass @ data.qacc)
assert np.allclose(product + data.qfrc_bias, [1, 2]) and np.allclose(data.qfrc_inverse, [1, 2])
assert np.isclose(data.energy[1], 0.5 * data.qvel @ mass @ data.qvel)
assert np.allclose(rne, data.qfrc_inverse - armature * data.qacc) and abs(rne[0] - 1) > 1
PY
