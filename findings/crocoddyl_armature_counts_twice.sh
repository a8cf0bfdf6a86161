#!/usr/bin/env bash
# Crocoddyl 3.2.1 with Pinocchio 4.1.0: the armature of DifferentialActionModelFreeFwdDynamics is added to
# the model's own, which Pinocchio's mass matrix already holds: who sets both has every rotor twice.
# Seen: the acceleration of M + 2 diag(armature), 41 % too small on the first joint.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet crocoddyl==3.2.1 pin==4.1.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import crocoddyl
import numpy as np
import pinocchio as pin


def link(name):
    return (f'<link name="{name}"><inertial><origin xyz="0.1 0.02 0.03"/><mass value="1"/>'
            '<inertia ixx="0.01" iyy="0.012" izz="0.015" ixy="0" ixz="0" iyz="0"/></inertial></link>')


def joint(name, parent, child, axis):
    return (f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/><origin '
            f'xyz="0.2 0 0"/><axis xyz="{axis}"/><limit lower="-1" upper="1" effort="5" velocity="3"/></joint>')


model = pin.buildModelFromXML('<robot name="r"><link name="b"/>' + link("l") + link("k")
                              + joint("j", "b", "l", "0 1 0") + joint("i", "l", "k", "1 0 0") + "</robot>")
armature = np.array([0.3, 0.5])
model.armature[:] = armature
state = crocoddyl.StateMultibody(model)
action = crocoddyl.DifferentialActionModelFreeFwdDynamics(
    state, crocoddyl.ActuationModelFull(state), crocoddyl.CostModelSum(state))
q, v, tau = np.array([0.3, 0.4]), np.array([1.0, -0.5]), np.array([0.7, 0.2])


def acceleration(own):
    action.armature = own
    data = action.createData()
    action.calc(data, np.concatenate([q, v]), tau)
    return data.xout.copy()


upper = pin.crba(model, model.createData(), q)
mass = np.triu(upper) + np.triu(upper, 1).T
rest = tau - pin.nle(model, model.createData(), q, v)
once, twice = np.linalg.solve(mass, rest), np.linalg.solve(mass + np.diag(armature), rest)
found = acceleration(armature)
print("crocoddyl", crocoddyl.__version__, "pin", pin.__version__, "found", found, "once", once, "twice", twice)
assert np.allclose(pin.aba(model, model.createData(), q, v, tau), once)
assert np.allclose(found, twice) and not np.allclose(found, once, rtol=0.2)
assert np.allclose(acceleration(np.full(2, 1e-12)), once)
PY
