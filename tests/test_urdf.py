"""The URDF and URDF+ reader: every element with its values, every bad input with its message."""

import io
import math
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from robomodel.description import (
    IDENTITY,
    Actuator,
    Anchor,
    JointCoupling,
    Limits,
    LinkCoupling,
    Mimic,
    Pose,
    Transmission,
    TransmittedJoint,
    rotation_from_rpy,
)
from robomodel.errors import (
    DescriptionError,
    DescriptionWarning,
    Doubt,
    Source,
    suspect,
    suspect_all,
)
from robomodel.parsers import read
from robomodel.parsers.urdf import JOINT_TYPES, LOOP_TYPES

FORMAT = Path(__file__).parents[1] / "docs" / "format.md"


def robot(*body, links="abc"):
    """A robot with its links in line 2, and each element of body in a line of its own from 3."""
    named = "".join(f'<link name="{link}"/>' for link in links)
    return "\n".join(['<robot name="r">', named, *body, "</robot>"])


def joint(name, parent, child, *inner, type="revolute", more=""):  # noqa: A002
    inside = "".join(inner)
    if type in ("revolute", "prismatic") and not re.search("<limit[ />]", inside):
        inside += "<limit/>"  # URDF demands it
    return (
        f'<joint name="{name}" type="{type}" {more}>'
        f'<parent link="{parent}"/><child link="{child}"/>{inside}</joint>'
    )


AB = joint("j1", "a", "b")
BC = joint("j2", "b", "c")


def loop(*inner, type="revolute", more="", name="l", ends="bc"):  # noqa: A002
    p, s = ends
    return (
        f'<loop name="{name}" type="{type}" {more}>'
        f'<predecessor link="{p}"/><successor link="{s}"/>{"".join(inner)}</loop>'
    )


def inertial(mass='<mass value="1"/>', more="", **entries):
    values = dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), "0") | entries
    inertia = " ".join(f'{name}="{value}"' for name, value in values.items() if value is not None)
    return (
        f'<robot name="r">\n<link name="a"><inertial>\n{mass}\n<inertia {inertia}/>{more}'
        "</inertial></link></robot>"
    )


def first(text):
    """The first joint of a robot with nothing odd about it."""
    return read(text, strict=True).joints[0]


def refused(text, *words, line, element):
    """Assert that ``text`` is refused, there, in these words, under strict or not."""
    for strict in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(DescriptionError) as caught:
                read(text, strict=strict)
        error = caught.value
        for word in words:
            assert word in error.message
        assert (error.file, error.line, error.element) == ("<text>", line, element)
        assert str(error).startswith(f"<text>:{line}: {element}: ")
        assert "\n" not in str(error)


def suspected(text, *words, line, element):
    """Assert that ``text`` is warned of once, and refused under strict; what it is read as."""
    with pytest.warns(DescriptionWarning) as caught:
        description = read(text)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert message.startswith(f"<text>:{line}: {element}: ")
    for word in words:
        assert word in message
    with pytest.raises(DescriptionError) as error:
        read(text, strict=True)
    assert str(error.value) == message
    return description


# --- where a description comes from ---------------------------------------------------------------

SMALL = '<robot name="small">\n<link name="a"/>\n</robot>'
BAD = '<robot name="small">\n<link/>\n</robot>'


class TestSources:
    def test_text(self):
        description = read(SMALL)
        assert description.name == "small"
        assert description.source == Source("<text>", 1, "robot 'small'")
        assert description.links[0].source == Source("<text>", 2, "link 'a'")

    def test_text_after_spaces_and_a_mark(self):
        assert read("\ufeff \n" + SMALL).links[0].source.line == 3

    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    def test_bytes(self, kind):
        assert read(kind(SMALL.encode())).name == "small"

    @pytest.mark.parametrize("kind", [str, Path])
    def test_path(self, tmp_path, kind):
        path = tmp_path / "small.urdf"
        path.write_text(SMALL)
        assert read(kind(path)).links[0].source == Source(str(path), 2, "link 'a'")

    def test_a_path_of_a_bad_file_is_in_the_message(self, tmp_path):
        path = tmp_path / "bad.urdf"
        path.write_text(BAD)
        with pytest.raises(DescriptionError) as caught:
            read(path)
        assert str(caught.value) == f"{path}:2: <link>: <link>: the attribute 'name' is missing"

    @pytest.mark.parametrize("mode", ["r", "rb"])
    def test_open_file(self, tmp_path, mode):
        path = tmp_path / "small.urdf"
        path.write_text(SMALL)
        with open(path, mode) as stream:
            assert read(stream).source.file == str(path)

    @pytest.mark.parametrize("stream", [io.StringIO(SMALL), io.BytesIO(SMALL.encode())])
    def test_stream_without_a_name(self, stream):
        assert read(stream).source.file == "<text>"

    def test_a_stream_that_gives_a_little_at_a_time(self):
        class Slow(io.BytesIO):
            def read(self, size=-1):
                return super().read(min(size, 7))

        assert read(Slow(SMALL.encode())).name == "small"

    @pytest.mark.parametrize("name", ["no/such.urdf", "", "a\0b", "x" * 100_000, "robot name='r'"])
    def test_neither_text_nor_a_file(self, name):
        with pytest.raises(FileNotFoundError, match="no such file, and not XML") as caught:
            read(name)
        assert len(str(caught.value)) < 400

    def test_other_errors_of_the_system_stay_what_they_are(self, tmp_path):
        with pytest.raises(IsADirectoryError):
            read(tmp_path)

    @pytest.mark.parametrize("source", [None, 3, ["<robot/>"]])
    def test_other_things(self, source):
        with pytest.raises(TypeError, match=f"not from {type(source).__name__}"):
            read(source)

    def test_a_stream_of_other_things(self):
        class Odd:
            def read(self, _size):
                return [1]

        with pytest.raises(TypeError, match="neither text nor bytes"):
            read(Odd())


