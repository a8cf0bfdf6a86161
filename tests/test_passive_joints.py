"""Joints with a limit of effort of zero have no motor, and those that only pull have one."""

from __future__ import annotations

import io
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
import texts
from texts import four_bar, link, robot

import robomodel as rm
from robomodel.control import InverseDynamics, JointTask
from robomodel.reports.simulators import for_simulator

LIMIT = '<limit lower="-1" upper="1" {}/>'


def arm(elbow: str, shoulder: str = 'effort="20" velocity="5"', more: str = "") -> str:
    """An arm with two hinges and these limits."""
    return robot(
        link("upper"), link("fore"),
        texts.joint("shoulder", "base", "upper", kind="revolute", axis="0 1 0",
                    more=LIMIT.format(shoulder)),
        texts.joint("elbow", "upper", "fore", "0.3 0 0", kind="revolute", axis="0 1 0",
                    more=LIMIT.format(elbow) + more),
    )  # fmt: skip


@pytest.mark.parametrize("velocity", [0, 5])
def test_a_joint_without_effort_has_no_motor(velocity: int) -> None:
    """In reports, in what simulators are given, and in the files that are written."""
    model = rm.load(arm(f'effort="0" velocity="{velocity}"'))
    (actuator,) = model.actuators
    assert (actuator.joint, actuator.effort_limit) == ("shoulder", 20.0)
    assert np.array_equal(rm.actuator_map(model, model.neutral()), [[1.0], [0.0]])
    study = rm.actuation(model)
    assert [each.actuators for each in study.joints] == [("shoulder",), ()]
    assert "no motor drives 'elbow': a limit of effort of zero tells of none" in str(study)
    for simulator in ("mjlab", "isaaclab", "drake"):
        sections, data = for_simulator(model, simulator, gains=(12.0, 0.7))
        assert "shoulder" in data["text"]
        assert "elbow" not in data["text"]
        assert "left out, as no motor drives them: 'elbow'" in str(sections)
    text = for_simulator(model, "mujoco", gains=(12.0, 0.7))[1]["text"]
    assert '<joint name="elbow" armature="0"/>' in text
    assert '<position joint="elbow"' not in text
    for approximate in (False, True):
        stream = io.StringIO()
        rm.write_mjcf(model, stream, approximate=approximate)
        written = mujoco.MjModel.from_xml_string(stream.getvalue())
        assert [written.joint(i[0]).name for i in written.actuator_trnid] == ["shoulder"]


@pytest.mark.parametrize("kind", ["urdf", "mjcf"])
def test_a_joint_without_a_motor_beside_motors_has_none_in_open_trees(kind: str) -> None:
    """A file that has transmissions, or actuators, and none for the elbow, which has a limit."""
    drive = (
        '<transmission name="t"><type>SimpleTransmission</type><joint name="shoulder"/>'
        '<actuator name="m"/></transmission></robot>'
    )
    text = arm('effort="7" velocity="5"').replace("</robot>", drive)
    if kind == "mjcf":
        stream = io.StringIO()
        rm.write_mjcf(rm.load(text), stream)
        text = stream.getvalue()
    model = rm.load(text)
    assert [each.name for each in model.actuators] == ["m"]
    assert "no motor drives 'elbow': the file has motors, and none there" in str(
        rm.actuation(model)
    )
    for write in (rm.write_urdf, rm.write_sdf, rm.write_usd, rm.write_mjcf):
        stream = io.StringIO()
        write(model, stream, approximate=True)
        tree = rm.load(stream.getvalue())
        assert np.array_equal(rm.actuator_map(tree, tree.neutral()), [[1.0], [0.0]])
        assert np.array_equal(rm.torque_limits(tree, tree.neutral())[1], [20.0, 0.0])
    for simulator in ("mjlab", "isaaclab", "drake"):
        sections, data = for_simulator(model, simulator, gains=(12.0, 0.7))
        assert "elbow" not in data["text"]
        assert "left out, as no motor drives them: 'elbow'" in str(sections)
    assert "[-20, 0], [20, 0]" in for_simulator(model, "genesis")[1]["text"]


def on(joint: str, kind: str = "SimpleTransmission") -> str:
    """A motor of this joint."""
    return (
        f'<transmission name="t"><type>{kind}</type><joint name="{joint}"/><actuator name="m"/>'
        "</transmission>"
    )


def test_a_floating_base_is_no_joint_without_a_motor() -> None:
    text = arm('effort="7" velocity="5"').replace("</robot>", on("shoulder") + "</robot>")
    text = text.replace('<link name="base"/>', link("base"))
    model = rm.load(text, floating_base=True)
    for simulator in ("mjlab", "isaaclab", "genesis"):
        sections, data = for_simulator(model, simulator, gains=(12.0, 0.7))
        assert "shoulder" in data["text"]
        assert simulator == "genesis" or "no motor drives them: 'elbow'" in str(sections)


