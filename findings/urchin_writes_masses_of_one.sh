#!/usr/bin/env bash
# urchin 0.0.30: save() writes an <inertial> of 1 kg and 1 kg m2 about each axis for every link that has
# none (frames, tool points, bases). Each such frame then weighs 1 kg wherever the file is read next.
# Seen: a finger of 0.2 kg with one tool frame, read by Pinocchio 4.1.0: 0.2 kg before, 1.2 kg after.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet urchin==0.0.30 pin==4.1.0 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PY'
from importlib.metadata import version
from pathlib import Path

import pinocchio as pin
import urchin

Path("robot.urdf").write_text("""<robot name="r"><link name="b"/><link name="finger"><inertial><origin xyz="0.1 0 0"/>
<mass value="0.2"/><inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="tip"/>
<joint name="j" type="revolute"><parent link="b"/><child link="finger"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="5" velocity="3"/></joint>
<joint name="t" type="fixed"><parent link="finger"/><child link="tip"/><origin xyz="0.2 0 0"/></joint></robot>""")
urchin.URDF.load("robot.urdf").save("written.urdf")
before, after = (pin.buildModelFromUrdf(name) for name in ("robot.urdf", "written.urdf"))
print("urchin", version("urchin"), "masses by joint", [[i.mass for i in m.inertias] for m in (before, after)])
assert abs(before.inertias[1].mass - 0.2) < 1e-12 and abs(after.inertias[1].mass - 1.2) < 1e-12
assert Path("written.urdf").read_text().count('<mass value="1.0"/>') == 2
PY