class TestFormats:
    def test_given(self):
        assert read(SMALL, format="urdf").name == "small"

    def test_unknown(self):
        with pytest.raises(ValueError, match="unknown format 'obj'; known: urdf") as caught:
            read(SMALL, format="obj")
        assert not isinstance(caught.value, DescriptionError)

    @pytest.mark.parametrize(
        ("text", "what", "tag"),
        [
            ('<sdf version="1.9"/>', "an SDF file", "sdf"),
            ("<mujoco/>", "an MJCF (MuJoCo) file", "mujoco"),
            ("<html/>", "an XML file with the root element <html>", "html"),
        ],
    )
    @pytest.mark.parametrize("extends", [False, True])
    def test_other_roots_where_urdf_is_due(self, text, what, tag, extends):
        arguments = {"extend": text} if extends else {"format": "urdf"}
        with pytest.raises(DescriptionError) as caught:
            read(SMALL if extends else text, **arguments)
        assert caught.value.message.startswith(f"this is {what}; URDF, URDF+ and extensions have")
        assert (caught.value.line, caught.value.element) == (1, f"<{tag}>")

    @pytest.mark.parametrize(
        ("text", "what", "tag"),
        [
            ("<html/>", "an XML file with the root element <html>", "html"),
            ("<COLLADA/>", "a COLLADA mesh or scene", "COLLADA"),
        ],
    )
    def test_other_roots(self, text, what, tag):
        with pytest.raises(DescriptionError) as caught:
            read(text)
        assert caught.value.message.startswith(f"this is {what}; the formats read are urdf")
        assert (caught.value.line, caught.value.element) == (1, f"<{tag}>")

    def test_xacro(self):
        text = robot('<xacro:property name="x" value="1"/>')
        refused(
            text.replace("<robot", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"'),
            "xacro robot.urdf.xacro > robot.urdf",
            line=3,
            element="<xacro:property>",
        )

    def test_a_mention_of_xacro_is_no_macro(self):
        text = SMALL.replace("<robot", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"')
        assert read(text, strict=True).name == "small"


# --- what a file says -----------------------------------------------------------------------------


class TestLinks:
    def test_without_mass(self):
        assert [link.inertial for link in read(SMALL).links] == [None]

    def test_inertial(self):
        text = inertial(
            '<mass value="1.5"/>',
            '<origin xyz="0.1 -2e-1 .3" rpy="0.1 0.2 0.3"/>',
            **{"ixx": "4", "ixy": ".1", "ixz": "-.2", "iyy": "5", "iyz": "3e-1", "izz": "6"},
        )
        found = read(text, strict=True).links[0].inertial
        assert found.mass == 1.5
        assert found.inertia == (4.0, 0.1, -0.2, 5.0, 0.3, 6.0)
        assert found.origin == Pose((0.1, -0.2, 0.3), rotation_from_rpy(0.1, 0.2, 0.3))
        assert found.source == Source("<text>", 2, "link 'a'")

    def test_the_entries_of_the_inertia_come_in_any_order(self):
        text = inertial().replace(
            '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>',
            '<inertia izz="6" iyz="0.3" iyy="5" ixz="0.2" ixy="0.1" ixx="4"/>',
        )
        assert read(text).links[0].inertial.inertia == (4.0, 0.1, 0.2, 5.0, 0.3, 6.0)

    def test_inertial_without_origin(self):
        assert read(inertial(), strict=True).links[0].inertial.origin == Pose()

    def test_what_is_not_mechanics_is_passed_over(self):
        text = (
            '<robot name="r" version="1.0"><material name="grey"/><gazebo reference="a"/>'
            '<link name="a" type="base"><sensor name="s"/></link><mujoco/></robot>'
        )
        assert len(read(text, strict=True).links) == 1


def shaped(*shapes, before=""):
    """A robot whose one link, in line 2, has shapes, each in a line of its own."""
    inner = "".join(f"\n{shape}" for shape in shapes)
    return f'<robot name="r">{before}\n<link name="a">{inner}\n</link></robot>'


def visual(geometry, *more):
    return f"<visual>{''.join(more)}<geometry>{geometry}</geometry></visual>"


class TestShapes:
    @pytest.mark.parametrize(
        ("geometry", "kind", "size", "file"),
        [
            ('<box size="1 2 3"/>', "box", (1.0, 2.0, 3.0), None),
            ('<sphere radius="0.5"/>', "sphere", (0.5,), None),
            ('<cylinder length="2" radius="0.5"/>', "cylinder", (0.5, 2.0), None),
            ('<capsule radius="0.5" length="2"/>', "capsule", (0.5, 2.0), None),
            ('<drake:capsule radius="0.5" length="2"/>', "capsule", (0.5, 2.0), None),
            ('<drake:ellipsoid a="1" b="2" c="3"/>', "ellipsoid", (1.0, 2.0, 3.0), None),
            ('<mesh filename="package://p/a.stl"/>', "mesh", (1, 1, 1), "package://p/a.stl"),
            ('<mesh filename="a.obj" scale="1 -1 0.001"/>', "mesh", (1, -1, 0.001), "a.obj"),
        ],
    )
    def test_kinds(self, geometry, kind, size, file):
        (found,) = read(shaped(visual(geometry)), strict=True).links[0].shapes
        assert (found.role, found.kind, found.size, found.file) == ("visual", kind, size, file)
        assert (found.origin, found.name, found.rgba) == (Pose(), "", None)
        assert found.source == Source("<text>", 3, "link 'a'")

    def test_both_roles_in_the_order_of_the_file(self):
        text = shaped(
            '<collision name="c"><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><geometry>'
            '<sphere radius="1"/></geometry></collision>',
            visual('<sphere radius="2"/>'),
            '<collision><geometry><sphere radius="3"/></geometry></collision>',
        )
        shapes = read(text, strict=True).links[0].shapes
        assert [(s.role, s.size, s.name) for s in shapes] == [
            ("collision", (1.0,), "c"),
            ("visual", (2.0,), ""),
            ("collision", (3.0,), ""),
        ]
        assert shapes[0].origin == Pose((1.0, 2.0, 3.0), rotation_from_rpy(0.1, 0.2, 0.3))

    def test_colours(self):
        blue = '<material name="blue"><color rgba="0 0 1 1"/></material>'
        text = shaped(
            *(
                visual('<sphere radius="1"/>', material)
                for material in (
                    '<material name="red"/>',
                    blue,
                    '<material name="blue"/>',
                    '<material><color rgba="0 1 0 0.5"/></material>',
                    '<material name="unheard of"/>',
                    '<material name="red"><color rgba="0.5 0 0 1"/></material>',
                    '<material name="red"/>',
                )
            ),
            before='<material name="red"><color rgba="1 0 0 1"/></material><material name="x"/>',
        )
        found = [shape.rgba for shape in read(text, strict=True).links[0].shapes]
        red, half = (1.0, 0.0, 0.0, 1.0), (0.5, 0.0, 0.0, 1.0)
        blues = (0.0, 0.0, 1.0, 1.0)
        assert found == [red, blues, blues, (0.0, 1.0, 0.0, 0.5), None, half, red]

    @pytest.mark.parametrize(
        ("shape", "words"),
        [
            ("<visual/>", "this <visual> is left out: it has no <geometry>"),
            ("<collision><geometry/></collision>", "this <collision> is left out: its <geometry>"),
            (visual('<cube size="1"/>'), "none of box, sphere, cylinder, capsule, ellipsoid"),
            (visual('<box size="1,2,3"/>'), "separate the numbers by spaces"),
            (visual('<sphere radius="-1"/>'), "the size of the <sphere> is negative"),
            (visual("<cylinder/>"), "the attribute 'radius' is missing"),
            (visual("<mesh/>"), "the attribute 'filename' is missing"),
            (visual('<sphere radius="1"/>', '<origin xyz="0 0"/>'), "needs three numbers"),
            (
                visual('<sphere radius="1"/>', '<material><color rgba="1 1 1"/></material>'),
                "needs four numbers",
            ),
        ],
    )
    def test_what_cannot_be_is_only_warned_of(self, shape, words):
        good = visual('<sphere radius="1"/>')
        found = suspected(shaped(good, shape, good), words, line=4, element="link 'a'")
        assert len(found.links[0].shapes) == 2

    def test_many_bad_ones_are_one_warning(self):
        with pytest.warns(DescriptionWarning) as caught:
            read(shaped("<visual/>", *["<visual><geometry/></visual>"] * 6))
        (message,) = (str(warning.message) for warning in caught)
        assert "it has no <geometry>; likewise link 'a' (line 4), link 'a' (line 5)" in message
        assert message.endswith(" and 2 more")


class TestJoints:
    @pytest.mark.parametrize("type_", [t for t in JOINT_TYPES if t != "screw"])
    def test_types(self, type_):
        found = first(robot(joint("j1", "a", "b", type=type_), BC))
        assert (found.name, found.type, found.parent, found.child) == ("j1", type_, "a", "b")
        assert found.origin == Pose()
        assert found.axis == (1.0, 0.0, 0.0)
        assert found.limits == Limits(-math.inf, math.inf, math.inf, math.inf)
        assert found.mimic is found.independent is found.initial is None
        assert found.damping == found.friction == found.pitch == 0.0
        assert found.source == Source("<text>", 3, "joint 'j1'")

    def test_screw(self):
        found = first(robot(joint("j1", "a", "b", '<pitch value="-0.002"/>', type="screw"), BC))
        assert (found.type, found.pitch) == ("screw", -0.002)

    def test_everything(self):
        found = first(
            robot(
                joint(
                    "j1",
                    "a",
                    "b",
                    '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis xyz="0 -0.6 0.8"/>',
                    '<limit lower="-1" upper="2" effort="3" velocity="4" acceleration="9"/>',
                    '<dynamics damping="5" friction="6"/><initial position="0.7"/>',
                    '<mimic joint="j2" multiplier="-8" offset="9"/>',
                    "<calibration/><safety_controller/>",
                    more='independent="true"',
                ),
                BC,
            )
        )
        assert found.origin == Pose((1.0, 2.0, 3.0), rotation_from_rpy(0.1, 0.2, 0.3))
        assert found.axis == (0.0, -0.6, 0.8)
        assert found.limits == Limits(lower=-1.0, upper=2.0, velocity=4.0, effort=3.0)
        assert found.mimic == Mimic("j2", -8.0, 9.0)
        assert found.independent is True
        assert (found.damping, found.friction, found.initial) == (5.0, 6.0, 0.7)

    @pytest.mark.parametrize(
        ("written", "meant"), [("true", True), ("false", False), ("1", True), ("0", False)]
    )
    def test_independent(self, written, meant):
        text = robot(joint("j1", "a", "b", more=f'independent="{written}"'), BC)
        assert first(text).independent is meant

    def test_armature(self):
        text = robot(joint("j1", "a", "b", '<armature value="0.25"/>'), BC)
        assert [each.armature for each in read(text, strict=True).joints] == [0.25, 0.0]

    def test_mimic_defaults(self):
        assert first(robot(joint("j1", "a", "b", '<mimic joint="j2"/>'), BC)).mimic == Mimic(
            "j2", 1.0, 0.0
        )

    def test_dynamics_defaults(self):
        found = first(robot(joint("j1", "a", "b", '<dynamics friction="2"/>'), BC))
        assert (found.damping, found.friction) == (0.0, 2.0)

    def test_limits_may_be_infinite_or_left_out(self):
        text = robot(joint("j1", "a", "b", '<limit lower="-inf" upper=" inf " effort="1"/>'), BC)
        assert first(text).limits == Limits(effort=1.0)

    def test_a_continuous_joint_has_no_position_limits(self):
        limit = '<limit lower="0" upper="0" velocity="3"/>'
        found = first(robot(joint("j1", "a", "b", limit, type="continuous"), BC))
        assert found.limits == Limits(velocity=3.0)

    @pytest.mark.parametrize("type_", ["fixed", "floating", "spherical"])
    def test_an_axis_that_is_not_used_may_be_zero(self, type_):
        found = first(robot(joint("j1", "a", "b", '<axis xyz="0 0 0"/>', type=type_), BC))
        assert found.axis == (1.0, 0.0, 0.0)

    @pytest.mark.parametrize(
        ("origin", "xyz", "rpy"),
        [
            ("<origin/>", (0, 0, 0), (0, 0, 0)),
            ('<origin xyz="1 2 3"/>', (1, 2, 3), (0, 0, 0)),
            ('<origin rpy="0 0 1.5"/>', (0, 0, 0), (0, 0, 1.5)),
            ('<origin xyz="\t1\n  2 3 "/>', (1, 2, 3), (0, 0, 0)),
        ],
    )
    def test_origin(self, origin, xyz, rpy):
        found = first(robot(joint("j1", "a", "b", origin), BC)).origin
        assert found.xyz == xyz
        expected = Rotation.from_euler("xyz", rpy).as_matrix()
        np.testing.assert_allclose(found.rotation, expected, atol=1e-15)

    def test_rpy_is_about_fixed_axes(self):
        found = first(robot(joint("j1", "a", "b", '<origin rpy="0.3 -0.4 2.5"/>'), BC)).origin
        expected = Rotation.from_euler("xyz", [0.3, -0.4, 2.5]).as_matrix()
        np.testing.assert_allclose(found.rotation, expected, atol=1e-15)

    def test_quaternion(self):
        quaternion = np.array([0.1, -0.2, 0.3, 0.4]) / math.sqrt(0.3)
        text = " ".join(map(repr, quaternion.tolist()))
        found = first(robot(joint("j1", "a", "b", f'<origin quat_xyzw="{text}"/>'), BC)).origin
        expected = Rotation.from_quat(quaternion).as_matrix()
        np.testing.assert_allclose(found.rotation, expected, atol=1e-15)
        assert found.rotation != IDENTITY


class TestLoops:
    @pytest.mark.parametrize("type_", LOOP_TYPES)
    def test_types(self, type_):
        (found,) = read(robot(AB, BC, loop(type=type_, ends="ca")), strict=True).loops
        assert (found.name, found.type) == ("l", type_)
        assert (found.predecessor, found.successor) == (Anchor("c"), Anchor("a"))
        assert found.axis == (1.0, 0.0, 0.0)
        assert found.axis2 is found.length is None
        assert found.source == Source("<text>", 5, "loop 'l'")

    @pytest.mark.parametrize(
        "type_", ["revolute", "continuous", "prismatic", "planar", "universal"]
    )
    def test_axis_keeps_its_sign(self, type_):
        (found,) = read(robot(AB, BC, loop('<axis xyz="0 0 -1"/>', type=type_)), strict=True).loops
        assert found.axis == (0.0, 0.0, -1.0)

    def test_axis2(self):
        text = loop('<axis xyz="0 0 1"/><axis2 xyz="0 -1 0"/>', type="universal")
        (found,) = read(robot(AB, BC, text), strict=True).loops
        assert (found.axis, found.axis2) == ((0.0, 0.0, 1.0), (0.0, -1.0, 0.0))

    def test_anchors(self):
        text = (
            '<loop name="l" type="fixed">'
            '<predecessor link="b"><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/></predecessor>'
            '<successor link="c"><origin xyz="4 5 6"/></successor></loop>'
        )
        (found,) = read(robot(AB, BC, text), strict=True).loops
        assert found.predecessor == Anchor(
            "b", Pose((1.0, 2.0, 3.0), rotation_from_rpy(0.1, 0.2, 0.3))
        )
        assert found.successor == Anchor("c", Pose((4.0, 5.0, 6.0)))

    def test_rod(self):
        (found,) = read(robot(AB, BC, loop(type="rod", more='length="0.25"')), strict=True).loops
        assert found.length == 0.25


class TestCouplings:
    def test_of_links(self):
        text = (
            '<coupling name="gear"><predecessor link="b"/><successor link="c"/>'
            '<ratio value="-6"/><offset value="0.5"/></coupling>'
        )
        (found,) = read(robot(AB, joint("j2", "a", "c"), text), strict=True).couplings
        assert found == LinkCoupling(
            "gear", "b", "c", -6.0, 0.5, Source("<text>", 5, "coupling 'gear'")
        )

    def test_of_links_with_defaults(self):
        text = '<coupling name="g"><predecessor link="b"/><successor link="c"/></coupling>'
        (found,) = read(robot(AB, joint("j2", "a", "c"), text), strict=True).couplings
        assert (found.ratio, found.offset) == (1.0, 0.0)

    def test_of_joints(self):
        text = (
            '<coupling name="sum"><joint name="j1"/><joint name="j2" ratio="-2"/>'
            '<offset value="0.1"/></coupling>'
        )
        (found,) = read(robot(AB, BC, text), strict=True).couplings
        assert found == JointCoupling(
            "sum", (("j1", 1.0), ("j2", -2.0)), 0.1, Source("<text>", 5, "coupling 'sum'")
        )

    def test_of_joints_without_offset(self):
        text = '<coupling name="s"><joint name="j1" ratio="3"/></coupling>'
        (found,) = read(robot(AB, BC, text), strict=True).couplings
        assert (found.terms, found.offset) == ((("j1", 3.0),), 0.0)


class TestSpellings:
    """What xacro, exporters and other readers write and take."""

    @pytest.mark.parametrize(
        ("text", "value"), [("True", True), ("False", False), (" TRUE ", True)]
    )
    def test_flags_in_either_case(self, text, value):
        found = first(robot(joint("j", "a", "b", more=f'independent="{text}"'), links="ab"))
        assert found.independent is value

    def test_several_flags_in_either_case(self):
        text = joint("j", "a", "b", type="planar", more='independent="True false FALSE"')
        assert first(robot(text, links="ab")).independent == (True, False, False)

    def test_a_type_of_couplings_changes_nothing(self):
        text = '<coupling name="c" type="rolling"><joint name="j1"/><joint name="j2"/></coupling>'
        assert len(read(robot(AB, BC, text), strict=True).couplings) == 1

    @pytest.mark.parametrize("tag", ["loop", "coupling"])
    def test_ends_as_exporters_write_them(self, tag):
        kind = 'type="fixed"' if tag == "loop" else ""
        text = f'<{tag} name="x" {kind}>\n<predecessor name="b"/>\n<sucessor name="c"/></{tag}>'
        with pytest.warns(DescriptionWarning) as caught:
            found = read(robot(AB, BC, text))
        (each,) = found.loops or found.couplings
        ends = (each.predecessor, each.successor)
        assert [getattr(end, "link", end) for end in ends] == ["b", "c"]
        said = [str(warning.message) for warning in caught]
        assert any("<text>:7" in line and "read as <successor>" in line for line in said)
        assert any("<text>:6" in line and "<predecessor link=...>" in line for line in said)

    def test_the_world_that_nobody_declares(self):
        text = robot(joint("j", "world", "a"), joint("k", "world", "b"), links="ab")
        with pytest.warns(DescriptionWarning, match="'world' is not declared") as caught:
            found = read(text)
        assert [link.name for link in found.links] == ["a", "b", "world"]
        assert caught[0].message.source.line == 3
        with pytest.raises(DescriptionError, match="'world' is not declared"):
            read(text, strict=True)

    def test_the_world_of_an_extension(self):
        more = robot(joint("j", "world", "a"), links="")
        with pytest.warns(DescriptionWarning, match="'world' is not declared"):
            assert read(robot(links="a"), extend=more).joints[0].parent == "world"

    def test_a_ratio_of_zero(self):
        ends = '<predecessor link="b"/><successor link="c"/>'
        text = robot(AB, BC, f'<coupling name="x">{ends}<ratio value="0"/></coupling>')
        refused(text, "the ratio is zero", line=5, element="coupling 'x'")

    def test_limits_that_exporters_write_for_free_joints(self):
        text = robot(joint("j", "a", "b", '<limit lower="1" upper="-1"/>'), links="ab")
        words = "some exporters write a joint without limits"
        refused(text, words, line=3, element="joint 'j'")

    def test_gazebo_from_before_sdf(self):
        with pytest.raises(DescriptionError) as caught:
            read('<gazebo version="1.0"><model name="m"/></gazebo>')
        assert "from before it had SDF's root element" in caught.value.message


class TestTransmissions:
    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ('<transmission name="t"><type> Simple </type>{}</transmission>', "Simple"),
            ('<transmission name="t" type="Simple">{}</transmission>', "Simple"),
            (
                '<ros2_control name="s"><transmission name="t"><plugin>P</plugin>{}</transmission>'
                '<joint name="nowhere"/></ros2_control>',
                "P",
            ),
            ('<transmission name="t">{}</transmission>', ""),
        ],
    )
    def test_are_kept(self, text, kind):
        ends = (
            '<joint name="j1"><x/><role> joint1 </role><offset>0.5</offset>'
            "<mechanicalReduction>-2</mechanicalReduction></joint>"
            '<joint name="j2" role="joint2"/>'
            '<actuator name="m"><hardwareInterface>E</hardwareInterface>'
            "<mechanical_reduction> 50.0 </mechanical_reduction></actuator>"
        )
        (found,) = read(robot(AB, BC, text.format(ends)), strict=True).transmissions
        assert found == Transmission(
            "t",
            kind,
            (TransmittedJoint("j1", "joint1", -2.0, 0.5), TransmittedJoint("j2", "joint2")),
            (Actuator("m", "", 50.0),),
            Source("<text>", 5, "transmission 't'"),
        )

    def test_of_pr2_has_its_reduction_itself(self):
        text = (
            '<transmission name="t" type="pr2_mechanism_model/SimpleTransmission">'
            '<actuator name="m"/><joint name="j1"/>'
            "<mechanicalReduction>79.25</mechanicalReduction></transmission>"
        )
        (found,) = read(robot(AB, BC, text), strict=True).transmissions
        assert found.actuators == (Actuator("m", "", 79.25),)

    @pytest.mark.parametrize(
        ("inner", "words"),
        [
            ("<mechanicalReduction>1,5</mechanicalReduction>", "write a decimal point"),
            ("<mechanicalReduction/>", "is empty and needs one number"),
            ("<mechanical_reduction>0</mechanical_reduction>", "is zero; 1 is a direct drive"),
            ("<mechanicalReductions>3</mechanicalReductions>", "did you mean 'mechanicalReduction"),
        ],
    )
    def test_reductions_that_matter_to_nothing_are_only_warned_of(self, inner, words):
        text = f'<transmission name="t"><actuator name="m">{inner}</actuator></transmission>'
        found = suspected(robot(AB, BC, text), words, line=5, element="transmission 't'")
        assert found.transmissions[0].actuators == (Actuator("m"),)

    def test_of_joints_that_are_not_there(self):
        text = '<transmission name="t"><type>S</type><joint name="j11"/></transmission>'
        suspected(
            robot(AB, BC, text),
            "the joint 'j11' is not in the robot; did you mean 'j1'?",
            line=5,
            element="transmission 't'",
        )


