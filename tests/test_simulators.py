"""What users of a simulator enter: armature, limits, gains, maps from motors to joints."""

from __future__ import annotations

import json
import re

import mujoco
import numpy as np
import pytest
from mujoco_oracle import full_mass_matrix
from test_tree_fit import leg

import robomodel as rm
from robomodel.reports.simulators import for_simulator, parse_gains

ALL = ("mujoco", "mjlab", "isaaclab", "genesis", "pinocchio", "drake")


@pytest.mark.slow
@pytest.mark.parametrize("simulator", ALL)
def test_every_joint_has_its_armature(run, simulator: str) -> None:
    """Those of a dog's rotors, N² I, under the simulator's name."""
    code, out, _ = run("armature", "mini_cheetah", "--for", simulator)
    assert code == 0
    names = [name for name in rm.robots.load("mini_cheetah").joint_names if "link_joint" in name]
    assert len(names) == 12
    text = re.sub(r"\\(.)", r"\1", out)
    assert all(name in text for name in names)
    assert "0.002268" in out  # 36 · 6.3e-5
    word = {"drake": "drake:rotor_inertia", "genesis": "set_dofs_armature"}
    assert word.get(simulator, "armature") in out


@pytest.mark.slow
def test_a_linkage_has_its_map_and_a_motion(run, tmp_path) -> None:
    """From the crank's motor to the knee, as G says; gains by the robot's inertia; a second."""
    path = tmp_path / "leg.urdf"
    path.write_text(
        leg(belt=False).replace('ratio="12"/>', 'ratio="12"/><motor effort="3" effort_lower="-2"/>')
    )
    code, out, _ = run("armature", path, "--for", "isaaclab", "--gains", "12,0.7", "--json")
    assert code == 0
    data = json.loads(out)
    fields = {each["joint"]: each for each in data["fields"]}
    model = rm.load(path)
    q = model.neutral()
    names = ["hip", "knee"]
    rows = [model.nodes[model.joint_names.index(name)].v for name in names]
    back = np.linalg.inv(model.constraint_jacobian(q)[rows])
    mass = np.diag(back.T @ rm.crba(model, q) @ back)
    for name, m in zip(names, mass, strict=True):
        np.testing.assert_allclose(fields[name]["gains"], [144 * m, 16.8 * m], rtol=1e-9)
    (knee,) = (each for each in rm.actuation(model).joints if each.joint == "knee")
    both = [knee.limits.least_effort, knee.limits.effort]
    assert fields["knee"]["efforts"] == pytest.approx(both)
    assert fields["knee"]["effort"] == pytest.approx(min(-both[0], both[1]))
    assert -both[0] != pytest.approx(both[1])
    (motor_map,) = data["maps"]
    assert motor_map["joint"] == "knee"
    assert motor_map["error"] < 0.05 * 12
    at, ratio, torque = motor_map["rows"][4]
    there = model.configuration({"hip": 0.0, "knee": at})
    g = model.constraint_jacobian(there)
    crank = g[model.nodes[model.joint_names.index("crank")].v] / g[rows[1], 1]
    assert ratio == pytest.approx(12 * crank[1] / 1.0, rel=0.02)
    assert torque == pytest.approx(2 * abs(ratio), rel=1e-9)
    assert 0.0 < max(data["motion"].values()) < 8e-3
    code, out, _ = run("armature", path, "--for", "mujoco", "--joints", "crank")
    assert '<joint name="crank" armature=' in out


@pytest.mark.slow
def test_belts_are_tendons_in_mujoco_alone() -> None:
    sections, data = for_simulator(rm.robots.load("belt_leg"), "mujoco")
    assert sections
    assert '<joint joint="knee_link_joint" coef="12"/>' in data["text"]
    assert "fixed" not in for_simulator(rm.robots.load("belt_leg"), "isaaclab")[1]["text"]


FOLLOWER = """<mujoco><worldbody>
<body><joint name="a" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/>
<body pos=".4 0 0"><joint name="b" axis="0 1 0" armature="0.03"/><geom size=".1" pos=".2 0 0"/>
</body></body></worldbody>
<equality><joint joint1="b" joint2="a" polycoef="0.1 -2 0 0 0"/></equality>
<actuator><motor name="m" joint="a" ctrlrange="-1 1"/></actuator></mujoco>"""


@pytest.mark.parametrize("simulator", ALL)
def test_joints_that_follow_have_the_armature_of_the_file(simulator: str) -> None:
    """With what is printed, MuJoCo's inertia at the joint that leads is the robot's."""
    model = rm.load(FOLLOWER)
    sections, data = for_simulator(model, simulator)
    armature = {each.joint: each.armature for each in data["fields"]}
    bare = mujoco.MjModel.from_xml_string(FOLLOWER.replace('armature="0.03"', ""))
    state = mujoco.MjData(bare)
    state.qpos[:] = model.joint_positions(model.neutral())["a"], 0.0
    state.qpos[1] = 0.1 - 2.0 * state.qpos[0]
    mujoco.mj_forward(bare, state)
    mass = full_mass_matrix(bare, state) + np.diag([armature["a"], armature["b"]])
    ratios = np.array([1.0, -2.0])
    assert ratios @ mass @ ratios == pytest.approx(rm.crba(model, model.neutral())[0, 0])
    assert ("0.03" in data["text"]) == (simulator in ("mujoco", "genesis", "pinocchio"))
    told = "they have armatures, too: that of b is 0.03" in str(sections)
    assert told == (simulator not in ("mujoco", "genesis", "pinocchio"))


def test_wrong_words(run) -> None:
    for text in ("12", "a,b", "-1,0.7", "12,nan"):
        with pytest.raises(ValueError, match="gains are a frequency"):
            parse_gains(text)
    with pytest.raises(ValueError, match="simulators are mujoco"):
        for_simulator(rm.robots.load("belt_leg"), "bullet")
    assert run("armature", "belt_leg", "--gains", "12,0.7")[0] == 2
    assert run("convert", "belt_leg", "-o", "x.urdf", "--joints", "hip_ry_link_joint")[0] == 2
