#!/usr/bin/env bash
# DART 6.20.0 (dartpy): a URDF's <mimic> is a motor on the joint that follows, with that joint's effort limit; the joint
# that leads does not feel it. With setUseCouplerConstraint(True), new in 6.20, it does, but speeds jump from step to
# step, at steps of 1 and of 0.1 ms; positions are right in the mean. Expected were Lagrange's equations, as of a gear.
# And each link without <inertial> (tool points, links between two joints) weighs 1 kg and has moments of 1 kg m2.
# Two arms of 1 kg m2 side by side, i turns twice as j, 1 N m on j from rest: 0.2 and 0.4 rad/s2 are right.
# Seen: 1 and 1.95; with an effort limit of 0.1 N m on i, 1 and 0.1; with the coupler 0.161 rad/s after 5 ms for 0.001;
# with a tool point 1 m out on the first arm its mass matrix is 3 kg m2 for 1.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet dartpy==6.20.0 numpy==2.4.6
cd "$work"
cat > run.py <<'PY'
from importlib.metadata import version

import dartpy
import numpy as np

LINK = ('<link name="{0}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        '</link><joint name="{1}" type="revolute"><parent link="b"/><child link="{0}"/><axis xyz="0 0 1"/><limit lower="-10" '
        'upper="10" effort="{2}" velocity="100"/>{3}</joint>')


TIP = ('<link name="tip"/><joint name="t" type="fixed"><parent link="l"/><child link="tip"/><origin xyz="1 0 0"/></joint>')


def load(effort=100, more=""):
    options = dartpy.utils.DartLoader.Options()
    options.mDefaultRootJointType = dartpy.utils.DartLoader.RootJointType.FIXED
    loader = dartpy.utils.DartLoader()
    loader.setOptions(options)
    return loader.parseSkeletonString('<robot name="r"><link name="b"/>' + LINK.format("l", "j", 100, "") + LINK.format(
        "k", "i", effort, '<mimic joint="j" multiplier="2"/>') + more + "</robot>", "")


def speeds(effort, coupler, step, steps):
    robot = load(effort)
    world = dartpy.simulation.World()
    world.addSkeleton(robot)
    world.setTimeStep(step)
    leader, follower = robot.getJoint("j"), robot.getJoint("i")
    follower.setUseCouplerConstraint(coupler)
    found = []
    for _ in range(steps):
        leader.setForce(0, 1.0)
        world.step()
        found.append((leader.getVelocity(0), follower.getVelocity(0)))
    return np.array(found), np.array([leader.getPosition(0), follower.getPosition(0)])


print("dartpy", version("dartpy"))
for effort, expected in ((100, (1.0, 1.95)), (0.1, (1.0, 0.099))):
    found = speeds(effort, False, 1e-3, 100)[0][-1] / 0.1
    print("effort limit", effort, "N m: accelerations", found, "where (0.2, 0.4) are right")
    assert np.allclose(found, expected, rtol=1e-6)
for step in (1e-3, 1e-4):
    found, positions = speeds(100, True, step, round(0.1 / step))
    means = positions * 2 / 0.1**2
    print("coupler, steps of", step, "s: mean accelerations", means, "speeds over time in the first steps",
          (found[:6] / (step * np.arange(1, 7)[:, None])).round(2).tolist())
    assert np.allclose(means, (0.2, 0.4), rtol=0.03)
    assert abs(found[4, 0] / (5 * step) - 32.2) < 0.01 and abs(found[4, 1] / (5 * step) + 15.6) < 0.01
bare, tipped = load(), load(more=TIP)
first = [robot.getMassMatrix()[(n := robot.getDof("j").getIndexInSkeleton(), n)] for robot in (bare, tipped)]
print("the first arm's moment", first[0], "with a tool point without <inertial>", first[1], "kg m2; it weighs",
      tipped.getBodyNode("tip").getMass(), "kg")
assert abs(first[0] - 1) < 1e-12 and abs(first[1] - 3) < 1e-12 and tipped.getBodyNode("tip").getMass() == 1
PY
"$work/venv/bin/python" run.py