def test_everything_keeps_the_order_of_the_file():
    text = robot(
        joint("z", "a", "b"),
        loop(name="z"),
        '<coupling name="z"><joint name="z"/></coupling>',
        joint("y", "b", "c"),
        loop(name="y"),
        '<coupling name="y"><joint name="y"/></coupling>',
        links="cba",
    )
    found = read(text, strict=True)
    assert [thing.name for thing in found.links] == ["c", "b", "a"]
    for things in (found.joints, found.loops, found.couplings):
        assert [thing.name for thing in things] == ["z", "y"]


EXAMPLES = re.findall(r"```xml\n(.*?)```", FORMAT.read_text(encoding="utf-8"), re.DOTALL)


class TestTheFormatReference:
    @pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text.split('"')[1])
    def test_every_example_is_read_without_a_murmur(self, text):
        assert len(read(text, strict=True).links) > 1

    def test_every_word_has_an_example(self):
        found = [read(text) for text in EXAMPLES]
        assert {joint.type for robot in found for joint in robot.joints} == set(JOINT_TYPES)
        assert {loop.type for robot in found for loop in robot.loops} == set(LOOP_TYPES)
        assert {type(c) for robot in found for c in robot.couplings} == {
            LinkCoupling,
            JointCoupling,
        }
        joints = [joint for robot in found for joint in robot.joints]
        assert any(joint.mimic for joint in joints)
        assert any(joint.initial for joint in joints)
        assert any(joint.armature for joint in joints)
        links = [link for robot in found for link in robot.links]
        assert sum(link.name.endswith("_rotor") for link in links) == 3
        assert {shape.role for link in links for shape in link.shapes} == {"visual", "collision"}
        assert {joint.independent for joint in joints} == {None, True, False}
        assert any(loop.length for robot in found for loop in robot.loops)
        assert any(loop.axis2 for robot in found for loop in robot.loops)
        assert any(robot.transmissions for robot in found)


