#!/usr/bin/env bash
# Pinocchio 4.1.0: transformJointIntoMimic drops the armature of the joint that follows. A rotor on a joint
# that turns k times as fast weighs k^2 times its armature on the joint that leads: here 0.3 + 2^2 * 0.5.
# Seen: armature [0.3], a mass matrix of 0.5 where Lagrange's equations give 2.5 kg m2.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pin==4.1.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import numpy as np
import pinocchio as pin


def link(name):
    return (f'<link name="{name}"><inertial><mass value="1"/><inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" '
            'ixz="0" iyz="0"/></inertial></link>')


def joint(name, parent, child):
    return (f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
            '<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="5" velocity="3"/></joint>')


free = pin.buildModelFromXML('<robot name="r"><link name="b"/>' + link("l") + link("k") + joint("j", "b", "l")
                             + joint("i", "l", "k") + "</robot>")
free.armature[:] = [0.3, 0.5]
follows = np.array([1.0, 2.0])
upper = pin.crba(free, free.createData(), np.zeros(2))
exact = follows @ (np.triu(upper) + np.triu(upper, 1).T) @ follows
mimic = pin.transformJointIntoMimic(free, free.getJointId("j"), free.getJointId("i"), 2.0, 0.0)
found = pin.crba(mimic, mimic.createData(), np.zeros(1))[0, 0]
print("pin", pin.__version__, "armature", mimic.armature, "mass", found, "exact", exact)
assert mimic.nv == 1 and np.allclose(mimic.armature, [0.3])
assert np.isclose(exact, 0.02 + 0.02 * 9 + 0.3 + 4 * 0.5) and np.isclose(exact - found, 4 * 0.5)
PY
