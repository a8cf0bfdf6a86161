#!/usr/bin/env bash
# Newton 1.8.0: whether a joint's armature, dry friction and damping count depends on the solver, and no
# solver says what it leaves out. One hinge with 0.1 kg m2, 1 N m for 0.1 s from rest: with 0.3 kg m2 of
# armature it reaches 0.25 rad/s, with 0.5 N m of friction 0.5 rad/s, with 0.5 N m s/rad of damping
# 0.787 rad/s; with none of these 1 rad/s. Seen: SolverMuJoCo has all three; SolverFeatherstone has no
# friction; SolverSemiImplicit neither armature nor friction; SolverXPBD none of the three (1 rad/s each).
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
MJCF = """<mujoco><compiler angle="radian"/><worldbody><body name="l"><joint name="j" axis="0 0 1" {}/>
<inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/></body></worldbody></mujoco>"""
CASES = {'armature="0.3"': 0.25, 'frictionloss="0.5"': 0.5, 'damping="0.5"': 2 * (1 - np.exp(-0.5))}
COUNTED = {"SolverMuJoCo": 3 * [True], "SolverFeatherstone": [True, False, True],
           "SolverSemiImplicit": [False, False, True], "SolverXPBD": 3 * [False]}
print("newton", newton.__version__)
for name, counted in COUNTED.items():
    for (attribute, exact), counts in zip(CASES.items(), counted):
        builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
        builder.add_mjcf(MJCF.format(attribute))
        model = builder.finalize(device="cpu")
        solver = getattr(newton.solvers, name)(model)
        now, after, control = model.state(), model.state(), model.control()
        control.joint_f.assign(np.ones(1, dtype=np.float32))
        newton.eval_fk(model, model.joint_q, model.joint_qd, now)
        for _ in range(100):
            now.clear_forces()
            solver.step(now, after, control, None, 1e-3)
            now, after = after, now
        q, qd = wp.zeros_like(model.joint_q), wp.zeros_like(model.joint_qd)
        newton.eval_ik(model, now, q, qd)
        speed = float(qd.numpy()[0])
        print(f"{name} {attribute}: {speed:.4f} rad/s, exact {exact:.4f}")
        assert abs(speed - (exact if counts else 1.0)) < 0.005
PY