# --- bad numbers ----------------------------------------------------------------------------------


class TestNumbers:
    @pytest.mark.parametrize(
        ("written", "words"),
        [
            ("1,5", 'write a decimal point, as in "1.5"'),
            ("1_000", 'write digits without underscores, as in "1000"'),
            ("nan", "'nan' is not a finite number"),
            ("inf", "'inf' is not a finite number"),
            ("-Infinity", "'-Infinity' is not a finite number"),
            ("1e999", "'1e999' is not a finite number"),
            ("", "is empty and needs one number"),
            ("  ", "is empty and needs one number"),
            ("1 2", "needs one number, got 2 ('1 2')"),
            ("one", "'one' is not a number"),
            ("0x10", "'0x10' is not a number"),
            ("٣", "'٣' is not a number"),
            ("${pi/2}", "expand the file with xacro first"),
        ],
    )
    def test_one(self, written, words):
        words = (f"value of <mass> {'' if 'needs one' in words else 'is '}", words)
        refused(
            inertial(f'<mass value="{written}"/>'),
            words[0].strip(),
            words[1],
            line=3,
            element="link 'a'",
        )

    @pytest.mark.parametrize("entry", ["ixx", "ixy", "ixz", "iyy", "iyz", "izz"])
    @pytest.mark.parametrize("written", ["nan", "inf", "1,5", "1_0", "٣", ""])
    def test_each_entry_of_the_inertia(self, entry, written):
        refused(inertial(**{entry: written}), f"{entry} of <inertia>", line=4, element="link 'a'")

    @pytest.mark.parametrize(
        ("written", "words"),
        [
            ("0 1", "needs three numbers, got 2 ('0 1')"),
            ("0 0 1 0", "needs three numbers, got 4"),
            ("", "is empty and needs three numbers"),
            ("0, 0, 1", 'separate the numbers by spaces, as in "0 0 1"'),
            ("0,0,1", 'separate the numbers by spaces, as in "0 0 1"'),
            ("0 0,5 1", 'write a decimal point, as in "0.5"'),
            ("0 0 nan", "'nan' is not a finite number"),
            ("0 inf 0", "'inf' is not a finite number"),
            ("0 1_0 0", "without underscores"),
            ("0 0 z", "'z' is not a number"),
            ("0 0 ١", "'١' is not a number"),
        ],
    )
    def test_three(self, written, words):
        refused(
            robot(AB, joint("j2", "b", "c", f'\n<origin xyz="{written}"/>')),
            "xyz of <origin>",
            words,
            line=5,
            element="joint 'j2'",
        )

    @pytest.mark.parametrize("inner", ['<origin rpy="{}"/>', '<axis xyz="{}"/>'])
    def test_three_elsewhere(self, inner):
        text = robot(AB, joint("j2", "b", "c", inner.format("0 0 1,5")))
        refused(text, "decimal point", line=4, element="joint 'j2'")

    def test_four(self):
        text = robot(AB, joint("j2", "b", "c", '<origin quat_xyzw="0 0 1"/>'))
        refused(text, "needs four numbers, got 3", line=4, element="joint 'j2'")

    @pytest.mark.parametrize(
        ("inner", "where"),
        [
            ('<limit lower="{}"/>', "lower of <limit>"),
            ('<limit upper="{}"/>', "upper of <limit>"),
            ('<limit effort="{}"/>', "effort of <limit>"),
            ('<limit velocity="{}"/>', "velocity of <limit>"),
            ('<dynamics damping="{}"/>', "damping of <dynamics>"),
            ('<dynamics friction="{}"/>', "friction of <dynamics>"),
            ('<mimic joint="j1" multiplier="{}"/>', "multiplier of <mimic>"),
            ('<mimic joint="j1" offset="{}"/>', "offset of <mimic>"),
            ('<initial position="{}"/>', "position of <initial>"),
        ],
    )
    @pytest.mark.parametrize("written", ["1,5", "NaN", "1_5"])
    def test_in_a_joint(self, inner, where, written):
        text = robot(AB, joint("j2", "b", "c", inner.format(written)))
        refused(text, where, line=4, element="joint 'j2'")

    def test_in_loops_and_couplings(self):
        bad = '<coupling name="g"><predecessor link="b"/><successor link="c"/><{}/></coupling>'
        for inner in ('ratio value="1,5"', 'offset value="1,5"'):
            refused(robot(AB, BC, bad.format(inner)), "1.5", line=5, element="coupling 'g'")
        refused(
            robot(AB, BC, '<coupling name="g"><joint name="j1" ratio="1,5"/></coupling>'),
            "ratio of <joint>",
            "1.5",
            line=5,
            element="coupling 'g'",
        )
        refused(
            robot(AB, BC, loop(type="rod", more='length="1,5"')),
            "length of <loop>",
            "1.5",
            line=5,
            element="loop 'l'",
        )

    def test_an_endless_value_is_not_quoted_whole(self):
        with pytest.raises(DescriptionError) as caught:
            read(inertial(f'<mass value="{"x" * 10_000}"/>'))
        assert len(str(caught.value)) < 300


