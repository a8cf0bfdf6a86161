#!/usr/bin/env bash
# Pinocchio 4.1.0: appendModel (an arm with a hand, two arms on a torso) returns a model whose armature is
# zero on every joint, those of the first model included, while rotorInertia, rotorGearRatio, damping and
# friction are carried over. Nothing is said. buildReducedModel and copies keep armature.
# Seen: armature (0.3) and (0.5) become (0, 0); the mass matrix loses both.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pin==4.1.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import numpy as np
import pinocchio as pin


def robot(n, armature):
    model = pin.buildModelFromXML(
        f'<robot name="r{n}"><link name="b{n}"/><link name="l{n}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>'
        '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        f'<joint name="j{n}" type="revolute"><parent link="b{n}"/><child link="l{n}"/><axis xyz="0 0 1"/>'
        '<limit lower="-1" upper="1" effort="5" velocity="3"/><dynamics damping="0.4" friction="0.2"/></joint></robot>')
    model.armature[:], model.rotorInertia[:] = armature, 0.07
    return model


arm, hand = robot(1, 0.3), robot(2, 0.5)
whole = pin.appendModel(arm, hand, arm.getFrameId("l1"), pin.SE3.Identity())
print("pin", pin.__version__, "armature", whole.armature, "rotorInertia", whole.rotorInertia, "damping", whole.damping,
      "friction", whole.friction)
assert np.all(arm.armature == 0.3) and np.all(hand.armature == 0.5)
assert np.all(whole.armature == 0)
assert np.all(whole.rotorInertia == 0.07) and np.all(whole.damping == 0.4) and np.all(whole.friction == 0.2)
q = np.zeros(2)
without = pin.crba(whole, whole.createData(), q).copy()
whole.armature[:] = [0.3, 0.5]
assert np.allclose(np.diag(pin.crba(whole, whole.createData(), q) - without), [0.3, 0.5])
assert np.all(pin.buildReducedModel(whole, [1], q).armature == 0.5) and np.all(pin.Model(whole).armature == whole.armature)
PY
