#!/usr/bin/env bash
# Drake 1.51.1 takes an MJCF motor's gear as the ratio of its rotor's inertia only: the actuation is the torque
# at the joint, and ctrlrange and forcerange limit it there. In MuJoCo 4.0.0 the control is before the gear.
# A motor's armature (MuJoCo 4.0) is left out. Nothing is said. Gear 3 on 0.1 kg m2, control 1 for 10 ms.
# Seen: 0.1 rad/s where MuJoCo has 0.3; with forcerange 0.5, 0.05 and 0.15; with armature 0.01, 0.1 and 0.158.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet drake==1.51.1 mujoco==4.0.0 numpy==2.4.6
cd "$work"
cat > run.py <<'PY'
from importlib.metadata import version
from pathlib import Path

import mujoco
import numpy as np
from pydrake.all import MultibodyPlant, Parser, Simulator

print("drake", version("drake"), "mujoco", mujoco.__version__)
for more, drakes, mujocos in (("", 0.1, 0.3), ('forcelimited="true" forcerange="-.5 .5"', 0.05, 0.15),
                              ('ctrllimited="true" ctrlrange="-.5 .5"', 0.05, 0.15), ('armature="0.01"', 0.1, 0.03 / 0.19)):
    text = ('<mujoco model="r"><option gravity="0 0 0" timestep="0.001"/><worldbody><body name="l"><joint name="j" '
            'axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/></body></worldbody>'
            f'<actuator><motor joint="j" gear="3" {more}/></actuator></mujoco>')
    Path("robot.xml").write_text(text)
    plant = MultibodyPlant(1e-3)
    Parser(plant).AddModels("robot.xml")
    plant.Finalize()
    context = plant.CreateDefaultContext()
    plant.get_actuation_input_port().FixValue(context, np.ones(1))
    simulator = Simulator(plant, context)
    simulator.AdvanceTo(0.01)
    speed = float(plant.GetVelocities(simulator.get_context())[0])
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.ctrl[:] = 1
    for _ in range(10):
        mujoco.mj_step(model, data)
    print(more or "gear alone", "Drake", speed, "MuJoCo", data.qvel[0])
    assert abs(speed - drakes) < 1e-3 and abs(data.qvel[0] - mujocos) < 1e-3
PY
"$work/venv/bin/python" run.py 2> said
cat said
if grep -q "gear\|armature\|ctrlrange\|forcerange" said; then exit 1; fi