# --- bad elements ---------------------------------------------------------------------------------


class TestBadLinks:
    @pytest.mark.parametrize(
        ("attribute", "words"),
        [("", "is missing"), ('name=""', "is empty"), ('name=" "', "is empty")],
    )
    def test_name(self, attribute, words):
        refused(
            f'<robot name="r">\n<link {attribute}/></robot>',
            f"<link>: the attribute 'name' {words}",
            line=2,
            element="link ' '" if '" "' in attribute else "<link>",
        )

    def test_negative_mass(self):
        refused(
            inertial('<mass value="-2.5"/>'),
            "the mass is negative: '-2.5' kg",
            line=3,
            element="link 'a'",
        )

    def test_no_mass(self):
        refused(inertial(""), '<inertial> has no <mass value="..."/>', line=2, element="link 'a'")

    def test_mass_without_value(self):
        refused(
            inertial("<mass/>"),
            "<mass>: the attribute 'value' is missing",
            line=3,
            element="link 'a'",
        )

    def test_no_inertia(self):
        text = (
            '<robot name="r"><link name="a">\n<inertial><mass value="1"/></inertial></link></robot>'
        )
        refused(text, "<inertial> has no <inertia>", "point mass", line=2, element="link 'a'")

    @pytest.mark.parametrize("entry", ["ixx", "ixy", "ixz", "iyy", "iyz", "izz"])
    def test_inertia_without_an_entry(self, entry):
        refused(
            inertial(**{entry: None}),
            f"<inertia>: the attribute '{entry}' is missing",
            line=4,
            element="link 'a'",
        )


