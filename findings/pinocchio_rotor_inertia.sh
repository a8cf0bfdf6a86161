#!/usr/bin/env bash
# Pinocchio 4.1.0: no algorithm reads rotorInertia and rotorGearRatio. crba, aba and rnea read armature.
# loadRotorParameters adds inertia times the ratio's square to armature, once more at each call.
# The wheel has no reader of SDF and no module pinocchio.casadi.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pin==4.1.0 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PY'
from pathlib import Path

import numpy as np
import pinocchio as pin

model = pin.buildModelFromXML(
    '<robot name="r"><link name="b"/><link name="l"><inertial><mass value="1"/><inertia ixx="0.02" iyy="0.02" '
    'izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous"><parent link="b"/>'
    '<child link="l"/><axis xyz="0 0 1"/></joint></robot>')
q, one = pin.neutral(model), np.ones(1)


def inertia():
    return float(pin.crba(model, model.createData(), q)[0, 0]), float(1 / pin.aba(model, model.createData(), q, 0 * one, one)[0])


model.rotorInertia[:], model.rotorGearRatio[:] = 1e-3, 10.0
print("pin", pin.__version__, "with a rotor of 1e-3 kg m2 and ratio 10:", inertia())
assert np.allclose(inertia(), 0.02)
Path("rotors.srdf").write_text('<robot name="r"><rotor_params><joint name="j" mass="1e-3" gear_ratio="10"/></rotor_params></robot>')
for times in (1, 2):
    pin.loadRotorParameters(model, "rotors.srdf", False)
    print(f"armature after {times} calls of loadRotorParameters:", model.armature)
    assert np.allclose(model.armature, 0.1 * times)
assert not hasattr(pin, "buildModelFromSdf")
try:
    import pinocchio.casadi
except ImportError as error:
    print("pinocchio.casadi:", error)
else:
    raise SystemExit("the wheel has pinocchio.casadi now")
PY
