#!/usr/bin/env bash
# Pinocchio 4.1.0: derivatives of constrained dynamics by q are wrong for a point constraint (CONTACT_3D)
# between two moving bodies, as a four-bar has it: compared with central differences of its own
# constraintDynamics. Against the world they are right, and derivatives by v are right in both cases.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pin==4.1.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import numpy as np
import pinocchio as pin


def link(name):
    return (f'<link name="{name}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/><inertia ixx="0.01" '
            'iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>')


def joint(name, parent, child, x):
    return (f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{x} 0 0"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="5" '
            f'velocity="3"/></joint>')


model = pin.buildModelFromXML('<robot name="r"><link name="b"/>' + link("l") + link("k") + link("m")
                              + joint("j", "b", "l", 0) + joint("k", "l", "k", 0.2) + joint("m", "k", "m", 0.2)
                              + "</robot>")
q, v, tau = np.array([0.4, 0.3, 0.2]), np.array([1.0, 0.5, -0.3]), np.array([0.3, 0.1, 0.2])
data = model.createData()
pin.forwardKinematics(model, data, q)
tip = pin.SE3(np.eye(3), np.array([0.2, 0.0, 0.0]))
last = model.getJointId("m")
print("pin", pin.__version__)


def errors(other):
    """Errors of the derivatives by q and v with a point of the last link tied to another joint's body."""
    at = data.oMi[other].inverse() * data.oMi[last] * tip
    constraint = pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, last, tip, other, at, pin.LOCAL)
    models = pin.StdVec_RigidConstraintModel()
    models.append(constraint)

    def run(q, v):
        work, datas = model.createData(), pin.StdVec_RigidConstraintData()
        datas.append(constraint.createData())
        settings = pin.ProximalSettings(1e-14, 1e-14, 100)
        pin.initConstraintDynamics(model, work, models, datas)
        a = pin.constraintDynamics(model, work, q, v, tau, models, datas, settings).copy()
        return a, work, datas, settings

    _, work, datas, settings = run(q, v)
    pin.computeConstraintDynamicsDerivatives(model, work, models, datas, settings)
    h = 1e-6
    by_q = np.stack([(run(q + h * e, v)[0] - run(q - h * e, v)[0]) / (2 * h) for e in np.eye(3)], 1)
    by_v = np.stack([(run(q, v + h * e)[0] - run(q, v - h * e)[0]) / (2 * h) for e in np.eye(3)], 1)
    return [float(np.abs(x - y).max() / np.abs(y).max()) for x, y in ((work.ddq_dq, by_q), (work.ddq_dv, by_v))]


world, loop = errors(0), errors(model.getJointId("j"))
print("relative errors by q, by v: against the world", world, "between two bodies", loop)
assert max(world) < 1e-6 and loop[1] < 1e-6 and loop[0] > 0.1
PY