class TestBadJoints:
    def bad(self, *inner, words, type="revolute", more="", line=5):  # noqa: A002
        text = robot(AB, joint("j2", "b", "c", *("\n" + i for i in inner), type=type, more=more))
        refused(text, words, line=line, element="joint 'j2'")

    def test_name(self):
        refused(
            robot('<joint type="fixed"/>'),
            "<joint>: the attribute 'name' is missing",
            line=3,
            element="<joint>",
        )

    def test_no_type(self):
        refused(
            robot('<joint name="j"/>'),
            "<joint>: the attribute 'type' is missing",
            line=3,
            element="joint 'j'",
        )

    def test_unknown_type(self):
        refused(
            robot(joint("j", "a", "b", type="Revolute")),
            "the type 'Revolute' is not known; did you mean 'revolute'?; known: revolute, "
            "continuous, prismatic, fixed, floating, planar, spherical, screw",
            line=3,
            element="joint 'j'",
        )

    @pytest.mark.parametrize("which", ["parent", "child"])
    def test_an_end_is_missing(self, which):
        text = re.sub(f"<{which} [^>]*>", "", joint("j", "a", "b"))
        refused(
            robot(text), f'needs a {which} link: <{which} link="..."/>', line=3, element="joint 'j'"
        )

    @pytest.mark.parametrize("type_", ["revolute", "continuous", "prismatic", "planar", "screw"])
    def test_zero_axis(self, type_):
        pitch = ('<pitch value="1"/>',) if type_ == "screw" else ()
        self.bad(
            '<axis xyz="0 0 -0.0"/>',
            *pitch,
            words='<axis> is zero; give it a direction, as in <axis xyz="0 0 1"/>',
            type=type_,
        )

    def test_axis_without_xyz(self):
        self.bad("<axis/>", words="<axis>: the attribute 'xyz' is missing")

    @pytest.mark.parametrize(
        ("axis", "length"), [("1 1 0", "1.41421"), ("0 0 0.99", "0.99"), ("0 0 1e-200", "1e-200")]
    )
    def test_axis_that_is_not_unit(self, axis, length):
        found = suspected(
            robot(AB, joint("j2", "b", "c", f'<axis xyz="{axis}"/>')),
            f"has the length {length}, not 1",
            line=4,
            element="joint 'j2'",
        )
        assert found.joints[1].axis == tuple(map(float, axis.split()))

    def test_axis_that_is_unit_but_for_rounding(self):
        text = robot(AB, joint("j2", "b", "c", '<axis xyz="0.577 0.577 0.577"/>'))
        assert read(text, strict=True).joints[1].axis == (0.577, 0.577, 0.577)

    def test_limits_the_wrong_way_round(self):
        self.bad(
            '<limit lower="2" upper="-1"/>', words="the lower limit 2 is above the upper limit -1"
        )

    @pytest.mark.parametrize("limit", ['lower="inf"', 'upper="-inf"'])
    def test_limits_that_leave_nothing(self, limit):
        self.bad(f"<limit {limit}/>", words="these limits leave no finite position")

    def test_negative_armature(self):
        self.bad('<armature value="-1"/>', words="the armature -1 is negative")

    def test_armature_of_a_fixed_joint(self):
        found = suspected(
            robot(AB, joint("j2", "b", "c", '<armature value="1"/>', type="fixed")),
            "<armature> means nothing in a fixed joint",
            line=4,
            element="joint 'j2'",
        )
        assert found.joints[1].armature == 0.0

    @pytest.mark.parametrize(
        ("rotor", "words"),
        [
            ('ratio="9"', '<rotor> needs inertia="..."'),
            ('inertia="0" ratio="9"', "the rotor's inertia 0 is not positive"),
            ('inertia="-1" ratio="9"', "the rotor's inertia -1 is not positive"),
            ('inertia="1,5" ratio="9"', "decimal point"),
            ('inertia="1" ratio="0"', "the ratio of the rotor is zero"),
            ('inertia="1" ratio="9" mass="-1"', "mass or transverse inertia is negative"),
            ('inertia="1" ratio="9" transverse="-1"', "mass or transverse inertia is negative"),
        ],
    )
    def test_rotor(self, rotor, words):
        self.bad(f"<rotor {rotor}/>", words=words)

    @pytest.mark.parametrize("type_", ["revolute", "prismatic"])
    def test_no_limit(self, type_):
        text = robot(AB, joint("j2", "b", "c", type=type_).replace("<limit/>", ""))
        found = suspected(
            text,
            f"has no <limit>, which URDF demands of a {type_} joint; it is taken as unlimited",
            line=4,
            element="joint 'j2'",
        )
        assert found.joints[1].limits == Limits()

    def test_no_limits_anywhere_are_one_warning(self):
        joints = [joint(f"j{i}", f"l{i}", f"l{i + 1}").replace("<limit/>", "") for i in range(9)]
        with pytest.warns(DescriptionWarning) as caught:
            read(robot(*joints, links=[f"l{i}" for i in range(10)]))
        (message,) = (str(warning.message) for warning in caught)
        assert message.startswith("<text>:3: joint 'j0': has no <limit>")
        assert message.endswith("joint 'j3' (line 6), joint 'j4' (line 7) and 4 more")

    def test_screw_without_pitch(self):
        self.bad(words='a screw joint needs <pitch value="..."/>', type="screw", line=4)

    def test_pitch_of_another(self):
        found = suspected(
            robot(AB, joint("j2", "b", "c", '<pitch value="1"/>')),
            "<pitch> means nothing in a revolute joint",
            line=4,
            element="joint 'j2'",
        )
        assert found.joints[1].pitch == 0.0

    def test_independent(self):
        self.bad(
            words="independent must be 'true' or 'false', got 'yes'",
            more='independent="yes"',
            line=4,
        )

    @pytest.mark.parametrize("type_", ["fixed", "floating", "planar", "spherical"])
    def test_initial_position(self, type_):
        self.bad(
            '<initial position="1"/>',
            words=f"one degree of freedom, not for a {type_} joint",
            type=type_,
        )

    def test_initial_position_without_a_value(self):
        self.bad("<initial/>", words="<initial>: the attribute 'position' is missing")

    def test_initial_position_outside_the_limits(self):
        inner = '<limit lower="-1" upper="1"/><initial position="1.5"/>'
        found = suspected(
            robot(AB, joint("j2", "b", "c", inner)),
            "the initial position 1.5 lies outside the limits [-1, 1]",
            line=4,
            element="joint 'j2'",
        )
        assert found.joints[1].initial == 1.5

    def test_rpy_and_quaternion(self):
        self.bad('<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/>', words="both rpy and quat_xyzw")

    def test_zero_quaternion(self):
        self.bad('<origin quat_xyzw="0 0 0 0"/>', words="quat_xyzw is zero")

    def test_quaternion_that_is_not_unit(self):
        found = suspected(
            robot(AB, joint("j2", "b", "c", '<origin quat_xyzw="0 0 2 0"/>')),
            "has the norm 2; it is normalised",
            line=4,
            element="joint 'j2'",
        )
        assert found.joints[1].origin.rotation == ((-1, 0, 0), (0, -1, 0), (0, 0, 1))


class TestBadMimic:
    def test_without_a_joint(self):
        refused(
            robot(AB, joint("j2", "b", "c", "<mimic/>")),
            "<mimic>: the attribute 'joint' is missing",
            line=4,
            element="joint 'j2'",
        )

    @pytest.mark.parametrize(
        ("leader", "words"),
        [
            ("j1x", "the mimicked joint 'j1x' is not in the robot; did you mean 'j1'?"),
            ("elbow", "the mimicked joint 'elbow' is not in the robot"),
            ("j2", "the joint mimics itself"),
        ],
    )
    def test_of_what_cannot_be(self, leader, words):
        text = robot(AB, joint("j2", "b", "c", f'<mimic joint="{leader}"/>'))
        refused(text, words, line=4, element="joint 'j2'")

    @pytest.mark.parametrize("type_", ["fixed", "floating", "planar", "spherical"])
    def test_of_a_joint_without_one_dof(self, type_):
        text = robot(
            joint("j1", "a", "b", type=type_), joint("j2", "b", "c", '<mimic joint="j1"/>')
        )
        refused(text, f"the mimicked joint 'j1' is {type_}", line=4, element="joint 'j2'")

    @pytest.mark.parametrize("type_", ["floating", "planar", "spherical"])
    def test_by_a_joint_with_several_dofs(self, type_):
        text = robot(AB, joint("j2", "b", "c", '<mimic joint="j1"/>', type=type_))
        refused(text, f"a {type_} joint cannot mimic another", line=4, element="joint 'j2'")

    def test_by_a_fixed_joint(self):
        # real files have it, where a gripper was made rigid by changing its joints' types
        found = suspected(
            robot(AB, joint("j2", "b", "c", '<mimic joint="j1"/>', type="fixed")),
            "<mimic> means nothing in a fixed joint",
            line=4,
            element="joint 'j2'",
        )
        assert found.joints[1].mimic is None


