"""Springs and dampers in the simulators' formats: read as they act there, written and read back."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from test_passive import ROBOTS, states

import robomodel as rm

MJCF = """
<mujoco><compiler angle="radian"/><worldbody>
  <site name="anchor" pos="0.3 -0.2 0.5"/>
  <body name="a" pos="0 0 0.2">
    <joint name="hinge" axis="0 0.6 0.8" stiffness="7" springref="0.4" damping="0.3"/>
    <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>
    <body name="b" pos="0.3 0 0">
      <joint name="slide" type="slide" axis="1 0 0" stiffness="90" damping="2"/>
      <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>
      <body name="c" pos="0.2 0.1 0">
        <joint name="ball" type="ball" stiffness="11" damping="0.5"/>
        <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>
        <site name="tip" pos="0.2 0 0.1"/>
      </body>
    </body>
  </body></worldbody>
  <tendon>
    <fixed name="cable" stiffness="5" damping="0.2" springlength="0.3">
      <joint joint="hinge" coef="0.7"/><joint joint="slide" coef="-2"/></fixed>
    <spatial name="cord" stiffness="40" damping="3" springlength="0.4"><site site="anchor"/>
      <site site="tip"/></spatial>
  </tendon>
</mujoco>
"""


def test_forces_are_mujocos() -> None:
    model = rm.load(MJCF)
    compiled = mujoco.MjModel.from_xml_string(MJCF)
    compiled.opt.gravity[:] = 0.0
    data = mujoco.MjData(compiled)
    q, v = states(model, 8)
    names = {joint.name: joint for joint in model.joints}
    order = []
    for n in range(compiled.njnt):
        joint = names[mujoco.mj_id2name(compiled, mujoco.mjtObj.mjOBJ_JOINT, n)]
        labels = [joint.name] if joint.nv == 1 else [f"{joint.name}.{i}" for i in range(3)]
        order += [model.dof_names.index(label) for label in labels]
    for i in range(len(q)):
        positions = model.joint_positions(q[i])
        x, y, z, w = positions["ball"]
        data.qpos[:] = [positions["hinge"], positions["slide"], w, x, y, z]
        data.qvel[:] = v[i][order]
        mujoco.mj_forward(compiled, data)
        expected = np.zeros(model.nv)
        expected[order] = data.qfrc_passive
        np.testing.assert_allclose(
            rm.passive_force(model, q[i], v[i]), expected, rtol=1e-10, atol=1e-10
        )
        _, potential = rm.energy(model, q[i], v[i])
        _, weight = rm.energy(rm.load(MJCF, gravity=(0, 0, 0)), q[i], v[i])
        mujoco.mj_energyPos(compiled, data)
        assert weight == pytest.approx(data.energy[0], rel=1e-9)
        assert potential != weight


@pytest.mark.parametrize("name", ["gears", "floating ball"])
def test_mjcf_round_trip(name: str, tmp_path) -> None:
    model = rm.load(ROBOTS[name])
    rm.write_mjcf(model, tmp_path / "out.xml")
    chosen = model.dof_names if name == "gears" else None
    again = rm.load(tmp_path / "out.xml", independent=chosen)
    q, v = states(model)
    same = [again.dof_names.index(dof) for dof in model.dof_names]
    speed = np.empty_like(v)
    speed[:, same] = v
    np.testing.assert_allclose(
        rm.passive_force(again, q, speed)[:, same], rm.passive_force(model, q, v), rtol=1e-9,
        atol=1e-9,
    )  # fmt: skip


SDF = """
<sdf version="1.11"><model name="m"><link name="base"/><link name="a"><inertial><mass>1</mass>
<inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial></link>
<joint name="w" type="fixed"><parent>world</parent><child>base</child></joint>
<joint name="j" type="revolute"><parent>base</parent><child>a</child><axis><xyz>0 1 0</xyz>
<dynamics><damping>0.4</damping><friction>0.2</friction><spring_reference>0.3</spring_reference>
<spring_stiffness>6</spring_stiffness></dynamics></axis></joint></model></sdf>
"""


def test_sdf() -> None:
    model = rm.load(SDF)
    (joint,) = model.joints
    assert (joint.stiffness, joint.reference, joint.damping, joint.friction) == (6.0, 0.3, 0.4, 0.2)
    np.testing.assert_allclose(rm.passive_force(model, [0.5], [2.0]), [-6 * 0.2 - 0.4 * 2])


def test_sdf_round_trip(tmp_path) -> None:
    """Springs between links are no words of SDF: they are told of, joints' and loops' are kept."""
    text = ROBOTS["gears"]
    with pytest.raises(ValueError, match="springs 'strut', 'cable'"):
        rm.write_sdf(rm.load(text), tmp_path / "out.sdf")
    start, end = text.index("<spring name"), text.rindex("</spring>") + len("</spring>")
    model = rm.load(text[:start] + text[end:])
    rm.write_sdf(model, tmp_path / "out.sdf")
    again = rm.load(tmp_path / "out.sdf", independent=model.dof_names)
    assert again.dof_names == model.dof_names
    q, v = states(model)
    np.testing.assert_allclose(
        rm.passive_force(again, q, v), rm.passive_force(model, q, v), rtol=1e-10, atol=1e-10
    )
