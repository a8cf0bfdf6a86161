#!/usr/bin/env bash
# Drake 1.51.1 lets go of a <drake:tendon_constraint> whose limits are equal in the step that begins on them: SAP has
# it only from the step on that begins outside. Two tendons that push against each other, by 1e-9 rad, hold at once.
# Expected was that equal limits hold as <drake:mimic> does. Two arms of 1 kg m2, a turns as b, 1 N m on a, steps of
# 1 ms. Seen: a's first acceleration 1 rad/s2 with equal limits, 0.5 with a mimic and with two tendons; after 100
# steps the mean is 0.5 with all. "inf" as stiffness is refused.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet drake==1.51.1 numpy==2.4.6
cd "$work"
cat > run.py <<'PY'
from importlib.metadata import version

import numpy as np
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import DiscreteContactApproximation, MultibodyPlant

print("drake", version("drake"))
STEP = 1e-3
LINK = ('<link name="{0}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        '</link><joint name="{0}" type="continuous"><parent link="world"/><child link="{0}"/><axis xyz="0 0 1"/>{1}</joint>')
TENDON = ('<drake:tendon_constraint><drake:tendon_constraint_joint name="a" a="1"/><drake:tendon_constraint_joint name="b" '
          'a="-1"/><drake:tendon_constraint_offset value="0"/><drake:tendon_constraint_lower_limit value="{}"/>'
          '<drake:tendon_constraint_upper_limit value="{}"/><drake:tendon_constraint_stiffness value="1e30"/>'
          '<drake:tendon_constraint_damping value="0"/></drake:tendon_constraint>')


def accelerations(mimic, ties):
    """The acceleration of a in the first step, and its mean over a hundred."""
    plant = MultibodyPlant(STEP)
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
    text = f'<robot name="r"><link name="world"/>{LINK.format("a", "")}{LINK.format("b", mimic)}{ties}</robot>'
    Parser(plant).AddModelsFromString(text, "urdf")
    plant.Finalize()
    context = plant.CreateDefaultContext()
    at = plant.GetJointByName("a").velocity_start()
    plant.get_applied_generalized_force_input_port().FixValue(context, np.eye(2)[at])
    speeds = []
    for _ in range(100):
        plant.CalcForcedUnrestrictedUpdate(context, context.get_mutable_state())
        speeds.append(plant.GetVelocities(context)[at])
    return speeds[0] / STEP, speeds[-1] / STEP / 100


for name, mimic, ties, first in (
    ("mimic", '<mimic joint="a" multiplier="1"/>', "", 0.5),
    ("equal limits", "", TENDON.format(0, 0), 1.0),
    ("two tendons", "", TENDON.format(1e-9, 1e30) + TENDON.format(-1e30, -1e-9), 0.5),
):
    got = accelerations(mimic, ties)
    print(name, got)
    assert np.allclose(got, (first, 0.5), rtol=0, atol=2e-3), name
try:
    accelerations("", TENDON.format(0, 0).replace("1e30", "inf"))
except RuntimeError as error:
    print(error)
else:
    raise SystemExit("inf is taken")
PY
"$work/venv/bin/python" run.py
