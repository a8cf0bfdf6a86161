#!/usr/bin/env bash
# PyBullet 3.2.7: no joint turns faster than 100 rad/s, whatever <limit velocity> the URDF says, and nothing
# is printed: a rotor modelled as a link of its own stops gaining speed. changeDynamics(maxJointVelocity=)
# lifts it, joint by joint. Seen: velocity="500", 1 N m on 0.01 kg m2 for 2 s: 100 rad/s where 200 are right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pybullet==3.2.7 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PY'
from importlib.metadata import version
from pathlib import Path

import pybullet

INERTIA = ('<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>')
Path("rotor.urdf").write_text(f"""<robot name="r"><link name="b">{INERTIA}</link><link name="l">{INERTIA}</link>
<joint name="j" type="continuous"><parent link="b"/><child link="l"/><axis xyz="0 0 1"/>
<limit effort="100" velocity="500"/></joint></robot>""")
pybullet.connect(pybullet.DIRECT)


def speed(**more):
    rotor = pybullet.loadURDF("rotor.urdf", useFixedBase=True, flags=pybullet.URDF_USE_INERTIA_FROM_FILE)
    assert pybullet.getJointInfo(rotor, 0)[11] == 500
    pybullet.setJointMotorControl2(rotor, 0, pybullet.VELOCITY_CONTROL, force=0)
    pybullet.changeDynamics(rotor, 0, linearDamping=0, angularDamping=0, jointDamping=0, **more)
    for _ in range(480):  # steps of 1/240 s
        pybullet.setJointMotorControl2(rotor, 0, pybullet.TORQUE_CONTROL, force=1.0)
        pybullet.stepSimulation()
    found = pybullet.getJointState(rotor, 0)[1]
    pybullet.removeBody(rotor)
    return found


clipped, free = speed(), speed(maxJointVelocity=1000)
print("pybullet", version("pybullet"), "speed", clipped, "with maxJointVelocity", free)
assert abs(clipped - 100) < 1e-9 and abs(free - 200) < 1
PY
