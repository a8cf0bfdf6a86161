#!/usr/bin/env bash
# jaxsim 0.9.0 closes loops by constraints between two frames (ConstraintMap). With two of them in a model,
# half of their forces act on each other's links: two pairs of arms, each pair welded at its tips, are one
# pendulum each, but their arms accelerate by 27.7 and 39.5 instead of 27.67, by 16.8 and 23.7 instead of 22.15
# rad/s2. And where the base is fixed to the world, forces are those of a base that floats: a single pair
# on a base of 1 kg accelerates by 24.8 and 33.5 rad/s2; only as the fixed base's mass grows, 27.67 both.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet jaxsim==0.9.0 rod==0.5.0 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PY'
import jax

jax.config.update("jax_enable_x64", True)
import jaxsim
import jaxsim.api as js
import numpy as np
from jaxsim.rbda.contacts import RelaxedRigidContacts

TENSOR = "<inertia><ixx>{0}</ixx><iyy>{0}</iyy><izz>{0}</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia>"
FIRST, SECOND = ((1.0, 0.5), (3.0, 0.2)), ((2.0, 0.4), (0.5, 0.5))  # mass [kg] and where it is [m]


def arm(name, at, mass, length):
    return f"""<link name="{name}"><pose relative_to="{name}_hinge">0 0 0 0 0 0</pose><inertial>
    <pose>{length} 0 0 0 0 0</pose><mass>{mass}</mass>{TENSOR.format(0.01)}</inertial></link>
    <joint name="{name}_hinge" type="revolute"><pose relative_to="base">{at} 0 0 0 0 0</pose>
    <parent>base</parent><child>{name}</child><axis><xyz>0 1 0</xyz>
    <limit><lower>-3</lower><upper>3</upper></limit></axis></joint>
    <frame name="{name}_tip" attached_to="{name}"><pose>0.5 0 0 0 0 0</pose></frame>"""


def accelerations(pairs, base):
    """Of the arms [rad/s2], pairs side by side, released level; each pair is welded at its tips."""
    arms = "".join(arm(f"{side}{i}", i, *each) for i, pair in enumerate(pairs)
                   for side, each in zip("ab", pair, strict=True))
    text = f"""<sdf version="1.10"><model name="m"><link name="base"><inertial><mass>{base}</mass>
    {TENSOR.format(base)}</inertial></link><joint name="fixed" type="fixed"><parent>world</parent>
    <child>base</child></joint>{arms}</model></sdf>"""
    build = js.model.JaxSimModel.build_from_model_description
    model, welds = build(text), js.kin_dyn_parameters.ConstraintMap()
    for i in range(len(pairs)):
        tips = (js.frame.name_to_idx(model, frame_name=f"{side}{i}_tip") for side in "ab")
        welds = welds.add_constraint(model, *tips, js.kin_dyn_parameters.ConstraintType.Weld)
    model = build(text, constraints=welds, contact_model=RelaxedRigidContacts.build())
    rate = js.ode.system_acceleration(model, js.data.JaxSimModelData.build(model))[1]
    return {name[:2]: float(x) for name, x in zip(model.joint_names(), rate, strict=True)}


def pendulum(pair):
    return 9.81 * sum(m * r for m, r in pair) / sum(m * r**2 + 0.01 for m, r in pair)


light, heavy = accelerations([FIRST], 1.0), accelerations([FIRST], 1e7)
both = accelerations([FIRST, SECOND], 1e7)
print("jaxsim", jaxsim.__version__, "right", pendulum(FIRST), pendulum(SECOND))
print("one pair, base of 1 kg", light, "of 1e7 kg", heavy, "two pairs", both)
assert abs(pendulum(FIRST) - 27.669) < 1e-3 and abs(pendulum(SECOND) - 22.152) < 1e-3
assert max(abs(x - pendulum(FIRST)) for x in heavy.values()) < 5e-3
assert abs(light["a0"] - 24.75) < 0.02 and abs(light["b0"] - 33.50) < 0.02
assert abs(both["b0"] - 39.48) < 0.02 and abs(both["a1"] - 16.85) < 0.02
PY
