#!/usr/bin/env bash
# DART 6.20.0 (dartpy): MjcfParser reads every moment of inertia of an MJCF file as 1 kg m2, of <inertial> and of geoms;
# of a body without geoms the mass as 1 kg and the centre of mass as the body's origin, too; and ranges of hinges in
# degrees, MJCF's default, as radians. A body with <freejoint> is fixed to the world. Armature, stiffness, ref,
# <equality> and gravity are left out. Nothing is printed. Expected were inertias, ranges and free bodies as in MuJoCo 4.0.0.
# Seen for an arm of 0.04 kg m2 about its hinge and an armature of 0.5: 1.01 kg m2 for 0.54, a range of -30 to 40 rad.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet dartpy==6.20.0 mujoco==4.0.0 numpy==2.4.6
cd "$work"
cat > robot.xml <<'XML'
<mujoco model="r"><option gravity="0 0 -1.62"/><worldbody>
<body name="arm"><joint name="j" axis="0 1 0" range="-30 40" limited="true" armature="0.5" stiffness="3" ref="20"
damping="0.3"/><inertial pos="0.1 0 0" mass="1" diaginertia=".02 .03 .04"/><geom type="sphere" size="0.1"/></body>
<body name="full" pos="1 0 0"><joint name="k" axis="0 1 0"/>
<inertial pos="0.1 0 0" mass="1" fullinertia=".02 .03 .04 .001 .002 .003"/><geom type="sphere" size="0.1"/></body>
<body name="bare" pos="4 0 0"><joint name="h" axis="0 1 0"/><inertial pos="0.1 0 0" mass="5" diaginertia=".02 .03 .04"/></body>
<body name="ball" pos="2 0 0"><joint name="i" axis="0 1 0"/><geom type="sphere" size="0.1" mass="2"/></body>
<body name="free" pos="3 0 0"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia=".02 .03 .04"/></body></worldbody>
<equality><joint joint1="j" joint2="k"/></equality></mujoco>
XML
cat > read.py <<'PY'
from pathlib import Path

import dartpy

world = dartpy.utils.MjcfParser.readWorld(str(Path("robot.xml").resolve()))
PY
"$work/venv/bin/python" read.py > said 2>&1
cat said
test ! -s said
cat > run.py <<'PY'
from importlib.metadata import version

import mujoco
import numpy as np
from read import world

theirs = mujoco.MjModel.from_xml_path("robot.xml")
state = mujoco.MjData(theirs)
mujoco.mj_forward(theirs, state)
exact = np.zeros((theirs.nv, theirs.nv))
mujoco.mj_fullM(theirs, state, exact)
print("dartpy", version("dartpy"), "mujoco", mujoco.__version__)
trees = [world.getSkeleton(n) for n in range(world.getNumSkeletons())]
for tree in trees:
    body = tree.getBodyNode(0)
    name, mass, centre = body.getName(), body.getMass(), np.array(body.getLocalCOM())
    moment, number = np.array(body.getInertia().getMoment()), theirs.body(name).id
    print(name, mass, "kg at", centre, "moments", moment.tolist(), "MuJoCo's", theirs.body_mass[number],
          theirs.body_ipos[number], theirs.body_inertia[number])
    assert np.array_equal(moment, np.eye(3)) and np.all(theirs.body_inertia[number] < 0.05)
    if name == "bare":
        assert mass == 1 and not centre.any() and theirs.body_mass[number] == 5 and theirs.body_ipos[number][0] == 0.1
    else:
        assert abs(mass - theirs.body_mass[number]) < 1e-12 and np.allclose(centre, theirs.body_ipos[number])
    assert tree.getNumDofs() == (0 if name == "free" else 1)
assert len(trees) == 5 and theirs.nv == 10
arm = trees[0].getJoint(0)
range_, mass = [arm.getPositionLowerLimit(0), arm.getPositionUpperLimit(0)], trees[0].getMassMatrix()[0, 0]
print("range", range_, "MuJoCo's", theirs.jnt_range[0], "mass matrix", mass, "MuJoCo's", exact[0, 0])
assert range_ == [-30.0, 40.0] and np.allclose(theirs.jnt_range[0], np.deg2rad(range_))
assert abs(mass - 1.01) < 1e-9 and abs(exact[0, 0] - 0.54) < 1e-9
assert arm.getSpringStiffness(0) == 0 and arm.getPosition(0) == 0 and arm.getDampingCoefficient(0) == 0.3
assert theirs.jnt_stiffness[0] == 3 and theirs.neq == 1
print("gravity", world.getGravity(), "MuJoCo's", theirs.opt.gravity)
assert world.getGravity()[2] == -9.81 and theirs.opt.gravity[2] == -1.62
world.setGravity([0, 0, 0])
arm.setVelocity(0, 1.0)
for _ in range(10):
    world.step()
speeds = [arm.getVelocity(0), trees[1].getJoint(0).getVelocity(0)]
print("speeds of the two hinges that <equality> couples", speeds)
assert speeds[0] > 0.9 and speeds[1] == 0
PY
"$work/venv/bin/python" run.py
