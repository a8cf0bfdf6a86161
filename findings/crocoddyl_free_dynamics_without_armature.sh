#!/usr/bin/env bash
# Crocoddyl 3.2.1 with Pinocchio 4.1.0: DifferentialActionModelFreeFwdDynamics with its armature at
# the default of zero gives accelerations without gravity; with an armature of 1e-12 it gives Pinocchio's.
# Seen: about 0 where gravity gives 49 rad/s^2.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet crocoddyl==3.2.1 pin==4.1.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import crocoddyl
import numpy as np
import pinocchio as pin

model = pin.buildModelFromXML(
    '<robot name="r"><link name="b"/><link name="l"><inertial><origin xyz="0.1 0 0"/><mass value="1"/><inertia '
    'ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous">'
    '<parent link="b"/><child link="l"/><axis xyz="0 1 0"/></joint></robot>')
state = crocoddyl.StateMultibody(model)
action = crocoddyl.DifferentialActionModelFreeFwdDynamics(
    state, crocoddyl.ActuationModelFull(state), crocoddyl.CostModelSum(state))
x = np.array([0.0, 0.0])
exact = pin.aba(model, model.createData(), pin.neutral(model), np.zeros(1), np.zeros(1))


def acceleration():
    data = action.createData()
    action.calc(data, np.concatenate([pin.neutral(model), np.zeros(1)]), np.zeros(1))
    return data.xout.copy()


without = acceleration()
action.armature = np.full(1, 1e-12)
print("crocoddyl", crocoddyl.__version__, "pin", pin.__version__, "Pinocchio:", exact, "armature 0:", without,
      "armature 1e-12:", acceleration())
assert abs(exact[0]) > 1 and np.allclose(acceleration(), exact)
assert abs(without[0]) < 1e-3
PY
