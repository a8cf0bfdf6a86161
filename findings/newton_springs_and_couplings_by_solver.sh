#!/usr/bin/env bash
# Newton 1.8.0: springs of joints, springs of fixed tendons and <equality><joint> of an MJCF file act in some
# solvers only, and none says what it leaves out. Hinges of 0.1 kg m2, 100 ms from rest. Seen: SolverMuJoCo has
# all; SolverFeatherstone and SolverSemiImplicit only the joint's spring; SolverXPBD none (the spring's joint
# stands still). SolverFeatherstone holds the same coupling when it is a URDF's <mimic>. The velocity limit of
# a URDF (0.3 rad/s) acts in none: all reach 1 rad/s.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet newton==1.8.0 mujoco==4.0.0 mujoco-warp==4.0.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import newton
import numpy as np
import warp as wp

wp.config.quiet = True
INERTIA = '<inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/>'
TWO = (f'<worldbody><body name="a"><joint name="a" axis="0 0 1"/>{INERTIA}</body>'
       f'<body name="b" pos="0 0 1"><joint name="b" axis="0 0 1"/>{INERTIA}</body></worldbody>')
SPRING = ('<mujoco><compiler angle="radian"/><worldbody><body><joint name="a" axis="0 0 1" stiffness="3" '
          f'springref="0.4"/>{INERTIA}</body></worldbody></mujoco>')
TENDON = (f'<mujoco><compiler angle="radian"/>{TWO}<tendon><fixed stiffness="5"><joint joint="a" coef="1"/>'
          '<joint joint="b" coef="-2"/></fixed></tendon></mujoco>')
COUPLING = (f'<mujoco><compiler angle="radian"/>{TWO}<equality><joint joint1="b" joint2="a" polycoef="0 2 0 0 0"/>'
            '</equality></mujoco>')
URDF = ('<robot name="r"><link name="b"/><link name="l"><inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" '
        'izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="revolute"><parent link="b"/>'
        '<child link="l"/><axis xyz="0 0 1"/><limit lower="-10" upper="10" effort="5" velocity="0.3"/></joint></robot>')


def speeds(name, text, force):
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    (builder.add_urdf if text.startswith("<robot") else builder.add_mjcf)(text)
    model = builder.finalize(device="cpu")
    solver = getattr(newton.solvers, name)(model)
    now, after, control = model.state(), model.state(), model.control()
    control.joint_f.assign(np.array(force, dtype=np.float32))
    newton.eval_fk(model, model.joint_q, model.joint_qd, now)
    for _ in range(100):
        now.clear_forces()
        solver.step(now, after, control, None, 1e-3)
        now, after = after, now
    q, qd = wp.zeros_like(model.joint_q), wp.zeros_like(model.joint_qd)
    newton.eval_ik(model, now, q, qd)
    return qd.numpy()


print("newton", newton.__version__)
rate = np.sqrt(3 / 0.1)
exact = 0.4 * rate * np.sin(rate * 0.1)  # of the spring
for name in ("SolverMuJoCo", "SolverFeatherstone", "SolverSemiImplicit", "SolverXPBD"):
    spring, tendon = speeds(name, SPRING, [0.0]), speeds(name, TENDON, [1.0, 0.0])
    coupled, limited = speeds(name, COUPLING, [1.0, 0.0]), speeds(name, URDF, [1.0])
    print(name, "spring", spring, "exact", exact, "tendon", tendon, "coupling", coupled, "velocity limit", limited)
    whole = name == "SolverMuJoCo"
    assert abs(spring[0] - (0.0 if name == "SolverXPBD" else exact)) < 0.02
    assert (tendon[1] > 0.1) if whole else (tendon[1] == 0)
    assert abs(coupled[1] / coupled[0] - 2) < 0.01 if whole else coupled[1] == 0
    assert abs(limited[0] - 1) < 0.01
PY
