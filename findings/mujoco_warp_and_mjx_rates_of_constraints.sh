#!/usr/bin/env bash
# MuJoCo 4.0.0 counts the rate of the Jacobian of <connect>. mujoco-warp 4.0.0 takes that rate at the
# velocities of the last call, so that the first forward() after put_data has none of it and a second
# one, at the same state, another acceleration. mujoco-mjx 3.17.0 has none of it.
# Seen: a four-bar linkage at 1 rad/s without forces has accelerations in MuJoCo, next to none in MJX
# and in mujoco-warp's first call, MuJoCo's in its second.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet mujoco==4.0.0 mujoco-warp==4.0.0 mujoco-mjx==3.17.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import jax
import mujoco
import mujoco_warp
import numpy as np
import warp
from mujoco import mjx

jax.config.update("jax_enable_x64", True)
warp.config.quiet = True
m = mujoco.MjModel.from_xml_string("""<mujoco>
<option gravity="0 0 0" solver="CG" iterations="200"/>
<default><equality solimp="0.9999 0.9999 0.001 0.5 2"/></default><worldbody>
<body><joint axis="0 1 0"/><inertial pos="0 0 .1" mass="1" diaginertia=".01 .01 .01"/>
<body pos="0 0 .2"><joint axis="0 1 0"/><inertial pos=".2 0 0" mass="1" diaginertia=".01 .01 .01"/>
<site name="end" pos=".4 0 .1"/></body></body>
<body pos=".4 0 0"><joint axis="0 1 0"/><inertial pos="0 0 .15" mass="1" diaginertia=".01 .01 .01"/>
<site name="pin" pos="0 0 .3"/></body></worldbody>
<equality><connect site1="end" site2="pin"/></equality></mujoco>""")
d = mujoco.MjData(m)
mujoco.mj_forward(m, d)
rows = np.zeros((d.nefc, m.nv))
for i, unit in enumerate(np.eye(d.nefc)):
    mujoco.mj_mulJacTVec(m, d, rows[i], unit)
way = np.linalg.svd(rows)[2][-1]
start = mujoco.MjData(m)
start.qvel[:] = d.qvel[:] = way / way[0]  # keeps the loop closed, the crank at 1 rad/s
mujoco.mj_forward(m, d)
by_jax = np.asarray(jax.jit(mjx.forward)(mjx.put_model(m), mjx.put_data(m, d)).qacc)
with warp.ScopedDevice("cpu"):
    model, data, found = mujoco_warp.put_model(m), mujoco_warp.put_data(m, start), []
    for _ in range(2):
        mujoco_warp.forward(model, data)
        found.append(data.qacc.numpy()[0].copy())
print("MuJoCo", d.qacc, "MJX", by_jax, "mujoco-warp, first and second call", *found)
size = np.abs(d.qacc).max()
assert size > 0.1
assert np.abs(by_jax).max() < 0.01 * size
assert np.abs(found[0]).max() < 0.01 * size
assert np.abs(found[1] - d.qacc).max() < 0.01 * size
PY
