"""Robots that other packages have read load as their files do, as far as they kept those."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from descriptions import differences
from texts import fan, joint, link, robot

import robomodel as rm
from robomodel.description import Description
from robomodel.errors import DescriptionError, DescriptionWarning
from robomodel.parsers import read
from robomodel.parsers.sources import package_of

urchin = pytest.importorskip("urchin")
yourdfpy = pytest.importorskip("yourdfpy")

LIMIT = '<limit lower="-1.23456789012345" upper="2" effort="3" velocity="4"/>'
SHAPES = """<visual name="skin"><origin xyz="0 0 0.123456789012345" rpy="0.1 0 1.5708"/>
  <geometry><mesh filename="package://nowhere/a.stl" scale="0.001 0.001 0.001"/></geometry>
  <material name="red"/></visual>
<collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision>
<collision><geometry><sphere radius="0.1"/></geometry></collision>
<collision><geometry><cylinder radius="0.1" length="0.123456789012345"/></geometry></collision>"""
MASS = (
    '<inertial><origin xyz="0.1 0 0.123456789012345" rpy="0 0.7 0"/><mass value="1.3"/>'
    '<inertia ixx="0.03" iyy="0.03" izz="0.025" ixy="0.001" ixz="1e-9" iyz="0"/></inertial>'
)
PLAIN = robot(
    '<material name="red"><color rgba="1 0 0 0.5"/></material>',
    link("a", MASS + SHAPES),
    *(link(name, MASS) for name in "bcd"),
    joint("turn", "base", "a", "0 0 0.123456789012345", kind="revolute", more=LIMIT),
    joint("slide", "a", "b", kind="prismatic", axis="0.6 0 0.8", rpy="0.1 0.2 0.3", more=LIMIT),
    joint("roll", "b", "c", more='<mimic joint="turn" multiplier="2.5" offset="0.1"/>'),
    joint("bolt", "c", "d", kind="fixed", rpy="1.5707963267948966 0 -1.5707963267948966"),
).replace("<mimic", '<dynamics damping="0.1" friction="0.2"/><mimic')
TRANSMISSION = """<transmission name="drive"><type>transmission_interface/SimpleTransmission</type>
  <joint name="turn"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
  <actuator name="motor"><mechanicalReduction>50</mechanicalReduction></actuator></transmission>"""
GEARED = PLAIN.replace(
    "</robot>",
    TRANSMISSION
    + link("rotor", MASS)
    + joint("spin", "base", "rotor")
    + '<coupling name="gear"><predecessor link="a"/><successor link="rotor"/><ratio value="9"/>'
    "</coupling></robot>",
)


def by_urchin(text: str, path: Path) -> Any:
    (path / "robot.urdf").write_text(text)
    return urchin.URDF.load(str(path / "robot.urdf"), lazy_load_meshes=True)


def by_yourdfpy(text: str, path: Path) -> Any:
    (path / "robot.urdf").write_text(text)
    return yourdfpy.URDF.load(str(path / "robot.urdf"), load_meshes=False, build_scene_graph=False)


@pytest.mark.parametrize("by", [by_urchin, by_yourdfpy])
@pytest.mark.filterwarnings("ignore:.*read as massless:robomodel.DescriptionWarning")
def test_a_plain_robot_is_as_its_file(by: Any, tmp_path: Path) -> None:
    robot = by(PLAIN, tmp_path)
    before = sorted(tmp_path.iterdir())
    assert differences(read(PLAIN), read(robot)) == []
    model, expected = rm.load(robot, floating_base=True), rm.load(PLAIN, floating_base=True)
    q = expected.random_configuration(0)
    np.testing.assert_allclose(
        rm.crba(model, q, backend="numpy"),
        rm.crba(expected, q, backend="numpy"),
        rtol=1e-12,
        atol=1e-14,
    )
    assert sorted(tmp_path.iterdir()) == before  # no mesh was read or written


@pytest.mark.filterwarnings("ignore:.*read as massless:robomodel.DescriptionWarning")
def test_urchin_keeps_couplings_and_transmissions(tmp_path: Path) -> None:
    assert differences(read(GEARED), read(by_urchin(GEARED, tmp_path))) == []


def test_yourdfpy_loses_couplings_and_transmissions(tmp_path: Path) -> None:
    given = read(GEARED)
    kept: Description = replace(given, couplings=(), transmissions=())
    assert differences(kept, read(by_yourdfpy(GEARED, tmp_path))) == []


def test_what_urchin_invents_is_told_and_left_out(tmp_path: Path) -> None:
    invented = by_urchin(fan(), tmp_path)
    assert invented.link_map["base"].inertial.mass == 1.0
    with pytest.warns(DescriptionWarning, match="link 'base'.* read as massless") as caught:
        assert read(invented).links[0].inertial is None
    assert len(caught) == 1
    with pytest.raises(DescriptionError, match="gives to links without <inertial>"):
        rm.load(invented, strict=True)


def test_urdfpy_and_derived_classes(tmp_path: Path) -> None:
    """The package urdfpy, whose classes urchin's are a copy of, needs an older Python."""
    older = type("URDF", (), {"__module__": "urdfpy.urdf"})()
    mine = type("MyRobot", (urchin.URDF,), {"__module__": "mine"})
    assert package_of(older)
    assert package_of(mine.__new__(mine))
    assert not package_of(type("URDF", (), {"__module__": "other.urdf"})())


def test_extensions_serve_for_objects(tmp_path: Path) -> None:
    extension = '<robot><joint name="c" independent="false"><mimic joint="a"/></joint></robot>'
    model = rm.load(by_yourdfpy(fan(), tmp_path), extend=extension)
    assert model.dof_names == ("a", "b")


def test_errors_name_the_element(tmp_path: Path) -> None:
    robot = by_yourdfpy(fan(), tmp_path)
    robot.robot.links[1].inertial.mass = -1.0
    with pytest.raises(DescriptionError, match="link 'link_a': value of <mass> is -1"):
        rm.load(robot)
    robot.robot.links[1].inertial.mass = float("nan")
    with pytest.raises(DescriptionError, match="not a finite number"):
        rm.load(robot)


def test_what_urchin_keeps_as_text_is_read_with_care(tmp_path: Path) -> None:
    robot = by_urchin(fan(), tmp_path)
    robot.other_xml = '<!DOCTYPE x [<!ENTITY e "boom">]><x><loop name="&e;"/></x>'
    with pytest.raises(DescriptionError, match="entities"):
        read(robot)


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="a URDF object of urchin, urdfpy or yourdfpy, not from"):
        rm.load(object())