@pytest.mark.filterwarnings("ignore:.*a transmission of the type 'pr2")
@pytest.mark.parametrize("driven", ["linkage", "unknown type"])
def test_a_joint_has_no_motor_beside_those_that_trees_have_otherwise(driven: str) -> None:
    """A crank's, which is its rocker's in the tree, and one of an unknown type."""
    if driven == "linkage":
        ends = LIMIT.format('effort="4" velocity="5"')
        text = robot(
            link("crank"), link("rod"), link("rocker"), link("fore"),
            texts.joint("crank", "base", "crank", kind="revolute",
                        more=LIMIT.format('effort="8" velocity="5"')),
            texts.joint("rod", "crank", "rod", "0 0.2 0"),
            texts.joint("rocker", "base", "rocker", "0.5 0 0", kind="revolute", more=ends),
            texts.loop("eye", "revolute", "rod", "rocker", "0.5 0.05 0", "0 0.25 0"),
            texts.joint("elbow", "rocker", "fore", "0 0.25 0", kind="revolute", more=ends),
            on("crank"),
        )  # fmt: skip
    else:
        text = arm('effort="4" velocity="5"').replace(
            "</robot>", on("shoulder", "pr2/GripperTransmission") + "</robot>"
        )
    model = rm.load(text)
    assert [each.name for each in model.actuators] == ["m"]
    for write in (rm.write_urdf, rm.write_sdf, rm.write_usd, rm.write_mjcf):
        stream = io.StringIO()
        write(model, stream, approximate=True)
        tree = rm.load(stream.getvalue())
        (motor,) = tree.actuators
        assert motor.joint == ("rocker" if driven == "linkage" else "shoulder")
        assert rm.torque_limits(tree, tree.neutral())[1][tree.dof_names.index("elbow")] == 0.0


def test_a_robot_of_joints_without_effort_has_no_motors() -> None:
    """As one whose joints have no limits."""
    zero = 'effort="0" velocity="0"'
    assert rm.load(arm(zero, zero)).actuators == rm.load(arm("", "")).actuators == ()
    lines = for_simulator(rm.load(arm(zero, zero)), "isaaclab")[1]["text"]
    assert lines == ""


def test_a_joint_without_effort_behind_a_motor_has_what_the_motor_gives() -> None:
    """A four-bar's rocker, whose limit of effort is zero: the crank's motor has one, or none."""
    for motor in ('effort="7"', 'velocity="3"'):
        text = four_bar(marks=(True, False, False))
        for name, more in (("crank", f"<motor {motor}/>"), ("rocker", '<limit effort="0"/>')):
            text = text.replace(f'<child link="{name}"/>', f'<child link="{name}"/>{more}')
        (rocker,) = rm.actuation(rm.load(text), ["j_rocker"]).joints
        assert rocker.actuators == ("j_crank",)
        assert np.isfinite(rocker.limits.effort) == ("effort" in motor)
        assert rocker.limits.effort > 0.0


def test_a_joint_that_only_pulls_keeps_its_motor() -> None:
    """In files, those of open trees, too, also behind a gear that turns it about."""
    for effort, more in (
        ('effort="0" effort_lower="-5"', ""),
        ('effort="5" effort_lower="0"', '<rotor inertia="1e-4" ratio="-7"/>'),
    ):
        model = rm.load(arm(f'{effort} velocity="5"', more=more))
        least, most = rm.torque_limits(model, model.neutral())
        assert sorted(np.abs([least[1], most[1]])) == [0.0, pytest.approx(5.0)]
        assert "zero-limit" not in str(rm.validate(model))
        for write in (rm.write_urdf, rm.write_sdf, rm.write_mjcf):
            for approximate in (False, True):
                stream = io.StringIO()
                write(model, stream, approximate=approximate)
                tree = rm.load(stream.getvalue())
                assert np.allclose(rm.torque_limits(tree, tree.neutral()), (least, most))


