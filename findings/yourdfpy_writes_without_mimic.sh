#!/usr/bin/env bash
# yourdfpy 0.0.60: write_xml_file leaves out <mimic>, <transmission>, <safety_controller> and <calibration>
# of a URDF that it read, without a word, though its own object holds the mimic and update_cfg follows it.
# Read again, a gripper with one freedom has two. Seen: 1 actuated joint before, 2 after.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet yourdfpy==0.0.60 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PY'
from importlib.metadata import version
from pathlib import Path

import yourdfpy

LIMIT = '<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="5" velocity="3"/>'
Path("robot.urdf").write_text(f"""<robot name="r"><link name="b"/><link name="l"/><link name="k"/>
<joint name="j" type="revolute"><parent link="b"/><child link="l"/>{LIMIT}<dynamics damping="0.3" friction="0.2"/>
<safety_controller k_velocity="3" k_position="2" soft_lower_limit="-.5" soft_upper_limit=".5"/>
<calibration rising="0.1"/></joint>
<joint name="i" type="revolute"><parent link="l"/><child link="k"/>{LIMIT}<mimic joint="j" multiplier="2" offset="0.3"/></joint>
<transmission name="t"><type>transmission_interface/SimpleTransmission</type><joint name="j"><hardwareInterface>EffortJointInterface
</hardwareInterface></joint><actuator name="a"><mechanicalReduction>50</mechanicalReduction></actuator></transmission></robot>""")
before = yourdfpy.URDF.load("robot.urdf")
before.write_xml_file("written.urdf")
after, text = yourdfpy.URDF.load("written.urdf"), Path("written.urdf").read_text()
print("yourdfpy", version("yourdfpy"), "actuated joints:", before.actuated_joint_names, after.actuated_joint_names)
assert before.joint_map["i"].mimic.multiplier == 2
assert before.num_actuated_joints == 1 and after.num_actuated_joints == 2
assert not any(word in text for word in ("mimic", "transmission", "safety_controller", "calibration"))
assert 'damping="0.3"' in text and 'friction="0.2"' in text
PY
