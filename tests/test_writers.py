"""URDF+ that is written reads back as the same description and the same robot."""

from __future__ import annotations

import io
import math
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import mujoco
import numpy as np
import pinocchio
import pytest
from agreement import same_robot
from cases import few
from descriptions import descriptions, differences
from hypothesis import assume, given, settings
from lxml import etree
from mechanisms import KINDS, Mechanism, mechanisms, random_mechanism
from mujoco_oracle import MujocoSide, assert_smooth_dynamics
from texts import INERTIAL, coupling, fan, four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.description import (
    Description,
    JointType,
    Transmission,
    TransmittedJoint,
    rotation_from_rpy,
)
from robomodel.errors import DescriptionError, DescriptionWarning
from robomodel.mobility import RigidError
from robomodel.model import Model
from robomodel.model.build import build
from robomodel.opentree.tree import TreeOptions, written_tree
from robomodel.parsers import open_document, read, urdf
from robomodel.parsers.mjcf.writer import to_mjcf
from robomodel.parsers.sdf.writer import to_sdf
from robomodel.parsers.urdf.robot import to_urdf
from robomodel.vocabulary.schema import number, rpy_of


def read_again(description: Description) -> Description:
    text, lost = to_urdf(description)
    assert lost == []
    document = open_document(text)
    result = urdf.read_urdf(document)
    assert document.issues == []
    return result


def written(model: Model) -> str:
    stream = io.StringIO()
    assert rm.write_urdf(model, stream) == ()
    return stream.getvalue()


# ---- descriptions --------------------------------------------------------------------------------


@pytest.mark.slow
@given(descriptions())
@settings(max_examples=20, deadline=None)
def test_whatever_a_description_holds_reads_back(description: Description) -> None:
    assert differences(description, read_again(description)) == []


@pytest.mark.tables
@pytest.mark.slow
@given(descriptions())
@settings(max_examples=200, deadline=None)
def test_whatever_more_descriptions_hold_reads_back(description: Description) -> None:
    assert differences(description, read_again(description)) == []


@pytest.mark.slow
def test_options_are_written() -> None:
    free = rm.load(four_bar(), floating_base=True, independent=["j_rocker"], gravity=(0, 1, -9))
    assert differences(free.description, read_again(free.description)) == []
    same_robot(free, rm.load(written(free)))


@pytest.mark.slow_cases("ankle", "rod")
@pytest.mark.parametrize("kind", few(KINDS, "gear", "rod", "ankle"))
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_random_mechanisms(kind: str) -> None:
    mechanism = random_mechanism(np.random.default_rng(KINDS.index(kind)), [kind], n_joints=4)
    model = rm.load(mechanism.text, floating_base=mechanism.floating_base)
    again = rm.load(written(model))
    assert differences(model.description, again.description) == []
    same_robot(model, again)