@pytest.mark.parametrize("gear", [3, -3])
def test_motors_that_only_pull_are_mujocos(gear: int) -> None:
    """What MuJoCo gives at both ends of its control, in files of all formats."""
    body = '<body><joint name="j" axis="0 1 0"/><geom size="0.1"/></body>'
    motor = f'<motor name="m" joint="j" ctrlrange="-4 0" gear="{gear}"/>'
    text = f"<mujoco><worldbody>{body}</worldbody><actuator>{motor}</actuator></mujoco>"
    simulated = mujoco.MjModel.from_xml_string(text)
    data, forces = mujoco.MjData(simulated), list[float]()
    for control in (-1e9, 1e9):
        data.ctrl[:] = control
        mujoco.mj_forward(simulated, data)
        forces.append(float(data.qfrc_actuator[0]))
    model = rm.load(text)
    (actuator,) = model.actuators
    assert (actuator.least_effort, actuator.effort_limit) == (-4.0, 0.0)
    for write in (rm.write_mjcf, rm.write_urdf, rm.write_usd):
        stream = io.StringIO()
        write(model, stream)
        again = rm.load(stream.getvalue())
        found = [float(each[0]) for each in rm.torque_limits(again, again.neutral())]
        assert found == sorted(forces)


def test_a_motor_without_any_force_is_refused() -> None:
    """It would be none."""
    for more in ("", ' effort_lower="0"'):
        with pytest.raises(rm.DescriptionError, match="effort is 0, and so no motor"):
            rm.load(arm("", more=f'<motor effort="0"{more}/>'))


def test_an_actuator_that_its_joint_leaves_no_force_is_none() -> None:
    """It pulls, and its joint lets only pushes through: MuJoCo gives nothing; files can be read."""
    body = '<body><joint name="j" axis="0 1 0" actuatorfrcrange="0 5"/><geom size="0.1"/></body>'
    motor = '<motor name="m" joint="j" ctrlrange="0 2" gear="-3"/>'
    text = f"<mujoco><worldbody>{body}</worldbody><actuator>{motor}</actuator></mujoco>"
    simulated = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(simulated)
    data.ctrl[:] = 2.0
    mujoco.mj_forward(simulated, data)
    assert data.qfrc_actuator[0] == 0.0
    with pytest.warns(rm.DescriptionWarning, match="leave it no force"):
        model = rm.load(text)
    assert not model.actuators
    for write in (rm.write_urdf, rm.write_sdf, rm.write_usd):
        stream = io.StringIO()
        write(model, stream)
        assert rm.load(stream.getvalue()).nv == 1


def test_a_limit_of_speed_of_zero_is_a_placeholder() -> None:
    """As in the same file without it: motors, torques at speed, states, control and open trees."""
    zero, none = (rm.load(arm(f'effort="5"{x}', f'effort="5"{x}')) for x in (' velocity="0"', ""))
    assert zero.actuators == none.actuators
    np.testing.assert_array_equal(zero.velocity_limit, [np.inf, np.inf])
    q, v = zero.neutral(), np.array([3.0, -2.0])
    np.testing.assert_array_equal(rm.torque_limits(zero, q, v), rm.torque_limits(none, q, v))
    np.testing.assert_array_equal(np.abs(rm.torque_limits(zero, q, v)), 5.0)
    assert not zero.check(q, v)
    assert str(rm.actuation(zero)) == str(rm.actuation(none))
    task = JointTask(["shoulder", "elbow"])
    found = [InverseDynamics(x, task)(q, v, {task: [0.1, 0.2]})[1] for x in (zero, none)]
    np.testing.assert_array_equal(*found)
    for write in (rm.write_urdf, rm.write_sdf, rm.write_mjcf):
        for approximate in (False, True):
            stream = io.StringIO()
            write(zero, stream, approximate=approximate)
            again = rm.load(stream.getvalue())
            np.testing.assert_array_equal(rm.torque_limits(again, q, v), rm.torque_limits(zero, q))
    assert "as robomodel takes velocities" in str(rm.validate(zero))


@pytest.mark.parametrize("elbow", ['velocity="5"', 'effort="3" velocity="5"'])
def test_genesis_gets_the_limits_of_those_joints_that_have_some(elbow: str) -> None:
    """The printed lines, run: a joint without a limit takes none from the other one."""
    given = dict[str, tuple[float, float]]()

    class Entity:
        def get_joint(self, name: str) -> Any:
            return SimpleNamespace(dofs_idx_local=[name])

        def set_dofs_armature(self, values: Sequence[float], dofs: Sequence[str]) -> None:
            assert len(values) == len(dofs)

        def set_dofs_force_range(
            self, lower: Sequence[float], upper: Sequence[float], dofs: Sequence[str]
        ) -> None:
            given.update(zip(dofs, zip(lower, upper, strict=True), strict=True))

    model = rm.load(arm(elbow, 'effort="20" effort_lower="-8"'))
    exec(for_simulator(model, "genesis")[1]["text"], {"entity": Entity()})
    rows = {x.joint: (x.limits.least_effort, x.limits.effort) for x in rm.actuation(model).joints}
    assert given == {name: ends for name, ends in rows.items() if np.isfinite(ends[1])}
    assert given["shoulder"] == (-8.0, 20.0)
