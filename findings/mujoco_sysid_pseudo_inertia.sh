#!/usr/bin/env bash
# mujoco.sysid of MuJoCo 4.0.0 (and 3.17.0): a body's parameter of the type InertiaType.Pseudo cannot be compiled at
# all, with one body and its own starting value: "mass and inertia of moving bodies must be larger than mjMINVAL". Its
# modifier gives the full inertia and writes NaN for the orientation of the principal axes; with that the compiler
# leaves the full inertia out. In 3.5.0 it works. Setting spec.body(name).iquat to (1, 0, 0, 0) after the modifier,
# in a modifier of one's own, makes it work in all three.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/pseudo.py" <<'PY'
import sys

import mujoco
import mujoco.sysid as sysid
import numpy as np

XML = """<mujoco><worldbody><body name="a"><inertial pos="0 0 .05" mass="1" diaginertia=".01 .02 .015"/>
<joint name="j"/></body></worldbody></mujoco>"""


def compiled(**options):
    """The body's moments with its own starting value as the parameter, or what is raised."""
    spec = mujoco.MjSpec.from_string(XML)
    parameter = sysid.body_inertia_param(spec, spec.compile(), "a", sysid.InertiaType.Pseudo, **options)
    parameters = sysid.ParameterDict({parameter.name: parameter})
    try:
        return np.sort(sysid.apply_param_modifiers(parameters, spec).body("a").inertia)
    except ValueError as error:
        return str(error).splitlines()[0]


def turned(spec, parameter):
    sysid.apply_body_inertia(spec, "a", parameter)
    spec.body("a").iquat = [1, 0, 0, 0]


plain, mended = compiled(), compiled(modifier=turned)
print("mujoco", mujoco.__version__, "|", plain, "|", mended)
assert np.allclose(mended, [0.01, 0.015, 0.02])
if sys.argv[1] == "works":
    assert np.allclose(plain, mended)
else:
    assert "mass and inertia of moving bodies must be larger than mjMINVAL" in plain
PY
for version in 3.5.0 3.17.0 4.0.0; do
  python3 -m venv "$work/$version"
done
"$work/3.5.0/bin/pip" install --quiet "mujoco[sysid]==3.5.0" numpy==2.4.6 scipy==1.17.1
"$work/3.17.0/bin/pip" install --quiet "mujoco[sysid]==3.17.0" numpy==2.4.6 scipy==1.17.1
"$work/4.0.0/bin/pip" install --quiet "mujoco[sysid]==4.0.0" numpy==2.4.6 scipy==1.17.1
"$work/3.5.0/bin/python" "$work/pseudo.py" works
"$work/3.17.0/bin/python" "$work/pseudo.py" raises
"$work/4.0.0/bin/python" "$work/pseudo.py" raises
