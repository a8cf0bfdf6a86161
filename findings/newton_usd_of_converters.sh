#!/usr/bin/env bash
# What urdf-usd-converter 0.3.4 and mujoco-usd-converter 0.8.0 keep under names of their own or of MuJoCo's compiler,
# Newton 1.8.0 does not read, with all of its schema resolvers neither, and says nothing: effort limits of URDF
# (urdf:limit:effort, in no other attribute), settotalmass of MJCF (mjc:compiler:setTotalMass, the masses beside it are
# those before it) and springdamper (mjc:springdamper). Expected was the robot of the first file.
# Seen: effort limits of 1e6 for 5 N m; 2 kg for 14; a spring of 0 where MuJoCo 3.16.0 has one from springdamper.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet urdf-usd-converter==0.3.4 mujoco-usd-converter==0.8.0 mujoco==3.16.0 newton==1.8.0 numpy==2.4.6
cd "$work"
cat > write.py <<'PY'
from importlib.metadata import version
from pathlib import Path

import mujoco
import mujoco_usd_converter
import urdf_usd_converter

Path("arm.urdf").write_text("""<robot name="arm"><link name="base"/><link name="l"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="revolute"><parent link="base"/>
<child link="l"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="5" velocity="3"/></joint></robot>""")
urdf_usd_converter.Converter().convert("arm.urdf", "arm")
Path("legs.xml").write_text("""<mujoco model="legs"><compiler settotalmass="14"/><worldbody><body name="a">
<joint name="j" axis="0 0 1" springdamper="0.1 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>
<body name="b"><joint name="k" axis="0 0 1" stiffness="3"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>
</worldbody></mujoco>""")
mujoco_usd_converter.Converter().convert("legs.xml", "legs")
model = mujoco.MjModel.from_xml_path("legs.xml")
print(*(f"{name} {version(name)}" for name in ("urdf-usd-converter", "mujoco-usd-converter", "mujoco")))
print("MuJoCo's masses", model.body_mass[1:], "springs", model.jnt_stiffness)
assert abs(sum(model.body_mass) - 14) < 1e-9 and model.jnt_stiffness[0] > 100 and model.jnt_stiffness[1] == 3
PY
"$work/venv/bin/python" write.py > said 2>&1
grep -v "^Status" said
grep -q urdf:limit:effort -r arm
grep -q mjc:compiler:setTotalMass -r legs
grep -q mjc:springdamper -r legs
cat > read.py <<'PY'
import warnings

import newton
import numpy as np
import warp
from newton.usd import SchemaResolverMjc, SchemaResolverNewton, SchemaResolverPhysx

warp.config.quiet = True
warnings.simplefilter("error")
print("newton", newton.__version__)
for resolvers in ((), (SchemaResolverNewton(), SchemaResolverMjc(), SchemaResolverPhysx())):
    read = []
    for path in ("arm/arm.usda", "legs/legs.usda"):
        builder = newton.ModelBuilder()
        newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
        builder.add_usd(path, **({"schema_resolvers": resolvers} if resolvers else {}))
        read.append(builder.finalize())
    arm, legs = read
    effort, speed = arm.joint_effort_limit.numpy(), arm.joint_velocity_limit.numpy()
    masses, springs = legs.body_mass.numpy(), legs.joint_stiffness.numpy()
    print(len(resolvers), "resolvers: effort limit", effort, "velocity limit", speed, "masses", masses, "springs", springs)
    assert effort[0] == 1e6 and abs(speed[0] - 3) < 1e-6
    assert np.allclose(masses, 1)
    assert springs[0] == 0 and abs(springs[1] - 3) < 1e-6
PY
"$work/venv/bin/python" read.py