class TestBadLoops:
    def bad(self, text, *words):
        refused(robot(AB, BC, text), *words, line=5, element="loop 'l'")

    def test_name(self):
        refused(
            robot('<loop type="fixed"/>'),
            "<loop>: the attribute 'name' is missing",
            line=3,
            element="<loop>",
        )

    def test_unknown_type(self):
        self.bad(
            loop(type="sperical"),
            "the type 'sperical' is not known; did you mean 'spherical'?; known: revolute, "
            "continuous, prismatic, planar, fixed, spherical, universal, rod",
        )

    @pytest.mark.parametrize("which", ["predecessor", "successor"])
    def test_an_end_is_missing(self, which):
        self.bad(re.sub(f"<{which} [^>]*>", "", loop()), f"needs a {which} link")

    @pytest.mark.parametrize("which", ["predecessor", "successor"])
    def test_an_end_without_link(self, which):
        self.bad(
            re.sub(f"<{which} [^>]*>", f"<{which}/>", loop()),
            f"<{which}>: the attribute 'link' is missing",
        )

    @pytest.mark.parametrize(
        ("ends", "words"),
        [(("x", "b"), "the predecessor link 'x'"), (("b", "x"), "the successor link 'x'")],
    )
    def test_an_end_that_is_not_there(self, ends, words):
        self.bad(loop(ends=ends), f"{words} is not in the robot")

    def test_one_link_at_both_ends(self):
        self.bad(loop(ends="bb"), "the same link 'b'")

    @pytest.mark.parametrize("type_", ["revolute", "prismatic", "planar", "universal"])
    def test_zero_axis(self, type_):
        self.bad(loop('<axis xyz="0 0 0"/>', type=type_), "<axis> is zero")

    def test_zero_axis2(self):
        self.bad(loop('<axis2 xyz="0 0 0"/>', type="universal"), "<axis2> is zero")

    @pytest.mark.parametrize("length", ["0", "-0.1"])
    def test_length_of_a_rod(self, length):
        self.bad(loop(type="rod", more=f'length="{length}"'), "is not positive", "spherical")

    def test_length_of_another(self):
        found = suspected(
            robot(AB, BC, loop(more='length="1"')),
            "'length' means nothing in a revolute loop",
            line=5,
            element="loop 'l'",
        )
        assert found.loops[0].length is None

    def test_axis2_of_another(self):
        found = suspected(
            robot(AB, BC, loop('<axis2 xyz="0 0 1"/>')),
            "<axis2> means nothing in a revolute loop",
            line=5,
            element="loop 'l'",
        )
        assert found.loops[0].axis2 is None


class TestBadCouplings:
    def bad(self, inner, *words, joints=(AB, BC)):
        text = robot(*joints, f'<coupling name="g">{inner}</coupling>')
        refused(text, *words, line=5, element="coupling 'g'")

    def test_name(self):
        refused(
            robot("<coupling/>"),
            "<coupling>: the attribute 'name' is missing",
            line=3,
            element="<coupling>",
        )

    def test_of_nothing(self):
        self.bad(
            '<ratio value="2"/>', "couples nothing", "<predecessor link>", "<joint name ratio>"
        )

    def test_half(self):
        self.bad('<predecessor link="b"/>', "needs a successor link")

    @pytest.mark.parametrize("inner", ['<predecessor link="b"/>', '<ratio value="2"/>'])
    def test_of_links_and_joints(self, inner):
        self.bad(f'<joint name="j1"/>{inner}', "write two couplings")

    @pytest.mark.parametrize(
        ("ends", "words"),
        [
            (("x", "c"), "the predecessor link 'x' is not in the robot"),
            (("b", "x"), "the successor link 'x' is not in the robot"),
            (("b", "b"), "the same link 'b'"),
        ],
    )
    def test_of_links(self, ends, words):
        p, s = ends
        self.bad(f'<predecessor link="{p}"/><successor link="{s}"/>', words)

    def test_of_a_joint_that_is_not_there(self):
        self.bad(
            '<joint name="j1"/><joint name="j22"/>',
            "the joint 'j22' is not in the robot; did you mean 'j2'?",
        )

    def test_of_a_joint_twice(self):
        self.bad('<joint name="j1"/><joint name="j1"/>', "the joint 'j1' is named twice")

    @pytest.mark.parametrize("type_", ["fixed", "floating", "planar", "spherical"])
    def test_of_a_joint_without_one_dof(self, type_):
        self.bad(
            '<joint name="j1"/><joint name="j2"/>',
            f"the joint 'j2' is {type_}; only joints of one degree of freedom",
            joints=(AB, joint("j2", "b", "c", type=type_)),
        )

    def test_with_zero_ratios(self):
        self.bad('<joint name="j1" ratio="0"/>', "every ratio is zero")

    def test_value_missing(self):
        self.bad('<joint name="j1"/><offset/>', "<offset>: the attribute 'value' is missing")


# --- the whole ------------------------------------------------------------------------------------


class TestStructure:
    def test_no_links(self):
        refused('<robot name="r"/>', "the robot has no links", line=1, element="robot 'r'")

    @pytest.mark.parametrize(
        ("again", "kind"),
        [
            ('<link name="a"/>', "link"),
            (joint("j1", "b", "c"), "joint"),
            (loop(), "loop"),
            ('<coupling name="l"><joint name="j2"/></coupling>', "coupling"),
        ],
    )
    def test_duplicate_names(self, again, kind):
        coupling = '<coupling name="l"><joint name="j1"/></coupling>'
        text = robot(AB, BC, loop(), coupling, again)
        name, line = {"link": ("a", 2), "joint": ("j1", 3), "loop": ("l", 5), "coupling": ("l", 6)}[
            kind
        ]
        refused(
            text,
            f"another {kind} has this name already (<text>:{line}); rename",
            line=7,
            element=f"{kind} '{name}'",
        )

    def test_a_link_and_a_joint_may_share_a_name(self):
        assert read(robot(joint("a", "a", "b"), BC), strict=True).joints[0].name == "a"

    @pytest.mark.parametrize("which", ["parent", "child"])
    def test_links_that_are_not_there(self, which):
        ends = {"parent": ("shankk", "foot"), "child": ("shank", "foott")}[which]
        wrong = ends[0] if which == "parent" else ends[1]
        refused(
            robot(joint("j", *ends), links=["shank", "foot"]),
            f"the {which} link '{wrong}' is not in the robot; did you mean '{wrong[:-1]}'?",
            line=3,
            element="joint 'j'",
        )

    def test_the_child_of_two_joints(self):
        refused(
            robot(AB, BC, joint("j3", "a", "c")),
            "the link 'c' is already the child of joint 'j2' (<text>:4)",
            "as a <loop>",
            line=5,
            element="joint 'j3'",
        )

    def test_a_joint_from_a_link_to_itself(self):
        refused(robot(AB, joint("j2", "c", "c")), "the same link 'c'", line=4, element="joint 'j2'")

    def test_a_circle_without_a_root(self):
        refused(
            robot(AB, BC, joint("j3", "c", "a")),
            "the joints 'j1', 'j2', 'j3' lead round in a circle",
            "<loop>",
            line=3,
            element="joint 'j1'",
        )

    def test_a_circle_beside_a_root(self):
        refused(
            robot(AB, joint("j3", "c", "d"), joint("j4", "d", "c"), links="abcd"),
            "the joints 'j3', 'j4' lead round in a circle",
            line=4,
            element="joint 'j3'",
        )

    def test_a_circle_with_a_tail(self):
        text = robot(
            joint("tail", "c", "a"), joint("j3", "b", "c"), joint("j4", "c", "b"), links="abc"
        )
        with pytest.raises(DescriptionError) as caught:
            read(text)
        assert "circle" in caught.value.message
        assert "'tail'" not in caught.value.message

    def test_two_roots(self):
        refused(
            robot(AB),
            "the robot has 2 roots",
            "'a', 'c'",
            "connect the others by joints",
            line=2,
            element="link 'c'",
        )

    def test_many_roots_are_not_all_named(self):
        links = [f"l{i}" for i in range(100)]
        with pytest.raises(DescriptionError, match=r"the robot has 100 roots.*'l5' and 94 more"):
            read(robot(links=links))

    def test_a_long_chain(self):
        count = 5000
        links = "".join(f'<link name="l{i}"/>\n' for i in range(count + 1))
        joints = "".join(joint(f"j{i}", f"l{i}", f"l{i + 1}") + "\n" for i in range(count))
        # from the tip to the base: the longest walk up comes first
        found = read(f'<robot name="r">{"".join(reversed(links.splitlines(True)))}{joints}</robot>')
        assert (len(found.links), len(found.joints)) == (count + 1, count)