@pytest.mark.slow
@pytest.mark.tables_cases("tello")
@pytest.mark.filterwarnings("ignore:.*reflected inertia between joints")
@pytest.mark.parametrize("name", few(["mini_cheetah", "six_bar", "tello"], "six_bar"))
def test_open_trees(name: str) -> None:
    """Without loops and couplings, as plain readers take it; MuJoCo has the same dynamics."""
    model = rm.robots.load(name)
    stream = io.StringIO()
    assert rm.write_urdf(model, stream, approximate=True) == ()
    again = rm.load(stream.getvalue())
    assert again.description.loops == again.description.couplings == ()
    expected = written_tree(model, TreeOptions(tendons=False))
    same_robot(expected, again)
    armature = {joint.name: joint.armature for joint in expected.joints}
    assert {joint.name: joint.armature for joint in again.joints} == armature
    assert pinocchio.buildModelFromXML(stream.getvalue()).nv == model.nv
    side = MujocoSide.of(stream.getvalue())
    bare = tuple(replace(joint, armature=0.0) for joint in expected.description.joints)
    assert_smooth_dynamics(build(replace(expected.description, joints=bare)), side, states=1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*reflected inertia between joints")
@pytest.mark.filterwarnings("ignore:.*the tree will not do")
def test_drake_and_mujoco_find_their_words_in_open_trees() -> None:
    """Armature as the rotor of a motor; what MuJoCo shall make of shapes."""
    model = rm.robots.load("mit_humanoid_leg")
    stream = io.StringIO()
    rm.write_urdf(model, stream, approximate=True)
    tree = etree.fromstring(stream.getvalue().encode())
    prefix = "{http://drake.mit.edu}"
    said = {
        each.find("joint").get("name"): [
            float(each.find(f"actuator/{prefix}{tag}").get("value"))
            for tag in ("rotor_inertia", "gear_ratio")
        ]
        for each in tree.findall("transmission")
    }
    tree_joints = written_tree(model, TreeOptions(tendons=False)).joints
    armature = {joint.name: joint.armature for joint in tree_joints}
    assert said == {name: [value, 1.0] for name, value in armature.items() if value}
    assert dict(tree.find("mujoco/compiler").attrib) == {
        "inertiafromgeom": "false",
        "discardvisual": "false",
    }
    exact = io.StringIO()
    rm.write_urdf(model, exact)
    assert "mujoco" not in exact.getvalue()
    assert "drake" not in exact.getvalue()


def test_gravity_and_meshes_are_told_to_mujoco(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    (tmp_path / "urdf").mkdir()
    trimesh.creation.box(extents=(1, 1, 1)).export(tmp_path / "a.stl")
    mesh = '<visual><geometry><mesh filename="../a.stl"/></geometry></visual>'
    path = tmp_path / "urdf" / "r.urdf"
    path.write_text(robot(link("a", INERTIAL + mesh), joint("j", "base", "a")))
    model = rm.load(path, gravity=(0, 0, -1.62))
    out = tmp_path / "out.urdf"
    rm.write_urdf(model, out, approximate=True, meshes="copy")
    its = mujoco.MjModel.from_xml_path(str(out))
    assert its.ngeom == 1
    assert its.opt.gravity.tolist() == [0, 0, -1.62]
    again = rm.load(out)
    assert again.gravity == (0, 0, -1.62)
    rm.write_urdf(rm.load(path), out, approximate=True, meshes="drop")
    assert "gravity" not in out.read_text()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*reflected inertia between joints")
@pytest.mark.filterwarnings("ignore:.*the tree will not do")
def test_a_rotor_is_counted_once_where_the_armature_is_its_own() -> None:
    """An armature and Drake's rotor of another inertia are two things, and warned of."""
    stream = io.StringIO()
    rm.write_urdf(rm.robots.load("mit_humanoid_leg"), stream, approximate=True)
    again = rm.load(stream.getvalue())
    assert len(again.couplings) == 0
    text = stream.getvalue()
    value = text.split('rotor_inertia value="')[1].split('"')[0]
    text = text.replace(f'rotor_inertia value="{value}"', 'rotor_inertia value="0.123"', 1)
    with pytest.warns(DescriptionWarning, match="has an armature and a rotor"):
        assert len(rm.load(text).couplings) == 1


def test_shapes_that_simulators_refuse_in_urdf_are_told() -> None:
    text = (
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="a"><joint/>'
        '<geom type="ellipsoid" size="1 2 3"/></body></worldbody></mujoco>'
    )
    model = rm.load(text)
    lost = rm.write_urdf(model, stream := io.StringIO(), approximate=True, drop=True)
    assert len(lost) == 4  # each is seen and touches
    assert all("plane of the link 'world'" in x or "ellipsoid of the link 'a'" in x for x in lost)
    assert mujoco.MjModel.from_xml_string(stream.getvalue()).nv == 1


@pytest.mark.tables
@pytest.mark.slow
@given(mechanisms())
@settings(max_examples=20, deadline=None)
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_more_mechanisms(mechanism: Mechanism) -> None:
    try:
        model = rm.load(mechanism.text, floating_base=mechanism.floating_base)
    except RigidError:  # a gear and a rod between the same two bodies, say
        assume(False)
    again = rm.load(written(model))
    assert differences(model.description, again.description) == []
    same_robot(model, again)


# ---- numbers and rotations -----------------------------------------------------------------------


def test_numbers_read_back_exactly_and_are_short() -> None:
    assert [number(x) for x in (1.0, -3.0, 0.1, 1e-5, 2.5e20, -0.0)] == [
        "1",
        "-3",
        "0.1",
        "1e-05",
        "2.5e+20",
        "0",
    ]
    rng = np.random.default_rng(0)
    for x in (rng.normal(size=1000) * 10.0 ** rng.integers(-300, 300, size=1000)).tolist():
        assert float(number(x)) == x


def test_angles_are_found_as_they_were_written() -> None:
    for angles in (
        (0.0, 0.0, 0.0),
        (1.5708, 0.0, -1.5708),
        (0.0, 1.5708, 0.0),
        (math.pi / 2, 0.0, math.pi),
        (0.1, -0.2, 3.1),
        (0.0, 0.0, 1e-7),
    ):
        assert rpy_of(rotation_from_rpy(*angles)) == angles, angles


def test_any_rotation_reads_back_to_rounding() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        quaternion = rng.normal(size=4)
        if rng.random() < 0.5:  # near the poles of roll, pitch and yaw
            quaternion = rng.choice([-1.0, 1.0], 4) + rng.normal(size=4) * 10 ** rng.uniform(
                -17, -2
            )
        x, y, z, w = (quaternion / np.linalg.norm(quaternion)).tolist()
        rotation = (
            (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
            (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
            (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
        )
        again = rotation_from_rpy(*rpy_of(rotation))
        np.testing.assert_allclose(again, rotation, rtol=0, atol=1.2e-15)


# ---- other readers -------------------------------------------------------------------------------

LIMIT = '<limit lower="-1" upper="2" effort="3"/>'
PLAIN = robot(
    *(link(f"l{i}") for i in range(4)),
    joint("bolt", "base", "l0", "0 0 1", kind="fixed", rpy="0.3 -0.2 1.5708"),
    joint(
        "hip", "l0", "l1", "0.1 0 0", kind="revolute", axis="0 1 0", rpy="0.1 0.2 0.3", more=LIMIT
    ),
    joint("slide", "l1", "l2", kind="prismatic", more=LIMIT),
    joint("spin", "l2", "l3", more='<limit effort="2"/><dynamics damping="0.1"/>'),
)


def test_pinocchio_reads_plain_robots() -> None:
    mine = rm.load(PLAIN)
    its = pinocchio.buildModelFromXML(written(mine))
    assert its.njoints == 4
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 3))
    at = np.array([q[0], q[1], math.cos(q[2]), math.sin(q[2])])
    theirs = pinocchio.rnea(its, its.createData(), at, v, a)
    np.testing.assert_allclose(rm.rnea(mine, q, v, a), theirs, rtol=1e-12, atol=1e-12)


def test_yourdfpy_reads_plain_robots(tmp_path: Path) -> None:
    yourdfpy = pytest.importorskip("yourdfpy")
    rm.write_urdf(rm.load(PLAIN), tmp_path / "plain.urdf")
    its = yourdfpy.URDF.load(str(tmp_path / "plain.urdf"))
    assert its.validate()
    assert its.actuated_joint_names == ["hip", "slide", "spin"]


ARMATURE = '<armature value="0.25"/>'


@pytest.mark.parametrize("armature", ["", ARMATURE])
def test_drake_takes_the_armature_for_a_rotor(armature: str) -> None:
    """In the motor of the joint; a joint without armature has no rotor."""
    inner = LIMIT + armature
    text = robot(link("a"), joint("j", "base", "a", kind="revolute", more=inner))
    stream = io.StringIO()
    rm.write_urdf(rm.load(text), stream, approximate=True)
    rotor = '<drake:rotor_inertia value="0.25"/>' in stream.getvalue()
    assert rotor == ("drake:" in stream.getvalue()) == bool(armature)


def test_the_text_is_for_people() -> None:
    given = robot(link("a"), joint("j", "base", "a", "0 0 0.1"))
    text = written(rm.load(given.replace('"test"', '"x &amp; y"')))
    assert text == (
        '<?xml version="1.0"?>\n'
        '<robot name="x &amp; y">\n'
        '  <link name="base"/>\n'
        '  <link name="a">\n'
        "    <inertial>\n"
        '      <origin xyz="0.1 0.02 0"/>\n'
        '      <mass value="1"/>\n'
        '      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.025"/>\n'
        "    </inertial>\n"
        "  </link>\n"
        '  <joint name="j" type="continuous">\n'
        '    <parent link="base"/>\n'
        '    <child link="a"/>\n'
        '    <origin xyz="0 0 0.1"/>\n'
        '    <axis xyz="0 0 1"/>\n'
        "  </joint>\n"
        "</robot>\n"
    )


# ---- files ---------------------------------------------------------------------------------------


def test_paths_and_files(tmp_path: Path) -> None:
    model = rm.load(fan())
    path = tmp_path / "fan.urdf"
    assert rm.write_urdf(model, path) == ()
    assert rm.write_urdf(model, str(tmp_path / "again.urdf")) == ()
    with (tmp_path / "third.urdf").open("w") as stream:
        rm.write_urdf(model, stream)
    texts = {each.read_text() for each in tmp_path.iterdir()}
    assert texts == {written(model)}
    with pytest.raises(TypeError, match="not to int"):
        rm.write_urdf(model, 3)
    with pytest.raises(FileNotFoundError):
        rm.write_urdf(model, tmp_path / "nowhere" / "fan.urdf")


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = rm.load(fan())
    path, other = tmp_path / "fan.urdf", tmp_path / "link.urdf"
    path.write_text("old")
    path.chmod(0o640)
    other.symlink_to(path)

    def fail(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="no space left"):
            rm.write_urdf(model, path)
    assert path.read_text() == "old"
    assert sorted(tmp_path.iterdir()) == [path, other]
    rm.write_urdf(model, other)
    assert other.is_symlink()
    assert path.read_text() == written(model)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == [path, other]


_SQUARE = '<polynomial joint="ja" of="jc" coefficients="0 1 0.1{}"/>'
TIES = [
    (rm.write_sdf, loop("tie", "rod", "a", "c", "0.3 0 0", "0.3 0.1 0")),
    (rm.write_sdf, coupling("tie", {"ja": 1.0, "jb": 2.0, "jc": -1.0})),
    (rm.write_sdf, f'<coupling name="tie">{_SQUARE.format("")}</coupling>'),
    (rm.write_mjcf, f'<coupling name="tie">{_SQUARE.format(" 0 0 0.1")}</coupling>'),
]


@pytest.mark.parametrize(("write", "tie"), TIES)
def test_what_is_dropped_takes_the_marks_of_its_joints_along(
    write: Callable[..., tuple[str, ...]], tie: str
) -> None:
    """Else the file names too few independent joints, and cannot be read."""
    model = rm.load(
        robot(
            *(link(name) for name in "abcdef"),
            *(joint(f"j{name}", "base", name) for name in "abcdef"),
            tie,
            coupling("kept", {"jc": 1.0, "jd": 3.0}),
            coupling("apart", {"je": 1.0, "jf": 1.0}),
        ),
        independent=["ja", "jb", "je"],
    )
    stream = io.StringIO()
    (lost,) = write(model, stream, drop=True)
    assert "'tie'" in lost
    again = rm.load(stream.getvalue())
    assert again.nv == model.nv + 1
    assert "je" in again.dof_names


def test_what_a_format_cannot_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A format that cannot say something refuses before it writes."""
    monkeypatch.setattr(
        "robomodel.parsers.urdf.to_urdf", lambda _: ("<robot/>", ["the loop 'a'", "gravity"])
    )
    path = tmp_path / "fan.urdf"
    with pytest.raises(DescriptionError, match="URDF cannot say: the loop 'a'; gravity"):
        rm.write_urdf(rm.load(fan()), path)
    assert not path.exists()
    assert rm.write_urdf(rm.load(fan()), path, drop=True) == ("the loop 'a'", "gravity")
    assert path.read_text() == "<robot/>"


BODY = "<inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"
SENSORS = {
    "urdf": (
        '<robot name="r"><link name="base"/><gazebo reference="base"><sensor name="eye" '
        'type="camera"/></gazebo><sensor name="nose"/></robot>',
        [("eye", "camera"), ("nose", "")],
    ),
    "sdf": (
        f'<sdf version="1.11"><model name="m"><link name="a">{BODY}'
        f'<sensor name="imu" type="imu"/></link><link name="b">{BODY}'
        '</link><joint name="j" type="fixed"><parent>a</parent><child>b</child>'
        '<sensor name="force" type="force_torque"/></joint></model></sdf>',
        [("imu", "imu"), ("force", "force_torque")],
    ),
    "mjcf": (
        '<mujoco><worldbody><body name="a"><geom size="1"/><site name="s"/></body></worldbody>'
        '<sensor><gyro name="g" site="s"/><accelerometer site="s"/></sensor></mujoco>',
        [("g", "gyro"), ("", "accelerometer")],
    ),
}


@pytest.mark.parametrize("kind", SENSORS)
@pytest.mark.parametrize("write", [rm.write_urdf, rm.write_sdf, rm.write_mjcf])
def test_sensors_are_not_lost_in_silence(kind: str, write: Callable[..., object]) -> None:
    text, sensors = SENSORS[kind]
    model = rm.load(text)
    assert [(each.name, each.type) for each in model.description.sensors] == sensors
    told = [f"'{name}'" if name else f"a {what}" for name, what in sensors]
    for approximate_ in (False, True):
        with pytest.warns(DescriptionWarning, match=f"not written: {', '.join(told)}"):
            write(model, io.StringIO(), approximate=approximate_)


def test_a_reduction_of_zero_cannot_be_said() -> None:
    model = rm.load(fan())
    ends = (TransmittedJoint("a", reduction=0.0), TransmittedJoint("b", reduction=2.0))
    said = replace(model.description, transmissions=(Transmission("drive", "", ends),))
    text, lost = to_urdf(said)
    assert lost == ["the reduction 0 at 'a' of the transmission 'drive'"]
    again = read(text).transmissions[0].joints
    assert [end.reduction for end in again] == [None, 2.0]


def test_joints_of_other_types_are_refused() -> None:
    """As of a type that somebody adds: it would be a weld without a word."""
    text = robot(link("a"), link("b"), joint("j", "base", "a"), joint("k", "a", "b"))
    description = read(text)
    joints = (
        description.joints[0],
        replace(description.joints[1], type=cast(JointType, "cylindrical")),
    )
    for title, write in (("MJCF", to_mjcf), ("SDF", lambda description: to_sdf(description, {}))):
        with pytest.raises(DescriptionError, match=f"{title} has no joint of the type 'cyl") as no:
            write(replace(description, joints=joints))
        assert no.value.element == "joint 'k'"


def test_what_was_warned_of_is_warned_of_again() -> None:
    odd = robot(link("a"), joint("j", "base", "a", axis="0 0 2"))
    with pytest.warns(DescriptionWarning, match="length 2"):
        model = rm.load(odd)
    with pytest.warns(DescriptionWarning, match="length 2"):
        assert differences(model.description, rm.load(written(model)).description) == []
