#!/usr/bin/env bash
# Newton 1.8.0: add_mjcf leaves out fixed tendons over joints whose names hold a "-", and the equality
# constraints of these tendons; only verbose=True says so. Three hinges, tendon a + b - c held at zero.
# Seen: with names j1, j2, j3 the model of SolverMuJoCo has the tendon, with j-1, j-2, j-3 neither it nor its constraint.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet newton==1.8.0 mujoco==4.0.0 mujoco-warp==4.0.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import newton
import warp as wp

wp.config.quiet = True
LINK = '<inertial pos=".1 0 0" mass="1" diaginertia=".1 .1 .1"/>'


def constraints(names):
    a, b, c = names
    builder = newton.ModelBuilder()
    builder.add_mjcf(f"""<mujoco model="r"><worldbody><body><joint name="{a}" axis="0 0 1"/>{LINK}<body pos=".2 0 0">
<joint name="{b}" axis="0 0 1"/>{LINK}</body></body><body pos="0 0 1"><joint name="{c}" axis="0 0 1"/>{LINK}</body></worldbody>
<tendon><fixed name="t"><joint joint="{a}" coef="1"/><joint joint="{b}" coef="1"/><joint joint="{c}" coef="-1"/></fixed></tendon>
<equality><tendon tendon1="t"/></equality></mujoco>""")
    solver = newton.solvers.SolverMuJoCo(builder.finalize(device="cpu"), use_mujoco_cpu=True)
    return solver.mj_model.neq, solver.mj_model.ntendon


words, dashes = constraints(("j1", "j2", "j3")), constraints(("j-1", "j-2", "j-3"))
print("newton", newton.__version__, "equality constraints and tendons:", words, "with dashes:", dashes)
assert words[1] == 1 and dashes == (words[0] - 1, 0)
PY
