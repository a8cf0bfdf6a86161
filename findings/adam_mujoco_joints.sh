#!/usr/bin/env bash
# adam-robotics 0.5.0: KinDynComputations.from_mujoco_model takes of each body's joints their axes only. It leaves out
# armature and ref, a joint's place in its body (pos), and of two hinges in one body it has both freedoms, but the first
# moves nothing. No error or warning says so. Expected was MuJoCo 4.0.0's robot: masses and inertias are.
# Seen, as greatest differences from MuJoCo: of mass matrices 0.5 kg m2 by armature, 0.027 by pos, and a first diagonal
# entry of 0 for 0.298 by two hinges; of a body's position 0.148 m by ref, 0.162 m by pos.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet adam-robotics==0.5.0 mujoco==4.0.0 numpy==2.4.6
cd "$work"
cat > run.py <<'PY'
import warnings
from importlib.metadata import version

import mujoco
import numpy as np
from adam.numpy import KinDynComputations

warnings.simplefilter("error")
print("adam-robotics", version("adam-robotics"), "mujoco", mujoco.__version__)


def compared(joints, positions):
    """Mass matrices of the joints, and the greatest difference of body b's position."""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><compiler angle="radian"/><worldbody><body name="base"><freejoint/><inertial pos="0 0 0" mass="1" '
        f'diaginertia="1 1 1"/><body name="a" pos="0.1 0 0.2">{joints}<inertial pos="0.1 0 0" mass="1" '
        'diaginertia=".02 .03 .04" quat="0.8 0.6 0 0"/><body name="b" pos="0.3 0 0"><joint name="k" axis="0 0 1"/>'
        '<inertial pos="0.1 0 0" mass="2" diaginertia=".02 .03 .04"/></body></body></body></worldbody></mujoco>')
    state, exact = mujoco.MjData(model), np.zeros((model.nv, model.nv))
    state.qpos[:7], state.qpos[7:] = (0, 0, 0, 1, 0, 0, 0), positions
    mujoco.mj_forward(model, state)
    mujoco.mj_fullM(model, state, exact)
    robot, base = KinDynComputations.from_mujoco_model(model), np.eye(4)
    mass = robot.mass_matrix(base, np.array(positions))[6:, 6:]
    place = np.asarray(robot.forward_kinematics("b", base, np.array(positions)))[:3, 3]
    print(joints, "diagonals", np.diag(mass).round(4), "MuJoCo's", np.diag(exact)[6:].round(4),
          "position", place.round(4), "MuJoCo's", state.body("b").xpos.round(4))
    return mass, exact[6:, 6:], np.abs(place - state.body("b").xpos).max()


mass, exact, apart = compared('<joint name="j" axis="0.6 0.8 0"/>', [0.3, 0.4])
assert np.allclose(mass, exact, atol=1e-9) and apart < 1e-9
mass, exact, apart = compared('<joint name="j" axis="0 1 0" armature="0.5"/>', [0.3, 0.4])
assert np.allclose(exact - mass, np.diag([0.5, 0]), atol=1e-9) and apart < 1e-9
mass, exact, apart = compared('<joint name="j" axis="0 1 0" ref="0.5"/>', [0.3, 0.4])
assert abs(apart - 0.1483) < 1e-4
mass, exact, apart = compared('<joint name="j" axis="0 1 0" pos="0.1 0 0.2"/>', [0.3, 0.4])
assert abs((mass - exact)[0, 0] - 0.0268) < 1e-4 and abs(apart - 0.1615) < 1e-4
mass, exact, apart = compared('<joint name="j" axis="0 1 0"/><joint name="i" axis="0 0 1"/>', [0.3, 0.4, 0.5])
assert np.abs(mass[0]).max() < 1e-12 and exact[0, 0] > 0.29 and apart > 0.1
PY
"$work/venv/bin/python" run.py
