#!/usr/bin/env bash
# Pinocchio 4.1.0: rnea and computeKineticEnergy count armature, computeJointTorqueRegressor and
# computeKineticEnergyRegressor do not. A fit of inertias with that regressor to torques of a geared robot
# puts the rotors into the links. Seen: rnea minus regressor times parameters is armature times
# acceleration, (0.21, 0.1) N m here; energies 0.279 and 0.066 J.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pin==4.1.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import numpy as np
import pinocchio as pin


def link(name):
    return (f'<link name="{name}"><inertial><origin xyz="0.1 0.02 0.03" rpy="0.1 0.2 0.3"/><mass value="1"/>'
            '<inertia ixx="0.01" iyy="0.012" izz="0.015" ixy="0" ixz="0" iyz="0"/></inertial></link>')


def joint(name, parent, child, axis):
    return (f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/><origin '
            f'xyz="0.2 0 0"/><axis xyz="{axis}"/><limit lower="-1" upper="1" effort="5" velocity="3"/></joint>')


model = pin.buildModelFromXML('<robot name="r"><link name="b"/>' + link("l") + link("k")
                              + joint("j", "b", "l", "0 1 0") + joint("i", "l", "k", "1 0 0") + "</robot>")
q, v, a = np.array([0.3, 0.4]), np.array([1.0, -0.5]), np.array([0.7, 0.2])
parameters = np.concatenate([model.inertias[i].toDynamicParameters() for i in (1, 2)])


def differences():
    torque = pin.computeJointTorqueRegressor(model, model.createData(), q, v, a) @ parameters
    energy = float(np.ravel(pin.computeKineticEnergyRegressor(model, model.createData(), q, v) @ parameters)[0])
    return (pin.rnea(model, model.createData(), q, v, a) - torque,
            pin.computeKineticEnergy(model, model.createData(), q, v) - energy)


torque, energy = differences()
assert np.allclose(torque, 0) and np.isclose(energy, 0)
model.armature[:] = [0.3, 0.5]
torque, energy = differences()
print("pin", pin.__version__, "rnea minus regressor:", torque, "N m, energy minus regressor:", energy, "J")
assert np.allclose(torque, model.armature * a) and np.isclose(energy, 0.5 * model.armature @ v**2)
PY
