#!/usr/bin/env bash
# MuJoCo 4.0.0 reads a URDF joint whose limits are equal as a joint without limits. CAD exporters
# write lower="0" upper="0" for a joint that is locked: in MuJoCo it swings freely. A line on standard
# error says so. Seen: "limited: False", and a pendulum that goes all the way over.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
"$work/venv/bin/pip" install --quiet mujoco==4.0.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import mujoco

URDF = """<robot name="r"><link name="base"/><link name="arm"><inertial><origin xyz="0.3 0 0"/>
<mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
<limit lower="{}" upper="{}" effort="10" velocity="1"/></joint></robot>"""
print("mujoco", mujoco.__version__)
for lower, upper in ((0.0, 0.0), (0.5, 0.5)):
    model = mujoco.MjModel.from_xml_string(URDF.format(lower, upper))
    print(f"lower {lower}, upper {upper}: limited: {bool(model.jnt_limited[0])}")
    assert not model.jnt_limited[0]
locked = mujoco.MjModel.from_xml_string(URDF.format(0.0, 0.0))
data = mujoco.MjData(locked)
lowest = 0.0
for _ in range(1000):
    mujoco.mj_step(locked, data)
    lowest = max(lowest, float(data.qpos[0]))
print(f"a joint with lower=0, upper=0 turns by {lowest:.2f} rad in two seconds")
assert lowest > 1.5
sound = mujoco.MjModel.from_xml_string(URDF.format(-1.0, 1.0))
assert sound.jnt_limited[0]
PY