# --- what is odd ----------------------------------------------------------------------------------


class TestUnknownWords:
    @pytest.mark.parametrize(
        ("inner", "words", "element"),
        [
            ("<loopp/>", "<loopp> is not known and is ignored; did you mean 'loop'?", "<loopp>"),
            ("<Link/>", "<Link> is not known and is ignored; did you mean 'link'?", "<Link>"),
            ('<frame name="f"/>', "<frame> is not known", "frame 'f'"),
        ],
    )
    def test_elements_of_a_robot(self, inner, words, element):
        suspected(robot(AB, BC, inner), words, line=5, element=element)

    def test_elements_with_a_namespace(self):
        text = robot(AB, BC, '<drake:joint name="j9" type="ball"/>')
        suspected(
            text.replace("<robot", '<robot xmlns:drake="http://drake.mit.edu"'),
            "<drake:joint> is not known and is ignored",
            line=5,
            element="drake:joint 'j9'",
        )

    @pytest.mark.parametrize(
        ("body", "words", "element"),
        [
            ('<link name="d"><inertia/></link>', "<inertia> is not known", "link 'd'"),
            (
                joint("j3", "c", "d", '<limits lower="1"/>'),
                "<limits> is not known and is ignored; did you mean 'limit'?",
                "joint 'j3'",
            ),
            (loop('<limit lower="1"/>'), "<limit> is not known", "loop 'l'"),
            (
                '<coupling name="g"><joint name="j1"/><ofset value="1"/></coupling>',
                "<ofset> is not known and is ignored; did you mean 'offset'?",
                "coupling 'g'",
            ),
        ],
    )
    def test_elements_within(self, body, words, element):
        links = "abc" if 'name="d"' in body else "abcd"
        tie = () if "j3" in body else (joint("j0", "c", "d"),)
        suspected(robot(AB, BC, body, *tie, links=links), words, line=5, element=element)

    @pytest.mark.parametrize(
        ("body", "words", "element"),
        [
            ('<link name="d" mass="1"/>', "'mass' of <link>", "link 'd'"),
            (joint("j3", "c", "d", more='actuated="1"'), "'actuated' of <joint>", "joint 'j3'"),
            (
                joint("j3", "c", "d", '<axis xyz="0 0 1" frame="x"/>'),
                "'frame' of <axis>",
                "joint 'j3'",
            ),
            (
                joint("j3", "c", "d", '<limit Lower="1"/>'),
                "'Lower' of <limit> is not known and is ignored; did you mean 'lower'?",
                "joint 'j3'",
            ),
            (
                joint("j3", "c", "d", '<dynamics stiffness="1"/>'),
                "'stiffness' of <dynamics>",
                "joint 'j3'",
            ),
            (
                joint("j3", "c", "d", '<mimic joint="j1" ratio="1"/>'),
                "'ratio' of <mimic>",
                "joint 'j3'",
            ),
            (loop(more='lenght="1"'), "'lenght' of <loop>", "loop 'l'"),
            (
                '<coupling name="g" ratio="1"><joint name="j1"/></coupling>',
                "'ratio' of <coupling>",
                "coupling 'g'",
            ),
            (
                '<coupling name="g"><joint name="j1" value="2"/></coupling>',
                "'value' of <joint>",
                "coupling 'g'",
            ),
        ],
    )
    def test_attributes(self, body, words, element):
        links = "abc" if 'link name="d"' in body else "abcd"
        tie = () if "j3" in body else (joint("j0", "c", "d"),)
        suspected(
            robot(AB, BC, body, *tie, links=links),
            f"the attribute {words}",
            "is ignored",
            line=5,
            element=element,
        )

    def test_attributes_of_the_robot(self):
        suspected(
            SMALL.replace("<robot", '<robot author="me"'),
            "'author' of <robot>",
            line=1,
            element="robot 'small'",
        )

    def test_no_name(self):
        found = suspected(
            '<robot><link name="a"/></robot>', "the robot has no name", line=1, element="<robot>"
        )
        assert found.name == "robot"

    def test_twice(self):
        found = suspected(
            robot(AB, joint("j2", "b", "c", '<axis xyz="0 0 1"/>\n<axis xyz="0 1 0"/>')),
            "<axis> is given twice; the first is read",
            line=5,
            element="joint 'j2'",
        )
        assert found.joints[1].axis == (0.0, 0.0, 1.0)

    def test_inertial_twice(self):
        text = inertial().replace("</link>", "\n<inertial/></link>")
        found = suspected(text, "<inertial> is given twice", line=5, element="link 'a'")
        assert found.links[0].inertial.mass == 1.0


class TestSuspicions:
    def test_point_at_the_line_that_called(self):
        with pytest.warns(DescriptionWarning) as caught:
            read('<robot><link name="a"/></robot>')
        assert Path(caught[0].filename) == Path(__file__)

    def test_of_anyone(self):
        source = Source("file", 3, "link 'a'")
        with pytest.warns(DescriptionWarning, match=r"^file:3: link 'a': odd$"):
            suspect("odd", source, strict=False)
        with pytest.raises(DescriptionError, match=r"^file:3: link 'a': odd$"):
            suspect("odd", source, strict=True)

    def test_of_one_kind_are_told_together(self):
        doubts = [
            Doubt("odd", Source("file", 3, "link 'a'")),
            Doubt("odd", Source("file", 5, "link 'b'")),
            Doubt("odder", Source("file", 6, "link 'c'"), "odd"),
            Doubt("odd", Source("other", 7, "link 'd'")),
            Doubt("odd", Source("file", None, "link 'e'")),
            Doubt("strange", Source("file", 3, "link 'a'")),
        ]
        with pytest.warns(DescriptionWarning) as caught:
            suspect_all(doubts, strict=False)
        assert [str(warning.message) for warning in caught] == [
            "file:3: link 'a': odd; likewise link 'b' (line 5), link 'c' (line 6), "
            "link 'd' (other:7), link 'e'",
            "file:3: link 'a': strange",
        ]
        with pytest.raises(DescriptionError, match=r"^file:3: link 'a': odd; likewise"):
            suspect_all(doubts, strict=True)


def test_errors_and_descriptions_pickle():
    with pytest.raises(DescriptionError) as caught:
        read(BAD)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.line) == (str(caught.value), 2)
    description = read(EXAMPLES[0])
    assert pickle.loads(pickle.dumps(description)) == description
